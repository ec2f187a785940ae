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

/* Of several groups the first, which is the largest. */
static enum verdict judge_first(uint32_t groups)
{
	struct hang_input in;

	ck_assert_int_eq(hang_ready(&h), 0);
	hang_take_rows(&h);
	for (uint32_t i = 0; i < h.ranks.n; i++)
		for (size_t k = 0; k < h.ranks.at[i].nrows; k++)
			hang_rank_see(&h.ranks.at[i], &h.ranks.at[i].rows[k]);
	hang_find(&h);
	ck_assert_uint_eq(h.groups.n, groups);
	h.groups.at[0].least_ns = 10 * SECOND;
	hang_place(&h);
	in = hang_input(&h);
	c = (struct hang_case){ .hang = &h, .age_ns = 20 * SECOND, .limit_ns = 10 * SECOND };
	hang_decide(&in, 0, &c.verdict);
	hang_say(&c, text, sizeof(text));
	return c.verdict.verdict;
}

static enum verdict judge(void)
{
	return judge_first(1);
}

/* The last rank has not come to it. */
static void post_but_the_last(void)
{
	for (uint32_t r = 0; r < RANKS - 1; r++)
		post(r, "AllReduce", 9, 64);
	h.ranks.at[RANKS - 1].last[0].seq = 8;
}

TEST(who_has_not_come_is_named_with_its_node)
{
	post_but_the_last();
	ck_assert_int_eq(judge(), VERDICT_NOT_JOINED);
	ck_assert_ptr_eq(strstr(text, "rank 3 (global rank 11, pid 103, n1) "
			 "has not come to AllReduce #9 on dp; "
				"its last AllReduce there is #8; ranks 0-2 wait there. "
				"The limit for such an operation is 10s. "), text);
}

/* A rank of tp, of that process; it posted last so many seconds ago, and nothing tells the end. */
static void add_tp_rank(int32_t r, uint64_t process, uint64_t ago)
{
	struct hang_rank *rank = list_append(&h.ranks);

	*rank = (struct hang_rank){
		.has_id = true, .id = 8, .nranks = 2, .name = "tp", .key = h.ranks.n, .rank = r,
		.process = process, .seen_ns = NOW, .counts = true, .nlast = 1,
		.last = { { "AllReduce", 30 } }, .last_op_ns = NOW - ago * SECOND,
		.last_unwatched = true,
	};
}

/* dp's last rank has not come; before that it posted on tp, as did process 50, halted there. */
static void post_but_the_last_halts_in_tp(void)
{
	post_but_the_last();
	for (uint32_t r = 0; r < RANKS; r++)
		h.ranks.at[r].last_op_ns = NOW - (r < RANKS - 1 ? 20 : 30) * SECOND;
	add_tp_rank(0, RANKS, 25);
	add_tp_rank(1, 50, 25);
}

TEST(who_may_be_held_up_in_its_last_call_is_not_accused)
{
	post_but_the_last_halts_in_tp();
	ck_assert_int_eq(judge_first(2), VERDICT_UNKNOWN);
	ck_assert_uint_eq(c.verdict.nranks, 1);
	ck_assert_int_eq(c.verdict.ranks[0], RANKS - 1);
	ck_assert(hang_may_be_busy(&c) && !hang_is_desync(&c));
	ck_assert_ptr_eq(strstr(text, "AllReduce #9 on dp hangs; ranks 0-2 wait there; rank 3 "
				"(global rank 11, pid 103, n1) has not come, and may still be in "
				"its last call elsewhere. The limit for such an operation is "
				"10s. "), text);
	ck_assert_ptr_nonnull(strstr(text, "the end is not watched; NCCLINSP_KERNELS=always "));
	ck_assert_ptr_nonnull(strstr(text, " py-spy dump -p 103, gdb -p 103."));
}

