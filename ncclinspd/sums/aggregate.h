/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NCCLINSPD_SUMS_AGGREGATE_H
#define NCCLINSPD_SUMS_AGGREGATE_H

/*
 * Operations -> counts and histograms per cell (communicator of a process,
 * function, algorithm, protocol, size class, peer, tag, phase, timing source), over several
 * windows.  A query merges cells; histograms are merged, never their results.
 */

#include "reader/base/model.h"

/* Operations that come while a query is at work wait here, up to so many. */
#define AGGREGATE_HELD 2048

/*		 name       text    slices  of (ns) */
#define AGGREGATE_WINDOWS(X)				\
	X(1S,  "1s",  4,   250000000)			\
	X(10S, "10s", 5,  2000000000)			\
	X(60S, "60s", 6,  10000000000)			\
	X(ALL, "all", 0,  0)

enum aggregate_window {
#define X(NAME, text, slices, ns) AGGREGATE_##NAME,
	AGGREGATE_WINDOWS(X)
#undef X
	AGGREGATE_WINDOW_END
};

extern const char *const aggregate_windows[];	/* texts by enum aggregate_window, then NULL */

/* Keys that rows are told apart by; the texts are those of ?by= */
#define AGGREGATE_KEYS(X)		\
	X(0, COMM,  "comm")		\
	X(1, RANK,  "rank")		\
	X(2, FUNC,  "func")		\
	X(3, ALGO,  "algo")		\
	X(4, PROTO, "proto")		\
	X(5, SIZE,  "size")		\
	X(6, PEER,  "peer")		\
	X(7, TAG,   "tag")		\
	X(8, PHASE, "phase")

enum aggregate_key {
#define X(bit, NAME, text) AGGREGATE_BY_##NAME = 1 << (bit),
	AGGREGATE_KEYS(X)
#undef X
	AGGREGATE_BY_ALL = 0x1ff,
	/* Inside the daemon: a row for each communicator of each process, with these two keys. */
	AGGREGATE_BY_MEMBER = AGGREGATE_BY_COMM | AGGREGATE_BY_RANK | 0x200
};

extern const char *const aggregate_keys[];	/* texts by bit, then NULL */

/* Durations of the operations that were timed; all UNKNOWN_U64 when n is 0. */
struct aggregate_times {
	uint64_t n;
	uint64_t mean_ns, p50_ns, p90_ns, p95_ns, p99_ns, max_ns;
};

/*
 * One row.  A key is meaningful if its bit is in `by`.  The times of a row are of
 * one source, the best that there is with its keys; all other operations are counted in
 * that row without a time.  A batch counts once, with all its bytes and its
 * time, in the row of its first member.  What is put together from sends and
 * receives is in rows by function only, since the parts are in all.
 */
struct aggregate_row {
	enum aggregate_window window;
	uint32_t by;
	bool has_comm_id;
	uint64_t comm_id;
	name_t comm_name;
	int32_t nranks;		/* UNKNOWN_I32: not known, or not the same for all */
	int32_t rank;
	pid_t pid;		/* set by communicator, where that is not known; else UNKNOWN_I32 */
	uid_t uid;		/* the owner of the first of its processes */
	uint64_t process_id;	/* this and the next: by member only */
	uint32_t comm_index;
	name_t func, algo, proto;
	uint64_t size_class;	/* bytes rounded down to a power of two; UNKNOWN_U64 */
	int32_t peer;
	uint64_t tag;
	name_t tag_name;
	name_t phase;
	enum timing_source source;
	uint64_t window_ns;	/* time that the figures cover */
	uint64_t ops;
	uint64_t bytes;		/* bytes of the operations whose size is known */
	uint64_t sized_ops;	/* number of those */
	uint64_t fused;		/* operations that ran, or may have run, in a batch with others */
	uint64_t derived;	/* operations put together from sends and receives */
	struct aggregate_times exec;	/* times of those that ran alone */
	struct aggregate_times batch;	/* times of batches whose first member is of this row */
	struct aggregate_times queue;
	double algbw_gbs;	/* bytes of all that was timed over its time; < 0: not known */
	double busbw_mean_gbs;	/* time-weighted, as algbw; < 0 */
	double busbw_p50_gbs;
	double busbw_min_gbs;
	double busbw_waitfree_gbs; /* over the time of the last to come; time-weighted; < 0 */
	double wait_fraction;	/* part of the time inside: wait for this node's last; < 0 */
	double share;		/* part of wall time inside, per member, what was timed standing for
				   all; < 0: not known */
	double sampled_fraction; /* operations with a time, alone or in a batch, over all */
	double lost_fraction;	/* part of the records of its processes; < 0: there were none */
};

/* Zero means the default. */
struct aggregate_limits {
	uint32_t cells;		/* 4096 */
	uint32_t slices;	/* parts of windows in use, 65536: all 15 of each cell */
	uint32_t chunks;	/* parts of histograms in use, 262144 */
	uint64_t seed;
};

struct aggregate_stats {
	uint32_t cells;		/* cells in use */
	uint64_t added;		/* operations taken in */
	uint64_t evicted;	/* cells thrown out for new ones, with their totals */
	uint64_t unbinned;	/* values missing in a window: no room */
	uint64_t bytes;		/* memory reserved; what is touched is less */
};

struct aggregate_query {
	uint32_t windows;	/* bits: 1 << enum aggregate_window */
	uint32_t by;		/* AGGREGATE_BY_* */
	bool all_users;
	uid_t uid;		/* unless all_users */
	/*
	 * Called now and then on the way, so that thousands of rows need not be made
	 * in one go; aggregate_add() may be called from it.  NULL: never.
	 */
	void (*meanwhile)(void *arg);
	void *meanwhile_arg;
};

struct aggregate;

/* Returns 0 or -ENOMEM.  `limits` may be NULL. */
int aggregate_new(struct aggregate **aggp, const struct aggregate_limits *limits,
		  uint64_t now_ns);
void aggregate_free(struct aggregate *agg);

void aggregate_add(struct aggregate *agg, const struct op *op, uint64_t now_ns);

/*
 * Times that operations of one kind took so far: of one rank, function, size class and so
 * on.
 */
struct aggregate_usual {
	uint64_t taken_ns;	/* time taken by the one that is asked for */
	uint64_t ops;		/* the others */
	uint64_t p50_ns;
	uint64_t p999_ns;	/* quantile 0.999; of fewer than 1000: the second longest */
};

/*
 * Figures for an operation that is not added yet.  False: it took less than `least_ns` or
 * an unknown time, or is the first of its kind.
 */
bool aggregate_usual(const struct aggregate *agg, const struct op *op, uint64_t least_ns,
		     struct aggregate_usual *out);

/*
 * Takes how many records of this process were read and lost so far; as often as it may
 * change.
 */
void aggregate_account(struct aggregate *agg, uint64_t process_id, uint64_t records,
		       uint64_t lost, uint64_t now_ns);

/*
 * Visit the rows, window after window, in each those with the most time inside
 * first (then by bytes), as of this moment: what is added from `meanwhile` waits
 * until the last was visited.  A row is valid during its visit; `visit` returns
 * false for -ENOMEM.  Returns the number of rows visited, -ENOMEM, or -EAGAIN:
 * more was added than can wait, ask again without `meanwhile`.
 */
typedef bool aggregate_row_fn(const struct aggregate_row *row, void *arg);
int aggregate_query(struct aggregate *agg, const struct aggregate_query *query,
		    uint64_t now_ns, aggregate_row_fn *visit, void *arg);

const struct aggregate_stats *aggregate_stats(const struct aggregate *agg);

#endif
