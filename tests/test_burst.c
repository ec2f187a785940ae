/* SPDX-License-Identifier: Apache-2.0 */
/* When KernelCh is on: the budget, the grid, and that ranks agree without a word. */
#include "plugin/burst.h"
#include "tests/fixture.h"

#define SECOND	UINT64_C(1000000000)
#define MS	UINT64_C(1000000)

static const struct burst_plan none;
static struct burst_rate r;

static uint64_t rate(double ops_per_s)
{
	return (uint64_t)(ops_per_s * 1000);
}

static double duty(struct burst_plan plan)
{
	return plan.length_us / (plan.period_ms * 1000.0);
}

START_TEST(cost_is_the_budget_at_every_rate)
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
			else
				ck_assert_msg(cost > 0.8 * budget && cost < 1.2 * budget,
					      "%.0f/s, %u ns: %.5f of %.5f", ops, costs[i / 3],
					      cost, budget);
		}
}
END_TEST

/* The rate goes up and down and the old plan has its say: still the budget. */
START_TEST(cost_is_the_budget_while_the_rate_changes)
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
END_TEST

START_TEST(period_is_a_power_of_two_of_seconds_and_a_burst_is_not_short)
{
	for (double ops = 600; ops <= 100000; ops *= 1.01) {
		struct burst_plan plan = burst_choose(none, rate(ops), 10000, 5000);
		uint32_t seconds = plan.period_ms / 1000;

		ck_assert_uint_eq(plan.period_ms, seconds * 1000);
		ck_assert_uint_eq(seconds & (seconds - 1), 0);
		ck_assert_uint_ge(plan.length_us, 100000);
	}
}
END_TEST

/* A clock that is 2 ms off, and a rate measured 1 % off, or a year of hysteresis apart. */
START_TEST(ranks_that_measure_almost_the_same_have_95_percent_in_common)
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
END_TEST

/* Whatever they had measured before: half of the job may have been slow to begin. */
START_TEST(ranks_that_had_different_plans_come_within_one_step)
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
END_TEST

START_TEST(old_plan_has_its_say_until_the_minute_is_over)
{
	const uint64_t t = 1700000000 * SECOND / (BURST_ANEW_S * SECOND) * BURST_ANEW_S * SECOND;
	uint64_t news = 0;

	burst_measure(&r, 0, t);
	for (uint64_t i = 1; i <= 2 * BURST_ANEW_S; i++)
		if (burst_measure(&r, i * 100, t + i * SECOND) && r.anew) {
			ck_assert_uint_eq(i % BURST_ANEW_S, 0);
			news++;
		}
	ck_assert_uint_eq(news, 2);
}
END_TEST

/* Round figures are what people test with. */
START_TEST(round_rates_are_not_where_the_period_changes)
{
	static const double round[] = { 1000, 2000, 5000, 10000, 20000, 50000, 100000 };

	for (int i = 0; i < FX_COUNT(round); i++) {
		struct burst_plan less = burst_choose(none, rate(round[i] * 0.96), 10000, 5000);
		struct burst_plan more = burst_choose(none, rate(round[i] * 1.04), 10000, 5000);

		ck_assert_msg(less.period_ms == more.period_ms, "%.0f", round[i]);
	}
}
END_TEST

START_TEST(plan_that_still_fits_stays)
{
	struct burst_plan plan = burst_choose(none, rate(20000), 10000, 5000);

	for (int i = 0; i < 100; i++) {
		struct burst_plan next = burst_choose(plan, rate(20000 * (i % 2 ? 1.01 : 0.99)),
						      10000, 5000);

		ck_assert_uint_eq(next.length_us, plan.length_us);
		ck_assert_uint_eq(next.period_ms, plan.period_ms);
	}
}
END_TEST

START_TEST(nothing_to_spend_is_never_and_nothing_to_pay_is_always)
{
	ck_assert_uint_eq(burst_choose(none, rate(1000), 10000, 0).length_us, 0);
	ck_assert(!burst_is_on(burst_choose(none, rate(1000), 10000, 0), SECOND));
	ck_assert(burst_is_whole(burst_choose(none, 0, 10000, 5000)));
	ck_assert(burst_is_whole(burst_choose(none, rate(100000), 0, 5000)));
	ck_assert(burst_is_whole(burst_choose(none, rate(100000), 10000, 1000000)));
	ck_assert(!burst_is_whole(burst_choose(none, UINT64_MAX, UINT32_MAX, 1)));
	ck_assert(!burst_is_on(none, SECOND));
	ck_assert_uint_eq(burst_edge(none, SECOND), UINT64_MAX);
}
END_TEST

START_TEST(bursts_begin_on_the_whole_second_and_end_after_their_length)
{
	const struct burst_plan plan = { .period_ms = 4000, .length_us = 150000 };
	const uint64_t begin = 1700000000 * SECOND;	/* a multiple of four */

	ck_assert(burst_is_on(plan, begin));
	ck_assert(burst_is_on(plan, begin + 150 * MS - 1));
	ck_assert(!burst_is_on(plan, begin + 150 * MS));
	ck_assert(!burst_is_on(plan, begin + SECOND));
	ck_assert(!burst_is_on(plan, begin - 1));
	ck_assert_uint_eq(burst_edge(plan, begin), begin + 150 * MS);
	ck_assert_uint_eq(burst_edge(plan, begin + 150 * MS), begin + 4 * SECOND);
	ck_assert_uint_eq(burst_edge(plan, begin - 1), begin);
}
END_TEST

/* ---- rates ------------------------------------------------------------------- */

