/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NCCLINSPD_RECON_H
#define NCCLINSPD_RECON_H

/*
 * What reconstruct keeps of one process: everything in fixed pools, found by
 * token through one index.
 *
 *   open       operations whose head (Coll, P2p, CeColl) was seen, least recently
 *              touched first
 *   headless   children came, the head did not yet: an operation that is only a
 *              token and sums
 *   waiting    heads whose API call was not seen yet, oldest first
 *   calls      API calls that no operation has claimed, oldest first
 *   captured   API calls under graph capture: each replay claims them again
 *   steps      network steps whose ProxyOp has not stopped yet
 *   finished   a ring of tokens of operations that are done with, so that late
 *              children are told from early ones, and of groups that have ended
 */

#include "ncclinspd/names.h"
#include "ncclinspd/pool.h"
#include "ncclinspd/reconstruct.h"

#define RECON_CHANNELS	64	/* NCCL's own limit */

struct open_op {
	struct pool_link link;		/* of open or headless */
	struct pool_link wait_link;	/* of waiting */
	struct op op;
	uint64_t api_token;		/* 0: has none */
	uint64_t head_ns;		/* drained */
	uint64_t touched_ns;		/* its last record was drained */
	uint64_t alive_ns;		/* a child was last seen in flight */
	uint32_t live_kernels;		/* in flight at alive_ns */
	bool has_head;
	bool has_api;
	bool waits;			/* is on waiting */
};

struct api_call {
	struct pool_link link;		/* of calls or captured */
	uint64_t token;
	uint64_t group;			/* token of the GroupApi event, or 0 */
	uint64_t count;
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
	uint64_t token;			/* of the ProxyOp */
	uint64_t stop_ticks;		/* last */
	uint64_t seen_ns;
};

/*
 * NCCL reports the kernels of a channel from two queues, that of receives and that
 * of all else: each in the order of execution, but one may run ahead of the other.
 */
struct recon_channel {
	uint64_t gpu_start[2];		/* of the last good pair of stamps of each */
	uint32_t refused;		/* in a row */
};

/* One local rank.  Made when its communicator is first used. */
struct recon_comm {
	name_t name;
	struct comm_progress progress;
	uint64_t newest_done;		/* start tick of the newest operation that completed */
	bool proxy_seen;
	struct recon_channel channel[RECON_CHANNELS];
};

enum recon_kind {
	RECON_NONE,
	RECON_OP,
	RECON_API,
	RECON_STEPS,
	RECON_FINISHED,		/* an operation that is done with; has no item */
	RECON_GROUP,		/* a GroupApi that has stopped; has no item */
	RECON_CALL,		/* ... and was of a single call */
};

struct recon {
	struct process *process;
	struct index index;		/* token -> kind and item */
	struct pool ops, apis, steps;
	struct pool_list open, headless, waiting;
	struct pool_list calls, captured;
	struct pool_list step_list;
	uint64_t *finished;
	uint32_t finished_capacity;
	uint64_t finished_count;
	struct recon_comm **comms;
	uint32_t ncomms;
	uint64_t slots_ns;		/* its live slots were last looked at */
	bool wants;			/* something can only be decided by another look */
	bool serves;			/* has done network work for other processes */
	bool ended;
};

/* -ENOMEM: nothing left behind. */
int recon_new(struct recon **rp, struct process *process,
	      const struct reconstruct_limits *limits);
void recon_free(struct recon *r);

/* What a token stands for; *item is its number in the kind's pool. */
enum recon_kind recon_find(const struct recon *r, uint64_t token, uint32_t *item);

/*
 * New items, found by their token from then on.  POOL_NONE: the token stands for
 * something already, or the pool is full (the caller makes room first).
 */
uint32_t recon_take_op(struct recon *r, uint64_t token);
uint32_t recon_take_api(struct recon *r, uint64_t token);
uint32_t recon_take_steps(struct recon *r, uint64_t token);

/* Off every list, out of the index; an operation's token is remembered. */
void recon_drop_op(struct recon *r, uint32_t item);
void recon_drop_api(struct recon *r, uint32_t item);
void recon_drop_steps(struct recon *r, uint32_t item);

/* Remember a token that has no item (any more). */
void recon_remember(struct recon *r, uint64_t token, enum recon_kind kind);

/* The state of a communicator, or NULL: not in the table, or no memory. */
struct recon_comm *recon_comm(struct recon *r, uint16_t comm);

static inline struct open_op *recon_op(const struct recon *r, uint32_t item)
{
	return pool_at(&r->ops, item);
}

static inline struct api_call *recon_api(const struct recon *r, uint32_t item)
{
	return pool_at(&r->apis, item);
}

static inline struct step_sums *recon_steps(const struct recon *r, uint32_t item)
{
	return pool_at(&r->steps, item);
}

#endif
