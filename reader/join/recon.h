/* SPDX-License-Identifier: Apache-2.0 */
#ifndef READER_JOIN_RECON_H
#define READER_JOIN_RECON_H

/*
 * The memory of reconstruct for one process: everything in fixed pools, found by token
 * through one index.
 *
 *   open       operations whose head (Coll, P2p, CeColl) was seen, least recently
 *              touched first
 *   headless   children came, the head did not yet: an operation that is only a
 *              token and sums
 *   waiting    heads whose API call was not seen yet, oldest first
 *   calls      API calls that no operation has claimed, oldest first
 *   captured   API calls under graph capture: each replay claims them again
 *   steps      network steps whose ProxyOp has not stopped yet
 *   plans      what NCCL launched together (one Group event), least recently touched
 *              first; each holds its finished operations until it is known which of
 *              them ran as one batch
 *   groups     sends and receives of one group, until it is told what they amount to;
 *              found by an index of their own, since a token may stand for several
 *   place      open operations by the slot and generation of their token
 *   slot       the slots that gave operations their tokens: the newest operation of
 *              each, and which of the 64 before it are done with, so that late
 *              children are told from early ones
 *   ended      a ring of tokens of API groups that have ended
 */

#include "nci/token.h"
#include "reader/base/memory.h"
#include "reader/base/names.h"
#include "reader/base/pool.h"
#include "reader/join/ops.h"
#include "reader/join/p2pgroup.h"
#include "reader/join/reconstruct.h"
#include "reader/time/gpus.h"
#include "reader/time/stamps.h"
#include "util/list.h"

struct open_op {
	struct pool_link link;		/* on open or headless */
	struct pool_link wait_link;	/* on waiting */
	struct op op;
	const struct op_facts *facts;	/* facts of op.func, as ops_facts() */
	struct recon_span *spans;	/* its stamps on each channel, the newest first; or NULL */
	struct plan *plan;		/* the one that it is a member of; NULL: none ... */
	uint64_t plan_serial;		/* ... or it was pushed out, and has not this serial */
	uint64_t group_key;		/* key of the group of transfers that it is in; 0: none */
	struct recon_comm *rcomm;	/* its communicator while it is in flight there; or NULL */
	uint64_t api_token;		/* 0: has none */
	uint64_t head_ns;		/* drained */
	uint64_t touched_ns;		/* its last record was drained */
	uint64_t alive_ns;		/* a child was last seen in flight */
	uint32_t live_kernels;		/* kernels in flight at alive_ns */
	bool has_head;
	bool waits;			/* is on waiting */
	bool alone;			/* its launch has ended, and was this: it is no plan */
	bool held;			/* finished, and held by its plan */
	bool unsure;			/* not all of its spans are known */
	bool unjudged;			/* finished, and its stamps are not settled yet */
};

struct recon_span {
	struct recon_span *next;	/* NULL: the last */
	struct stamps_pair pair;
};

struct plan {
	struct pool_link link;
	struct pool_list held;		/* operations that have finished, by their `link` */
	uint64_t token;			/* token of the Group event */
	uint64_t serial;		/* tells it from another one in its place; 0: dropped */
	uint64_t touched_ns;
	uint32_t members;		/* heads so far */
	uint32_t open;			/* members that have not finished */
	bool ended;			/* the Group event has stopped: these are all */
	bool unsure;			/* something of it is lost or was not waited for */
};

struct recon_part {
	struct recon_part *next;	/* NULL: the last */
	struct p2p_part part;
};

struct p2p_group {
	struct pool_link link;
	uint64_t key;			/* key of its token and communicator */
	uint64_t touched_ns;
	uint64_t lost;			/* records of the process, when it began */
	uint32_t calls;			/* calls in the group; 0: API calls do not tell */
	uint32_t claimed;		/* calls whose transfer was seen to begin */
	uint32_t open;			/* transfers that have not finished */
	uint32_t nparts;		/* transfers that have finished */
	struct recon_part *parts;	/* NULL: none */
	uint32_t moving;		/* finished transfers to or from other ranks */
	uint32_t timed[TIMING_END];	/* these, by source */
	bool cut;			/* there was no room for all parts */
	struct op op;			/* fields that the parts have in common, and their times */
};

struct api_call {
	struct pool_link link;		/* on calls or captured */
	uint64_t token;
	uint64_t group;			/* token of the GroupApi event, or 0 */
	uint64_t count;
	uint64_t tag;
	uint64_t start_ticks, stop_ticks;
	uint64_t seen_ns;
	name_t func;
	name_t datatype;
	int32_t root;			/* UNKNOWN_I32: no collective */
	uint16_t comm;
	bool is_p2p;
	bool graph;
};

