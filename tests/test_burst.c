/* SPDX-License-Identifier: Apache-2.0 */
/* How long bursts are and how far apart: the budget, and that nodes agree without a word. */
#include "ncclinspd/levels/burst.h"
#include "tests/fixture.h"

static const struct burst_plan none;

static uint64_t rate(double ops_per_s)
{
	return (uint64_t)(ops_per_s * 1000);
}

static double duty(struct burst_plan plan)
{
	return plan.length_us / (plan.period_ms * 1000.0);
}

TEST(cost_is_the_budget_at_every_rate)
{
	static const uint32_t costs[] = { 1000, 10000, 60000 }, budgets[] = { 1000, 5000, 20000 };

	for (double ops = 10; ops <= 100000; ops *= 1.07)
		for (int i = 0; i < 9; i++) {
			double load = ops * costs[i / 3] / 1e9, budget = budgets[i % 3] / 1e6;
			struct burst_plan plan = burst_choose(none, rate(ops), costs[i / 3],
							      budgets[i % 3]);
			double cost = load * duty(plan);

			ck_assert_uint_le(plan.length_us, plan.period_ms * 1000);
			if (load <= budget)
				ck_assert(burst_is_whole(plan));
			else if (load <= 2)	/* no work costs more */
				ck_assert_msg(cost > 0.8 * budget && cost < 1.2 * budget,
					      "%.0f/s, %u ns: %.5f of %.5f", ops, costs[i / 3],
					      cost, budget);
		}
}

/* The rate goes up and down and the old plan has its say: still the budget. */
TEST(cost_is_the_budget_while_the_rate_changes)
{
	struct burst_plan plan = none;
	double ops = 10, factor = 1.03;

	for (int i = 0; i < 3000; i++) {
		double cost;

		if (ops > 100000 || ops < 10)
			factor = 1 / factor;
		ops *= factor;
		plan = burst_choose(plan, rate(ops), 10000, 5000);
		cost = ops * 10000 / 1e9 * duty(plan);
		ck_assert_msg(cost < 1.2 * 0.005, "%.0f/s: %.5f", ops, cost);
		ck_assert_msg(cost > 0.8 * 0.005 || burst_is_whole(plan), "%.0f/s: %.5f", ops,
			      cost);
	}
}

TEST(period_is_a_power_of_two_of_seconds_and_a_burst_is_not_short)
{
	for (double ops = 600; ops <= 100000; ops *= 1.01) {
		struct burst_plan plan = burst_choose(none, rate(ops), 10000, 5000);
		uint32_t seconds = plan.period_ms / 1000;

		ck_assert_uint_eq(plan.period_ms, seconds * 1000);
		ck_assert_uint_eq(seconds & (seconds - 1), 0);
		ck_assert_uint_ge(plan.length_us, 100000);
	}
}

/* A clock that is 2 ms off, and a rate measured 1 % off, or a year of hysteresis apart. */
TEST(ranks_that_measure_almost_the_same_have_95_percent_in_common)
{
	double worst = 1;

	for (double ops = 600; ops <= 100000; ops *= 1.003) {
		struct burst_plan a = burst_choose(none, rate(ops), 10000, 5000);
		struct burst_plan b = burst_choose(a, rate(ops * 1.01), 10000, 5000);
		double both = (a.length_us < b.length_us ? a.length_us : b.length_us) - 2000.0;

		ck_assert_uint_eq(a.period_ms, b.period_ms);
		if (both / a.length_us < worst)
			worst = both / a.length_us;
	}
	ck_assert_msg(worst >= 0.95, "%.3f", worst);
}

/* Whatever they had measured before: half of the job may have been slow to begin. */
TEST(ranks_that_had_different_plans_come_within_one_step)
{
	for (double before = 0.9; before < 1.1; before += 0.001) {
		struct burst_plan a = burst_choose(none, rate(20000), 10000, 5000);
		struct burst_plan b = burst_choose(none, rate(20000 * before), 10000, 5000);

		for (double now = 0.95; now < 1.05; now += 0.003) {
			struct burst_plan c = burst_choose(a, rate(20000 * now), 10000, 5000);
			struct burst_plan d = burst_choose(b, rate(20000 * now), 10000, 5000);
			double apart = (double)c.length_us / d.length_us;

			if (c.period_ms != d.period_ms)
				continue;	/* see the next one */
			ck_assert_msg(apart > 0.975 && apart < 1.025, "%.3f, %.3f: %u and %u",
				      before, now, c.length_us, d.length_us);
		}
	}
}

/* Round figures are what people test with. */
TEST(round_rates_are_not_where_the_period_changes)
{
	static const double round[] = { 1000, 2000, 5000, 10000, 20000, 50000, 100000 };

	for (int i = 0; i < FX_COUNT(round); i++) {
		struct burst_plan less = burst_choose(none, rate(round[i] * 0.96), 10000, 5000);
		struct burst_plan more = burst_choose(none, rate(round[i] * 1.04), 10000, 5000);

		ck_assert_msg(less.period_ms == more.period_ms, "%.0f", round[i]);
	}
}

TEST(plan_that_still_fits_stays)
{
	struct burst_plan plan = burst_choose(none, rate(20000), 10000, 5000);

	for (int i = 0; i < 100; i++) {
		struct burst_plan next = burst_choose(plan, rate(20000 * (i % 2 ? 1.01 : 0.99)),
						      10000, 5000);

		ck_assert_uint_eq(next.length_us, plan.length_us);
		ck_assert_uint_eq(next.period_ms, plan.period_ms);
	}
}

/* Whatever a segment says of itself: all processes of the node have one plan. */
TEST(claims_beyond_all_time_do_not_end_bursts)
{
	struct burst_plan plan = burst_choose(none, UINT64_MAX, UINT32_MAX, BURST_BUDGET_PPM);

	ck_assert_uint_le(plan.period_ms, 64000);
	ck_assert_uint_ge(plan.length_us, 100000);
}

TEST(nothing_to_spend_is_never_and_nothing_to_pay_is_always)
{
	ck_assert_uint_eq(burst_choose(none, rate(1000), 10000, 0).length_us, 0);
	ck_assert(burst_is_whole(burst_choose(none, 0, 10000, 5000)));
	ck_assert(burst_is_whole(burst_choose(none, rate(100000), 0, 5000)));
	ck_assert(burst_is_whole(burst_choose(none, rate(100000), 10000, 1000000)));
	ck_assert(!burst_is_whole(burst_choose(none, UINT64_MAX, UINT32_MAX, 1)));
}

int main(void)
{
	return fx_run(NULL, NULL);
}
