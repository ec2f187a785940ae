/* SPDX-License-Identifier: Apache-2.0 */
#include "ncclinspd/levels/overhead.h"

#include <math.h>

#include "tests/fixture.h"

#define SECOND	UINT64_C(1000000000)
#define TICK_NS	0.5
#define CLOCK	20		/* ticks of two looks at the clock */

static struct overhead o;
static struct overhead_figures f;
static struct process p;
static uint64_t now_ns;

static void setup(void)
{
	now_ns = 1000 * SECOND;
	p = (struct process){ .clock = { .mono_ns = now_ns, .ticks = 1 << 20,
					 .ns_per_tick = TICK_NS } };
	p.steering.known = true;
}

/* A second with so many callbacks of 60 ns, of which every 256th was measured. */
static void pass(uint64_t callbacks, uint64_t inside, uint64_t outside)
{
	struct steering_timed *t = &p.steering.timed[NCI_THREADS_USER];

	now_ns += SECOND;
	t->count += callbacks / NCI_TIMED_ONE_IN;
	t->ticks += callbacks / NCI_TIMED_ONE_IN * (120 + CLOCK);
	p.groups_inside += inside;
	p.groups_outside += outside;
	p.ops_inside += inside;
	p.ops_outside += outside;
	overhead_see(&o, &p, CLOCK, now_ns);
}

TEST(nothing_is_known_before_two_samples_or_of_an_old_plugin)
{
	overhead_figures(&o, 10, &f);
	ck_assert(overhead_share(&f) < 0 && f.duty < 0 && !f.window_ns);
	pass(256000, 0, 0);
	overhead_figures(&o, 10, &f);
	ck_assert(overhead_share(&f) < 0);
	p.steering.known = false;
	pass(256000, 0, 0);
	overhead_figures(&o, 10, &f);
	ck_assert(overhead_share(&f) < 0);
}

TEST(callbacks_are_what_was_measured_less_the_clock_times_256)
{
	for (int i = 0; i < 30; i++)
		pass(256000, 0, 0);
	overhead_figures(&o, 10, &f);
	ck_assert_uint_eq(f.window_ns, 10 * SECOND);
	ck_assert(fabs(f.of[NCI_THREADS_USER].per_s - 256000) < 1);
	ck_assert(fabs(f.of[NCI_THREADS_USER].mean_ns - 60) < 0.01);
	ck_assert(fabs(overhead_share(&f) - 256000 * 60e-9) < 1e-6);
	ck_assert(f.of[NCI_THREADS_PROXY].share >= 0);
	ck_assert(f.of[NCI_THREADS_PROXY].mean_ns < 0);		/* none was measured */
}

TEST(a_window_is_as_long_as_it_was_asked_for)
{
	for (int i = 0; i < 12; i++)
		pass(i < 11 ? 0 : 2560000, 0, 0);
	overhead_figures(&o, 1, &f);
	ck_assert(fabs(f.of[NCI_THREADS_USER].per_s - 2560000) < 1);
	overhead_figures(&o, 10, &f);
	ck_assert(fabs(f.of[NCI_THREADS_USER].per_s - 256000) < 1);
}

TEST(duty_is_the_share_of_operations_whose_kernels_were_timed)
{
	pass(0, 0, 1000);
	pass(0, 250, 750);
	overhead_figures(&o, 1, &f);
	ck_assert(fabs(f.duty - 0.25) < 1e-6);
	ck_assert(fabs(f.groups_per_s - 1000) < 1e-6);
	ck_assert_uint_eq(f.group_ns, 1000000);
	pass(0, 0, 1000);
	overhead_figures(&o, 2, &f);
	ck_assert(fabs(f.duty - 0.125) < 1e-6);
}

TEST(counters_that_run_backwards_are_no_cost)
{
	pass(256000, 9, 9);
	p.steering.timed[NCI_THREADS_USER] = (struct steering_timed){ 0, 0 };
	p.ops_inside = 0;
	pass(0, 0, 0);
	overhead_figures(&o, 1, &f);
	ck_assert(overhead_share(&f) >= 0 && overhead_share(&f) < 1e-9);
	ck_assert(f.duty < 0);		/* not known */
}

int main(void)
{
	return fx_run(setup, NULL);
}
