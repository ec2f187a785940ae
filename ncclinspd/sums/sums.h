/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NCCLINSPD_SUMS_SUMS_H
#define NCCLINSPD_SUMS_SUMS_H

/*
 * Sums of what operations bring, and a histogram of each value that is measured of them.  The
 * parts of histograms are chunks of a pool, the caller's, which many sums share.
 */

#include "ncclinspd/sums/aggregate.h"
#include "reader/base/accounts.h"
#include "reader/base/pool.h"
#include "tables/histogram.h"

/* Values measured of an operation; each has sums and a histogram. */
enum aggregate_value {
	VALUE_EXEC,	/* ns */
	VALUE_BATCH,	/* ns */
	VALUE_QUEUE,	/* ns */
	VALUE_BUSBW,	/* kB/s */
	VALUE_END
};

struct value_sums {
	uint64_t n, sum, min, max;
	uint32_t chunks;	/* the first, plus one */
	uint32_t latest;	/* the one found last, likewise */
};

struct sums {
	uint64_t ops, sized_ops, bytes;
	uint64_t fused, derived;
	uint64_t kernel_ops;	/* may be timed */
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

/* Parts of histograms; an account has three quarters at most of what others leave. */
struct sums_chunks {
	struct pool pool;
	struct accounts_tally of;
};

/* 0 or -ENOMEM. */
int sums_init_chunks(struct sums_chunks *chunks, uint32_t capacity);

/* Give back the histograms of sums that are not needed any more. */
void sums_free_chunks(struct sums *sums, struct sums_chunks *chunks);
void sums_free_value(struct value_sums *value, struct sums_chunks *chunks);

/*
 * The time of an operation, or of its batch, which counts with its first member; UNKNOWN_U64:
 * nobody knows it, or the first one tells it.
 */
static inline uint64_t sums_taken_ns(const struct op *op)
{
	if (!op_is_fused(op))
		return op->exec_ns;
	return op->fused != OP_FUSED && op->batch_head ? op->batch_ns : UNKNOWN_U64;
}

/* Returns how many values are in no histogram, since there is no room. */
uint32_t sums_add(struct sums *sums, struct sums_chunks *chunks, const struct op *op);

/* One value of its own.  False: it is in no histogram. */
bool sums_add_value(struct value_sums *sums, struct sums_chunks *chunks, uid_t account,
		    uint64_t value);

/* Calls sums_add() with all operations that `from` has, in effect. */
uint32_t sums_hand_up(struct sums *to, const struct sums *from, struct sums_chunks *chunks);

/* Add what was counted of `from`, and none of its times, to `to`. */
void sums_merge_counts(struct sums *to, const struct sums *from);

/* Add all of `from` to `to`, and its histograms to `h`. */
void sums_merge(struct sums *to, struct histogram h[VALUE_END], const struct sums *from,
		const struct sums_chunks *chunks);

/* The same of one value. */
void sums_merge_value(struct value_sums *to, struct histogram *h, const struct value_sums *from,
		      const struct sums_chunks *chunks);

/* All of a row that sums and histograms tell; there is one operation at least. */
void sums_figures(const struct sums *sums, const struct histogram h[VALUE_END],
		  struct aggregate_row *row);

/*
 * The q-quantile of values that are in that histogram; UNKNOWN_U64: there are none, or more than
 * a thousandth found no room in it, and may lie all on one side.
 */
uint64_t sums_quantile(const struct value_sums *sums, const struct histogram *h, double q);

#endif
