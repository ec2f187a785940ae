/* SPDX-License-Identifier: Apache-2.0 */
#include "reader/time/ticks.h"

#include <math.h>
#include <stdlib.h>

#include "tests/fixture.h"

#define SECOND UINT64_C(1000000000)

static struct ticks t;
static uint64_t seed = 1;

/* A reading error of up to 100 ns either way, the same in every run. */
static uint64_t noise(void)
{
	seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407u;
	return (seed >> 33) % 201;
}

static void observe(double ghz, uint64_t mono_ns)
{
	struct ticks_pair pair = {
		.ticks = 1000000 + (uint64_t)((double)mono_ns * ghz),
		.mono_ns = mono_ns + noise() - 100,
	};

	ticks_observe(&t, &pair);
}

static double rate_error(double ghz)
{
	return t.clock.ns_per_tick * ghz - 1;
}

TEST(two_pairs_give_a_rate_and_more_make_it_better)
{
	ticks_init(&t, NCI_CLOCK_TSC);
	observe(2.9, 5 * SECOND);
	observe(2.9, 5 * SECOND + 5000000);
	ck_assert_double_le(rate_error(2.9), 1e-4);
	ck_assert_double_ge(rate_error(2.9), -1e-4);
	for (uint64_t s = 6; s < 10; s++)
		observe(2.9, s * SECOND);
	ck_assert_double_le(rate_error(2.9), 1e-7);
	ck_assert_double_ge(rate_error(2.9), -1e-7);
	ck_assert_uint_eq(t.restarts, 0);
}

TEST(rate_follows_the_kernels_slewing_within_a_minute)
{
	double ghz = 2.5 * (1 + 500e-6);	/* as much as NTP may */
	uint64_t s;

	ticks_init(&t, NCI_CLOCK_TSC);
	for (s = 1; s < 200; s++)
		observe(2.5, s * SECOND);
	for (; s < 200 + TICKS_PAIRS + 1; s++) {
		struct ticks_pair pair = {
			.ticks = 1000000 + (uint64_t)(199e9 * 2.5 + (double)(s - 199) * 1e9 * ghz),
			.mono_ns = s * SECOND,
		};

		ticks_observe(&t, &pair);
	}
	ck_assert_uint_eq(t.restarts, 0);
	ck_assert_double_le(rate_error(ghz), 1e-7);
	ck_assert_double_ge(rate_error(ghz), -1e-7);
}

TEST(jump_of_the_counter_starts_the_calibration_anew)
{
	struct ticks_pair pair = { .ticks = 77, .mono_ns = 21 * SECOND };

	ticks_init(&t, NCI_CLOCK_TSC);
	for (uint64_t s = 1; s <= 20; s++)
		observe(3, s * SECOND);
	ticks_observe(&t, &pair);
	ck_assert_uint_eq(t.restarts, 1);
	ck_assert_double_le(rate_error(3), 1e-6);	/* the old rate until the next pair */
	pair = (struct ticks_pair){ .ticks = 77 + 2 * SECOND, .mono_ns = 22 * SECOND };
	ticks_observe(&t, &pair);
	ck_assert_double_le(rate_error(2), 1e-9);
	ck_assert_double_ge(rate_error(2), -1e-9);
}

/* S3 sets the counter back; CLOCK_MONOTONIC stands still meanwhile. */
TEST(counter_that_jumped_is_found_out_at_once)
{
	struct ticks_pair pair;

	ticks_init(&t, NCI_CLOCK_TSC);
	for (uint64_t s = 1; s <= 20; s++)
		observe(3, s * SECOND);
	pair = (struct ticks_pair){ 1000000 + 60 * SECOND + 3000000, 20 * SECOND + 1000000 };
	ck_assert(!ticks_jumped(&t, &pair));
	pair.ticks += 3 * 3600 * SECOND;	/* it ran on while the machine slept */
	ck_assert(ticks_jumped(&t, &pair));
	ticks_observe(&t, &pair);
	ck_assert(!ticks_jumped(&t, &pair));
	ck_assert_uint_eq(ticks_at(&t.clock, pair.mono_ns), pair.ticks);
	pair.ticks = 5000;			/* it began anew */
	pair.mono_ns += 1000000;
	ticks_observe(&t, &pair);
	ck_assert_uint_eq(ticks_at(&t.clock, pair.mono_ns), pair.ticks);
}

