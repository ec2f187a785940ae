/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NCCLINSPD_FINDINGS_DESYNC_H
#define NCCLINSPD_FINDINGS_DESYNC_H

/*
 * Why does an operation not end?  A decision from what each rank of this node has
 * posted and waits for; a pure function of its input.
 *
 *     somebody is dead                       RANK_DEAD
 *     somebody has not come:
 *         with another function here         ORDER_MISMATCH
 *         and is nowhere else                NOT_JOINED
 *         but waits on another communicator  follow it; a circle: COMM_DEADLOCK
 *     somebody's GPU has not begun it, and is
 *     in something older elsewhere:          the same
 *     all are there:
 *         other arguments                    METADATA_MISMATCH
 *         other algorithm                    CONFIG_MISMATCH
 *         else follow who waits for whom to a rank that waits for nobody:
 *         its network                        LINK
 *         its GPU                            GPU_STUCK, NOT_RUNNING (that only where
 *                                            a kernel would have been told of)
 *         nobody such, some are done         PARTIAL
 *         a circle                           INTERNAL
 *         a rank that is not on this node    UNKNOWN
 */

#include "reader/base/model.h"
#include "util/words.h"

#define DESYNC_RANKS	32
#define DESYNC_CIRCLE	8
#define DESYNC_NONE	UINT32_MAX

/* The thing that a rank's most telling transfer waits for. */
enum desync_wait {
	WAIT_NONE,	/* no transfer is in flight */
	WAIT_PRODUCE,	/* its own GPU has no data yet */
	WAIT_CREDIT,	/* the receiver, `peer`, has no room */
	WAIT_RECV,	/* the sender, `peer`, has sent nothing */
	WAIT_CONSUME,	/* its own GPU does not take what has come */
	WAIT_FLUSH,	/* the way from the NIC into its own GPU */
	WAIT_WIRE,	/* the network to `peer` */
};

/* One rank of this node, and the operation in question. */
struct desync_rank {
	int32_t rank;
	bool ended;		/* its process, without having left the communicator */
	bool posted;		/* it has made the call */
	bool done;		/* the operation is over on this rank */
	bool wants_kernel;	/* KernelCh is told */
	uint32_t kernel_started; /* channels */
	enum desync_wait wait;
	int32_t peer;		/* UNKNOWN_I32 */
	int32_t step;		/* step of that transfer; UNKNOWN_I32 */
	/* the call, where it is in flight */
	uint64_t count;		/* UNKNOWN_U64 */
	name_t datatype, algo, proto;	/* NULL: not known */
	int32_t root;		/* UNKNOWN_I32 */
	uint32_t channels;	/* 0: not known */
	/* if it has not made the call, or its GPU has not begun it */
	name_t other_func;	/* called on this communicator, and not posted by the others */
	uint32_t elsewhere;	/* the communicator that it waits on instead, or DESYNC_NONE */
};

/* The others wait for it: it has not come, or its GPU is busy on another communicator. */
static inline bool desync_is_away(const struct desync_rank *r)
{
	if (r->ended || r->done)
		return false;
	return !r->posted ||
	       (r->wants_kernel && !r->kernel_started && r->elsewhere != DESYNC_NONE);
}

/* It is inside, and nothing tells that its GPU has begun: no kernel, no transfer. */
bool desync_has_not_begun(const struct desync_rank *r);

/* One communicator with an operation in flight. */
struct desync_comm {
	int32_t nranks;		/* ranks that take part, on all nodes; UNKNOWN_I32 */
	const struct desync_rank *ranks;	/* ranks on this node that take part */
	uint32_t n;
};

struct desync_input {
	const struct desync_comm *comms;
	uint32_t n;
};

struct desync_result {
	enum verdict verdict;
	uint32_t comm;		/* the communicator with the cause */
	int32_t ranks[DESYNC_RANKS];
	uint32_t nranks;
	int32_t peer;		/* UNKNOWN_I32; the peer of LINK, or the remote rank waited for */
	name_t field;		/* the argument in METADATA_MISMATCH and CONFIG_MISMATCH */
	name_t other_func;	/* the other function of ORDER_MISMATCH */
	uint32_t circle[DESYNC_CIRCLE];	/* communicators of COMM_DEADLOCK */
	uint32_t ncircle;
	bool one_of;		/* one of these ranks: nothing tells which */
	bool remote;		/* the cause lies, or may lie, on another node */
};

void desync_decide(const struct desync_input *in, uint32_t comm, struct desync_result *out);

#endif
