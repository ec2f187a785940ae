/* SPDX-License-Identifier: Apache-2.0 */
#include "ncclinspd/levels/kernelcost.h"

#include <math.h>
#include <string.h>

#include "tests/fixture.h"

#define SECOND	UINT64_C(1000000000)
#define BURST	(SECOND / 4)

static struct kernelcost k;
static struct kernelcost_estimate e;
static uint64_t now_ns, seq;
static const char func[] = "AllReduce";

static void setup(void)
{
	memset(&k, 0, sizeof(k));
	now_ns = 100 * SECOND;
	seq = 0;
}

static double uniform(void)
{
	return (double)(fx_random() % 1000000) / 1e6;
}

static bool is_inside(void)
{
	return now_ns % SECOND < BURST;
}

static void post(uint64_t bytes, bool inside)
{
	const struct op op = { .func = func, .bytes = bytes, .seq = seq++, .enqueued_ns = now_ns,
			       .kernel_stopped = inside ? 2 : 0 };

	kernelcost_op(&k, &op);
}

/* One operation takes `ns`, +-20 %, and in a burst `cost_ns` more. */
static void run(int seconds, double ns, double cost_ns)
{
	uint64_t end_ns = now_ns + (uint64_t)seconds * SECOND;

	while (now_ns < end_ns) {
		bool inside = is_inside();

		post(1024, inside);
		now_ns += (uint64_t)(ns * (0.8 + 0.4 * uniform()) + (inside ? cost_ns : 0));
	}
	kernelcost_estimate(&k, &e);
}

START_TEST(what_bursts_cost_is_found)
{
	static const double costs[] = { 0, 1000, 8000, 40000 };
	double ns = 200000;

	run(40, ns, costs[_i]);
	ck_assert(e.known);
	ck_assert_uint_eq(e.bursts, KERNELCOST_BURSTS);
	ck_assert_msg(fabs(e.slower * ns - costs[_i]) < 3 * e.error * ns + 1,
		      "%g +- %g", e.slower * ns, e.error * ns);
	ck_assert(e.error * ns < 500);
}
END_TEST

START_TEST(a_few_bursts_are_no_estimate)
{
	run(KERNELCOST_ENOUGH - 1, 200000, 8000);
	ck_assert(!e.known);
	run(4, 200000, 8000);
	ck_assert(e.known);
}
END_TEST

START_TEST(a_job_that_gets_slower_all_the_time_costs_no_more)
{
	for (int i = 0; i < 40; i++)
		run(1, 100000 + 5000 * i, 10000);
	ck_assert_msg(fabs(e.slower - 10000 / 220000.0) < 0.03, "%g +- %g", e.slower, e.error);
}
END_TEST

START_TEST(pauses_and_other_sizes_do_not_count)
{
	for (int i = 0; i < 40000; i++) {
		bool inside = is_inside();

		post(1024, inside);
		now_ns += inside ? 220000 : 200000;
		post(4096, inside);
		now_ns += i % 1000 == 0 ? 40000000 : 100000;
	}
	kernelcost_estimate(&k, &e);
	ck_assert_msg(e.known && fabs(e.slower - 20000 / 300000.0) < 0.005, "%g", e.slower);
}
END_TEST

START_TEST(what_never_comes_in_bursts_or_always_has_no_estimate)
{
	for (int side = 0; side < 2; side++) {
		setup();
		for (int i = 0; i < 10000; i++) {
			post(1024, side);
			now_ns += 100000;
		}
		kernelcost_estimate(&k, &e);
		ck_assert(!e.known);
	}
}
END_TEST

START_TEST(what_is_told_out_of_order_or_has_no_number_is_left_out)
{
	struct op op = { .func = func, .seq = UNKNOWN_U64, .enqueued_ns = 1 };

	kernelcost_op(&k, &op);
	run(20, 200000, 8000);
	op = (struct op){ .func = func, .bytes = 1024, .seq = 3, .enqueued_ns = now_ns + 1,
			  .kernel_stopped = 1 };
	for (int i = 0; i < 100; i++)
		kernelcost_op(&k, &op);
	run(20, 200000, 8000);
	ck_assert(fabs(e.slower - 0.04) < 0.01);
}
END_TEST

START_TEST(steps_are_of_two_and_taken_when_it_is_clear)
{
	ck_assert_uint_eq(kernelcost_step(10000, 10000, 0), 10000);
	ck_assert_uint_eq(kernelcost_step(10000, 15000, 100), 10000);
	ck_assert_uint_eq(kernelcost_step(10000, 20000, 100), 20000);
	ck_assert_uint_eq(kernelcost_step(10000, 20000, 3000), 10000);
	ck_assert_uint_eq(kernelcost_step(10000, 5000, 100), 5000);
	ck_assert_uint_eq(kernelcost_step(10000, 5000, 1000), 10000);
	ck_assert_uint_eq(kernelcost_step(10000, -300, 100), 5000);
	ck_assert_uint_eq(kernelcost_step(1250, 0, 0), 1250);
	ck_assert_uint_eq(kernelcost_step(160000, 1e9, 0), 160000);
}
END_TEST

START_TEST(steps_come_to_rest)
{
	for (double cost = 100; cost < 1e6; cost *= 1.1) {
		uint32_t used = KERNELCOST_DEFAULT_NS;

		for (int i = 0; i < 20; i++)
			used = kernelcost_step(used, cost, 0);
		ck_assert_uint_eq(kernelcost_step(used, cost, 0), used);
		if (cost > 1250 && cost < 160000)
			ck_assert(used / cost < 1.7 && cost / used < 1.7);
	}
}
END_TEST

int main(void)
{
	const struct fx_test tests[] = {
		FX_LOOP(what_bursts_cost_is_found, 0, 4),
		FX_TEST(a_few_bursts_are_no_estimate),
		FX_TEST(a_job_that_gets_slower_all_the_time_costs_no_more),
		FX_TEST(pauses_and_other_sizes_do_not_count),
		FX_TEST(what_never_comes_in_bursts_or_always_has_no_estimate),
		FX_TEST(what_is_told_out_of_order_or_has_no_number_is_left_out),
		FX_TEST(steps_are_of_two_and_taken_when_it_is_clear),
		FX_TEST(steps_come_to_rest),
	};

	return fx_run(setup, NULL, tests, FX_COUNT(tests));
}
