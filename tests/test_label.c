/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/fixture.h"

#include <stdio.h>

#include "cli/common/label.h"

static json_t *rows;

static void setup(void)
{
	rows = json_loads("[{\"comm_name\": \"tp\", \"comm_id\": \"0x000000000000aaaa\"},"
			  " {\"comm_name\": \"tp\", \"comm_id\": \"0x000000000000bbbb\"},"
			  " {\"comm_name\": \"tp\", \"comm_id\": \"0x000000000000bbbb\"},"
			  " {\"comm_name\": \"dp\", \"comm_id\": \"0x000000000000cccc\"},"
			  " {\"comm_name\": \"dp\", \"comm_id\": \"0x000000000000cccc\"},"
			  " {\"comm_name\": null, \"comm_id\": \"0x000000000000dddd\"},"
			  " {\"name\": \"pp\", \"comm_id\": null}, {}]", 0, NULL);
	ck_assert_ptr_nonnull(rows);
}

static void teardown(void)
{
	json_decref(rows);
}

static void label_all(json_t *some)
{
	json_t *names = label_names(rows);

	label_rows(some, names);
	json_decref(names);
}

static const char *label(size_t i)
{
	return json_string_value(json_object_get(json_array_get(rows, i), "comm_label"));
}

TEST(a_name_that_one_has_is_enough)
{
	label_all(rows);
	ck_assert_str_eq(label(3), "dp");
	ck_assert_str_eq(label(4), "dp");
	ck_assert_str_eq(label(6), "pp");
}

TEST(a_name_that_several_have_gets_the_end_of_the_id)
{
	label_all(rows);
	ck_assert_str_eq(label(0), "tp:aaaa");
	ck_assert_str_eq(label(1), "tp:bbbb");
	ck_assert_str_eq(label(2), "tp:bbbb");
}

TEST(without_a_name_the_id_stands_and_without_both_nothing)
{
	label_all(rows);
	ck_assert_str_eq(label(5), "0x000000000000dddd");
	ck_assert_ptr_null(label(7));
}

TEST(the_names_that_are_known_decide_and_not_the_rows_at_hand)
{
	json_t *few = json_pack("[O]", json_array_get(rows, 0));

	label_all(few);
	ck_assert_str_eq(label(0), "tp:aaaa");
	json_decref(few);
}

TEST(a_communicator_is_learnt_once_and_only_with_name_and_id)
{
	json_t *names = json_object();

	for (size_t i = 0; i < json_array_size(rows); i++)
		label_learn(names, json_array_get(rows, i));
	ck_assert_uint_eq(json_object_size(names), 2);
	ck_assert_uint_eq(json_object_size(json_object_get(names, "tp")), 2);
	ck_assert_uint_eq(json_object_size(json_object_get(names, "dp")), 1);
	label_rows(rows, names);
	ck_assert_str_eq(label(1), "tp:bbbb");
	ck_assert_str_eq(label(3), "dp");
	json_decref(names);
}

/* The time limit of a test: each one beside each of those before would take minutes. */
TEST(forty_thousand_communicators_are_learnt_in_a_moment)
{
	json_t *names = json_object();
	char id[24], name[24];

	json_array_clear(rows);
	for (int i = 0; i < 40000; i++) {
		snprintf(id, sizeof(id), "0x%016x", i);
		snprintf(name, sizeof(name), "%s%d", i % 2 ? "tp" : "dp", i % 2 ? 0 : i);
		json_array_append_new(rows, json_pack("{s:s s:s}", "comm_name", name,
						      "comm_id", id));
		label_learn(names, json_array_get(rows, (size_t)i));
	}
	label_rows(rows, names);
	ck_assert_str_eq(label(0), "dp0");
	ck_assert_str_eq(label(39998), "dp39998");
	ck_assert_str_eq(label(39999), "tp0:9c3f");
	json_decref(names);
}

TEST(a_communicator_answers_to_name_label_and_id)
{
	const json_t *row = json_array_get(rows, 0);

	ck_assert(label_matches("tp", row));
	ck_assert(label_matches("TP", row));
	ck_assert(label_matches("tp:aaaa", row));
	ck_assert(label_matches("0x000000000000AAAA", row));
	ck_assert(label_matches("000000000000aaaa", row));
	ck_assert(!label_matches("tp:bbbb", row));
	ck_assert(!label_matches("t", row));
	ck_assert(!label_matches("", row));
	ck_assert(!label_matches("tp:", row));
	ck_assert(!label_matches("tp", json_array_get(rows, 7)));
}

/* Nodes may have the same pid. */
TEST(a_process_has_the_job_of_its_own_node)
{
	json_t *ranks = json_pack("[{s:s s:i s:s} {s:s s:i s:s}]",
				  "host", "n1", "pid", 7, "job", "one",
				  "host", "n2", "pid", 7, "job", "two");
	json_t *few = json_pack("[{s:s s:i} {s:s s:i} {s:s s:i}]", "host", "n1", "pid", 7,
				"host", "n2", "pid", 7, "host", "n3", "pid", 7);
	json_t *jobs = label_jobs(ranks);

	label_put_jobs(few, jobs);
	ck_assert_str_eq(json_string_value(json_object_get(json_array_get(few, 0), "job")), "one");
	ck_assert_str_eq(json_string_value(json_object_get(json_array_get(few, 1), "job")), "two");
	ck_assert_ptr_null(json_object_get(json_array_get(few, 2), "job"));
	json_decref(jobs);
	json_decref(ranks);
	json_decref(few);
}

/* A node's rows do not name it; a pid that comes again may be of no job. */
TEST(a_process_without_a_host_is_of_the_only_node)
{
	json_t *rank = json_pack("{s:s s:i}", "host", "n1", "pid", 7);
	json_t *few = json_pack("[{s:i}]", "pid", 7), *jobs = json_object();
	json_t *job = json_string("one");

	label_learn_job(jobs, rank, job);
	label_put_jobs(few, jobs);
	ck_assert_str_eq(json_string_value(json_object_get(json_array_get(few, 0), "job")), "one");
	label_learn_job(jobs, rank, NULL);
	ck_assert_uint_eq(json_object_size(jobs), 0);
	json_decref(job);
	json_decref(jobs);
	json_decref(rank);
	json_decref(few);
}

int main(void)
{
	return fx_run(setup, teardown);
}