TEST(ticks_and_times_map_back_and_forth)
{
	ticks_init(&t, NCI_CLOCK_TSC);
	for (uint64_t s = 100; s <= 110; s++)
		observe(2, s * SECOND);
	ck_assert_int_le(llabs((int64_t)(ticks_at(&t.clock, 105 * SECOND) -
					 (1000000 + 210 * SECOND))), 2000);
	ck_assert_int_le(llabs((int64_t)(ticks_at(&t.clock, 115 * SECOND) -
					 (1000000 + 230 * SECOND))), 2000);
}

TEST(monotonic_ticks_are_nanoseconds)
{
	struct ticks_pair pair = { 5, 5 };

	ticks_init(&t, NCI_CLOCK_MONOTONIC);
	ticks_observe(&t, &pair);
	pair = (struct ticks_pair){ 1000, 1003 };
	ticks_observe(&t, &pair);
	ck_assert_double_eq(t.clock.ns_per_tick, 1);
}

TEST(this_machines_counter_agrees_with_its_clock)
{
	struct ticks_pair a, b;

	ticks_init(&t, ticks_hardware());
	ticks_read(t.clock.kind, &a);
	do
		ticks_read(t.clock.kind, &b);
	while (b.mono_ns - a.mono_ns < 20000000);
	ticks_observe(&t, &a);
	ticks_observe(&t, &b);
	ticks_read(t.clock.kind, &b);
	ck_assert_int_le(llabs((int64_t)(ticks_at(&t.clock, b.mono_ns) - b.ticks)) *
			 (int64_t)(t.clock.ns_per_tick * 1000) / 1000, 50000);
}

/* ---- a process that was there before ------------------------------------------------ */

#define HOUR (3600 * SECOND)
#define BEGAN (5 * SECOND)

static const struct ticks_pair first = { 1000000 + (uint64_t)(5e9 * 2.9), BEGAN };

/* How far off a stamp of the process's begin is told. */
static double begin_error_ns(const struct tick_clock *clock)
{
	return (double)clock->mono_ns - (double)(clock->ticks - first.ticks) *
	       clock->ns_per_tick - (double)first.mono_ns;
}

TEST(daemon_that_has_just_come_knows_when_an_old_process_began)
{
	struct tick_clock clock;

	ticks_init(&t, NCI_CLOCK_TSC);
	observe(2.9, BEGAN + HOUR);
	observe(2.9, BEGAN + HOUR + 5000000);
	clock = t.clock;
	ck_assert_uint_lt(clock.span_ns, 6000000);
	clock.ns_per_tick *= 1 + 3e-4;		/* it was not let run between two looks */
	ck_assert_double_lt(begin_error_ns(&clock), -0.9e9);
	ticks_reach_back(&clock, &first);
	ck_assert_double_lt(fabs(begin_error_ns(&clock)), 1000);
}

TEST_LOOP(what_a_process_says_of_its_begin_is_not_believed_blindly, 0, 5)
{
	static const struct ticks_pair lies[] = {
		{ 0, 0 },				/* nothing */
		{ UINT64_MAX, BEGAN }, { 1000000, UINT64_MAX },	/* the future */
		{ 1000000 + (uint64_t)(50e9 * 2.9), BEGAN },	/* another rate */
		{ 1000000 + (uint64_t)((5e9 + 3600e9 + 4e6) * 2.9), BEGAN + HOUR + 4000000 },
	};
	struct tick_clock clock;

	ticks_init(&t, NCI_CLOCK_TSC);
	observe(2.9, BEGAN + HOUR);
	observe(2.9, BEGAN + HOUR + 5000000);
	clock = t.clock;
	ticks_reach_back(&clock, &lies[_i]);
	ck_assert_double_eq(clock.ns_per_tick, t.clock.ns_per_tick);
}

TEST(own_rate_serves_once_it_is_a_long_one)
{
	const struct ticks_pair other = { first.ticks, first.mono_ns - SECOND };
	struct tick_clock clock;

	ticks_init(&t, NCI_CLOCK_TSC);
	for (uint64_t s = 0; s < 40; s++)
		observe(2.9, BEGAN + HOUR + s * SECOND);
	clock = t.clock;
	ticks_reach_back(&clock, &other);
	ck_assert_double_eq(clock.ns_per_tick, t.clock.ns_per_tick);
}

int main(void)
{
	return fx_run(NULL, NULL);
}
