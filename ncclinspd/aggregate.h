/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NCCLINSPD_AGGREGATE_H
#define NCCLINSPD_AGGREGATE_H

/*
 * Operations -> counts and histograms per cell (communicator of a process,
 * function, algorithm, protocol, size class, peer, timing source), over several
 * windows.  A query merges cells; histograms are merged, never their results.
 */

#include "ncclinspd/model.h"

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

/* What rows are told apart by; the texts are those of ?by= */
#define AGGREGATE_KEYS(X)		\
	X(0, COMM,  "comm")		\
	X(1, RANK,  "rank")		\
	X(2, FUNC,  "func")		\
	X(3, ALGO,  "algo")		\
	X(4, PROTO, "proto")		\
	X(5, SIZE,  "size")		\
	X(6, PEER,  "peer")		\
	X(7, TAG,   "tag")

enum aggregate_key {
#define X(bit, NAME, text) AGGREGATE_BY_##NAME = 1 << (bit),
	AGGREGATE_KEYS(X)
#undef X
	AGGREGATE_BY_ALL = 0xff
};

/* Durations of the operations that were timed; all UNKNOWN_U64 when n is 0. */
struct aggregate_times {
	uint64_t n;
	uint64_t mean_ns, p50_ns, p90_ns, p99_ns, max_ns;
};

/*
 * One row.  A key is meaningful if its bit is in `by`.  Rows are never mixed from
 * two timing sources; operations without any time are counted in the row of the
 * best source with the same keys.
 */
struct aggregate_row {
	uint32_t by;
	bool has_comm_id;
	uint64_t comm_id;
	name_t comm_name;
	int32_t nranks;		/* UNKNOWN_I32: not known, or not the same for all */
	int32_t rank;
	name_t func, algo, proto;
	uint64_t size_class;	/* bytes rounded down to a power of two; UNKNOWN_U64 */
	int32_t peer;
	uint64_t tag;
	enum timing_source source;
	uint64_t window_ns;	/* time that the figures cover */
	uint64_t ops;
	uint64_t bytes;		/* of the operations whose size is known */
	uint64_t sized_ops;	/* how many those are */
	struct aggregate_times exec, queue;
	double algbw_gbs;	/* bytes of timed operations over their time; < 0: not known */
	double busbw_mean_gbs;	/* time-weighted, as algbw; < 0 */
	double busbw_p50_gbs;
	double busbw_min_gbs;
	double share;		/* of wall time inside, per member; < 0: not known */
	double sampled_fraction; /* timed operations over all */
};

/* Zero means the default. */
struct aggregate_limits {
	uint32_t cells;		/* 4096 */
	uint32_t slices;	/* parts of windows in use, 32768 */
	uint32_t chunks;	/* octaves of histograms in use, 196608 */
	uint64_t seed;
};

struct aggregate_stats {
	uint32_t cells;		/* in use */
	uint64_t added;		/* operations taken in */
	uint64_t evicted;	/* cells thrown out for new ones, with their totals */
	uint64_t unbinned;	/* values missing in a window: no room */
	uint64_t bytes;		/* memory reserved; what is touched is less */
};

struct aggregate_query {
	enum aggregate_window window;
	uint32_t by;		/* AGGREGATE_BY_* */
	bool all_users;
	uid_t uid;		/* unless all_users */
};

struct aggregate;

/* 0 or -ENOMEM.  `limits` may be NULL. */
int aggregate_new(struct aggregate **aggp, const struct aggregate_limits *limits,
		  uint64_t now_ns);
void aggregate_free(struct aggregate *agg);

void aggregate_add(struct aggregate *agg, const struct op *op, uint64_t now_ns);

/*
 * Visit the rows, those with the most time inside first (then by bytes).  A
 * row is valid during its visit; `visit` returns false to stop.  Returns the
 * number of rows visited or -ENOMEM.
 */
typedef bool aggregate_row_fn(const struct aggregate_row *row, void *arg);
int aggregate_query(struct aggregate *agg, const struct aggregate_query *query,
		    uint64_t now_ns, aggregate_row_fn *visit, void *arg);

const struct aggregate_stats *aggregate_stats(const struct aggregate *agg);

#endif
