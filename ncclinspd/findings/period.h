/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NCCLINSPD_FINDINGS_PERIOD_H
#define NCCLINSPD_FINDINGS_PERIOD_H

/*
 * The iteration of a training job, found in the stream of one process's operations:
 * the smallest lag at which it repeats itself, in kinds of operations and in gaps.
 * Fixed memory (64 KiB), and nothing is worked out before somebody asks.
 */

#include <stdbool.h>
#include <stdint.h>

/* The time that an operation adds to an iteration's time inside operations; NaN: not known. */
struct period_part {
	float inside_ns;
	float moving_ns;	/* the time without that in which all only wait */
};

#define PERIOD_TOKENS	4096	/* operations looked at */
#define PERIOD_SHIFT	512	/* places by which an operation may come too late: ranks.h */

struct period {
	uint64_t count;		/* operations since the start; the ring holds the last */
	uint64_t origin_ns;	/* origin of the times in the ring */
	uint64_t last_ns;	/* the newest time given */
	uint64_t tried;		/* `count` when a period was last looked for */
	uint64_t checked;	/* ... when it was last seen to hold */
	uint32_t lag;		/* operations per iteration; 0: there is no period */
	uint64_t kind;		/* equal for the same ones, wherever the count begins */
	uint64_t median_ns;	/* time of an iteration; meaningful if lag != 0 */
	uint64_t p95_ns;
	struct {
		uint32_t token;
		uint32_t us;	/* time since origin_ns, modulo 2^32 */
		struct period_part part;
	} ring[PERIOD_TOKENS];
};

/* A zeroed one is empty.  One operation, by what it is and when it was posted. */
void period_add(struct period *p, uint64_t token, uint64_t time_ns, struct period_part part);

/*
 * Bring lag, median_ns and p95_ns up to date; false: there is no period.  A lag is
 * one if at least 95 % of the operations are the same as those so far before, and
 * 98 % of what the best lag has; at least three iterations must have been seen.  Long
 * gaps count as kinds of operations (period.c).  Cheap while nothing new came or the period
 * goes on, else some 200 us; not looked for with every new operation, unless the process
 * `rests`.
 */
bool period_find(struct period *p, bool rests);

/* The quartiles of some iterations; 0: there was none. */
struct period_quartiles {
	uint64_t lower_ns, upper_ns;
};

/*
 * The iterations, each from an operation to the next like it, that ended after that time.
 * To be called after a period_find() that is true.
 */
struct period_quartiles period_since(const struct period *p, uint64_t from_ns);

/* The mean of whole iterations; the parts of it are < 0 where they are not known. */
struct period_step {
	uint64_t step_ns;
	double inside_ns, moving_ns;
	uint64_t kind;
};

/*
 * The iterations of `window_ns` before the newest operation, the last one at least.  Where not all
 * operations are timed, each place of an iteration counts by the mean of those that are.
 * To be called after a period_find() that is true.
 */
struct period_step period_step(const struct period *p, uint64_t window_ns);

#endif