TEST_LOOP(who_alone_has_halted_after_a_call_or_ended_it_has_not_joined, 0, 3)
{
	post_but_the_last_halts_in_tp();
	if (_i == 0)
		h.ranks.at[RANKS].last_unwatched = false;
	if (_i == 1)	/* the other rank of tp has gone on elsewhere */
		h.ranks.at[RANKS + 1].process = RANKS - 1;
	if (_i == 2) {	/* it was here after that */
		h.ranks.at[RANKS - 1].last_op_ns = NOW - 24 * SECOND;
		h.ranks.at[RANKS - 1].last_unwatched = true;
	}
	ck_assert_int_eq(judge_first(2), VERDICT_NOT_JOINED);
	ck_assert_int_eq(c.verdict.ranks[0], RANKS - 1);
}

TEST(who_is_stopped_is_told_with_what_lets_it_go_on)
{
	post_but_the_last();
	h.ranks.at[RANKS - 1].halt.stopped = true;
	ck_assert_int_eq(judge(), VERDICT_STOPPED);
	ck_assert_ptr_eq(strstr(text, "rank 3 (global rank 11, pid 103, n1) "
			 "is stopped by a signal (state T), "
				"and has not come to AllReduce #9 on dp; ranks 0-2 wait there. "),
			 text);
	ck_assert_ptr_nonnull(strstr(text, " kill -CONT 103 lets it continue. "));
}

TEST(who_is_stopped_by_a_debugger_is_told_with_it)
{
	post_but_the_last();
	h.ranks.at[RANKS - 1].halt = (struct hang_halt){ true, 4711, "gdb" };
	ck_assert_int_eq(judge(), VERDICT_STOPPED);
	ck_assert_ptr_eq(strstr(text, "rank 3 (global rank 11, pid 103, n1) "
			 "is stopped by a debugger (gdb, pid "
				"4711), and has not come to AllReduce #9 on dp; "), text);
	ck_assert_ptr_nonnull(strstr(text, "continue or detach there. kill -CONT does not help."));
}

TEST(who_was_seen_too_early_may_still_have_come)
{
	post_but_the_last();
	h.ranks.at[RANKS - 1].seen_ns = NOW - 15 * SECOND;
	ck_assert_int_eq(judge(), VERDICT_UNKNOWN);
	ck_assert_uint_eq(c.verdict.nranks, 0);
	ck_assert_ptr_nonnull(strstr(text, "1 of its 4 ranks are not on these nodes"));
}

TEST(who_called_with_another_count_is_told_apart)
{
	for (uint32_t r = 0; r < RANKS; r++)
		post(r, "AllReduce", 9, r == 2 ? 32 : 64);
	ck_assert_int_eq(judge(), VERDICT_METADATA_MISMATCH);
	ck_assert_ptr_eq(strstr(text, "rank 2 (global rank 10, pid 102, n1) "
			 "has a different count than ranks 0-1,3 in "
				"AllReduce #9 on dp."), text);
}

TEST(who_called_two_in_the_other_order_is_told_apart)
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
			 "called AllGather #3 where ranks 0,2-3 "
				"called AllReduce #9 on dp."), text);
}

/* All that is known of it is who called what, from the 20th call on. */
static void call(uint32_t r, name_t func, name_t datatype, int32_t root)
{
	struct hang_rank *rank = &h.ranks.at[r];

	rank->counts_calls = true;
	rank->last_op_ns = NOW - 20 * SECOND;
	rank->calls = (rank->calls ?: 20) + 1;
	memmove(rank->call, rank->call + 1, sizeof(rank->call) - sizeof(rank->call[0]));
	rank->call[HANG_CALLS - 1] = (struct hang_call){ func, datatype, 64, root, 0 };
}

TEST(who_calls_a_broadcast_from_another_root_is_named)
{
	for (uint32_t r = 0; r < RANKS; r++) {
		call(r, "AllReduce", "ncclBfloat16", UNKNOWN_I32);
		call(r, "Broadcast", "ncclBfloat16", r == 3 ? 2 : 0);
	}
	ck_assert_int_eq(judge(), VERDICT_METADATA_MISMATCH);
	ck_assert_ptr_eq(strstr(text, "rank 3 (global rank 11, pid 103, n1) "
			 "has a different root than ranks 0-2 in "
				"Broadcast on dp."), text);
}

