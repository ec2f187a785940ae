/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/fixture.h"

#include "cli/view/ranks.h"

static json_t *ranks, *gpus;

/* Process 11 on GPU-a is in two communicators, 12 shares its GPU; of 13's nobody knows. */
static void setup(void)
{
	ranks = json_loads(
		"[{\"pci_bus_id\": \"1b\", \"gpu_uuid\": \"GPU-a\", \"pid\": 11, \"job\": \"7\","
		"  \"user\": \"ada\","
		"  \"comm_id\": \"0x1\", \"ops_per_s\": 10.0, \"busbw_gbs\": 20.0, \"share\": 0.25,"
		"  \"blame\": 0.5, \"in_flight\": 1, \"oldest_ns\": 5, \"found\": \"STEADY\"},"
		" {\"pci_bus_id\": \"1b\", \"gpu_uuid\": \"GPU-a\", \"pid\": 11, \"job\": \"7\","
		"  \"user\": \"ada\","
		"  \"comm_id\": \"0x2\", \"ops_per_s\": 5.0, \"busbw_gbs\": 40.0, \"share\": 0.5,"
		"  \"blame\": null, \"in_flight\": 2, \"oldest_ns\": 9, \"found\": \"SLOW\"},"
		" {\"pci_bus_id\": \"1b\", \"gpu_uuid\": \"GPU-a\", \"pid\": 12, \"job\": \"7\","
		"  \"user\": \"ada\","
		"  \"comm_id\": \"0x1\", \"ops_per_s\": 1.0},"
		" {\"pci_bus_id\": null, \"gpu_uuid\": null, \"pid\": 13, \"job\": null,"
		"  \"user\": \"bob\","
		"  \"comm_id\": \"0x3\", \"in_flight\": 0},"
		" {\"pci_bus_id\": null, \"gpu_uuid\": null, \"pid\": 14, \"job\": null,"
		"  \"user\": \"bob\","
		"  \"comm_id\": \"0x3\", \"in_flight\": 0}]", 0, NULL);
	ck_assert_ptr_nonnull(ranks);
	gpus = ranks_by_gpu(ranks);
}

static void teardown(void)
{
	json_decref(ranks);
	json_decref(gpus);
}

TEST(the_communicators_of_one_gpu_and_process_are_one_row)
{
	json_t *row = json_array_get(gpus, 0), *expected;

	ck_assert_uint_eq(json_array_size(gpus), 4);
	expected = json_pack("{s:s,s:s,s:i,s:s,s:i,s:f,s:f,s:f,s:f,s:i,s:i,s:s}", "pci_bus_id",
			     "1b",
			     "gpu_uuid", "GPU-a", "pid", 11, "user", "ada", "comms", 2, "ops_per_s",
			     15.0, "busbw_gbs", 30.0, "share", 0.75, "blame", 0.5, "in_flight", 3,
			     "oldest_ns", 9, "found", "STEADY");
	for (size_t i = 0; i < gpu_column_count; i++) {
		const char *path = gpu_columns[i].path;
		const json_t *want = json_object_get(expected, path);

		if (want)
			ck_assert_msg(json_equal(json_object_get(row, path), want), "%s", path);
	}
	json_decref(expected);
}

TEST(what_no_member_knows_stays_unknown)
{
	json_t *row = json_array_get(gpus, 1);

	ck_assert_int_eq(json_integer_value(json_object_get(row, "pid")), 12);
	ck_assert(json_is_null(json_object_get(row, "busbw_gbs")));
	ck_assert(json_is_null(json_object_get(row, "found")));
}

TEST(histories_of_members_are_added_up_part_by_part)
{
	json_t *rows = json_loads(
		"[{\"comm_id\": \"0x1\", \"ops_history\": [null, null, 2, 0.5],"
		"  \"blame_history\": [null, 0, 0.25, null]},"
		" {\"comm_id\": \"0x1\", \"ops_history\": [null, 1, 3, 0],"
		"  \"blame_history\": [null, 0.5, 0, null]},"
		" {\"comm_id\": \"0x1\", \"ops_history\": null},"
		" {\"comm_id\": \"0x2\", \"ops_history\": null, \"blame_history\": 7}]", 0, NULL);
	json_t *comms = ranks_by_comm(rows), *row = json_array_get(comms, 0);
	json_t *ops = json_pack("[n, f, f, f]", 1.0, 5.0, 0.5);
	json_t *blame = json_pack("[n, f, f, n]", 0.5, 0.25);

	ck_assert(json_equal(json_object_get(row, "ops_history"), ops));
	ck_assert(json_equal(json_object_get(row, "blame_history"), blame));
	row = json_array_get(comms, 1);
	ck_assert(json_is_null(json_object_get(row, "ops_history")));
	ck_assert(json_is_null(json_object_get(row, "blame_history")));
	for (int i = 0; i < 1000; i++)	/* not our daemon's */
		json_array_append_new(json_object_get(json_array_get(rows, 0), "ops_history"),
				      json_integer(i));
	json_decref(comms);
	comms = ranks_by_comm(rows);
	row = json_array_get(comms, 0);
	ck_assert_uint_le(json_array_size(json_object_get(row, "ops_history")), 16);
	json_decref(ops);
	json_decref(blame);
	json_decref(comms);
	json_decref(rows);
}

TEST(while_a_member_hangs_nobody_knows_who_waits)
{
	static const char *const unknown[] = { "wait", "blame", "idle" };
	json_t *rows = json_loads(
		"[{\"comm_id\": \"0x1\", \"pid\": 1, \"stalled\": true, \"wait\": null,"
		"  \"blame\": null, \"idle\": null, \"found\": \"LINK\", \"grade\": \"suspected\"},"
		" {\"comm_id\": \"0x2\", \"pid\": 1, \"stalled\": false, \"wait\": 0.0,"
		"  \"blame\": 0.0, \"idle\": 1.0}]", 0, NULL);
	json_t *groups = ranks_by_gpu(rows), *row = json_array_get(groups, 0);

	ck_assert_uint_eq(json_array_size(groups), 1);
	for (size_t i = 0; i < sizeof(unknown) / sizeof(unknown[0]); i++)
		ck_assert_msg(json_is_null(json_object_get(row, unknown[i])), "%s", unknown[i]);
	ck_assert_str_eq(json_string_value(json_object_get(row, "grade")), "suspected");
	json_decref(groups);
	json_decref(rows);
}

TEST(processes_of_unknown_gpus_are_not_thrown_together)
{
	ck_assert_int_eq(json_integer_value(json_object_get(json_array_get(gpus, 2), "pid")), 13);
	ck_assert_int_eq(json_integer_value(json_object_get(json_array_get(gpus, 3), "pid")), 14);
}

int main(void)
{
	return fx_run(setup, teardown);
}
