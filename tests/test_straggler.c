/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who makes the others wait: scenes of which it is known who does, and all sums
 * against slow and obvious ones.
 */
#include "ncclinspd/straggler.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/fixture.h"

#define US		UINT64_C(1000)
#define MS		UINT64_C(1000000)
#define SECOND		UINT64_C(1000000000)
#define TRANSFER	(2 * MS)
#define STEP		(100 * MS)	/* from one operation to the next: 600 in a window */
#define CASES		32

static struct straggler *straggler;
static struct straggler_case cases[CASES];
static uint32_t ncases;
static uint64_t now_ns;

static void setup(void)
{
	now_ns = 1000 * SECOND;
	ck_assert_int_eq(straggler_new(&straggler, NULL), 0);
	straggler_turn(straggler, now_ns);
}

static void teardown(void)
{
	straggler_free(straggler);
}

static void take_case(const struct straggler_case *c, void *arg)
{
	(void)arg;
	ck_assert_uint_lt(ncases, CASES);
	cases[ncases++] = *c;
}

static uint32_t look(void)
{
	ncases = 0;
	straggler_visit(straggler, take_case, NULL);
	return ncases;
}

/*
 * n of nranks ranks, the first of which is `first`; late[i] is how much later rank
 * first + i comes than this one's start.  All leave together when the last one has
 * come, and the transfer is over.
 */
static struct straggler_op op_of(uint64_t comm, int32_t nranks, uint32_t n, const uint64_t *late)
{
	struct straggler_op op = { .comm = comm, .func = "AllReduce", .nranks = nranks, .n = n };
	uint64_t last = 0;

	for (uint32_t i = 0; i < n; i++)
		last = late[i] > last ? late[i] : last;
	for (uint32_t i = 0; i < n; i++)
		op.part[i] = (struct straggler_part){
			.process_id = i + 1, .pid = (pid_t)(100 + i), .comm_index = (uint32_t)comm,
			.rank = (int32_t)i, .gpu = 0xa000 + i, .start = now_ns + late[i],
			.inside_ns = last - late[i] + TRANSFER,
		};
	return op;
}

static void pass(uint64_t ns)
{
	uint64_t second = now_ns / SECOND;

	now_ns += ns;
	if (now_ns / SECOND != second)
		straggler_turn(straggler, now_ns);
}

static uint64_t noise(void)
{
	return fx_random() % (300 * US);
}

/* Operations of four ranks for so many windows; every `every`th finds `who` late. */
static void work(uint32_t windows, uint32_t every, uint32_t who, uint64_t late_ns)
{
	uint64_t end = now_ns + windows * 60 * SECOND;

	for (uint32_t k = 0; now_ns < end; k++) {
		uint64_t late[4] = { noise(), noise(), noise(), noise() };
		struct straggler_op op;

		late[who] += every && k % every == 0 ? late_ns : 0;
		op = op_of(1, 4, 4, late);
		straggler_add(straggler, &op, now_ns);
		pass(STEP);
	}
}

START_TEST(who_comes_late_each_time_is_flagged_after_three_windows)
{
	work(2, 1, 2, 5 * MS);
	ck_assert_uint_eq(look(), 0);
	work(1, 1, 2, 5 * MS);
	pass(SECOND);
	ck_assert_uint_eq(look(), 1);
	ck_assert_int_eq(cases[0].verdict, VERDICT_STEADY);
	ck_assert_int_eq(cases[0].who.rank, 2);
	ck_assert_uint_eq(cases[0].who.pid, 102);
	ck_assert_uint_eq(cases[0].last, cases[0].judged);
	ck_assert_uint_ge(cases[0].late_ns, 5 * MS - 300 * US);
	ck_assert_uint_le(cases[0].late_ns, 5 * MS + 300 * US);
	ck_assert_double_ge(cases[0].score, 4.7);
	ck_assert_uint_eq(cases[0].since_ns, 1000 * SECOND);
}
END_TEST

