/* SPDX-License-Identifier: Apache-2.0 */
#include "ncclinspd/levels/thrift.h"

#include "tests/fixture.h"

#define SECOND	UINT64_C(1000000000)
#define BUDGET	0.005

static struct thrift t;
static uint64_t now_ns;
static uint32_t level, usual;
static bool follows;

static void setup(void)
{
	thrift_init(&t);
	now_ns = 100 * SECOND;
	level = usual = NCI_LEVEL_NET;
	follows = true;
}

/* So many seconds; the process follows at once.  How many steps there were. */
static int pass(int seconds, double share)
{
	int steps = 0;

	for (int i = 0; i < seconds; i++) {
		const struct thrift_look look = { .share = share, .budget = BUDGET,
						  .level = level };

		now_ns += SECOND;
		steps += thrift_look(&t, &look, now_ns);
		if (follows)
			level = t.cap == WISH_KEEP ? usual : t.cap;
	}
	return steps;
}

TEST(above_the_budget_it_goes_down_step_by_step)
{
	ck_assert_int_eq(pass(THRIFT_LOOKS - 1, 2 * BUDGET), 0);
	ck_assert_int_eq(pass(1, 2 * BUDGET), 1);
	ck_assert_uint_eq(t.cap, NCI_LEVEL_KERNEL);
	ck_assert_int_eq(pass(THRIFT_LOOKS - 1, 2 * BUDGET), 0);
	ck_assert_int_eq(pass(1, 2 * BUDGET), 1);
	ck_assert_uint_eq(t.cap, NCI_LEVEL_OPS);
	ck_assert_int_eq(pass(1000, 2 * BUDGET), 0);	/* there is nothing below */
}

TEST(a_few_callbacks_that_were_interrupted_do_not_lower_it)
{
	for (int i = 0; i < 100; i++)
		ck_assert_int_eq(pass(4, BUDGET / 10) + pass(1, 100 * BUDGET), 0);
}

TEST(it_comes_back_when_half_of_the_budget_would_do)
{
	pass(THRIFT_LOOKS, 2 * BUDGET);
	ck_assert_int_eq(pass(1000, 0.7 * BUDGET), 0);
	ck_assert_int_eq(pass(THRIFT_LOOKS, 0.3 * BUDGET), 1);
	ck_assert_uint_eq(t.cap, WISH_KEEP);
	ck_assert_uint_eq(level, NCI_LEVEL_NET);
}

/* Seconds until the next step up, after it was too much again at once. */
static int until_back(void)
{
	int seconds = 0;

	pass(THRIFT_LOOKS, 2 * BUDGET);
	ck_assert_uint_eq(t.cap, NCI_LEVEL_KERNEL);
	while (t.cap != WISH_KEEP && seconds < 20000)
		seconds += 1 + 0 * pass(1, 0.1 * BUDGET);
	return seconds;
}

TEST(what_does_not_last_is_tried_less_and_less_often)
{
	ck_assert_int_eq(until_back(), 60);
	ck_assert_int_eq(until_back(), 120);
	ck_assert_int_eq(until_back(), 240);
	for (int i = 0; i < 10; i++)
		until_back();
	ck_assert_int_eq(until_back(), 3600);
	pass(3 * 3600, 0.1 * BUDGET);	/* it has lasted */
	ck_assert_int_le(until_back(), 60);
}

TEST(a_process_that_does_not_follow_is_not_lowered_further)
{
	follows = false;
	ck_assert_int_eq(pass(100, 2 * BUDGET), 1);
	ck_assert_uint_eq(t.cap, NCI_LEVEL_KERNEL);
}

TEST(what_was_at_kernel_comes_back_there)
{
	level = usual = NCI_LEVEL_KERNEL;
	pass(THRIFT_LOOKS, 2 * BUDGET);
	ck_assert_uint_eq(t.cap, NCI_LEVEL_OPS);
	ck_assert_uint_eq(t.from, NCI_LEVEL_KERNEL);
	pass(100, 0.1 * BUDGET);
	ck_assert_uint_eq(t.cap, WISH_KEEP);
}

TEST(what_somebody_wants_or_what_is_not_known_is_not_judged)
{
	struct thrift_look look = { .share = 1, .budget = BUDGET, .level = NCI_LEVEL_NET };

	for (int i = 0; i < 10 * THRIFT_LOOKS; i++) {
		struct thrift_look one = look;

		one.held = i % 4 == 0;
		one.share = i % 4 == 1 ? -1 : 1;
		ck_assert(!thrift_look(&t, &one, now_ns += SECOND));
	}
	look.budget = 0;
	for (int i = 0; i < 2 * THRIFT_LOOKS; i++)
		ck_assert(!thrift_look(&t, &look, now_ns += SECOND));
	look.budget = BUDGET;
	look.level = NCI_LEVEL_TRACE;
	for (int i = 0; i < 2 * THRIFT_LOOKS; i++)
		ck_assert(!thrift_look(&t, &look, now_ns += SECOND));
}

int main(void)
{
	return fx_run(setup, NULL);
}
