/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two nodes that measure almost the same rate must not choose differently, least of
 * all different periods, which would leave them half of their bursts in common.  So
 * the limits between periods do not lie at round figures, and what was chosen has a
 * margin.
 */
#include "ncclinspd/levels/burst.h"

#define SECOND_US	UINT64_C(1000000)
#define WHOLE_PPB	UINT64_C(1000000000)
#define MOST_LOAD	UINT64_C(2000000000)	/* twice the time; more is a claim */

/* A clock that is 2 ms off must leave 95 % of a burst in common with the others. */
#define SHORTEST_US	100000
#define WANTED_US	110000	/* us, by a period that is chosen anew */
#define LONGEST_US	240000	/* then half the period will do */
#define MOST_DOUBLINGS	6	/* 64 s: whoever looks should not wait longer */

#define OCTAVE		32
#define LEAST_STEP	(-7 * OCTAVE)
#define MOST_STEP	(4 * OCTAVE)

/* 2^(i/32), times 2^20. */
static const uint32_t fraction[OCTAVE] = {
	1048576, 1071537, 1095000, 1118978, 1143480, 1168519, 1194106, 1220254,
	1246974, 1274279, 1302182, 1330696, 1359835, 1389611, 1420040, 1451135,
	1482910, 1515382, 1548564, 1582474, 1617125, 1652536, 1688722, 1725700,
	1763488, 1802103, 1841564, 1881889, 1923097, 1965207, 2008240, 2052214,
};

static uint64_t burst_step_us(int step)
{
	int octave = (step - LEAST_STEP) / OCTAVE - 7;
	uint64_t us = ((uint64_t)SHORTEST_US * fraction[(step - LEAST_STEP) % OCTAVE]) >> 20;

	return octave < 0 ? us >> -octave : us << octave;
}

/* The last step that is not longer. */
static int burst_step(uint64_t us)
{
	int step = LEAST_STEP;

	while (step + OCTAVE <= MOST_STEP && burst_step_us(step + OCTAVE) <= us)
		step += OCTAVE;
	while (step < MOST_STEP && burst_step_us(step + 1) <= us)
		step++;
	return step;
}

/* The share of the time that may be watched, in parts of 10^9. */
static uint64_t burst_share(uint64_t rate, uint32_t cost_ns, uint32_t budget_ppm)
{
	/* ns of cost in a second; a rate that would overflow is no rate. */
	uint64_t load = rate / 1000 < UINT32_MAX ? rate * (uint64_t)cost_ns / 1000 : UINT64_MAX;
	uint64_t ppb;

	if (load > MOST_LOAD)
		load = MOST_LOAD;

	if (!budget_ppm)
		return 0;
	if (!load)
		return WHOLE_PPB;
	ppb = budget_ppm * UINT64_C(1000000000000) / load;
	return ppb < WHOLE_PPB ? ppb : WHOLE_PPB;
}

static uint64_t burst_length_us(uint64_t ppb, int doublings)
{
	return (ppb << doublings) / (WHOLE_PPB / SECOND_US);
}

static int burst_choose_doublings(struct burst_plan old, uint64_t ppb)
{
	int doublings = 0;

	if (old.period_ms) {
		while (doublings < MOST_DOUBLINGS && 1000u << doublings < old.period_ms)
			doublings++;
		if (burst_length_us(ppb, doublings) >= SHORTEST_US &&
		    (!doublings || burst_length_us(ppb, doublings) < LONGEST_US))
			return doublings;
		doublings = 0;
	}
	while (doublings < MOST_DOUBLINGS && burst_length_us(ppb, doublings) < WANTED_US)
		doublings++;
	return doublings;
}

/*
 * A step is kept for half a step more on either side.  With more than that, two ranks
 * that had once measured differently could stay two steps apart for ever.
 */
static bool burst_still_fits(struct burst_plan old, uint64_t us)
{
	return old.length_us && !burst_is_whole(old) &&
	       us * 1000 >= old.length_us * UINT64_C(989) &&
	       us * 1000 < old.length_us * UINT64_C(1033);
}

struct burst_plan burst_choose(struct burst_plan old, uint64_t rate, uint32_t cost_ns,
			       uint32_t budget_ppm)
{
	uint64_t ppb = burst_share(rate, cost_ns, budget_ppm), us;
	int doublings = burst_choose_doublings(old, ppb);
	struct burst_plan plan = { .period_ms = 1000u << doublings };

	us = burst_length_us(ppb, doublings);
	if (us >= SECOND_US << doublings) {
		plan.length_us = (uint32_t)(SECOND_US << doublings);
		return plan;
	}
	if (!us)
		return plan;
	plan.length_us = (uint32_t)burst_step_us(burst_step(us));
	return old.period_ms == plan.period_ms && burst_still_fits(old, us) ? old : plan;
}
