/* SPDX-License-Identifier: Apache-2.0 */
/* Whose doing the waiting is: all sums against slow and obvious ones, and who inherits. */
#include "tests/fx_straggler.h"

#define MEMBERS	8192	/* that are remembered: see straggler.c */

/* What a slow mind would add up: each operation by itself. */
TEST_LOOP(sums_are_those_of_the_operations, 0, 5)
{
	uint64_t wait[4] = { 0 }, last[4] = { 0 };
	struct straggler_sums sums;

	fx_seed((uint64_t)_i);
	for (int k = 0; k < 500; k++) {
		uint64_t late[4], least = UINT64_MAX;
		struct straggler_op op;

		for (int i = 0; i < 4; i++)
			late[i] = noise() + (fx_random() % 4 ? 0 : 7 * MS);
		op = op_of(1, 4, 4, late);
		for (int i = 0; i < 4; i++)
			least = op.part[i].inside_ns < least ? op.part[i].inside_ns : least;
		for (int i = 0; i < 4; i++) {
			wait[i] += op.part[i].inside_ns - least;
			last[i] += op.part[i].inside_ns == least;
		}
		straggler_add(&op);
		pass(STEP);
	}
	pass(2 * SECOND);
	for (uint32_t i = 0; i < 4; i++) {
		ck_assert(straggler_of(straggler, i + 1, 1, &sums));
		ck_assert_uint_eq(sums.ops, 500);
		ck_assert_uint_eq(sums.wait_ns, wait[i]);
		ck_assert_uint_eq(sums.remote_wait_ns, 0);
		ck_assert_uint_le(sums.last, last[i]);
		ck_assert_uint_le(sums.last, sums.judged);
	}
	ck_assert(!straggler_of(straggler, 5, 1, &sums));
}

TEST(who_comes_last_lately_is_told_long_before_it_is_flagged)
{
	struct straggler_lately one, other;

	ck_assert(!straggler_lately(straggler, 3, 1, &one));
	for (int k = 0; k < 120; k++) {		/* 20 to know what is usual, 100 to judge */
		const uint64_t late[4] = { 0, noise(), 5 * MS, noise() };
		struct straggler_op op = op_of(1, 4, 4, late);

		straggler_add(&op);
		pass(STEP);
	}
	pass(2 * SECOND);
	ck_assert_uint_eq(look(), 0);
	ck_assert_uint_eq(nsuspected, 1);
	ck_assert(straggler_lately(straggler, 3, 1, &one));
	ck_assert(one.late);
	ck_assert_str_eq(one.func, "AllReduce");
	ck_assert_uint_eq(one.window_ns, now_ns - 1000 * SECOND);
	ck_assert_uint_eq(one.ops, 120);
	ck_assert_uint_eq(one.last, one.judged);
	ck_assert_uint_ge(one.judged, 90);
	ck_assert_uint_eq(one.late_ns, 5 * MS);
	ck_assert_uint_ge(one.blame_ns, one.last * (5 * MS - 300 * US));
	ck_assert(straggler_lately(straggler, 2, 1, &other));
	ck_assert(!other.late);
	ck_assert_uint_eq(other.last, 0);
	work(5, 0, 0, 0);			/* it has become better */
	ck_assert_uint_eq(look(), 0);
	ck_assert_uint_eq(nsuspected, 0);
	ck_assert(straggler_lately(straggler, 3, 1, &one));
	ck_assert(!one.late);
	ck_assert_uint_ge(one.ops, 2000);
	ck_assert_uint_le(one.judged, one.ops / 20);	/* by chance, noise stands out of noise */
	ck_assert_uint_lt(one.blame_ns, one.ops / 20 * 300 * US);
	straggler_forget(straggler, 3);
	ck_assert(!straggler_lately(straggler, 3, 1, &one));
}

