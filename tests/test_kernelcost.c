/* SPDX-License-Identifier: Apache-2.0 */
#include "ncclinspd/levels/kernelcost.h"

#include <math.h>
#include <stdio.h>
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

TEST_LOOP(what_bursts_cost_is_found, 0, 4)
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

TEST(a_few_bursts_are_no_estimate)
{
	run(KERNELCOST_ENOUGH - 1, 200000, 8000);
	ck_assert(!e.known);
	run(4, 200000, 8000);
	ck_assert(e.known);
}

TEST(a_job_that_gets_slower_all_the_time_costs_no_more)
{
	for (int i = 0; i < 40; i++)
		run(1, 100000 + 5000 * i, 10000);
	ck_assert_msg(fabs(e.slower - 10000 / 220000.0) < 0.03, "%g +- %g", e.slower, e.error);
}

TEST(pauses_and_other_sizes_do_not_count)
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

TEST(what_never_comes_in_bursts_or_always_has_no_estimate)
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

TEST(what_is_told_out_of_order_or_has_no_number_is_left_out)
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

TEST(steps_are_of_four_and_taken_when_it_is_clear)
{
	ck_assert_uint_eq(kernelcost_step(10000, 10000, 0), 10000);
	ck_assert_uint_eq(kernelcost_step(10000, 19000, 100), 10000);
	ck_assert_uint_eq(kernelcost_step(10000, 21000, 100), 40000);
	ck_assert_uint_eq(kernelcost_step(10000, 21000, 1000), 10000);
	ck_assert_uint_eq(kernelcost_step(10000, 4000, 100), 10000);
	ck_assert_uint_eq(kernelcost_step(10000, 3000, 100), 2500);
	ck_assert_uint_eq(kernelcost_step(10000, 3000, 200), 10000);
	ck_assert_uint_eq(kernelcost_step(10000, -300, 100), 2500);
	ck_assert_uint_eq(kernelcost_step(2500, 0, 0), 2500);
	ck_assert_uint_eq(kernelcost_step(160000, 1e9, 0), 160000);
}

/* At rest the budget is exceeded twice at most, and a third of it is used at least. */
TEST(steps_come_to_rest)
{
	for (double cost = 100; cost < 1e6; cost *= 1.1) {
		uint32_t used = KERNELCOST_DEFAULT_NS;

		for (int i = 0; i < 20; i++)
			used = kernelcost_step(used, cost, 0);
		ck_assert_uint_eq(kernelcost_step(used, cost, 0), used);
		if (cost > 1250 && cost < 320000)
			ck_assert(cost <= 2 * used && 3 * cost >= used);
	}
}

/* ---- two nodes of a job, that do not talk to each other -------------------------------- */

#define JOBS	2000
#define WINDOWS	100

/* Between `least` and `most`, each octave as often as the next. */
static double any(double least, double most)
{
	return least * pow(most / least, uniform());
}

/* What a node sees in a window: its estimate is off by up to 10 %, and says 5 %. */
static uint32_t node_step(uint32_t used, double cost_ns)
{
	return kernelcost_step(used, cost_ns * (0.9 + 0.2 * uniform()), 0.05 * cost_ns);
}

/*
 * The share of windows in which both plan with the same cost, over jobs that cost between
 * `least` and `most` and of which the second node finds up to `apart` times as much.
 */
static double agreement(double least, double most, double apart, double *common)
{
	double sum = 0;
	uint32_t same = 0;

	for (int job = 0; job < JOBS; job++) {
		double one_ns = any(least, most), other_ns = one_ns * any(1, apart);
		uint32_t one = KERNELCOST_DEFAULT_NS, other = KERNELCOST_DEFAULT_NS;

		for (int i = 0; i < WINDOWS; i++) {
			one = node_step(one, one_ns);
			other = node_step(other, other_ns);
			same += one == other;
			sum += one < other ? (double)one / other : (double)other / one;
		}
	}
	*common = sum / (JOBS * WINDOWS);
	return (double)same / (JOBS * WINDOWS);
}

static const struct {
	double least, most, apart;	/* ns, ns, factor */
	double agree;
} pairs[] = {
	{ 1000, 100000, 2, 0.75 },
	{ 1000, 100000, 1.2, 0.92 },
	{ 1000, 100000, 1.1, 0.94 },
};

TEST_LOOP(nodes_that_find_different_costs_mostly_plan_the_same, 0, FX_COUNT(pairs))
{
	double common;
	double agree = agreement(pairs[_i].least, pairs[_i].most, pairs[_i].apart, &common);

	printf("# up to %gx apart: the same in %.1f %% of the windows, %.1f %% in common\n",
	       pairs[_i].apart, 100 * agree, 100 * common);
	ck_assert_msg(agree >= pairs[_i].agree, "%g", agree);
}

int main(void)
{
	return fx_run(setup, NULL);
}
