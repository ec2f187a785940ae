/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NCCLINSPD_LEVELS_BURST_H
#define NCCLINSPD_LEVELS_BURST_H

/*
 * The length of bursts and their distance, chosen so that timing kernels in them costs no
 * more than a budget.  They begin on the wall clock's seconds, and the nodes of a job
 * plan by themselves: a period is a power of two of seconds, a length one of steps of
 * 2 %, and neither is given up for a rate that is only a little different; but about once
 * a minute, since nodes with different pasts could else keep different plans for ever.
 */

#include <stdbool.h>
#include <stdint.h>

#define BURST_BUDGET_PPM	5000

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

static inline bool burst_is_whole(struct burst_plan plan)
{
	return plan.period_ms && plan.length_us >= plan.period_ms * 1000;
}

#endif