START_TEST(who_costs_one_percent_is_not_flagged)
{
	fx_seed((uint64_t)_i);
	work(6, 1, 2, 1300 * US);
	ck_assert_uint_eq(look(), 0);
}
END_TEST

START_TEST(who_costs_two_percent_is_flagged)
{
	fx_seed((uint64_t)_i);
	work(3, 1, 2, 2 * MS);
	pass(SECOND);
	ck_assert_uint_eq(look(), 1);
	ck_assert_int_eq(cases[0].who.rank, 2);
}
END_TEST

START_TEST(chance_flags_nobody)
{
	fx_seed((uint64_t)_i);
	work(8, 0, 0, 0);
	ck_assert_uint_eq(look(), 0);
}
END_TEST

START_TEST(who_is_late_in_turn_with_others_is_not_flagged)
{
	uint64_t end = now_ns + 8 * 60 * SECOND;

	while (now_ns < end) {
		uint64_t late[4] = { noise(), noise(), noise(), noise() };
		struct straggler_op op;

		late[fx_random() % 4] += 10 * MS;
		op = op_of(1, 4, 4, late);
		straggler_add(straggler, &op, now_ns);
		pass(STEP);
	}
	ck_assert_uint_eq(look(), 0);
}
END_TEST

START_TEST(who_comes_late_in_bursts_is_told_apart_from_who_is_late_each_time)
{
	work(4, 10, 1, 60 * MS);
	pass(SECOND);
	ck_assert_uint_eq(look(), 1);
	ck_assert_int_eq(cases[0].verdict, VERDICT_INTERMITTENT);
	ck_assert_int_eq(cases[0].who.rank, 1);
	ck_assert_uint_eq(cases[0].last, cases[0].judged);
	ck_assert_uint_ge(cases[0].late_ns, 59 * MS);
}
END_TEST

START_TEST(one_long_pause_in_each_window_is_a_checkpoint)
{
	work(8, 600, 0, 3 * SECOND);
	ck_assert_uint_eq(look(), 0);
}
END_TEST

/* Anybody is 5 ms late now and then; rank 0 stops for so long at each `every`th. */
static void work_with_hiccups(uint32_t windows, uint32_t every, uint64_t pause_ns)
{
	uint64_t end = now_ns + windows * 60 * SECOND;

	for (uint32_t k = 0; now_ns < end; k++) {
		uint64_t late[4] = { noise(), noise(), noise(), noise() };
		struct straggler_op op;

		if (fx_random() % 8 == 0)
			late[fx_random() % 4] += 5 * MS;
		late[0] += k % every ? 0 : pause_ns;
		op = op_of(1, 4, 4, late);
		straggler_add(straggler, &op, now_ns);
		pass(STEP);
	}
}

START_TEST(one_checkpoint_among_hiccups_is_no_pattern)
{
	fx_seed((uint64_t)_i);
	work_with_hiccups(8, 600, 3 * SECOND);
	ck_assert_uint_eq(look(), 0);
}
END_TEST

START_TEST(rare_long_pauses_are_found_among_more_short_ones)
{
	fx_seed((uint64_t)_i);
	work_with_hiccups(4, 60, 300 * MS);
	pass(SECOND);
	ck_assert_uint_eq(look(), 1);
	ck_assert_int_eq(cases[0].verdict, VERDICT_INTERMITTENT);
	ck_assert_int_eq(cases[0].who.rank, 0);
}
END_TEST

START_TEST(who_is_late_no_more_is_let_go_within_three_windows)
{
	work(4, 1, 2, 5 * MS);
	pass(SECOND);
	ck_assert_uint_eq(look(), 1);
	work(1, 0, 0, 0);
	ck_assert_uint_eq(look(), 1);
	work(3, 0, 0, 0);
	ck_assert_uint_eq(look(), 0);
}
END_TEST