/* A member that makes room before its operations have settled leaves them to nobody. */
TEST(who_has_the_place_of_a_rank_that_made_room_is_not_blamed_for_it)
{
	struct straggler_op op;
	struct straggler_recent recent;

	for (int k = 0; k < 60; k++) {
		const uint64_t late[2] = { 0, k < 50 ? noise() : 9 * MS };

		op = op_of(1, 2, 2, late);
		straggler_add(&op);
		pass(k < 50 ? STEP : MS);
	}
	for (uint32_t comm = 2; comm < 2 + MEMBERS; comm++) {
		struct op untimed = op_of_part(&op, &op.part[0]);

		untimed.comm_index = comm;
		untimed.source = TIMING_KERNEL_CPU;
		straggler_see(straggler, &(const struct op *){ &untimed }, 1, processes,
			      nprocesses, now_ns);
	}
	ck_assert(!straggler_recent(straggler, 2, 1, now_ns, &recent));
	pass(2 * SECOND);
	for (uint32_t comm = 2; comm < 2 + MEMBERS; comm++) {
		ck_assert(straggler_recent(straggler, 1, comm, now_ns, &recent));
		ck_assert_uint_eq(recent.blame_ns, 0);
	}
}

TEST(of_several_functions_the_one_that_costs_most_is_told)
{
	struct straggler_lately lately;

	for (int k = 0; k < 240; k++) {
		const uint64_t late[4] = { 0, 0, k % 2 ? 9 * MS : 5 * MS, 0 };
		struct straggler_op op = op_of(1, 4, 4, late);

		op.func = k % 2 ? "AllGather" : "AllReduce";
		straggler_add(&op);
		pass(STEP);
	}
	pass(2 * SECOND);
	ck_assert(straggler_lately(straggler, 3, 1, &lately));
	ck_assert_str_eq(lately.func, "AllGather");
	ck_assert_uint_eq(lately.late_ns, 9 * MS);
}

/* Rank 1 waits for 7 ms: for both of those behind it for 1 ms, for the last alone for 6. */
TEST(blame_is_the_median_waiting_of_the_others_shared)
{
	const uint64_t late[4] = { 0, 2 * MS, 3 * MS, 9 * MS };
	struct straggler_sums sums, other;

	for (int k = 0; k < 120; k++) {
		struct straggler_op op = op_of(1, 4, 4, late);

		straggler_add(&op);
		pass(STEP);
	}
	pass(2 * SECOND);
	ck_assert(straggler_of(straggler, 4, 1, &sums));
	ck_assert_uint_eq(sums.last, sums.judged);
	ck_assert(straggler_of(straggler, 3, 1, &other));
	ck_assert_uint_eq(sums.blame_ns, sums.last * 13 * MS / 2);
	ck_assert_uint_eq(other.blame_ns, sums.last * MS / 2);
}

TEST(lately_is_ten_seconds_and_less_of_a_rank_that_has_just_come)
{
	const uint64_t late[4] = { 0, 0, 0, 20 * MS }, even[4] = { 0 };
	struct straggler_recent recent;

	ck_assert(!straggler_recent(straggler, 1, 1, now_ns, &recent));
	for (int k = 0; k < 300; k++) {
		struct straggler_op op = op_of(1, 4, 4, k < 200 ? late : even);

		if (k == 10) {	/* one second in: all of it */
			ck_assert(straggler_recent(straggler, 1, 1, now_ns, &recent));
			ck_assert_uint_eq(recent.window_ns, SECOND);
			ck_assert_uint_eq(recent.wait_ns, 10 * 20 * MS);
		}
		if (k == 200) {	/* each second ten of 20 ms */
			ck_assert(straggler_recent(straggler, 1, 1, now_ns, &recent));
			ck_assert_uint_eq(recent.window_ns, 8 * SECOND);
			ck_assert_uint_eq(recent.wait_ns, 80 * 20 * MS);
			ck_assert_uint_eq(recent.blame_ns, 0);
			ck_assert(straggler_recent(straggler, 4, 1, now_ns, &recent));
			ck_assert_uint_eq(recent.wait_ns, 0);
			/* what is not settled yet is known a moment later */
			ck_assert_uint_ge(recent.blame_ns, 70 * 20 * MS);
			ck_assert_uint_le(recent.blame_ns, 80 * 20 * MS);
		}
		straggler_add(&op);
		pass(STEP);
	}
	ck_assert(straggler_recent(straggler, 1, 1, now_ns, &recent));
	ck_assert_uint_eq(recent.wait_ns, 0);
	ck_assert(straggler_recent(straggler, 4, 1, now_ns + 3600 * SECOND, &recent));
	ck_assert_uint_eq(recent.blame_ns, 0);
}

#define MANY	400