START_TEST(first_rate_is_known_after_a_second_and_guessed_before)
{
	const uint64_t t = 1700000001 * SECOND;

	ck_assert(!burst_measure(&r, 1, t));
	ck_assert_uint_eq(burst_guess(&r, 3, t + MS), rate(20));
	ck_assert(!burst_measure(&r, 201, t + 500 * MS));
	ck_assert_uint_eq(burst_guess(&r, 201, t + 500 * MS), rate(400));
	ck_assert(burst_measure(&r, 401, t + SECOND));
	ck_assert_uint_eq(r.rate, rate(400));
	ck_assert_uint_eq(burst_guess(&r, 401, t + SECOND), rate(400));
}
END_TEST

/* What ranks measure from their own begin on differs by all that differs at the begin. */
START_TEST(first_rate_is_that_of_the_first_whole_second)
{
	const uint64_t t = 1700000001 * SECOND;

	ck_assert(!burst_measure(&r, 0, t - 300 * MS));
	ck_assert(!burst_measure(&r, 900, t + 10 * MS));
	ck_assert(!burst_measure(&r, 1200, t + 990 * MS));
	ck_assert(burst_measure(&r, 1300, t + 1010 * MS));
	ck_assert_uint_eq(r.rate, rate(400));
}
END_TEST

/* Its looks are far apart: whatever lies between two is as good as a second. */
START_TEST(first_rate_of_a_slow_job_is_known_in_the_end)
{
	const uint64_t t = 1700000001 * SECOND;

	ck_assert(!burst_measure(&r, 0, t + 700 * MS));
	ck_assert(!burst_measure(&r, 1, t + 1500 * MS));
	ck_assert(burst_measure(&r, 2, t + 3500 * MS));
	ck_assert_uint_eq(r.rate, rate(0.5));
}
END_TEST

START_TEST(later_windows_lie_on_the_same_grid_for_all)
{
	const uint64_t grid = 1700000000 * SECOND;

	burst_measure(&r, 0, grid - 5 * SECOND);
	ck_assert(burst_measure(&r, 100, grid - 4 * SECOND + MS));
	ck_assert(!burst_measure(&r, 200, grid - MS));
	ck_assert(burst_measure(&r, 500, grid + MS));
	ck_assert_uint_eq(r.from_ns, grid + MS);
	ck_assert(!burst_measure(&r, 600, grid + 3999 * MS));
	ck_assert(burst_measure(&r, 900, grid + 4001 * MS));
	ck_assert_uint_ge(r.rate, rate(99.9));
	ck_assert_uint_le(r.rate, rate(100));
}
END_TEST

START_TEST(rank_that_began_later_knows_the_same_rate_after_a_few_windows)
{
	const uint64_t grid = 1700000000 * SECOND, four = 4 * SECOND;
	struct burst_rate a = { 0 }, b = { 0 };

	burst_measure(&a, 0, grid);
	burst_measure(&a, 500, grid + SECOND);		/* it was slow at first */
	burst_measure(&a, 9500, grid + four);
	burst_measure(&b, 9500, grid + four);
	burst_measure(&b, 12500, grid + four + SECOND);
	for (uint64_t i = 2; i < 5; i++) {
		burst_measure(&a, 9500 + 12000 * (i - 1) + i * 100, grid + i * four);
		burst_measure(&b, 9500 + 12000 * (i - 1) + i * 100, grid + i * four);
	}
	ck_assert_uint_eq(a.rate, b.rate);
	ck_assert_uint_ge(a.rate, rate(3000));
}
END_TEST

START_TEST(clock_that_is_set_begins_a_new_window)
{
	const uint64_t t = 1700000000 * SECOND;

	burst_measure(&r, 0, t);
	burst_measure(&r, 1000, t + SECOND);
	ck_assert(!burst_measure(&r, 2000, t - 100 * SECOND));
	ck_assert(burst_measure(&r, 6000, t - 96 * SECOND));
	ck_assert_uint_eq(r.rate, rate(1000));
	ck_assert(!burst_measure(&r, 6000, t + 100000 * SECOND));
	ck_assert_uint_eq(r.rate, rate(1000));
}
END_TEST

static void setup(void)
{
	r = (struct burst_rate){ 0 };
}

int main(void)
{
	const struct fx_test tests[] = {
		FX_TEST(cost_is_the_budget_at_every_rate),
		FX_TEST(cost_is_the_budget_while_the_rate_changes),
		FX_TEST(period_is_a_power_of_two_of_seconds_and_a_burst_is_not_short),
		FX_TEST(ranks_that_measure_almost_the_same_have_95_percent_in_common),
		FX_TEST(ranks_that_had_different_plans_come_within_one_step),
		FX_TEST(old_plan_has_its_say_until_the_minute_is_over),
		FX_TEST(round_rates_are_not_where_the_period_changes),
		FX_TEST(plan_that_still_fits_stays),
		FX_TEST(nothing_to_spend_is_never_and_nothing_to_pay_is_always),
		FX_TEST(bursts_begin_on_the_whole_second_and_end_after_their_length),
		FX_TEST(first_rate_is_known_after_a_second_and_guessed_before),
		FX_TEST(first_rate_is_that_of_the_first_whole_second),
		FX_TEST(first_rate_of_a_slow_job_is_known_in_the_end),
		FX_TEST(later_windows_lie_on_the_same_grid_for_all),
		FX_TEST(rank_that_began_later_knows_the_same_rate_after_a_few_windows),
		FX_TEST(clock_that_is_set_begins_a_new_window),
	};

	return fx_run(setup, NULL, tests, FX_COUNT(tests));
}