START_TEST(who_improves_by_less_than_half_stays_flagged)
{
	work(4, 1, 2, 5 * MS);
	work(8, 1, 2, 1000 * US);	/* 1 % */
	ck_assert_uint_eq(look(), 1);
}
END_TEST

START_TEST(who_is_late_each_time_of_two_stands_out_as_well)
{
	for (int k = 0; k < 2400; k++) {
		uint64_t late[2] = { noise(), noise() + 5 * MS };
		struct straggler_op op = op_of(1, 2, 2, late);

		straggler_add(straggler, &op, now_ns);
		pass(STEP);
	}
	pass(SECOND);
	ck_assert_uint_eq(look(), 1);
	ck_assert_int_eq(cases[0].who.rank, 1);
}
END_TEST

/* Of two ranks one is late in two of five operations, and either by less in the others. */
static void work_of_two(uint32_t count, uint64_t late_ns)
{
	for (uint32_t k = 0; k < count; k++) {
		uint64_t late[2] = { noise() / 30, noise() / 30 };
		struct straggler_op op;

		late[k % 5 < 2 ? 1 : fx_random() % 2] += k % 5 < 2 ? late_ns : 3 * MS;
		op = op_of(1, 2, 2, late);
		straggler_add(straggler, &op, now_ns);
		pass(STEP);
	}
}

START_TEST(of_two_who_is_last_less_often_than_it_costs_is_flagged)
{
	fx_seed((uint64_t)_i);
	work_of_two(2400, 10 * MS);	/* no bursts: those are four times as late */
	pass(SECOND);
	ck_assert_uint_eq(look(), 1);
	ck_assert_int_eq(cases[0].who.rank, 1);
}
END_TEST

START_TEST(of_two_who_are_late_in_turn_neither_is_flagged)
{
	fx_seed((uint64_t)_i);
	for (int k = 0; k < 4800; k++) {
		uint64_t late[2] = { 0, 0 };
		struct straggler_op op;

		late[fx_random() % 2] = 10 * MS + noise();
		op = op_of(1, 2, 2, late);
		straggler_add(straggler, &op, now_ns);
		pass(STEP);
	}
	ck_assert_uint_eq(look(), 0);
}
END_TEST

/* What a slow mind would add up: each operation by itself. */
START_TEST(sums_are_those_of_the_operations)
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
		straggler_add(straggler, &op, now_ns);
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
END_TEST

START_TEST(who_comes_last_lately_is_told_long_before_it_is_flagged)
{
	struct straggler_lately one, other;

	ck_assert(!straggler_lately(straggler, 3, 1, &one));
	for (int k = 0; k < 120; k++) {		/* 20 to know what is usual, 100 to judge */
		const uint64_t late[4] = { 0, noise(), 5 * MS, noise() };
		struct straggler_op op = op_of(1, 4, 4, late);

		straggler_add(straggler, &op, now_ns);
		pass(STEP);
	}
	pass(2 * SECOND);
	ck_assert_uint_eq(look(), 0);
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
	ck_assert(straggler_lately(straggler, 3, 1, &one));
	ck_assert(!one.late);
	ck_assert_uint_eq(one.judged, 0);
	ck_assert_uint_eq(one.late_ns, UNKNOWN_U64);
	straggler_forget(straggler, 3);
	ck_assert(!straggler_lately(straggler, 3, 1, &one));
}
END_TEST

START_TEST(of_several_functions_the_one_that_costs_most_is_told)
{
	struct straggler_lately lately;

	for (int k = 0; k < 240; k++) {
		const uint64_t late[4] = { 0, 0, k % 2 ? 9 * MS : 5 * MS, 0 };
		struct straggler_op op = op_of(1, 4, 4, late);

		op.func = k % 2 ? "AllGather" : "AllReduce";
		straggler_add(straggler, &op, now_ns);
		pass(STEP);
	}
	pass(2 * SECOND);
	ck_assert(straggler_lately(straggler, 3, 1, &lately));
	ck_assert_str_eq(lately.func, "AllGather");
	ck_assert_uint_eq(lately.late_ns, 9 * MS);
}
END_TEST

