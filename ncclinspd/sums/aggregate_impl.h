/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NCCLINSPD_SUMS_AGGREGATE_IMPL_H
#define NCCLINSPD_SUMS_AGGREGATE_IMPL_H

/*
 * State that these share: aggregate.c keeps cells and windows, aggregate_sums.c adds to
 * them, aggregate_query.c finds out what belongs into which row, aggregate_figures.c makes
 * a row's figures, aggregate_tally.c knows what was lost.
 */

#include "ncclinspd/sums/aggregate.h"
#include "reader/base/pool.h"
#include "tables/histogram.h"
#include "tables/hold.h"
#include "tables/keyed.h"
#include "util/list.h"

/* Values measured of an operation; each has sums and a histogram. */
enum aggregate_value {
	VALUE_EXEC,	/* ns */
	VALUE_BATCH,	/* ns */
	VALUE_QUEUE,	/* ns */
	VALUE_BUSBW,	/* kB/s */
	VALUE_END
};

/* One octave of a histogram: cells touch few, so they own only those. */
struct chunk {
	uint32_t next;		/* plus one; 0: the last */
	uint32_t octave;
	uint32_t count[HISTOGRAM_SUB];
};

struct value_sums {
	uint64_t n, sum, min, max;
	uint32_t chunks;	/* the first, plus one */
};

struct sums {
	uint64_t ops, sized_ops, bytes;
	uint64_t fused, derived;
	uint64_t timed_ops;	/* alone or in a batch */
	uint64_t timed_bytes;	/* bytes of what has both size and time, and its time */
	uint64_t timed_ns;
	double busbw_ns;	/* bus bandwidth times time, and the time */
	uint64_t bus_timed_ns;
	double waitfree_busbw_ns; /* the same of who waited for nobody */
	uint64_t waitfree_ns;
	uint64_t compared_ns;	/* inside, of what was compared with other ranks here */
	uint64_t wait_ns;	/* part of that until the last of them had come */
	struct value_sums value[VALUE_END];
};

/*
 * An operation, worked out once for the totals and all windows.  What ran in a
 * batch has no time of its own; the batch's counts with its first member.
 */
struct sample {
	const struct op *op;
	bool timed;
	uint64_t ns, bytes;		/* the operation's or the batch's; UNKNOWN_U64 */
	double busbw_gbs;		/* over `ns`; < 0: not known */
	uint64_t value[VALUE_END];	/* UNKNOWN_U64: not known */
	uint32_t bucket[VALUE_END];
};

/* Compared and hashed as bytes: no padding. */
struct cell_key {
	uint64_t process_id;
	name_t func, algo, proto;
	uint64_t size_class;
	uint64_t tag;
	name_t phase;
	uint32_t comm_index;
	int32_t peer;
	uint32_t source;
	uint32_t derived;	/* 1: put together from others, which are cells of their own */
};
_Static_assert(sizeof(struct cell_key) == 72, "padding would be compared");

#define AGGREGATE_SLIDING AGGREGATE_ALL	/* windows before it are made of slices */

struct cell {
	struct keyed_head head;
	struct cell_key key;
	uint64_t generation;	/* slices of an evicted cell tell by it */
	uid_t uid;
	bool has_comm_id;
	uint64_t comm_id;
	name_t comm_name;
	int32_t nranks;
	int32_t rank;
	uint64_t member;	/* GPU of a process, as far as can be told */
	uint64_t first_ns;
	uint32_t slice[AGGREGATE_SLIDING];	/* slice in the window's current period */
	uint64_t period[AGGREGATE_SLIDING];
	struct sums sums;	/* totals since it was made */
};

/* The sums of a cell in one period of a window. */
struct slice {
	uint32_t next;		/* next one in the same period, or POOL_NONE */
	uint32_t cell;
	uint64_t generation;
	struct sums sums;
};

#define AGGREGATE_MAX_SLICES 6
#define AGGREGATE_TALLIES    1024

/* A process's records in one period of a window. */
struct tally_slice {
	uint64_t period, records, lost;
};

struct tally {
	uint64_t process_id;
	uint64_t records, lost;		/* so far */
	struct tally_slice slice[AGGREGATE_SLIDING][AGGREGATE_MAX_SLICES];
};

struct window {
	uint32_t slices;
	uint64_t slice_ns;
	uint64_t period;	/* now / slice_ns */
	uint32_t first[AGGREGATE_MAX_SLICES];	/* first slice by period % slices */
};

/* Operations that come while a query is at work wait here, up to so many. */
#define AGGREGATE_HELD 2048

struct held {
	struct op op;
	uint64_t now_ns;
};

struct aggregate {
	struct keyed cells;
	struct pool slices, chunks;
	struct index members;		/* process and communicator -> which GPU of the process */
	struct index comms;		/* process and comm_id -> how many GPUs so far */
	struct window window[AGGREGATE_SLIDING];
	struct aggregate_stats stats;
	uint64_t seed;
	uint64_t generations;
	uint64_t started_ns;
	uint64_t boundary_ns;		/* when the next period of any window begins */
	struct tally *tallies;		/* AGGREGATE_TALLIES of them, by process */
	struct hold hold;		/* of struct held */
};

void aggregate_sample(struct sample *sample, const struct op *op);
void aggregate_add_sample(struct aggregate *agg, struct sums *sums,
			  const struct sample *sample);

/* Give back the histograms of sums that are not needed any more. */
void aggregate_free_chunks(struct aggregate *agg, struct sums *sums);

/* Let the windows' oldest slices go. */
void aggregate_advance(struct aggregate *agg, uint64_t now_ns);

/* Add `from` to `to`, and its histograms to `h`. */
void aggregate_merge(const struct aggregate *agg, struct sums *to, struct histogram h[VALUE_END],
		     const struct sums *from);

/* All of a row that sums and histograms tell; there is one operation at least. */
void aggregate_figures(struct aggregate_row *row, const struct sums *sums,
		       const struct histogram h[VALUE_END]);

/* The q-quantile of values of which there is one at least. */
uint64_t aggregate_quantile(const struct aggregate *agg, const struct value_sums *sums, double q);

/* Add what that process wrote within the window to *records and *lost. */
void aggregate_tally(const struct aggregate *agg, uint64_t process_id,
		     enum aggregate_window window, uint64_t *records, uint64_t *lost);

static inline struct cell *aggregate_cell(const struct aggregate *agg, uint32_t item)
{
	return keyed_at(&agg->cells, item);
}

static inline struct slice *aggregate_slice(const struct aggregate *agg, uint32_t item)
{
	return pool_at(&agg->slices, item);
}

#endif
