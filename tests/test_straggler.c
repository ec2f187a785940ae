/* SPDX-License-Identifier: Apache-2.0 */
/* Who makes the others wait: scenes of which it is known who does. */
#include "tests/fx_straggler.h"

TEST(who_comes_late_each_time_is_flagged_after_three_windows)
{
	work(2, 1, 2, 5 * MS);
	ck_assert_uint_eq(look(), 0);
	work(1, 1, 2, 5 * MS);
	pass(SECOND);
	ck_assert_uint_eq(look(), 1);
	ck_assert_int_eq(cases[0].said.verdict, VERDICT_STEADY);
	ck_assert_int_eq(cases[0].who.rank, 2);
	ck_assert_uint_eq(cases[0].who.pid, 102);
	ck_assert_uint_eq(cases[0].said.last, cases[0].said.judged);
	ck_assert_uint_ge(cases[0].said.late_ns, 5 * MS - 300 * US);
	ck_assert_uint_le(cases[0].said.late_ns, 5 * MS + 300 * US);
	ck_assert_double_ge(cases[0].score, 4.7);
	ck_assert_uint_eq(cases[0].since_ns, 1000 * SECOND);
}

TEST_LOOP(who_costs_one_percent_is_not_flagged, 0, 10)
{
	fx_seed((uint64_t)_i);
	work(6, 1, 2, 1300 * US);
	ck_assert_uint_eq(look(), 0);
}

TEST_LOOP(who_costs_two_percent_is_flagged, 0, 10)
{
	fx_seed((uint64_t)_i);
	work(3, 1, 2, 2 * MS);
	pass(SECOND);
	ck_assert_uint_eq(look(), 1);
	ck_assert_int_eq(cases[0].who.rank, 2);
}

TEST_LOOP(chance_flags_nobody, 0, 20)
{
	fx_seed((uint64_t)_i);
	work(8, 0, 0, 0);
	ck_assert_uint_eq(look(), 0);
}

TEST(who_is_late_in_turn_with_others_is_not_flagged)
{
	uint64_t end = now_ns + 8 * 60 * SECOND;

	while (now_ns < end) {
		uint64_t late[4] = { noise(), noise(), noise(), noise() };
		struct straggler_op op;

		late[fx_random() % 4] += 10 * MS;
		op = op_of(1, 4, 4, late);
		straggler_add(&op);
		pass(STEP);
	}
	ck_assert_uint_eq(look(), 0);
}

TEST(who_comes_late_in_bursts_is_told_apart_from_who_is_late_each_time)
{
	work(4, 60, 1, 360 * MS);
	pass(SECOND);
	ck_assert_uint_eq(look(), 1);
	ck_assert_int_eq(cases[0].said.verdict, VERDICT_INTERMITTENT);
	ck_assert_int_eq(cases[0].who.rank, 1);
	ck_assert_uint_le(cases[0].said.times, cases[0].said.ops / 60 + 10);
	ck_assert_uint_ge(cases[0].said.times, cases[0].said.ops / 60 - 10);
	ck_assert_uint_ge(cases[0].said.late_ns, 359 * MS);
}

TEST(who_comes_late_in_bursts_is_suspected_long_before_it_is_flagged)
{
	for (int k = 0; k < 400; k++) {
		const uint64_t late[4] = { noise(), k % 10 ? noise() : 60 * MS, noise(), noise() };
		struct straggler_op op = op_of(1, 4, 4, late);

		straggler_add(&op);
		pass(STEP);
		if (k == 60)	/* six are no pattern */
			ck_assert_uint_eq(look() + nsuspected, 0);
	}
	ck_assert_uint_eq(look(), 0);
	ck_assert_uint_eq(nsuspected, 1);
	work(5, 0, 0, 0);
	ck_assert_uint_eq(look() + nsuspected, 0);
}

TEST(one_long_pause_in_each_window_is_a_pattern_when_it_is_always_the_same_rank)
{
	work(3, 600, 0, 3 * SECOND);	/* a checkpoint each minute, maybe */
	ck_assert_uint_eq(look(), 0);
	work(5, 600, 0, 3 * SECOND);
	ck_assert_uint_eq(look(), 1);
	ck_assert_int_eq(cases[0].said.verdict, VERDICT_INTERMITTENT);
	ck_assert_int_eq(cases[0].who.rank, 0);
	ck_assert_uint_ge(cases[0].said.late_ns, 29 * SECOND / 10);
	work(2, 0, 0, 0);
	ck_assert_uint_eq(look(), 1);	/* it is over after four minutes without one */
	work(3, 0, 0, 0);
	ck_assert_uint_eq(look(), 0);
}