TEST(who_calls_with_another_datatype_is_named_where_no_end_is_watched)
{
	for (uint32_t r = 0; r < RANKS; r++)
		call(r, "AllGather", r == 1 ? "ncclFloat16" : "ncclBfloat16", UNKNOWN_I32);
	ck_assert_int_eq(judge(), VERDICT_METADATA_MISMATCH);
	ck_assert_ptr_eq(strstr(text, "rank 1 (global rank 9, pid 101, n0) "
			 "has a different datatype than ranks 0,2-3 in "
				"AllGather on dp. This is based on the order "
				"of calls; the end of these operations is not watched. "), text);
}

TEST(what_is_not_told_of_a_call_differs_from_nothing)
{
	for (uint32_t r = 0; r < RANKS; r++)
		call(r, "AllGather", r == 1 ? NULL : "ncclBfloat16", UNKNOWN_I32);
	judge();
	ck_assert(!h.groups.at[0].has_op);
}

TEST(who_has_not_come_to_a_broadcast_is_named_with_the_number_of_the_call)
{
	for (uint32_t r = 0; r < RANKS; r++) {
		call(r, "AllReduce", "ncclBfloat16", UNKNOWN_I32);
		if (r != 2)
			call(r, "Broadcast", "ncclBfloat16", 0);
	}
	ck_assert_int_eq(judge(), VERDICT_NOT_JOINED);
	ck_assert_ptr_nonnull(strstr(text, "rank 2 (global rank 10, pid 102, n1) "
			 "has not come to Broadcast on dp, "
				     "call #21 there; its last call there was AllReduce"));
}

/* A second communicator of the same processes, for calls that are not watched. */
static void add_other_comm(void)
{
	for (int32_t r = 0; r < RANKS; r++) {
		struct hang_rank *rank = list_append(&h.ranks);

		*rank = h.ranks.at[r];
		rank->name = "tp";
		rank->id = 8;
		rank->key = h.ranks.n;
	}
}

/* Rank r calls both that long ago, dp's first, or tp's. */
static void call_both(uint32_t r, uint64_t ago, bool dp_first)
{
	for (uint32_t i = 0; i < 2; i++) {
		uint32_t at = r + (i == dp_first) * RANKS;

		call(at, "AllReduce", "ncclBfloat16", UNKNOWN_I32);
		h.ranks.at[at].last_op_ns = NOW - ago + i;
		h.ranks.at[at].call[HANG_CALLS - 1].at_ns = NOW - ago + i;
	}
}

/* Both have made each call: nothing but their order tells why they are quiet. */
static enum verdict judge_both(void)
{
	struct hang_input in;

	ck_assert_int_eq(hang_ready(&h), 0);
	hang_find(&h);
	ck_assert_uint_eq(h.groups.n, 2);
	hang_place(&h);
	in = hang_input(&h);
	c = (struct hang_case){ .hang = &h, .age_ns = 20 * SECOND, .limit_ns = 10 * SECOND };
	if (!h.groups.at[0].has_op)
		return VERDICT_UNKNOWN;
	hang_decide(&in, 0, &c.verdict);
	hang_say(&c, text, sizeof(text));
	return c.verdict.verdict;
}

TEST(who_calls_two_communicators_in_another_order_is_in_a_deadlock)
{
	add_other_comm();
	for (uint32_t r = 0; r < RANKS; r++) {
		call_both(r, 21 * SECOND, true);
		call_both(r, 20 * SECOND, r != 2);
	}
	ck_assert_int_eq(judge_both(), VERDICT_COMM_DEADLOCK);
	ck_assert(hang_may_be_busy(&c));
	ck_assert_ptr_nonnull(strstr(text, "on dp waits for its rank 2"));
	ck_assert_ptr_nonnull(strstr(text, "on tp waits for its ranks 0-1,3"));
}