/* Beside sums over all that came since the part began that is the fifth from the newest. */
TEST_LOOP(lately_is_what_came_in_the_last_parts_of_it, 0, 20)
{
	uint64_t at_ns[MANY], wait_ns[MANY];

	fx_seed((uint64_t)_i);
	for (uint32_t k = 0; k < MANY; k++) {
		const uint64_t late[2] = { 0, fx_random() % (50 * MS) };
		struct straggler_op op = op_of(1, 2, 2, late);
		uint64_t part = now_ns / (2 * SECOND), ops = 0, wait = 0;
		struct straggler_recent recent;

		straggler_add(&op);
		at_ns[k] = now_ns;
		wait_ns[k] = late[1];
		for (uint32_t i = 0; i <= k; i++)
			if (at_ns[i] / (2 * SECOND) + 5 > part) {
				ops++;
				wait += wait_ns[i];
			}
		ck_assert(straggler_recent(straggler, 1, 1, now_ns, &recent));
		ck_assert_uint_eq(recent.ops, ops);
		ck_assert_uint_eq(recent.wait_ns, wait);
		pass(fx_random() % (fx_random() % 16 ? 800 * MS : 20 * SECOND));
	}
}

/* Parts end when the clock's time is a multiple of 7.5 s: one of them at 1005 s. */
TEST(the_last_minute_stands_in_eighths_of_it)
{
	static const double wanted[STRAGGLER_HISTORY] = { 0, 0, 0, 0.133, 0.2, 0.067, -1, -1 };
	const uint64_t late[4] = { 0, 0, 0, 20 * MS }, even[4] = { 0 };
	struct straggler_history victim, culprit, before;

	for (int k = 0; k < 450; k++) {		/* late from 1030 s on, nothing from 1045 s on */
		struct straggler_op op = op_of(1, 4, 4, k < 300 ? even : late);

		if (k == 20)
			straggler_history(straggler, 4, 1, now_ns, &before);
		straggler_add(&op);
		pass(STEP);
	}
	ck_assert_double_lt(before.blame[STRAGGLER_HISTORY - 1], 0);	/* 2 s tell nothing */
	pass(14900 * MS);
	straggler_history(straggler, 4, 1, now_ns, &before);
	pass(100 * MS);		/* 1060 s: the part that began at 1057.5 s is told */
	straggler_history(straggler, 1, 1, now_ns, &victim);
	straggler_history(straggler, 4, 1, now_ns, &culprit);
	for (int i = 0; i < STRAGGLER_HISTORY; i++) {
		ck_assert_double_eq_tol(culprit.blame[i], wanted[i], 0.02);
		ck_assert_double_eq_tol(victim.blame[i], wanted[i] < 0 ? -1 : 0, 1e-9);
		ck_assert_double_eq_tol(i ? before.blame[i] : 0, i ? culprit.blame[i - 1] : 0,
					0.02);
	}
	straggler_history(straggler, 4, 1, now_ns + 3600 * SECOND, &culprit);
	ck_assert_double_lt(culprit.blame[0], 0);
	ck_assert_double_eq(culprit.ops_per_s[0], 0);
	straggler_history(straggler, 5, 1, now_ns, &culprit);
	ck_assert_double_lt(culprit.ops_per_s[0], 0);	/* nobody knows it */
}

/* Two of four are here; `away` is how late one elsewhere comes after the last here. */
static void half_here(uint64_t away)
{
	uint64_t late[2] = { noise(), noise() };
	struct straggler_op op = op_of(1, 4, 2, late);

	op.part[0].inside_ns += away;
	op.part[1].inside_ns += away;
	straggler_add(&op);
	pass(STEP);
}

TEST(who_waits_for_ranks_elsewhere_is_told_how_long_and_not_blamed)
{
	struct straggler_sums sums;
	uint64_t truth = 0;

	for (int k = 0; k < 2400; k++) {
		uint64_t away = k % 10 ? 5 * MS : 0;

		half_here(away);
		truth += away;
	}
	pass(SECOND);
	ck_assert_uint_eq(look(), 1);
	ck_assert_int_eq(cases[0].said.verdict, VERDICT_ELSEWHERE);
	ck_assert(straggler_of(straggler, 1, 1, &sums));
	ck_assert_double_eq_tol((double)sums.remote_wait_ns, (double)truth, 0.1 * (double)truth);
	ck_assert_uint_le(sums.last, 240);
	ck_assert_uint_le(sums.blame_ns, 240 * 300 * US);
}

