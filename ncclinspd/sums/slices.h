/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NCCLINSPD_SUMS_SLICES_H
#define NCCLINSPD_SUMS_SLICES_H

/*
 * The last minute as a ring of slices, each one period long: a slice is in place
 * `period % SLICES`, and is emptied when its turn comes again.
 */

#include <stdbool.h>
#include <stdint.h>

#define SLICES		4
#define SLICES_NS	UINT64_C(15000000000)

/* The period, plus one: 0 is of a slice that was never used. */
static inline uint64_t slices_period(uint64_t now_ns)
{
	return now_ns / SLICES_NS + 1;
}

static inline bool slices_are_recent(uint64_t period, uint64_t now_ns)
{
	return period && period + SLICES > slices_period(now_ns);
}

/* The beginning of the oldest recent slice; 0: there was none yet. */
static inline uint64_t slices_begin_ns(uint64_t now_ns)
{
	uint64_t period = slices_period(now_ns);

	return period > SLICES ? (period - SLICES) * SLICES_NS : 0;
}

#endif
