/* SPDX-License-Identifier: Apache-2.0 */
#ifndef READER_TIME_GPUCLOCK_H
#define READER_TIME_GPUCLOCK_H

/*
 * The place of a GPU's own clock on a clock of the host's, from what NCCL's
 * callbacks bring along, and how well it is known.
 *
 * Two things are certain of a stamp g: it was taken before the callback that
 * brought it (seen at u), and after the launch of the kernel that took it (at l).
 * With host time = g + d(g), every stamp is a point above the line d and a point
 * below it:      d(g) <= u - g          d(g) >= l - g
 * The line is straight within a window of some minutes, and no clock drifts by
 * more than 200 ppm.  What all lines between the two sets of points have in
 * common is the bracket [lo, hi] of a moment: nothing is estimated, so the true
 * time is inside as long as the clock runs straight.
 *
 * Of the points above, those of their lower convex hull decide, and of those
 * below, those of their upper one: a dozen or two of each (the convex hulls of
 * Zhang, Liu and Xia's work on clock skew, INFOCOM 2002, here with exact bounds
 * of the slope instead of an estimated one).
 *
 * A clock that steps contradicts the line: 100 us and more below what was seen
 * cannot be (a stamp from the future); above it may be a callback that came late,
 * unless the host has watched kernels from beginning to end.  Several such in a
 * row start a new window; until then they are refused.
 */

#include <stdbool.h>
#include <stdint.h>

#define GPUCLOCK_WINDOW_NS	INT64_C(300000000000)
#define GPUCLOCK_STEP_NS	100000		/* no clock bends by so much */
#define GPUCLOCK_HOST_NS	500		/* error that the host's own times may have */

struct gpuclock;

/*
 * One kernel as it was told, on one channel or, for each end, on the one whose callback came
 * soonest after it; host times are ns of one steady clock.
 */
struct gpuclock_sight {
	uint64_t gpu_start_ns, gpu_stop_ns;
	uint64_t start_ns, stop_ns;	/* times of the callbacks that brought them; 0: none */
	uint64_t launch_ns;		/* not launched before; 0: not known */
	uint64_t gpu_first_ns;		/* its earliest start on any channel; 0: gpu_start_ns */
};

enum gpuclock_verdict {
	GPUCLOCK_FITS,
	GPUCLOCK_FUTURE,	/* was not yet when it was told: no stamp of this clock */
	GPUCLOCK_PAST,		/* was already when the kernel had not been launched */
};

/* -ENOMEM. */
int gpuclock_new(struct gpuclock **cp);
void gpuclock_free(struct gpuclock *c);

/*
 * Take in a pair of stamps that is sane by itself; O(1) amortised.  What does not
 * fit, or is not trusted, teaches the clock nothing but that it may have stepped.
 */
enum gpuclock_verdict gpuclock_see(struct gpuclock *c, const struct gpuclock_sight *s,
				   bool trusted);

/*
 * The same of one that is trusted and fits, and says nothing of a step.  False: it is not such a
 * one, and nothing has changed.
 */
bool gpuclock_see_plain(struct gpuclock *c, const struct gpuclock_sight *s);

/* Whether so many kernels have told it that one which came later than all of them stands out. */
bool gpuclock_is_sure(const struct gpuclock *c);

/* Whether the host saw it run for as long as it ran, which was not too short a time to tell. */
bool gpuclock_watched(const struct gpuclock_sight *s);

/*
 * The bracket of a stamp's true moment on the host's clock.  False: nothing is
 * known.  *lo = 0: no launch has told how early it can have been.  `lo` may be NULL.
 * `hi` is the better guess: its error is the quickest callback's delay.
 */
bool gpuclock_map(const struct gpuclock *c, uint64_t gpu_ns, uint64_t *lo, uint64_t *hi);

/*
 * The error of a duration of this clock against the host's, ns: what its resolution and its
 * drift amount to.  UNKNOWN_U64: no two stamps have differed yet.
 */
uint64_t gpuclock_span_error(const struct gpuclock *c, uint64_t span_ns);

/* Facts that can be told of the clock now. */
struct gpuclock_facts {
	uint64_t stamps;	/* pairs that fitted */
	uint64_t gpu_ns;	/* the newest of them */
	uint64_t lo_ns, hi_ns;	/* its bracket; 0: not known */
	bool has_drift;
	double drift_ppm;	/* speed above the host's clock's */
	double drift_error_ppm;	/* error that drift_ppm may have */
	uint64_t resolution_ns;	/* unit that stamps are multiples of; UNKNOWN_U64 */
	uint64_t windows;	/* begun, the first included */
	uint64_t steps;		/* steps of the clock */
	uint64_t bends;		/* it ran less straight than could be seen */
	uint32_t points;	/* points of both hulls */
};
void gpuclock_facts(const struct gpuclock *c, struct gpuclock_facts *facts);

#endif
