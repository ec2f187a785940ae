/* SPDX-License-Identifier: Apache-2.0 */
/* Calls of several ranks that were counted from different places of one sequence on. */
#include "judge/lineup.h"
#include "tests/fixture.h"

#define MS	UINT64_C(1000000)
#define SECOND	(1000 * MS)
#define STEP	23		/* calls of an iteration, all different but for the first two */
#define LEAD_NS	(3 * MS)	/* the second rank's host is so much later */

static struct lineup_rank ranks[2];

static uint64_t what_of(uint64_t number)
{
	return number % STEP < 2 ? 7 : 100 + number % STEP;
}

/* The calls `from` to `end` of the sequence, in its counting from 0 on, a ms apart. */
static void play(struct lineup_rank *r, uint64_t from, uint64_t end, uint64_t later_ns,
		 uint64_t (*what)(uint64_t))
{
	r->calls = end - from;
	r->n = r->calls < LINEUP_KEPT ? (uint32_t)r->calls : LINEUP_KEPT;
	for (uint32_t k = 0; k < r->n; k++) {
		uint64_t number = end - r->n + k;

		r->last[k] = (struct lineup_call){ what(number), SECOND + number * MS + later_ns };
	}
}

static uint64_t what_always(uint64_t number)
{
	(void)number;
	return 1;
}

TEST(ranks_that_began_at_different_calls_are_lined_up)
{
	play(&ranks[0], 3, 500, 0, what_of);
	play(&ranks[1], 10, 498, LEAD_NS, what_of);
	lineup(ranks, 2);
	ck_assert_int_eq(ranks[1].by, LINEUP_CALLS);
	ck_assert_int_eq(ranks[1].shift, 7);
}

TEST(a_rank_that_lacks_a_call_is_told_with_its_number)
{
	struct lineup_lack lack;
	uint64_t now_ns = SECOND + 500 * MS + 10 * SECOND;

	play(&ranks[0], 3, 500, 0, what_of);
	play(&ranks[1], 10, 498, LEAD_NS, what_of);
	lineup(ranks, 2);
	ck_assert(!lineup_lacks(ranks, 2, 0, now_ns, &lack));
	ck_assert(lineup_lacks(ranks, 2, 1, now_ns, &lack));
	ck_assert_int_eq(lack.number, 498 - 3 + 1);
	ck_assert_uint_eq(lack.behind, 1);
	ck_assert_uint_eq(lack.others, 1);
	ck_assert_uint_eq(ranks[lack.first].last[lack.call].what, what_of(498));
}

TEST(one_that_is_behind_for_a_moment_lacks_nothing)
{
	struct lineup_lack lack;

	play(&ranks[0], 3, 500, 0, what_of);
	play(&ranks[1], 10, 498, LEAD_NS, what_of);
	lineup(ranks, 2);
	ck_assert(!lineup_lacks(ranks, 2, 1, SECOND + 500 * MS, &lack));
}

TEST(calls_that_are_all_alike_are_lined_up_by_time_and_said_so)
{
	play(&ranks[0], 0, 200, 0, what_always);
	play(&ranks[1], 5, 198, MS / 10, what_always);
	lineup(ranks, 2);
	ck_assert_int_eq(ranks[1].by, LINEUP_CALLS);	/* clearly nearest */
	ck_assert_int_eq(ranks[1].shift, 5);
	play(&ranks[1], 5, 198, MS / 2, what_always);
	lineup(ranks, 2);
	ck_assert_int_eq(ranks[1].by, LINEUP_TIME);
}

TEST(what_does_not_fit_is_not_lined_up_and_accused_of_nothing)
{
	struct lineup_lack lack;

	play(&ranks[0], 0, 200, 0, what_of);
	play(&ranks[1], 0, 100, 0, what_always);
	lineup(ranks, 2);
	ck_assert_int_eq(ranks[1].by, LINEUP_NOT);
	ck_assert(!lineup_lacks(ranks, 2, 1, 100 * SECOND, &lack));
}

TEST(a_rank_without_a_call_is_not_lined_up)
{
	struct lineup_lack lack;

	play(&ranks[0], 0, 200, 0, what_of);
	play(&ranks[1], 0, 0, 0, what_of);
	lineup(ranks, 2);
	ck_assert_int_eq(ranks[1].by, LINEUP_NOT);
	ck_assert(!lineup_lacks(ranks, 2, 1, 100 * SECOND, &lack));
	lineup(ranks, 0);
}

int main(void)
{
	return fx_run(NULL, NULL);
}