TEST(what_takes_longer_each_time_is_slower_and_nobody_is_named)
{
	for (int k = 0; k < 600; k++)
		half_here(0);
	for (int k = 0; k < 2400; k++)
		half_here(5 * MS);
	ck_assert_uint_eq(look(), 1);
	ck_assert_int_eq(cases[0].said.verdict, VERDICT_SLOWER);
}

TEST(a_rank_that_is_alone_here_knows_how_long_it_waits)
{
	struct straggler_sums sums;

	for (int k = 0; k < 300; k++) {
		uint64_t late = 0;
		struct straggler_op op = op_of(1, 8, 1, &late);

		op.part[0].inside_ns += k >= 100 && k % 2 ? 3 * MS : 0;
		straggler_add(&op);
		pass(STEP);
	}
	ck_assert(straggler_of(straggler, 1, 1, &sums));
	ck_assert_uint_eq(sums.remote_wait_ns, 100 * 3 * MS);
	ck_assert_uint_eq(sums.wait_ns, sums.remote_wait_ns);
}

/*
 * Ranks 0 and 1 are in tp (2), 1 and 2 in dp (3): rank 0 comes late to tp, rank 1 has
 * waited for it when it comes late to dp, with another operation in between.  Parts
 * come in whatever order.
 */
static void nested(uint64_t late_ns, bool other_first)
{
	const uint64_t on_time[4] = { 0 };
	struct straggler_op between = op_of(4, 4, 4, on_time);
	const uint64_t tp_late[2] = { late_ns, 0 };
	const uint64_t dp_late[3] = { 0, late_ns, 0 };
	struct straggler_op tp = op_of(2, 2, 2, tp_late), dp = op_of(3, 2, 3, dp_late);

	dp.n = 2;
	memmove(&dp.part[0], &dp.part[1], 2 * sizeof(dp.part[0]));
	for (int i = 0; i < 2; i++)
		dp.part[i].start += 20 * MS;
	between.n = 2;			/* rank 1 with rank 3, who wait for nobody */
	between.part[0] = between.part[1];
	between.part[1] = between.part[3];
	for (int i = 0; i < 2; i++)
		between.part[i].start += 10 * MS;
	straggler_add(&between);
	straggler_add(other_first ? &dp : &tp);
	straggler_add(other_first ? &tp : &dp);
	pass(STEP);
}

/* More GPUs than are remembered, on communicators of their own. */
static void others_come(uint64_t late_ns)
{
	const uint64_t late[OP_RANKS] = { late_ns };

	for (uint32_t k = 0; k < 32; k++) {
		struct straggler_op op = op_of(100 + k, OP_RANKS, OP_RANKS, late);

		for (uint32_t i = 0; i < op.n; i++) {
			op.part[i].process_id = 1000 + i;
			op.part[i].gpu = 0xb000 + OP_RANKS * k + i;
		}
		straggler_add(&op);
	}
}

static void stage_sends(uint64_t process_id)
{
	static const uint64_t late;
	struct straggler_op op = op_of(5, 2, 1, &late);
	struct op send;

	op.part[0].process_id = process_id;
	op.part[0].rank = (int32_t)process_id;
	op.part[0].gpu = process_id;
	send = op_of_part(&op, &op.part[0]);
	send.func = "Send";
	send.is_p2p = true;
	straggler_see(straggler, &(const struct op *){ &send }, 1, processes, nprocesses, now_ns);
}

/* The second stage's GPU has made room for those of others, each of which waits for long. */
TEST(a_stage_does_not_wait_by_what_others_in_its_place_wait)
{
	struct straggler_lately stage;

	for (int k = 0; k < 120; k++) {
		stage_sends(1);
		stage_sends(2);
		others_come(k % 2 ? 200 * MS : 0);
		stage_sends(1);
		pass(SECOND);
	}
	for (uint64_t id = 1; id <= 2; id++) {
		ck_assert(straggler_lately(straggler, id, 5, &stage));
		ck_assert_uint_gt(stage.ops, 100);
		ck_assert_uint_eq(stage.judged, 0);
	}
}

