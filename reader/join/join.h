/* SPDX-License-Identifier: Apache-2.0 */
#ifndef READER_JOIN_JOIN_H
#define READER_JOIN_JOIN_H

/*
 * The half of reconstruct that is driven by records: each is joined to its
 * operation.  reconstruct.c holds the half that is driven by time.
 */

#include "reader/join/batch.h"
#include "reader/join/recon.h"

#define JOIN_MEMBERS	1024	/* operations of one launch that are compared */
#define JOIN_SPANS	16384	/* channels of these, all together */
#define JOIN_PARTS	8192	/* sends and receives of a group that are put together */

/* Scratch room: operations of a launch are sorted into batches here, a group's parts by peer. */
struct join_scratch {
	struct batch_span span[JOIN_SPANS];
	struct open_op *open[JOIN_MEMBERS];
	uint32_t batch[JOIN_MEMBERS];
	struct op *op[JOIN_MEMBERS];
	struct p2p_part part[JOIN_PARTS];
};

struct reconstruct {
	struct reconstruct_limits limits;
	struct reconstruct_stats stats;
	struct names *names;
	reconstruct_done_fn *done;
	reconstruct_moved_fn *moved;	/* or NULL */
	reconstruct_requested_fn *requested;	/* or NULL */
	void *arg;
	struct recon_room room;
	struct recon **recons;	/* limits.processes places; NULL: free */
	uint32_t nrecons;	/* places in use or once used */
	struct join_scratch *scratch;
	struct gpus gpus;
	struct index nonces;	/* join_nonce_key() -> place in recons */
	uint64_t checked_ns;	/* the slower checks were last made */
	bool wanted;		/* some process waits for a look at live slots */
};

/* A nonce names a process of the same user only: nobody can take that of another user's. */
static inline uint64_t join_nonce_key(uid_t uid, uint32_t nonce)
{
	return (uint64_t)uid << 32 | nonce;
}

/* One event's way in; rows of a table in join.c. */
typedef void join_fn(struct reconstruct *rc, struct recon *r, const struct event *ev,
		     uint64_t now_ns);
join_fn join_on_group_api, join_on_coll_api, join_on_p2p_api;
join_fn join_on_group;
join_fn join_on_kernel_ch, join_on_proxy_op, join_on_proxy_step, join_on_proxy_sums;
join_fn join_on_net_plugin;

/* Fill in the process that it is of; nothing else is known.  `op` is zeroed. */
void join_init_op(const struct recon *r, struct op *op, uint64_t token, uint64_t now_ns);

/* Fill in its communicator (NULL: not in the table), whose state it returns; NULL: it has none. */
struct recon_comm *join_fill_comm(struct reconstruct *rc, struct recon *r, struct op *op,
				  uint16_t index, const struct comm *comm);

/* NULL: it has none, or is not in the table. */
name_t join_comm_name(struct reconstruct *rc, struct recon *r, uint16_t index);

/* A headless operation of a token that stands for nothing.  NULL: no memory. */
struct open_op *join_new_op(struct reconstruct *rc, struct recon *r, uint64_t token,
			    uint64_t now_ns);

/* Hand it on if it is complete and waits for nothing. */
void join_advance(struct reconstruct *rc, struct recon *r, struct open_op *o, uint64_t now_ns);

/* The open operation that a live child belongs to, and its process; or NULL. */
struct open_op *join_live_parent(struct reconstruct *rc, struct recon *r,
				 const struct nci_record *rec);

/* A new head finds its API call, or waits for it. */
void join_look_for_api(struct recon *r, struct open_op *o);

/* An operation on `waiting` looks for its API call again.  True: found. */
bool join_api(struct recon *r, struct open_op *o);

/* It waits for its API call no longer; handed on if it is complete. */
void join_stop_waiting(struct reconstruct *rc, struct recon *r, struct open_op *o,
		       uint64_t now_ns);

/*
 * An operation out of an API call alone; returns the facts of its function.  Nothing is handed on
 * or dropped.
 */
const struct op_facts *join_op_from_api(struct reconstruct *rc, struct recon *r,
					const struct api_call *api, struct op *op);

/* Place it in time and hand it on.  It stays where it is. */
void join_deliver(struct reconstruct *rc, struct recon *r, struct op *op,
		  const struct op_facts *facts, bool complete, uint64_t now_ns);

/* Keep the stamps of one channel until its operation is complete. */
void join_read_stamps(struct recon *r, struct open_op *o, const struct nci_ev_kernel_ch *c);

/*
 * It is finished: false if later records of its communicator may tell whether its stamps
 * are true, of this poll if not all is read, or of the next ones.  Until then it is
 * held, if there is a launch that can hold it.
 */
bool join_settle_stamps(struct recon *r, const struct open_op *o, bool all_read);

/*
 * It is settled, or not waited for: its GPU times, if all of its stamps are true, else
 * why not.  Those that can no longer be believed when its launch is handed on are taken back.
 */
