/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/fixture.h"

#include <stdlib.h>
#include <string.h>

#include "cli/late.h"

#define MS 1000000

static json_t *comm, *rows;
static struct late late;

static void setup(void)
{
	comm = json_pack("{s:s s:s s:i s:[]}", "comm_id", "0x0000000000000001", "name", "dp",
			 "nranks", 4, "local_ranks");
	for (int rank = 0; rank < 4; rank++)
		json_array_append_new(json_object_get(comm, "local_ranks"),
				      json_pack("{s:i s:i s:s}", "rank", rank, "pid", 100 + rank,
						"state", "live"));
	rows = json_array();
}

static void teardown(void)
{
	json_decref(comm);
	json_decref(rows);
}

static json_t *add_row(int rank, int seq, json_int_t exec_ns)
{
	json_t *row = json_pack("{s:s s:i s:i s:s s:i s:I s:s s:b}", "comm_id",
				"0x0000000000000001", "rank", rank, "pid", 100 + rank, "func",
				"AllReduce", "seq", seq, "exec_ns", exec_ns, "timing_source",
				"kernel_gpu", "complete", 1);

	json_array_append_new(rows, row);
	return row;
}

/* One operation: how long each rank was inside, in milliseconds. */
static void add_op(int seq, double d0, double d1, double d2, double d3)
{
	const double inside[4] = { d0, d1, d2, d3 };

	for (int rank = 0; rank < 4; rank++)
		add_row(rank, seq, (json_int_t)(inside[rank] * MS));
}

static void set_all(const char *key, json_t *value)
{
	json_t *row;
	size_t i;

	json_array_foreach(rows, i, row)
		json_object_set(row, key, value);
	json_decref(value);
}

START_TEST(the_rank_that_is_inside_for_the_least_time_comes_last)
{
	for (int seq = 0; seq < 6; seq++)
		add_op(seq, 1.0, 5.5, 10.0, 14.9);
	ck_assert(late_find(comm, rows, &late));
	ck_assert_int_eq(late.rank, 0);
	ck_assert_int_eq(late.times, 6);
	ck_assert_int_eq(late.ops, 6);
	ck_assert(late.whole);
	ck_assert_uint_eq(late.late_ns, 13900000);
	ck_assert_uint_eq(late.wait_ns, 9 * MS);
	ck_assert_uint_eq(late.each[3].late_ns, 0);
	ck_assert_str_eq(late.name, "dp");
	ck_assert_str_eq(late.func, "AllReduce");
}
END_TEST

START_TEST(nobody_is_blamed_when_all_come_together)
{
	for (int seq = 0; seq < 20; seq++)
		add_op(seq, 1.00, 1.01, 1.005, 1.012);
	ck_assert(late_find(comm, rows, &late));
	ck_assert_int_eq(late.rank, LATE_NONE);
	ck_assert_ptr_null(late.func);
}
END_TEST

START_TEST(nobody_is_blamed_when_it_is_another_one_each_time)
{
	for (int seq = 0; seq < 20; seq += 2) {
		add_op(seq, 1, 9, 9, 9);
		add_op(seq + 1, 9, 1, 9, 9);
	}
	ck_assert(late_find(comm, rows, &late));
	ck_assert_int_eq(late.rank, LATE_NONE);
}
END_TEST

START_TEST(nobody_is_blamed_when_two_come_last_together)
{
	for (int seq = 0; seq < 20; seq++)
		add_op(seq, 1.00, 1.005, 9, 9);
	ck_assert(late_find(comm, rows, &late));
	ck_assert_int_eq(late.rank, LATE_NONE);
}
END_TEST

START_TEST(microseconds_are_no_lateness)
{
	for (int seq = 0; seq < 20; seq++)
		add_op(seq, 0.010, 0.025, 0.026, 0.027);
	ck_assert(late_find(comm, rows, &late));
	ck_assert_int_eq(late.rank, LATE_NONE);
}
END_TEST

START_TEST(an_odd_one_out_does_not_hide_the_late_rank)
{
	for (int seq = 0; seq < 9; seq++)
		add_op(seq, 9, 1, 9, 9);
	add_op(9, 9, 9, 1, 9);
	ck_assert(late_find(comm, rows, &late));
	ck_assert_int_eq(late.rank, 1);
	ck_assert_int_eq(late.times, 9);
	ck_assert_int_eq(late.ops, 10);
}
END_TEST

START_TEST(who_is_late_to_one_function_only_is_found_there)
{
	for (int seq = 0; seq < 6; seq++)
		add_op(seq, 9, 1, 9, 9);
	set_all("func", json_string("ReduceScatter"));
	for (int seq = 0; seq < 20; seq++)
		add_op(seq, 1, 1, 1, 1);
	ck_assert(late_find(comm, rows, &late));
	ck_assert_int_eq(late.rank, 1);
	ck_assert_str_eq(late.func, "ReduceScatter");
	ck_assert_int_eq(late.ops, 6);
	ck_assert_uint_eq(late.each[1].late_ns, 8 * MS);
}
END_TEST

