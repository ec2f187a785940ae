/* SPDX-License-Identifier: Apache-2.0 */
/* Who came last, and when that is more than chance: rows that are made up. */
#include "judge/late.h"
#include "tests/fixture.h"

#define US	UINT64_C(1000)
#define MS	UINT64_C(1000000)
#define RANKS	4

static const struct late_usual usual = {
	.known = true, .transfer_ns = MS, .spread_ns = 10 * US, .tail_ns = 5 * US,
};
static struct late_part parts[RANKS];
static struct late_op op;
static double scratch[RANKS];

/* Ranks that are inside for so many us. */
static void rate(int32_t nranks, const uint64_t *inside_us)
{
	for (uint32_t i = 0; i < RANKS; i++)
		parts[i] = (struct late_part){ .inside_ns = inside_us[i] * US,
					       .end_error_ns = UNKNOWN_U64 };
	late_measure(parts, RANKS, &op);
	late_rate(parts, RANKS, nranks, &usual, &op, scratch);
}

START_TEST(who_is_inside_for_the_least_time_came_last_and_costs_the_median_wait)
{
	rate(RANKS, (uint64_t[]){ 3000, 1000, 2900, 3500 });
	ck_assert(op.judged && op.burst);
	ck_assert_uint_eq(op.last, 1);
	ck_assert_uint_eq(op.first, 3);
	ck_assert_uint_eq(op.blame_ns, 2 * MS);
}
END_TEST

START_TEST(what_is_apart_as_transfers_end_is_nobodys_doing)
{
	rate(RANKS, (uint64_t[]){ 1000, 1019, 1005, 1010 });
	ck_assert(!op.judged);
	rate(RANKS, (uint64_t[]){ 1000, 1020, 1005, 1010 });
	ck_assert(op.judged && !op.burst);
}
END_TEST

START_TEST(where_all_that_are_seen_wait_the_last_one_is_elsewhere)
{
	rate(2 * RANKS, (uint64_t[]){ 3000, 3100, 2900, 3500 });
	ck_assert(op.slow && !op.judged);
	ck_assert_uint_eq(op.last, LATE_NOBODY);
	ck_assert_uint_eq(op.slow_ns, 1900 * US);
	rate(RANKS, (uint64_t[]){ 3000, 3100, 2900, 3500 });
	ck_assert(op.slow && op.judged);	/* all are seen: one of them was the last */
	ck_assert_uint_eq(op.last, 2);
}
END_TEST

START_TEST(lateness_that_is_mostly_waiting_was_handed_on)
{
	ck_assert(late_is_inherited(7 * MS, 10 * MS));
	ck_assert(!late_is_inherited(6 * MS, 10 * MS));
}
END_TEST

/* A window of 60 operations in 6 s, in each of which rank i % n is 3 ms late. */
static bool is_steady(uint32_t n, uint32_t rank)
{
	struct late_window w = { .wall_ns = 6000 * MS };
	struct late_tally tally[RANKS] = { 0 };
	double room[2 * RANKS];
	const struct late_view v = { &w, tally, RANKS, RANKS, room };

	for (uint32_t i = 0; i < 60; i++) {
		uint64_t inside_us[RANKS] = { 4000, 4000, 4000, 4000 };

		inside_us[i % n] = 1000;
		rate(RANKS, inside_us);
		late_add(&w, &op);
		late_add_own(&w, &tally[op.last], &op, op.blame_ns);
		for (uint32_t k = 0; k < RANKS; k++)
			tally[k].late_ns += (4000 - inside_us[k]) * US;
	}
	return late_is_steady(&v, rank, 1);
}

START_TEST(who_is_last_each_time_is_told_and_who_is_by_turns_is_not)
{
	ck_assert(is_steady(1, 0));
	ck_assert(!is_steady(1, 1));
	for (uint32_t i = 0; i < RANKS; i++)
		ck_assert(!is_steady(RANKS, i));
}
END_TEST

int main(void)
{
	const struct fx_test tests[] = {
		FX_TEST(who_is_inside_for_the_least_time_came_last_and_costs_the_median_wait),
		FX_TEST(what_is_apart_as_transfers_end_is_nobodys_doing),
		FX_TEST(where_all_that_are_seen_wait_the_last_one_is_elsewhere),
		FX_TEST(lateness_that_is_mostly_waiting_was_handed_on),
		FX_TEST(who_is_last_each_time_is_told_and_who_is_by_turns_is_not),
	};

	return fx_run(NULL, NULL, tests, FX_COUNT(tests));
}