TEST(a_busy_job_is_in_no_deadlock_whatever_it_called_first)
{
	add_other_comm();
	for (uint32_t r = 0; r < RANKS; r++)
		call_both(r, SECOND, r != 2);
	ck_assert_int_eq(judge_both(), VERDICT_UNKNOWN);
}

/* As two threads of a process call them. */
TEST(ranks_that_have_no_order_themselves_are_in_no_deadlock)
{
	add_other_comm();
	for (uint32_t r = 0; r < RANKS; r++) {
		call_both(r, 21 * SECOND, r == 2);
		call_both(r, 20 * SECOND, r != 2);
	}
	ck_assert_int_eq(judge_both(), VERDICT_UNKNOWN);
}

/* Rank r of another communicator is in process p; its operation is posted in that second. */
static void add_rank(uint64_t id, int32_t r, uint64_t p, uint64_t second)
{
	struct hang_row *row = list_append(&h.rows);
	struct hang_rank *rank = list_append(&h.ranks);

	*rank = (struct hang_rank){
		.has_id = true, .id = id, .nranks = 2, .name = "other", .key = h.ranks.n,
		.rank = r, .process = p, .seen_ns = NOW, .counts = true,
	};
	*row = (struct hang_row){
		.key = rank->key, .rank = r, .token = h.rows.n, .is_op = true, .func = "AllGather",
		.seq = UNKNOWN_U64, .root = UNKNOWN_I32, .peer = UNKNOWN_I32,
		.kernel_started = UNKNOWN_I32, .enqueued_ns = NOW - second * SECOND,
	};
	hang_rank_see(rank, row);
}

static struct hang_case case_of(uint64_t id, enum verdict verdict)
{
	struct hang_case made = { .hang = &h, .verdict = { .verdict = verdict } };

	while (h.ranks.at[h.groups.at[made.verdict.comm].first].id != id)
		made.verdict.comm++;
	return made;
}

static bool explains(uint64_t cause, enum verdict one, uint64_t id, enum verdict other)
{
	struct hang_case a = case_of(cause, one), b = case_of(id, other);

	return hang_explains(&a, &b);
}

/* dp (7) has processes 1 to 4; 8 and 9 share one each with it, 10 has none. */
TEST(a_job_that_hangs_has_one_cause)
{
	add_rank(8, 0, 4, 30);
	add_rank(8, 1, 5, 30);
	add_rank(9, 0, 6, 25);
	add_rank(9, 1, 5, 25);
	add_rank(10, 0, 9, 40);
	ck_assert_int_eq(hang_ready(&h), 0);
	hang_find(&h);
	ck_assert(explains(8, VERDICT_LINK, 9, VERDICT_GPU_STUCK));	/* it is older */
	ck_assert(!explains(9, VERDICT_GPU_STUCK, 8, VERDICT_LINK));
	ck_assert(explains(9, VERDICT_GPU_STUCK, 8, VERDICT_INTERNAL));	/* it is surer */
	ck_assert(!explains(8, VERDICT_INTERNAL, 9, VERDICT_GPU_STUCK));
	ck_assert(explains(9, VERDICT_ORDER_MISMATCH, 8, VERDICT_NOT_JOINED));
	ck_assert(!explains(8, VERDICT_STOPPED, 9, VERDICT_ORDER_MISMATCH));	/* proven, both */
	ck_assert(!explains(10, VERDICT_STOPPED, 9, VERDICT_INTERNAL));	/* another job's */
	ck_assert(!explains(8, VERDICT_LINK, 9, VERDICT_SLOW));
	ck_assert(!explains(8, VERDICT_SLOW, 9, VERDICT_INTERNAL));
	ck_assert(!explains(8, VERDICT_LINK, 8, VERDICT_LINK));
}

int main(void)
{
	return fx_run(setup, teardown);
}