struct step_sums {
	struct pool_link link;
	uint64_t token;			/* token of the ProxyOp */
	uint64_t stop_ticks;		/* last */
	uint64_t data_ticks;		/* the first had its data; 0: their ProxyOp tells */
	uint64_t seen_ns;
	struct nci_ev_proxy_sums sums;	/* steps 0: none that counts */
};

/* One local rank.  Made when its communicator is first used. */
struct recon_comm {
	name_t name;
	struct comm_progress progress;	/* its calls are a ring, ... */
	uint32_t next_call;		/* ... whose oldest, and next place, this is */
	uint64_t newest_done;		/* start tick of the newest operation that completed */
	uint64_t last_call;		/* start tick of the newest API call */
	uint64_t launched_ns;		/* when the newest operation was posted */
	bool proxy_seen;
	uint64_t p2p_seq[P2P_CLASSES];	/* groups told so far */
	uint64_t tag;			/* the tag that was looked up last, ... */
	name_t tag_name;		/* ... its name ... */
	uint32_t tag_strings;		/* ... among so many strings */
	bool eager;			/* the newest that ran was no replay of a graph */
	uint64_t lost;			/* records of its process, when it was last looked at */
	uint64_t lost_at_first;		/* ... when it was first */
	uint64_t uncounted;		/* start tick of the first operation that NCCL has not
					   counted (join_note_uncounted()); 0: none */
	uint64_t gap;			/* start tick of the one behind missing numbers; 0: none */
	uint64_t missing;		/* numbers that are missing */
	struct gpu *gpu;		/* NULL: there is no room for another ... */
	uint64_t gpus_freed;		/* ... once so many were freed, plus one; 0: not tried */
	bool stamped;			/* these are in use */
	struct stamps stamps;		/* 25 KiB, in pages that most of it never touches */
};

enum recon_kind {
	RECON_NONE,
	RECON_OP,
	RECON_API,
	RECON_STEPS,
	RECON_PLAN,
	RECON_FINISHED,		/* an operation that is done with; has no item */
	RECON_GROUP,		/* a GroupApi that has stopped; has no item */
	RECON_CALL,		/* a GroupApi that was of a single call; has no item */
};

#define RECON_PLACES	1024
#define RECON_LANES	(1 << NCI_TOKEN_LANE_BITS)
#define RECON_SLOTS	1024	/* of a lane */
#define RECON_BESIDE	256	/* slots in a page */
#define RECON_PAST	64	/* generations */

/* The operations of one slot whose heads were read, or that were dropped.  Zeroed is new. */
struct recon_slot {
	uint64_t token;		/* the newest one's */
	uint64_t done;		/* bit i: the one i generations older is done with */
};

/* Communicators that are followed, of all processes: no user has more than half. */
#define RECON_USERS	256

struct recon_room {
	uint32_t comms, most;
	uint32_t of_user[RECON_USERS];	/* count by account modulo: a collision shares a half */
	uint64_t *refused;
	struct memory *memory;		/* NULL: without a ceiling */
	struct gpus *gpus;		/* the GPUs that communicators hold */
};

struct recon {
	struct process *process;
	struct recon_room *room;
	struct index index;		/* token -> kind and item, but for operations that have a
					   place */
	struct index group_index;
	struct pool ops, apis, steps, plans, spans, groups, parts;
	struct pool_list open, headless, waiting;
	struct pool_list calls, captured;
	struct pool_list step_list, plan_list, group_list;
	struct step_sums newest_sums;	/* not in the index: its ProxyOp most often comes next;
					   token 0: none */
	struct api_call newest_call;	/* not in the index, nor of `calls`; token 0: none */
	struct open_op *newest_parent;	/* the operation that a head or child came to last, if it
					   is open: so does the next child, most often */
	struct open_op *launch;		/* the only operation of the newest launch, while that is no
					   plan; NULL: none */
	LIST(uint64_t) ended_groups;	/* a ring, once it is as long as it may be */
	uint32_t ended_capacity;
	uint64_t ended_again;		/* places of it that were used again */
	struct recon_comm **comms;
	uint32_t ncomms;
	struct ops_words words;		/* functions and datatypes as it named them last */
	uint64_t plans_made;
	uint64_t taken;			/* bytes taken of the room's memory */
	uint64_t slots_ns;		/* its live slots were last looked at */
	bool wants;			/* something can only be decided by another look */
	bool launches_here;		/* a call's own thread was seen to launch it */
	bool launches_apart;		/* another thread was, for nonblocking communicators */
	bool unsettled;			/* some plans wait for stamps to be settled */
	bool serves;			/* has done network work for other processes */
	bool ended;
	bool has_places;		/* the next is in use, in part: */
	struct open_op *place[RECON_PLACES];	/* operations that it lacks are in the index */
	bool has_slots[RECON_LANES][RECON_SLOTS / RECON_BESIDE]; /* that page is in use of */
	_Alignas(4096) struct recon_slot slot[RECON_LANES][RECON_SLOTS]; /* 4 MiB */
};