/* Its GPUs' operations are found even if others have taken their places meanwhile. */
TEST(inherited_lateness_is_its_roots)
{
	struct straggler_sums root, heir;

	for (int k = 0; k < 2400; k++) {
		nested(5 * MS, k % 2);
		if (k == 40)
			others_come(0);
	}
	pass(SECOND);
	ck_assert_uint_eq(look(), 1);
	ck_assert_int_eq(cases[0].said.verdict, VERDICT_STEADY);
	ck_assert_int_eq(cases[0].who.rank, 0);
	ck_assert_uint_gt(cases[0].said.moved_ns, cases[0].said.blame_ns * 2 / 5);
	ck_assert(straggler_of(straggler, 1, 2, &root));
	ck_assert(straggler_of(straggler, 2, 3, &heir));
	ck_assert_uint_eq(heir.blame_ns, 0);
	ck_assert_uint_ge(root.blame_ns, 2 * 2300 * 5 * MS);
}

/* Rank 0 is in a long transfer with a rank elsewhere before it meets rank 1. */
TEST(what_is_lost_in_a_long_transfer_is_nobodys_doing)
{
	const uint64_t late[2] = { 5 * MS, 0 };

	for (int k = 0; k < 2400; k++) {
		struct straggler_op away = op_of(4, 2, 1, late), meet = op_of(2, 2, 2, late);

		away.part[0].start = now_ns;
		away.part[0].inside_ns = 5 * MS;
		for (int i = 0; i < 2; i++)
			meet.part[i].start += 10 * MS;
		straggler_add(&away);
		straggler_add(&meet);
		pass(STEP);
	}
	ck_assert_uint_eq(look(), 0);
}

TEST(whose_part_is_missing_is_not_waited_for_elsewhere)
{
	const uint64_t late[4] = { 0, 0, 0, 5 * MS };
	struct straggler_sums before, after;

	work(1, 0, 0, 0);
	ck_assert(straggler_of(straggler, 1, 1, &before));
	for (int k = 0; k < 300; k++) {
		struct straggler_op op = op_of(1, 4, 4, late);

		op.n = 3;
		straggler_add(&op);
		pass(STEP);
	}
	ck_assert(straggler_of(straggler, 1, 1, &after));
	ck_assert_uint_eq(after.ops, before.ops + 300);
	ck_assert_uint_eq(after.remote_wait_ns, 0);
	ck_assert_uint_eq(after.wait_ns, before.wait_ns);
}

/* Rank 2 keeps 0 and 1 waiting; all leave together, and 0 then takes its time. */
TEST(who_has_waited_together_with_the_others_is_late_by_itself)
{
	struct straggler_sums own, before;

	for (int k = 0; k < 300; k++) {
		const uint64_t all_late[3] = { 0, 0, 5 * MS }, two_late[2] = { 5 * MS, 0 };
		struct straggler_op all = op_of(2, 3, 3, all_late), two = op_of(3, 2, 2, two_late);

		for (int i = 0; i < 2; i++)
			two.part[i].start += 20 * MS;
		straggler_add(&all);
		straggler_add(&two);
		pass(STEP);
	}
	pass(2 * SECOND);
	ck_assert(straggler_of(straggler, 1, 3, &own));
	ck_assert(straggler_of(straggler, 3, 2, &before));
	ck_assert_uint_gt(own.judged, 250);
	ck_assert_uint_eq(own.blame_ns, own.judged * 5 * MS);
	ck_assert_uint_eq(before.blame_ns, before.judged * 5 * MS);
}

TEST(what_may_be_inherited_from_what_nobody_saw_is_nobodys)
{
	struct straggler_sums heir;

	for (int k = 0; k < 300; k++)
		nested(0, false);
	for (int k = 0; k < 300; k++) {
		const uint64_t tp_late[2] = { 5 * MS, 0 }, dp_late[3] = { 0, 5 * MS, 0 };
		struct straggler_op tp = op_of(2, 2, 2, tp_late), dp = op_of(3, 2, 3, dp_late);

		tp.part[0] = tp.part[1];
		tp.n = 1;
		dp.n = 2;
		memmove(&dp.part[0], &dp.part[1], 2 * sizeof(dp.part[0]));
		dp.part[0].start += 20 * MS;
		straggler_add(&tp);
		straggler_add(&dp);
		pass(STEP);
	}
	pass(2 * SECOND);
	ck_assert(straggler_of(straggler, 2, 3, &heir));
	ck_assert_uint_eq(heir.blame_ns, 0);
}

int main(void)
{
	return fx_run(setup, teardown);
}