/* Median by definition: as many are above as below. */
START_TEST(blame_is_the_median_waiting_of_the_others)
{
	const uint64_t late[4] = { 0, 2 * MS, 3 * MS, 9 * MS };
	struct straggler_sums sums;

	for (int k = 0; k < 120; k++) {
		struct straggler_op op = op_of(1, 4, 4, late);

		straggler_add(straggler, &op, now_ns);
		pass(STEP);
	}
	pass(2 * SECOND);
	ck_assert(straggler_of(straggler, 4, 1, &sums));
	ck_assert_uint_eq(sums.last, sums.judged);
	ck_assert_uint_eq(sums.blame_ns, sums.last * 7 * MS);
}
END_TEST

/* Two of four are here; `away` is how late one elsewhere comes after the last here. */
static void half_here(uint64_t away)
{
	uint64_t late[2] = { noise(), noise() };
	struct straggler_op op = op_of(1, 4, 2, late);

	op.part[0].inside_ns += away;
	op.part[1].inside_ns += away;
	straggler_add(straggler, &op, now_ns);
	pass(STEP);
}

START_TEST(who_waits_for_ranks_elsewhere_is_told_how_long_and_not_blamed)
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
	ck_assert_int_eq(cases[0].verdict, VERDICT_ELSEWHERE);
	ck_assert(straggler_of(straggler, 1, 1, &sums));
	ck_assert_double_eq_tol((double)sums.remote_wait_ns, (double)truth, 0.1 * (double)truth);
	ck_assert_uint_le(sums.last, 240);
	ck_assert_uint_le(sums.blame_ns, 240 * 300 * US);
}
END_TEST

START_TEST(what_takes_longer_each_time_is_slower_and_nobody_is_named)
{
	for (int k = 0; k < 600; k++)
		half_here(0);
	for (int k = 0; k < 2400; k++)
		half_here(5 * MS);
	ck_assert_uint_eq(look(), 1);
	ck_assert_int_eq(cases[0].verdict, VERDICT_SLOWER);
}
END_TEST

START_TEST(a_rank_that_is_alone_here_knows_how_long_it_waits)
{
	struct straggler_sums sums;

	for (int k = 0; k < 300; k++) {
		uint64_t late = 0;
		struct straggler_op op = op_of(1, 8, 1, &late);

		op.part[0].inside_ns += k >= 100 && k % 2 ? 3 * MS : 0;
		straggler_add(straggler, &op, now_ns);
		pass(STEP);
	}
	ck_assert(straggler_of(straggler, 1, 1, &sums));
	ck_assert_uint_eq(sums.remote_wait_ns, 100 * 3 * MS);
	ck_assert_uint_eq(sums.wait_ns, sums.remote_wait_ns);
}
END_TEST

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
	straggler_add(straggler, &between, now_ns);
	straggler_add(straggler, other_first ? &dp : &tp, now_ns);
	straggler_add(straggler, other_first ? &tp : &dp, now_ns);
	pass(STEP);
}

START_TEST(inherited_lateness_is_its_roots)
{
	struct straggler_sums root, heir;

	for (int k = 0; k < 2400; k++)
		nested(5 * MS, k % 2);
	pass(SECOND);
	ck_assert_uint_eq(look(), 1);
	ck_assert_int_eq(cases[0].verdict, VERDICT_STEADY);
	ck_assert_int_eq(cases[0].who.rank, 0);
	ck_assert_uint_gt(cases[0].moved_ns, cases[0].blame_ns * 2 / 5);
	ck_assert(straggler_of(straggler, 1, 2, &root));
	ck_assert(straggler_of(straggler, 2, 3, &heir));
	ck_assert_uint_eq(heir.blame_ns, 0);
	ck_assert_uint_ge(root.blame_ns, 2 * 2300 * 5 * MS);
}
END_TEST