void join_judge_stamps(struct reconstruct *rc, struct recon *r, struct open_op *o);

/* Both at once, as most are: false if it is not settled, and not judged. */
bool join_finish_stamps(struct reconstruct *rc, struct recon *r, struct open_op *o);
void join_take_back_stamps(struct reconstruct *rc, struct recon *r, struct open_op *o);

/* A head was read: its place among what its communicator posted. */
void join_post(struct reconstruct *rc, struct recon *r, struct recon_comm *rcomm, struct op *op);

/*
 * Whether NCCL's own count of that communicator's works was wrong when the operation was
 * posted: it looks for its kernels' stamps in other works' places, perhaps for ever.
 */
static inline bool join_has_drifted(const struct recon *r, const struct recon_comm *rcomm,
				    const struct op *op)
{
	const struct comm *comm = process_comm(r->process, (uint16_t)op->comm_index);
	uint64_t start = op->start_ticks;

	return (comm && comm->drift_ticks && start >= comm->drift_ticks) ||
	       (rcomm && rcomm->uncounted && start >= rcomm->uncounted) ||
	       (rcomm && rcomm->missing && start >= rcomm->gap);
}

/*
 * NCCL counts what is watched only, from 2.31 on; the GPU counts all.  An operation that
 * was not watched, or `missing` ones of which nothing came although nothing was lost (a
 * negative number: that many have come after all), are the end of its communicator's GPU
 * times.
 */
void join_note_uncounted(struct recon *r, struct recon_comm *rcomm, const struct op *op,
			 bool watched, int64_t missing);

/* The GPU of that communicator, or NULL. */
const struct gpu *join_gpu(const struct recon *r, uint32_t comm);

/* A head that is going to have GPU times joins the launch that it is part of. */
void join_plan_head(struct reconstruct *rc, struct recon *r, struct open_op *o, uint64_t now_ns);

/* Its launch becomes a plan, which can hold it, if it is none yet. */
void join_plan_keep(struct reconstruct *rc, struct recon *r, struct open_op *o, uint64_t now_ns);

/* All that was launched is known, and it was this operation and nothing else. */
bool join_plan_is_alone(const struct open_op *o);

/*
 * A finished operation that may have run in a batch waits for the rest of its launch.
 * False: there is nothing to wait for.
 */
bool join_plan_hold(struct reconstruct *rc, struct recon *r, struct open_op *o, uint64_t now_ns);

/* Hand on what the launch holds; forget it unless some of it is still open. */
void join_close_plan(struct reconstruct *rc, struct recon *r, struct plan *plan,
		     uint64_t now_ns);

/* All of a poll is read: what only waits for its stamps to be settled may go on. */
void join_settle_plans(struct reconstruct *rc, struct recon *r, uint64_t now_ns);

/* Hand on what has waited long enough; at the end, all that is held. */
void join_finish_plans(struct reconstruct *rc, struct recon *r, uint64_t now_ns);
void join_end_plans(struct reconstruct *rc, struct recon *r, uint64_t now_ns);

/* The newest call is kept with all others: something else came than the head that names it. */
void join_put_call_away(struct reconstruct *rc, struct recon *r, uint64_t now_ns);

/* Calls that will hardly become an operation; at the end, all. */
void join_finish_calls(struct reconstruct *rc, struct recon *r, uint64_t now_ns);
void join_end_calls(struct reconstruct *rc, struct recon *r, uint64_t now_ns);

/* The call's group has ended, as far as NCCL told: see join_on_group_api(). */
bool join_has_returned(struct recon *r, const struct api_call *api);

/* Hand on an open operation, which is finished, and drop it. */
void join_hand_on(struct reconstruct *rc, struct recon *r, struct open_op *o, uint64_t now_ns);

/* A send or receive was called for in a group. */
void join_group_call(struct reconstruct *rc, struct recon *r, const struct api_call *api,
		     uint64_t now_ns);

/* The call's transfer has begun: it is this operation. */
void join_group_claim(struct recon *r, struct open_op *o, const struct api_call *api);

/* A head whose group is not told by its call. */
void join_group_head(struct reconstruct *rc, struct recon *r, struct open_op *o,
		     uint64_t now_ns);

/* One that has a group has finished; the last one tells what they all amount to. */
void join_group_part(struct reconstruct *rc, struct recon *r, const struct open_op *o,
		     uint64_t now_ns);

/* Groups that nothing more will come of; at the end, all. */
void join_finish_groups(struct reconstruct *rc, struct recon *r, uint64_t now_ns);
void join_end_groups(struct reconstruct *rc, struct recon *r, uint64_t now_ns);

/* Hand on an open operation, and drop it: it may have to wait for the rest of its launch. */
void join_finish(struct reconstruct *rc, struct recon *r, struct open_op *o, bool complete,
		 uint64_t now_ns);

#endif