START_TEST(fewer_than_five_operations_say_nothing)
{
	for (int seq = 0; seq < 4; seq++)
		add_op(seq, 1, 9, 9, 9);
	ck_assert(!late_find(comm, rows, &late));
}
END_TEST

START_TEST(an_operation_that_a_rank_has_not_finished_does_not_count)
{
	for (int seq = 0; seq < 5; seq++)
		add_op(seq, 1, 9, 9, 9);
	add_row(0, 5, 1 * MS);
	add_row(1, 5, 9 * MS);
	ck_assert(late_find(comm, rows, &late));
	ck_assert_int_eq(late.ops, 5);
}
END_TEST

START_TEST(a_number_used_twice_does_not_count)
{
	for (int seq = 0; seq < 5; seq++)
		add_op(seq, 1, 9, 9, 9);
	add_op(4, 9, 1, 9, 9);
	ck_assert(!late_find(comm, rows, &late));
}
END_TEST

/* Each of these makes the comparison unsound, so nothing may be said. */
static const struct {
	const char *key;
	const char *value;
} unsound[] = {
	{ "timing_source", "kernel_cpu" },
	{ "timing_source", "proxy_cpu" },
	{ "func", "Broadcast" },
	{ "func", "Reduce" },
	{ "func", "Send" },
	{ "comm_id", "0x0000000000000002" },
};

START_TEST(only_gpu_times_of_functions_where_all_wait_for_all_are_compared)
{
	for (int seq = 0; seq < 6; seq++)
		add_op(seq, 1, 9, 9, 9);
	set_all(unsound[_i].key, json_string(unsound[_i].value));
	ck_assert(!late_find(comm, rows, &late));
}
END_TEST

START_TEST(what_is_incomplete_or_untimed_is_not_compared)
{
	for (int seq = 0; seq < 6; seq++)
		add_op(seq, 1, 9, 9, 9);
	set_all("complete", json_false());
	ck_assert(!late_find(comm, rows, &late));
	set_all("complete", json_true());
	set_all("exec_ns", json_null());
	ck_assert(!late_find(comm, rows, &late));
}
END_TEST

START_TEST(with_ranks_elsewhere_the_answer_is_for_this_node)
{
	json_object_set_new(comm, "nranks", json_integer(8));
	for (int seq = 0; seq < 6; seq++)
		add_op(seq, 1, 9, 9, 9);
	ck_assert(late_find(comm, rows, &late));
	ck_assert_int_eq(late.rank, 0);
	ck_assert(!late.whole);
}
END_TEST

START_TEST(an_earlier_job_with_the_same_id_is_another_one)
{
	json_t *members = json_object_get(comm, "local_ranks");

	for (int rank = 0; rank < 4; rank++)
		json_array_append_new(members, json_pack("{s:i s:i s:s}", "rank", rank, "pid",
							 50 + rank, "state", "exited"));
	for (int seq = 0; seq < 6; seq++)
		add_op(seq, 1, 9, 9, 9);
	for (int seq = 0; seq < 6; seq++)
		json_object_set_new(add_row(3, seq, MS / 2), "pid", json_integer(53));
	ck_assert(late_find(comm, rows, &late));
	ck_assert_int_eq(late.rank, 0);
	ck_assert_int_eq(late.ranks, 4);
}
END_TEST

START_TEST(one_rank_or_an_unnamed_communicator_cannot_be_compared)
{
	for (int seq = 0; seq < 6; seq++)
		add_op(seq, 1, 9, 9, 9);
	json_object_set_new(comm, "comm_id", json_null());
	ck_assert(!late_find(comm, rows, &late));
	teardown();
	setup();
	while (json_array_size(json_object_get(comm, "local_ranks")) > 1)
		json_array_remove(json_object_get(comm, "local_ranks"), 1);
	for (int seq = 0; seq < 6; seq++)
		add_row(0, seq, MS);
	ck_assert(!late_find(comm, rows, &late));
}
END_TEST

int main(void)
{
	const struct fx_test tests[] = {
		FX_TEST(the_rank_that_is_inside_for_the_least_time_comes_last),
		FX_TEST(nobody_is_blamed_when_all_come_together),
		FX_TEST(nobody_is_blamed_when_it_is_another_one_each_time),
		FX_TEST(nobody_is_blamed_when_two_come_last_together),
		FX_TEST(microseconds_are_no_lateness),
		FX_TEST(an_odd_one_out_does_not_hide_the_late_rank),
		FX_TEST(who_is_late_to_one_function_only_is_found_there),
		FX_TEST(fewer_than_five_operations_say_nothing),
		FX_TEST(an_operation_that_a_rank_has_not_finished_does_not_count),
		FX_TEST(a_number_used_twice_does_not_count),
		FX_LOOP(only_gpu_times_of_functions_where_all_wait_for_all_are_compared,
			0, FX_COUNT(unsound)),
		FX_TEST(what_is_incomplete_or_untimed_is_not_compared),
		FX_TEST(with_ranks_elsewhere_the_answer_is_for_this_node),
		FX_TEST(an_earlier_job_with_the_same_id_is_another_one),
		FX_TEST(one_rank_or_an_unnamed_communicator_cannot_be_compared),
	};

	return fx_run(setup, teardown, tests, FX_COUNT(tests));
}