/* Rank 0 is in a long transfer with a rank elsewhere before it meets rank 1. */
START_TEST(what_is_lost_in_a_long_transfer_is_nobodys_doing)
{
	const uint64_t late[2] = { 5 * MS, 0 };

	for (int k = 0; k < 2400; k++) {
		struct straggler_op away = op_of(4, 2, 1, late), meet = op_of(2, 2, 2, late);

		away.part[0].start = now_ns;
		away.part[0].inside_ns = 5 * MS;
		for (int i = 0; i < 2; i++)
			meet.part[i].start += 10 * MS;
		straggler_add(straggler, &away, now_ns);
		straggler_add(straggler, &meet, now_ns);
		pass(STEP);
	}
	ck_assert_uint_eq(look(), 0);
}
END_TEST

START_TEST(whose_part_is_missing_is_not_waited_for_elsewhere)
{
	const uint64_t late[4] = { 0, 0, 0, 5 * MS };
	struct straggler_sums before, after;

	work(1, 0, 0, 0);
	ck_assert(straggler_of(straggler, 1, 1, &before));
	for (int k = 0; k < 300; k++) {
		struct straggler_op op = op_of(1, 4, 4, late);

		op.n = 3;
		straggler_add(straggler, &op, now_ns);
		pass(STEP);
	}
	ck_assert(straggler_of(straggler, 1, 1, &after));
	ck_assert_uint_eq(after.ops, before.ops + 300);
	ck_assert_uint_eq(after.remote_wait_ns, 0);
	ck_assert_uint_eq(after.wait_ns, before.wait_ns);
}
END_TEST

/* Rank 2 keeps 0 and 1 waiting; all leave together, and 0 then takes its time. */
START_TEST(who_has_waited_together_with_the_others_is_late_by_itself)
{
	struct straggler_sums own, before;

	for (int k = 0; k < 300; k++) {
		const uint64_t all_late[3] = { 0, 0, 5 * MS }, two_late[2] = { 5 * MS, 0 };
		struct straggler_op all = op_of(2, 3, 3, all_late), two = op_of(3, 2, 2, two_late);

		for (int i = 0; i < 2; i++)
			two.part[i].start += 20 * MS;
		straggler_add(straggler, &all, now_ns);
		straggler_add(straggler, &two, now_ns);
		pass(STEP);
	}
	pass(2 * SECOND);
	ck_assert(straggler_of(straggler, 1, 3, &own));
	ck_assert(straggler_of(straggler, 3, 2, &before));
	ck_assert_uint_gt(own.judged, 250);
	ck_assert_uint_eq(own.blame_ns, own.judged * 5 * MS);
	ck_assert_uint_eq(before.blame_ns, before.judged * 5 * MS);
}
END_TEST

START_TEST(where_all_are_apart_the_last_does_not_stand_out)
{
	uint64_t end = now_ns + 6 * 60 * SECOND;

	while (now_ns < end) {
		uint64_t late[4];
		struct straggler_op op;

		for (uint64_t i = 0; i < 4; i++)
			late[i] = noise() + i * 3 * MS;
		op = op_of(1, 4, 4, late);
		straggler_add(straggler, &op, now_ns);
		pass(STEP);
	}
	ck_assert_uint_eq(look(), 0);
}
END_TEST

START_TEST(what_may_be_inherited_from_what_nobody_saw_is_nobodys)
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
		straggler_add(straggler, &tp, now_ns);
		straggler_add(straggler, &dp, now_ns);
		pass(STEP);
	}
	pass(2 * SECOND);
	ck_assert(straggler_of(straggler, 2, 3, &heir));
	ck_assert_uint_eq(heir.blame_ns, 0);
}
END_TEST

START_TEST(a_process_that_is_forgotten_is_blamed_no_more)
{
	work(4, 1, 2, 5 * MS);
	pass(SECOND);
	ck_assert_uint_eq(look(), 1);
	straggler_forget(straggler, 3);
	ck_assert_uint_eq(look(), 0);
}
END_TEST

