/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of several nodes' ranks, and the sentence that comes of them. */
#include <string.h>

#include "judge/hang.h"
#include "tests/fixture.h"

#define SECOND	UINT64_C(1000000000)
#define NOW	(1000 * SECOND)
#define RANKS	4

static struct hang h;
static struct hang_case c;
static char text[1024];

/* All ranks of dp, two on each node, have posted AllReduce 9. */
static void setup(void)
{
	h = (struct hang){ .now_ns = NOW, .nodes = 2 };
	for (int32_t r = 0; r < RANKS; r++) {
		struct hang_rank *rank = list_append(&h.ranks);

		*rank = (struct hang_rank){
			.has_id = true, .id = 7, .nranks = RANKS, .name = "dp",
			.key = (uint64_t)r + 1, .rank = r, .process = (uint64_t)r + 1,
			.pid = 100 + r, .world_rank = 8 + r,
			.host = r < 2 ? "n0" : "n1", .seen_ns = NOW,
			.counts = true, .nlast = 1, .last = { { "AllReduce", 9 } },
		};
	}
}

static void teardown(void)
{
	hang_deinit(&h);
}

static void post(uint32_t rank, name_t func, uint64_t seq, uint64_t count)
{
	struct hang_row *row = list_append(&h.rows);

	*row = (struct hang_row){
		.key = rank + 1, .rank = (int32_t)rank, .token = h.rows.n, .is_op = true,
		.func = func, .seq = seq, .bytes = UNKNOWN_U64, .count = count,
		.root = UNKNOWN_I32, .peer = UNKNOWN_I32, .kernel_started = UNKNOWN_I32,
		.enqueued_ns = NOW - 20 * SECOND + rank,
	};
}

static enum verdict judge(void)
{
	struct hang_input in;

	ck_assert_int_eq(hang_ready(&h), 0);
	hang_take_rows(&h);
	for (uint32_t i = 0; i < h.ranks.n; i++)
		for (size_t k = 0; k < h.ranks.at[i].nrows; k++)
			hang_rank_see(&h.ranks.at[i], &h.ranks.at[i].rows[k]);
	hang_find(&h);
	ck_assert_uint_eq(h.groups.n, 1);
	h.groups.at[0].least_ns = 10 * SECOND;
	hang_place(&h);
	in = hang_input(&h);
	c = (struct hang_case){ .hang = &h, .age_ns = 20 * SECOND, .limit_ns = 10 * SECOND };
	hang_decide(&in, 0, &c.verdict);
	hang_say(&c, text, sizeof(text));
	return c.verdict.verdict;
}

/* The last rank has not come to it. */
static void post_but_the_last(void)
{
	for (uint32_t r = 0; r < RANKS - 1; r++)
		post(r, "AllReduce", 9, 64);
	h.ranks.at[RANKS - 1].last[0].seq = 8;
}

START_TEST(who_has_not_come_is_named_with_its_node)
{
	post_but_the_last();
	ck_assert_int_eq(judge(), VERDICT_NOT_JOINED);
	ck_assert_ptr_eq(strstr(text, "rank 3 (global rank 11, pid 103, n1) "
			 "has not come to AllReduce #9 on dp; "
				"its last one there is #8; ranks 0-2 wait there. "
				"The limit is 10s. "), text);
}
END_TEST

START_TEST(who_was_seen_too_early_may_still_have_come)
{
	post_but_the_last();
	h.ranks.at[RANKS - 1].seen_ns = NOW - 15 * SECOND;
	ck_assert_int_eq(judge(), VERDICT_UNKNOWN);
	ck_assert_uint_eq(c.verdict.nranks, 0);
	ck_assert_ptr_nonnull(strstr(text, "1 of its 4 ranks are not on these nodes"));
}
END_TEST

START_TEST(who_called_with_another_count_is_told_apart)
{
	for (uint32_t r = 0; r < RANKS; r++)
		post(r, "AllReduce", 9, r == 2 ? 32 : 64);
	ck_assert_int_eq(judge(), VERDICT_METADATA_MISMATCH);
	ck_assert_ptr_eq(strstr(text, "rank 2 (global rank 10, pid 102, n1) "
			 "has another count than the rest in "
				"AllReduce #9 on dp (ranks 0-1,3)."), text);
}
END_TEST

START_TEST(who_called_two_in_the_other_order_is_told_apart)
{
	for (uint32_t r = 0; r < RANKS; r++) {
		bool swapped = r == 1;

		*(struct hang_last *)array_add(h.ranks.at[r].last, &h.ranks.at[r].nlast) =
			(struct hang_last){ "AllGather", 3 };
		post(r, swapped ? "AllGather" : "AllReduce", swapped ? 3 : 9, 64);
		post(r, swapped ? "AllReduce" : "AllGather", swapped ? 9 : 3, 64);
		h.rows.at[h.rows.n - 1].enqueued_ns += SECOND;
	}
	ck_assert_int_eq(judge(), VERDICT_ORDER_MISMATCH);
	ck_assert_ptr_eq(strstr(text, "rank 1 (global rank 9, pid 101, n0) "
			 "called AllGather #3 where the others "
				"called AllReduce #9 on dp (ranks 0,2-3)."), text);
}
END_TEST

int main(void)
{
	const struct fx_test tests[] = {
		FX_TEST(who_has_not_come_is_named_with_its_node),
		FX_TEST(who_was_seen_too_early_may_still_have_come),
		FX_TEST(who_called_with_another_count_is_told_apart),
		FX_TEST(who_called_two_in_the_other_order_is_told_apart),
	};

	return fx_run(setup, teardown, tests, FX_COUNT(tests));
}
