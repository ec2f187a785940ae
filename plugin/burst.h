/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PLUGIN_BURST_H
#define PLUGIN_BURST_H

/*
 * When groups of operations are watched by KernelCh, so that it costs no more than a budget:
 * in bursts that begin on the wall clock's seconds.  All ranks of a job run the same
 * operations at the same rate, so all of them plan the same without a word: a period
 * is a power of two of seconds, a length one of steps of 2 %, and neither is given up
 * for a rate that is only a little different; but about once a minute, since ranks with
 * different pasts could else keep different plans for ever.  Pure functions; time is an argument.
 */

#include <stdbool.h>
#include <stdint.h>

#define BURST_COST_NS		10000	/* of a group, until somebody has measured it */
#define BURST_BUDGET_PPM	5000
#define BURST_WINDOW_S		4	/* rates are looked at on this grid */
#define BURST_ANEW_S		64	/* ... and plans chosen as if there had been none */

struct burst_plan {
	uint32_t period_ms;	/* 0: no plan */
	uint32_t length_us;	/* up to period_ms * 1000: always on; 0: never */
};

/*
 * rate: groups in 1000 s.  `old` is kept as far as it still fits; its period is 0
 * where there is none.  No groups, or none that cost anything: always on.
 */
struct burst_plan burst_choose(struct burst_plan old, uint64_t rate, uint32_t cost_ns,
			       uint32_t budget_ppm);

/* At CLOCK_REALTIME real_ns; no plan: off. */
bool burst_is_on(struct burst_plan plan, uint64_t real_ns);

/* When that changes next; UINT64_MAX: it does not. */
uint64_t burst_edge(struct burst_plan plan, uint64_t real_ns);

/* How many groups there are per time; starts as zeros. */
struct burst_rate {
	uint64_t from_ns;	/* CLOCK_REALTIME, when the window began; 0: none has */
	uint64_t groups;	/* counted until then */
	uint64_t rate;		/* groups in 1000 s; 0: not known yet */
	uint64_t last;		/* that of the last window alone; 0: it was not whole */
	bool anew;		/* the plan is to be chosen without the old one's say */
};

/*
 * True: a window has ended and the rate is new.  The first one is a whole second of the
 * clock, the others are BURST_WINDOW_S of them, the same for all ranks.
 */
bool burst_measure(struct burst_rate *r, uint64_t groups, uint64_t real_ns);

/* The rate if it is known, else what it looks like so far. */
uint64_t burst_guess(const struct burst_rate *r, uint64_t groups, uint64_t real_ns);

static inline bool burst_is_whole(struct burst_plan plan)
{
	return plan.period_ms && plan.length_us >= plan.period_ms * 1000;
}

#endif
