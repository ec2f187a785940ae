/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NCCLINSPD_COMPARE_STRAGGLER_H
#define NCCLINSPD_COMPARE_STRAGGLER_H

/*
 * Operations as the ranks of this node saw them -> those that make the others wait.
 *
 * judge/late.h has what that rests on, judge/late_series.h since when, and for how long it must
 * last.
 *
 * A rank that was late because it had waited for another in the operation before, on
 * the same GPU, only handed that on: what it cost is moved to the rank that was last there,
 * and so on (16 hops).  A rank that left that operation together with it cannot be waiting for
 * its end, so this crosses communicators only.
 *
 * Sends and receives are compared by what ranks wait in them, second by second: the stage of a
 * pipeline that waits least, also in other operations, is the one that the others wait for.
 *
 * Times are ns; `now_ns` is CLOCK_MONOTONIC.  Memory is fixed: what was used least
 * lately makes room.
 */

#include "judge/late.h"
#include "reader/base/model.h"

/* Operations go back to be looked at again for as long as ranks.c may hold others. */
#define STRAGGLER_SETTLE_NS	UINT64_C(500000000)

/* Zero means the default. */
struct straggler_config {
	uint64_t window_ns;	/* 60 s */
	uint64_t seed;		/* seed of the index tables */
};

/* One rank of one communicator. */
struct straggler_rank {
	uint64_t process_id;
	pid_t pid;
	uint32_t comm_index;
	int32_t rank;
	uid_t account;
	uint64_t gpu;		/* operations of one number run one after another */
};

/* Sums of one rank of one communicator since it was first seen. */
struct straggler_sums {
	uint64_t ops;		/* operations that were looked at */
	uint64_t judged;	/* operations in which somebody was late */
	uint64_t last;		/* operations that it was last in by its own doing */
	uint64_t wait_ns;	/* its waiting for others */
	uint64_t remote_wait_ns; /* part of wait_ns: for ranks of other nodes */
	uint64_t blame_ns;	/* the others' waiting for it */
};

/*
 * One rank, in the function in which it cost the others most, over the windows that are
 * kept and the one that is open.
 */
struct straggler_lately {
	name_t func;
	uint64_t window_ns;	/* the time that the rest is of */
	uint64_t ops, judged, last;	/* counts as in struct straggler_sums */
	uint64_t late_ns;	/* mean behind the first where it was judged; UNKNOWN_U64 */
	uint64_t blame_ns;	/* the others' waiting, with what those that had waited passed on */
	bool late;		/* it is suspected, or found */
};

/*
 * A rank, or (ELSEWHERE, SLOWER) all ranks here: since it began, or over the windows that are
 * kept.  The communicator's names and the rank's GPU are left to whoever says it.
 */
struct straggler_case {
	struct late_case said;
	struct straggler_rank who;	/* the rank; else some rank here */
	uint64_t key;		/* key of the GPU, or of the function on that communicator */
	uint64_t since_ns;
	double score;		/* 0: not known */
};

/*
 * One rank over the last STRAGGLER_RECENT_NS or, where it was first seen within these, since
 * then.
 */
#define STRAGGLER_RECENT_NS	UINT64_C(10000000000)

struct straggler_recent {
	uint64_t window_ns;	/* the time that the rest is of */
	uint64_t ops;		/* compared in it; 0: nothing is known of what it waited */
	uint64_t wait_ns;	/* sums as in struct straggler_sums, of all that ended: */
	uint64_t blame_ns;	/* timed operations stand for the rest */
	uint64_t ended, timed;	/* operations; timed by the GPU */
};

/*
 * One rank over the last minute, in eighths of it that end when the clock's time is a multiple
 * of one, the newest last: it is the running one as soon as it has lasted for a third of that.
 * Below 0: unknown.
 */
#define STRAGGLER_HISTORY	8
#define STRAGGLER_HISTORY_NS	(UINT64_C(60000000000) / STRAGGLER_HISTORY)

struct straggler_history {
	double blame[STRAGGLER_HISTORY];	/* share of the time, where any were compared */
	double ops_per_s[STRAGGLER_HISTORY];	/* finished, compared or not */
};

struct straggler;

/* Returns 0 or -ENOMEM.  `config` may be NULL. */
int straggler_new(struct straggler **sp, const struct straggler_config *config);
void straggler_free(struct straggler *s);

/* Sets the length of the window that is open, and of those after it; 0: the default. */
void straggler_set_window(struct straggler *s, uint64_t window_ns);

/*
 * Takes operations as the daemon has them: one operation of n ranks that ranks.c has
 * compared, or (n = 1) of a rank that is alone here, or a send or receive.  Any that
 * cannot be compared is left out.  `list`: all processes, in the order of their ids.
 */
void straggler_see(struct straggler *s, const struct op *const *ops, uint32_t n,
		   struct process *const *list, size_t count, uint64_t now_ns);

/*
 * A number of the GPU that did it, of that process's, since others may say that it is theirs;
 * where nobody tells which it was, a process with one rank has one.
 */
uint64_t straggler_gpu(const struct straggler *s, const struct op *op,
		       struct process *const *list, size_t count);

/* Once a second: operations settle, windows end; the first one begins with the first turn. */
void straggler_turn(struct straggler *s, uint64_t now_ns);

/* A process will be gone: so is what is known of its ranks. */
void straggler_forget(struct straggler *s, uint64_t process_id);

/* False: nothing is known. */
bool straggler_of(const struct straggler *s, uint64_t process_id, uint32_t comm_index,
		  struct straggler_sums *sums);

/* False: nothing is known. */
bool straggler_recent(const struct straggler *s, uint64_t process_id, uint32_t comm_index,
		      uint64_t now_ns, struct straggler_recent *recent);

/* All is unknown of a rank that is, and where `s` is NULL. */
void straggler_history(const struct straggler *s, uint64_t process_id, uint32_t comm_index,
		       uint64_t now_ns, struct straggler_history *history);

/* False: nothing is known. */
bool straggler_lately(const struct straggler *s, uint64_t process_id, uint32_t comm_index,
		      struct straggler_lately *lately);

/* All that is found or suspected. */
typedef void straggler_case_fn(const struct straggler_case *c, void *arg);
void straggler_visit(const struct straggler *s, straggler_case_fn *visit, void *arg);

#endif
