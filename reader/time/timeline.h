/* SPDX-License-Identifier: Apache-2.0 */
#ifndef READER_TIME_TIMELINE_H
#define READER_TIME_TIMELINE_H

/*
 * The way from what was recorded (host ticks, GPU stamps) to when it was and how long it
 * took, with the name of the clock that says so.
 */

#include <math.h>

#include "reader/base/model.h"

struct gpu;

/* Ticks as CLOCK_MONOTONIC ns; 0 for 0 ticks, moments before the boot, and centuries ahead. */
static inline uint64_t timeline_mono(const struct tick_clock *clock, uint64_t ticks)
{
	double offset = (double)(int64_t)(ticks - clock->ticks) * clock->ns_per_tick;
	int64_t ns;

	if (!ticks || !(fabs(offset) < 0x1p63))
		return 0;
	ns = (int64_t)(clock->mono_ns + (uint64_t)(int64_t)offset);
	return ns > 0 ? (uint64_t)ns : 0;
}

/* A difference of ticks in ns; UNKNOWN_U64 when it runs backwards. */
uint64_t timeline_span(const struct tick_clock *clock, uint64_t from, uint64_t to);

/*
 * The two stamps of one channel's kernel, in the GPU's ns.  False: they cannot be
 * true (not given, backwards, or longer than a day).
 */
#define TIMELINE_DAY_NS	UINT64_C(86400000000000)

static inline bool timeline_stamps_sane(uint64_t gpu_start, uint64_t gpu_stop)
{
	return gpu_start && gpu_stop >= gpu_start && gpu_stop - gpu_start < TIMELINE_DAY_NS;
}

/*
 * Fill the op's "when, as placed by timeline" part from its "when, as recorded"
 * part.  Execution time comes from the first of: the GPU's own stamps, the host's
 * sight of the kernel (only where the API has no stamps), the proxy, nothing.
 * Copy-engine operations are only known by their enqueue (TIMING_ENQUEUE_CPU),
 * which is no execution time.
 *
 * With its GPU (NULL: not known), what the GPU told of is placed on the host's
 * clock too, and the error of its execution time is known.
 *
 * queue_ns is given only where the host saw the kernel start in time: it must
 * have watched it for nine tenths of what the GPU says it ran.
 */
void timeline_place(const struct tick_clock *clock, const struct gpu *gpu, struct op *op);

/* "kernel_gpu" and so on; NULL for TIMING_NONE. */
const char *timeline_source_text(enum timing_source source);

#endif
