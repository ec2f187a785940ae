/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NCCLINSPD_JOIN_H
#define NCCLINSPD_JOIN_H

/*
 * The half of reconstruct that is driven by records: each is joined to its
 * operation.  reconstruct.c holds the half that is driven by time.
 */

#include "ncclinspd/recon.h"

struct reconstruct {
	struct reconstruct_limits limits;
	struct reconstruct_stats stats;
	struct names *names;
	reconstruct_done_fn *done;
	void *arg;
	struct recon **recons;	/* limits.processes places; NULL: free */
	uint32_t nrecons;	/* places in use or once used */
	struct index nonces;	/* of context tokens -> place in recons */
	uint64_t checked_ns;	/* the slower checks were last made */
	bool wanted;		/* some process waits for a look at live slots */
};

/* Take in one record of the process. */
void join_event(struct reconstruct *rc, struct recon *r, const struct event *ev,
		uint64_t now_ns);

/* One event's way in; rows of a table in join.c. */
typedef void join_fn(struct reconstruct *rc, struct recon *r, const struct event *ev,
		     uint64_t now_ns);
join_fn join_on_group_api, join_on_coll_api, join_on_p2p_api;
join_fn join_on_kernel_ch, join_on_proxy_op, join_on_proxy_step;

/* Who it is of, and nothing else known.  `op` is zeroed. */
void join_init_op(const struct recon *r, struct op *op, uint64_t token, uint64_t now_ns);
void join_fill_comm(struct reconstruct *rc, struct recon *r, struct op *op, uint16_t index);

/* A headless operation.  POOL_NONE: the token stands for something else. */
uint32_t join_new_op(struct reconstruct *rc, struct recon *r, uint64_t token,
		     uint64_t now_ns);

/* Hand it on if it is complete and waits for nothing. */
void join_advance(struct reconstruct *rc, struct recon *r, uint32_t item, uint64_t now_ns);

/* The open operation that a live child belongs to, and its process; or NULL. */
struct open_op *join_live_parent(struct reconstruct *rc, struct recon *r,
				 const struct nci_record *rec);

/* A new head finds its API call, or waits for it. */
void join_look_for_api(struct recon *r, uint32_t item);

/* An operation on `waiting` looks for its API call again.  True: found. */
bool join_api(struct recon *r, struct open_op *o);

/* It waits for its API call no longer; handed on if it is complete. */
void join_stop_waiting(struct reconstruct *rc, struct recon *r, uint32_t item,
		       uint64_t now_ns);

/* An operation out of an API call alone.  Nothing is handed on or dropped. */
void join_op_from_api(struct reconstruct *rc, struct recon *r, const struct api_call *api,
		      struct op *op);

/* Place it in time and hand it on.  It stays where it is. */
void join_deliver(struct reconstruct *rc, struct recon *r, struct op *op, bool complete,
		  uint64_t now_ns);

/* Hand on an open operation, or one that only its API call tells of, and drop it. */
void join_finish(struct reconstruct *rc, struct recon *r, uint32_t item, bool complete,
		 uint64_t now_ns);
void join_finish_api(struct reconstruct *rc, struct recon *r, uint32_t item, bool complete,
		     uint64_t now_ns);

#endif