TEST(one_long_pause_is_a_checkpoint)
{
	work(4, 0, 0, 0);
	work(1, 600, 0, 3 * SECOND);
	work(3, 0, 0, 0);
	work(1, 600, 0, 3 * SECOND);
	ck_assert_uint_eq(look(), 0);
	ck_assert_uint_eq(nsuspected, 0);
}

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
		straggler_add(&op);
		pass(STEP);
	}
}

TEST_LOOP(checkpoints_among_hiccups_are_no_pattern, 0, 5)
{
	fx_seed((uint64_t)_i);
	work_with_hiccups(12, 2400, 3 * SECOND);
	ck_assert_uint_eq(look(), 0);
}

TEST_LOOP(rare_long_pauses_are_found_among_more_short_ones, 0, 5)
{
	fx_seed((uint64_t)_i);
	work_with_hiccups(4, 60, 300 * MS);
	pass(SECOND);
	ck_assert_uint_eq(look(), 1);
	ck_assert_int_eq(cases[0].said.verdict, VERDICT_INTERMITTENT);
	ck_assert_int_eq(cases[0].who.rank, 0);
}

TEST(who_is_late_no_more_is_let_go_within_a_window)
{
	work(4, 1, 2, 5 * MS);
	pass(SECOND);
	ck_assert_uint_eq(look(), 1);
	for (int second = 0; look(); second++) {
		ck_assert_int_lt(second, 55);
		ck_assert_int_eq(cases[0].said.verdict, VERDICT_STEADY);
		for (int k = 0; k < 10; k++) {
			const uint64_t late[4] = { noise(), noise(), noise(), noise() };
			struct straggler_op op = op_of(1, 4, 4, late);

			straggler_add(&op);
			pass(STEP);
		}
	}
	ck_assert_uint_eq(nsuspected, 0);
	work(2, 0, 0, 0);
	ck_assert_uint_eq(look() + nsuspected, 0);
}

TEST(who_improves_by_less_than_half_stays_flagged)
{
	work(4, 1, 2, 5 * MS);
	work(8, 1, 2, 1000 * US);	/* 1 % */
	ck_assert_uint_eq(look(), 1);
}

TEST(who_is_late_each_time_of_two_stands_out_as_well)
{
	for (int k = 0; k < 2400; k++) {
		uint64_t late[2] = { noise(), noise() + 5 * MS };
		struct straggler_op op = op_of(1, 2, 2, late);

		straggler_add(&op);
		pass(STEP);
	}
	pass(SECOND);
	ck_assert_uint_eq(look(), 1);
	ck_assert_int_eq(cases[0].who.rank, 1);
}

/* Of two ranks one is late in two of five operations, and either by less in the others. */
static void work_of_two(uint32_t count, uint64_t late_ns)
{
	for (uint32_t k = 0; k < count; k++) {
		uint64_t late[2] = { noise() / 30, noise() / 30 };
		struct straggler_op op;

		late[k % 5 < 2 ? 1 : fx_random() % 2] += k % 5 < 2 ? late_ns : 3 * MS;
		op = op_of(1, 2, 2, late);
		straggler_add(&op);
		pass(STEP);
	}
}

TEST_LOOP(of_two_who_is_last_less_often_than_it_costs_is_flagged, 0, 10)
{
	fx_seed((uint64_t)_i);
	work_of_two(2400, 10 * MS);	/* no bursts: those are four times as late */
	pass(SECOND);
	ck_assert_uint_eq(look(), 1);
	ck_assert_int_eq(cases[0].who.rank, 1);
}

TEST_LOOP(of_two_who_are_late_in_turn_neither_is_flagged, 0, 10)
{
	fx_seed((uint64_t)_i);
	for (int k = 0; k < 4800; k++) {
		uint64_t late[2] = { 0, 0 };
		struct straggler_op op;

		late[fx_random() % 2] = 10 * MS + noise();
		op = op_of(1, 2, 2, late);
		straggler_add(&op);
		pass(STEP);
	}
	ck_assert_uint_eq(look(), 0);
}

