/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NCCLINSPD_COMPARE_RANKS_H
#define NCCLINSPD_COMPARE_RANKS_H

/*
 * One operation as all ranks of this node saw it: which came last, what it cost the
 * others, and what the transfer alone takes.
 *
 * Where every rank needs data of every other, all leave nearly together, so that the
 * one that was inside for the least time came last and waited for nobody.  Durations
 * on each rank's own GPU clock are compared: no clock is synchronised.  (Only the order
 * of those that came nearly together is told by the clocks, see ranks_compare.h.)  This
 * holds for AllReduce, AllGather, ReduceScatter and AlltoAll, and for nothing else
 * (ops_facts()->joint).
 *
 * Operations of a communicator with several ranks here are held until these ranks'
 * have come, RANKS_WAIT_NS at most; all others go on at once.  Ranks belong together
 * if their communicators have one id, size and name and were made at one time; where
 * that would make a rank number come twice (two shrinks of one parent have one id),
 * nothing is compared.
 */

#include "reader/base/model.h"

#define RANKS_WAIT_NS	UINT64_C(300000000)

/* Zero means the default. */
struct ranks_limits {
	uint32_t ops;		/* held at once (4096) */
	uint32_t joints;	/* operations that are waited for at once (2048) */
	uint32_t cohorts;	/* communicators (1024) */
	uint64_t seed;		/* seed of the index tables: should be random */
};

struct ranks_hooks {
	/* All processes there are; those that have ended a moment ago included. */
	size_t (*processes)(void *arg, struct process *const **list);
	/* Each operation that was added, once; valid during the call only. */
	void (*op)(const struct op *op, uint64_t now_ns, void *arg);
	/*
	 * NULL, or: those that were compared, before they are handed on one by one: one
	 * operation, n ranks of `expected` that this node has.
	 */
	void (*joint)(const struct op *const *ops, uint32_t n, uint32_t expected,
		      uint64_t now_ns, void *arg);
	void *arg;
};

struct ranks_stats {
	uint64_t joints;	/* operations of which ranks were compared */
	uint64_t expired;	/* operations that a rank's part did not come to in time */
	uint64_t pushed_out;	/* operations that went on because there was no more room */
	uint64_t ambiguous;	/* operations of ranks that cannot be told apart */
	uint64_t unscanned;	/* operations that came when enough members were sought */
};

struct ranks;

/* Returns 0 or -ENOMEM.  `limits` may be NULL. */
int ranks_new(struct ranks **ranksp, const struct ranks_limits *limits,
	      const struct ranks_hooks *hooks);
/* Drops the operations that are still held. */
void ranks_free(struct ranks *ranks);

/* Takes a copy if it has to wait. */
void ranks_add(struct ranks *ranks, const struct op *op, uint64_t now_ns);

/* Hands on operations that have waited long enough; called after each poll. */
void ranks_flush(struct ranks *ranks, uint64_t now_ns);

/* Stops waiting for a process; called after its last operation. */
void ranks_end(struct ranks *ranks, const struct process *process, uint64_t now_ns);

const struct ranks_stats *ranks_stats(const struct ranks *ranks);

#endif