/* Anything may come in; nothing may be read or written where it should not. */
START_TEST(hostile_operations_do_no_harm)
{
	fx_seed((uint64_t)_i);
	for (int k = 0; k < 20000; k++) {
		struct straggler_op op = {
			.comm = fx_random() % 700, .func = "AllReduce", .kind = fx_random() % 3,
			.nranks = (int32_t)(fx_random() % 40) + 1, .n = (uint32_t)(fx_random() % OP_RANKS) + 1,
		};

		for (uint32_t i = 0; i < op.n; i++)
			op.part[i] = (struct straggler_part){
				.process_id = fx_random() % 40, .comm_index = (uint32_t)(fx_random() % 300),
				.rank = (int32_t)fx_random(), .gpu = fx_random() % 300,
				.start = fx_random() >> (fx_random() % 64),
				.inside_ns = fx_random() >> (fx_random() % 64),
				.end_ns = fx_random() >> (fx_random() % 64),
				.end_error_ns = fx_random() % 2 ? UNKNOWN_U64 : 10,
			};
		straggler_add(straggler, &op, now_ns);
		pass(fx_random() % (30 * MS));
		if (k % 1000 == 0)
			straggler_forget(straggler, fx_random() % 40);
	}
	look();
}
END_TEST

int main(void)
{
	const struct fx_test tests[] = {
		FX_TEST(who_comes_late_each_time_is_flagged_after_three_windows),
		FX_LOOP(who_costs_one_percent_is_not_flagged, 0, 10),
		FX_LOOP(who_costs_two_percent_is_flagged, 0, 10),
		FX_LOOP(chance_flags_nobody, 0, 20),
		FX_TEST(who_is_late_in_turn_with_others_is_not_flagged),
		FX_TEST(who_comes_last_lately_is_told_long_before_it_is_flagged),
		FX_TEST(of_several_functions_the_one_that_costs_most_is_told),
		FX_TEST(who_comes_late_in_bursts_is_told_apart_from_who_is_late_each_time),
		FX_TEST(one_long_pause_in_each_window_is_a_checkpoint),
		FX_LOOP(one_checkpoint_among_hiccups_is_no_pattern, 0, 5),
		FX_LOOP(rare_long_pauses_are_found_among_more_short_ones, 0, 5),
		FX_TEST(who_is_late_no_more_is_let_go_within_three_windows),
		FX_TEST(who_improves_by_less_than_half_stays_flagged),
		FX_TEST(who_is_late_each_time_of_two_stands_out_as_well),
		FX_LOOP(of_two_who_is_last_less_often_than_it_costs_is_flagged, 0, 10),
		FX_LOOP(of_two_who_are_late_in_turn_neither_is_flagged, 0, 10),
		FX_LOOP(sums_are_those_of_the_operations, 0, 5),
		FX_TEST(blame_is_the_median_waiting_of_the_others),
		FX_TEST(who_waits_for_ranks_elsewhere_is_told_how_long_and_not_blamed),
		FX_TEST(what_takes_longer_each_time_is_slower_and_nobody_is_named),
		FX_TEST(a_rank_that_is_alone_here_knows_how_long_it_waits),
		FX_TEST(inherited_lateness_is_its_roots),
		FX_TEST(what_is_lost_in_a_long_transfer_is_nobodys_doing),
		FX_TEST(whose_part_is_missing_is_not_waited_for_elsewhere),
		FX_TEST(who_has_waited_together_with_the_others_is_late_by_itself),
		FX_TEST(where_all_are_apart_the_last_does_not_stand_out),
		FX_TEST(what_may_be_inherited_from_what_nobody_saw_is_nobodys),
		FX_TEST(a_process_that_is_forgotten_is_blamed_no_more),
		FX_LOOP(hostile_operations_do_no_harm, 0, 5),
	};

	return fx_run(setup, teardown, tests, FX_COUNT(tests));
}