TEST(where_all_are_apart_the_last_is_named_alone)
{
	uint64_t end = now_ns + 6 * 60 * SECOND;

	while (now_ns < end) {
		uint64_t late[4];
		struct straggler_op op;

		for (uint64_t i = 0; i < 4; i++)
			late[i] = noise() + i * 3 * MS;
		op = op_of(1, 4, 4, late);
		straggler_add(&op);
		pass(STEP);
	}
	ck_assert_uint_eq(look(), 1);
	ck_assert_uint_eq(nsuspected, 0);
	ck_assert_int_eq(cases[0].who.rank, 3);
}

/* As long as late[i] has it, from then on; every second operation finds the second set late. */
static void work_of_sets(uint32_t windows, uint32_t n, const uint64_t *odd, const uint64_t *even)
{
	uint64_t end = now_ns + windows * 60 * SECOND;

	for (uint32_t k = 0; now_ns < end; k++) {
		uint64_t late[OP_RANKS];
		struct straggler_op op;

		for (uint32_t i = 0; i < n; i++)
			late[i] = noise() + (k % 2 ? odd[i] : even[i]);
		op = op_of(1, (int32_t)n, n, late);
		straggler_add(&op);
		pass(STEP);
	}
	pass(SECOND);
}

static const struct {
	const char *how;
	uint32_t n;
	uint64_t odd[8], even[8];
	int32_t late[2];
} several[] = {
	{ "two of four", 4, { 0, 8 * MS, 0, 7 * MS }, { 0, 8 * MS, 0, 7 * MS }, { 1, 3 } },
	{ "two of four in turn", 4, { 0, 8 * MS }, { 0, 0, 0, 8 * MS }, { 1, 3 } },
	{ "two equal of eight", 8, { [2] = 5 * MS, [5] = 5 * MS }, { [2] = 5 * MS, [5] = 5 * MS },
	  { 2, 5 } },
	{ "two in turn and together", 8, { [2] = 5 * MS, [5] = 5 * MS }, { [2] = 5 * MS },
	  { 2, 5 } },
};

TEST_LOOP(ranks_late_together_or_in_turn_are_all_named, 0, FX_COUNT(several))
{
	uint64_t blame_ns = 0, late_ns = several[_i].odd[several[_i].late[0]] + 300 * US;

	work_of_sets(3, several[_i].n, several[_i].odd, several[_i].even);
	ck_assert_msg(look() == 2, "%s: %u", several[_i].how, ncases);
	for (uint32_t i = 0; i < 2; i++) {
		ck_assert_int_eq(cases[i].who.rank, several[_i].late[i]);
		ck_assert_int_eq(cases[i].said.verdict, VERDICT_STEADY);
		ck_assert_uint_eq(cases[i].said.others, 1);
		blame_ns += cases[i].said.blame_ns;
	}
	/* no more than the others waited */
	ck_assert_uint_le(blame_ns, cases[0].said.ops * late_ns);
	ck_assert_uint_ge(blame_ns, cases[0].said.ops * 4 * MS);
}

/* Part of the time that the first case cost. */
static double case_share(void)
{
	return (double)cases[0].said.blame_ns / (double)cases[0].said.wall_ns;
}

/* One of eight operations is timed: it stands for the others. */
TEST(who_is_late_where_only_bursts_are_timed_costs_as_much)
{
	for (uint64_t seq = 0; seq < 8 * 2000; seq++) {
		const uint64_t late[4] = { noise(), noise(), noise() + 2 * MS, noise() };
		struct straggler_op op = op_of(1, 4, 4, late);

		op.seq = seq;
		if (seq / 64 % 8 == 0)
			straggler_add(&op);
		pass(STEP);
	}
	ck_assert_uint_eq(look(), 1);
	ck_assert_int_eq(cases[0].who.rank, 2);
	ck_assert_double_eq_tol(case_share(), 0.02, 0.004);
}

TEST_LOOP(since_is_when_it_began_and_figures_are_of_the_time_since_then, 0, 10)
{
	uint64_t began_ns;

	fx_seed((uint64_t)_i);
	work(3, 0, 0, 0);
	for (uint64_t k = fx_random() % 600; k--;) {	/* somewhere in a window */
		const uint64_t late[4] = { noise(), noise(), noise(), noise() };
		struct straggler_op op = op_of(1, 4, 4, late);

		straggler_add(&op);
		pass(STEP);
	}
	began_ns = now_ns;
	work(4, 1, 2, 2 * MS);
	ck_assert_uint_eq(look(), 1);
	ck_assert_uint_ge(cases[0].since_ns + 10 * SECOND, began_ns);
	ck_assert_uint_le(cases[0].since_ns, began_ns + 10 * SECOND);
	ck_assert_double_eq_tol(case_share(), 0.02, 0.004);
	work(20, 1, 2, 2 * MS);		/* longer than slots are kept */
	ck_assert_uint_eq(look(), 1);
	ck_assert_uint_ge(cases[0].said.wall_ns + 20 * SECOND, now_ns - began_ns);
	ck_assert_uint_ge(cases[0].said.ops + 200, (now_ns - began_ns) / STEP);
}