/* -ENOMEM: nothing left behind. */
int recon_new(struct recon **rp, struct process *process,
	      const struct reconstruct_limits *limits, struct recon_room *room);
void recon_free(struct recon *r);

/*
 * Whether one of its pools has an item, and that, zeroed: a pool may be full, or all memory that
 * there may be is taken (NULL).
 */
bool recon_may_grow(const struct recon *r, const struct pool *pool);
bool recon_grow(struct recon *r, const struct pool *pool);

static inline bool recon_has_room(const struct recon *r, const struct pool *pool)
{
	return pool->free != POOL_NONE || recon_may_grow(r, pool);
}

static inline void *recon_take(struct recon *r, struct pool *pool)
{
	return pool->free != POOL_NONE || recon_grow(r, pool) ? pool_take_zeroed(pool) : NULL;
}

/* Give back pools that are empty again. */
void recon_trim(struct recon *r);

/* The thing that a token stands for; its item is of the kind's own type.  NULL: it has none. */
struct recon_found {
	enum recon_kind kind;
	void *item;
};

struct recon_found recon_find(struct recon *r, uint64_t token);

/* A head of that token was read.  True: for certain the first record of its operation. */
bool recon_see_head(struct recon *r, uint64_t token);

/*
 * So many newer operations of its slot have come that it is done with, or its head is lost, if it
 * is not found.
 */
bool recon_is_past(struct recon *r, uint64_t token);

/*
 * New items, found by their token from then on.  NULL: the token stands for something already,
 * which the caller knows of an operation's, or the pool is full (the caller makes room first).
 */
struct open_op *recon_take_op(struct recon *r, uint64_t token);
struct api_call *recon_take_api(struct recon *r, uint64_t token);
struct step_sums *recon_take_steps(struct recon *r, uint64_t token);
struct plan *recon_take_plan(struct recon *r, uint64_t token);

/*
 * Off every list, found no more; an operation's token is remembered.  What a plan
 * holds is taken off its list first.
 */
void recon_drop_op(struct recon *r, struct open_op *o);
void recon_drop_api(struct recon *r, struct api_call *api);
void recon_drop_steps(struct recon *r, struct step_sums *steps);
void recon_drop_plan(struct recon *r, struct plan *plan);

/* Remember a token that has no item. */
void recon_remember(struct recon *r, uint64_t token, enum recon_kind kind);

/*
 * The state of a communicator, or NULL: not in the table, or there is no room; a refused
 * one stays so.  recon_seen_comm(): NULL also before its first event.
 */
struct recon_comm *recon_comm_first(struct recon *r, uint16_t comm);

#define RECON_NO_ROOM	((struct recon_comm *)(uintptr_t)-1)	/* stands for a refused one */

static inline struct recon_comm *recon_seen_comm(const struct recon *r, uint32_t comm)
{
	struct recon_comm *rcomm = comm < r->ncomms ? r->comms[comm] : NULL;

	return rcomm == RECON_NO_ROOM ? NULL : rcomm;
}

static inline struct recon_comm *recon_comm(struct recon *r, uint16_t comm)
{
	struct recon_comm *rcomm = comm < r->ncomms ? r->comms[comm] : NULL;

	return rcomm && rcomm != RECON_NO_ROOM ? rcomm : recon_comm_first(r, comm);
}

/* False: there is no memory for its stamps. */
bool recon_may_stamp_first(struct recon *r, struct recon_comm *rcomm);

static inline bool recon_may_stamp(struct recon *r, struct recon_comm *rcomm)
{
	return rcomm->stamped || recon_may_stamp_first(r, rcomm);
}

/* Room for the stamps of one channel of an open operation, all but `next` unset; NULL: none. */
static inline struct recon_span *recon_add_span(struct recon *r, struct open_op *o)
{
	struct recon_span *span;

	if (r->spans.free == POOL_NONE && !recon_grow(r, &r->spans)) {
		o->unsure = true;
		return NULL;
	}
	span = pool_take_unset(&r->spans);
	span->next = o->spans;
	o->spans = span;
	return span;
}

#define RECON_EACH_SPAN(o, span)						\
	for (const struct recon_span *span = (o)->spans; span; span = span->next)

#endif