static const struct {
	uint64_t queued_ns;
	bool one_process, spread;
	enum late_why why;
} whys[] = {
	{ UNKNOWN_U64, false, false, LATE_WHY_UNKNOWN },
	{ 20 * MS, false, false, LATE_WHY_GPU },
	{ 15 * US, false, false, LATE_WHY_HOST },
	{ 15 * US, true, false, LATE_WHY_HOST },
	{ 20 * MS, false, true, LATE_WHY_GPU },
	{ 20 * MS, true, true, LATE_WHY_LAUNCHES },
};

TEST_LOOP(why_it_is_late_is_told_as_far_as_its_calls_tell, 0, FX_COUNT(whys))
{
	for (uint64_t k = 0; k < 2400; k++) {
		uint64_t late[4];
		struct straggler_op op;

		for (uint64_t i = 0; i < 4; i++)
			late[i] = noise() + (whys[_i].spread ? i * 3 * MS : i == 3 ? 6 * MS : 0);
		op = op_of(1, 4, 4, late);
		for (uint32_t i = 0; i < 4; i++) {
			op.part[i].queued_ns = whys[_i].queued_ns;
			if (whys[_i].one_process) {
				op.part[i].process_id = 1;
				op.part[i].comm_index = i;
			}
		}
		straggler_add(&op);
		pass(STEP);
	}
	ck_assert_uint_eq(look(), 1);
	ck_assert_int_eq(cases[0].who.rank, 3);
	ck_assert_int_eq(cases[0].said.why, whys[_i].why);
	ck_assert_uint_eq(cases[0].said.launched, whys[_i].why == LATE_WHY_LAUNCHES ? 4 : 0);
}

TEST(a_process_that_is_forgotten_is_blamed_no_more)
{
	work(4, 1, 2, 5 * MS);
	pass(SECOND);
	ck_assert_uint_eq(look(), 1);
	straggler_forget(straggler, 3);
	ck_assert_uint_eq(look(), 0);
}

TEST(communicators_without_end_of_one_user_make_nobody_else_s_forgotten)
{
	const uint64_t late[2] = { 0, 0 };
	struct straggler_sums sums;

	work(4, 1, 2, 5 * MS);
	for (uint32_t k = 0; k < 10000; k++) {
		struct straggler_op op = op_of(1000 + k, 2, 2, late);

		for (uint32_t i = 0; i < op.n; i++) {
			op.part[i].account = 7;
			op.part[i].process_id = 1000 + i;
			op.part[i].gpu = 2 * k + i;
		}
		straggler_add(&op);
	}
	pass(SECOND);
	ck_assert_uint_eq(look(), 1);
	ck_assert(straggler_of(straggler, 3, 1, &sums));
}

/* Anything may come in; nothing may be read or written where it should not. */
TEST_LOOP(hostile_operations_do_no_harm, 0, 5)
{
	fx_seed((uint64_t)_i);
	for (int k = 0; k < 20000; k++) {
		struct straggler_op op = {
			.comm = fx_random() % 700, .func = "AllReduce", .kind = fx_random() % 3,
			.nranks = (int32_t)(fx_random() % 40) + 1,
			.n = (uint32_t)(fx_random() % OP_RANKS) + 1,
		};

		for (uint32_t i = 0; i < op.n; i++)
			op.part[i] = (struct straggler_part){
				.process_id = fx_random() % 40,
				.comm_index = (uint32_t)(fx_random() % 300),
				.rank = (int32_t)fx_random(), .gpu = fx_random() % 300,
				.start = fx_random() >> (fx_random() % 64),
				.inside_ns = fx_random() >> (fx_random() % 64),
				.end_ns = fx_random() >> (fx_random() % 64),
				.end_error_ns = fx_random() % 2 ? UNKNOWN_U64 : 10,
			};
		straggler_add(&op);
		pass(fx_random() % (30 * MS));
		if (k % 1000 == 0)
			straggler_forget(straggler, fx_random() % 40);
	}
	look();
}

int main(void)
{
	return fx_run(setup, teardown);
}
