/* SPDX-License-Identifier: Apache-2.0 */
/* Operations as NVIDIA's Inspector writes them: names, types, units, and what is left out. */
#include "cli/export/inspector.h"

#include <check.h>
#include <string.h>

#include "tests/fixture.h"

static const struct inspector_context context = {
	.host = "node7", .nnodes = 2, .number = 5, .real_offset_ns = 1700000000000000000,
};

static json_t *op, *record;

/* An AllReduce of 1 MiB in 123.6 us, with these members instead or besides. */
static void setup_op(const char *others)
{
	json_t *more = json_loads(others, 0, NULL);

	op = json_loads("{\"kind\":\"collective\",\"comm_id\":\"0x00c0ffee00c0ffee\","
			"\"comm_name\":\"dp\",\"rank\":3,\"nranks\":8,\"pid\":4711,"
			"\"func\":\"AllReduce\",\"seq\":42,\"bytes\":1048576,\"algo\":\"RING\","
			"\"proto\":\"LL128\",\"peer\":null,\"exec_ns\":123600,"
			"\"timing_source\":\"kernel_gpu\",\"algbw_gbs\":8.48,\"busbw_gbs\":14.84,"
			"\"derived\":null,\"done_mono_ns\":5000000999}", 0, NULL);
	ck_assert(op && more);
	ck_assert_int_eq(json_object_update(op, more), 0);
	json_decref(more);
}

static enum inspector_outcome outcome(const char *others)
{
	enum inspector_outcome o;

	setup_op(others);
	record = NULL;
	o = inspector_record(op, &context, &record);
	json_decref(op);
	return o;
}

static void check_record(const char *others, const char *expected)
{
	json_t *want = json_loads(expected, 0, NULL);
	char *have;

	ck_assert_int_eq(outcome(others), INSPECTOR_WRITTEN);
	have = json_dumps(record, JSON_COMPACT);
	ck_assert_ptr_nonnull(want);
	ck_assert_msg(json_equal(record, want), "%s", have);
	free(have);
	json_decref(want);
	json_decref(record);
}

#define CONTEXT	"\"header\":{\"id\":\"0x00c0ffee00c0ffee\",\"comm_name\":\"dp\",\"rank\":3," \
		"\"n_ranks\":8,\"nnodes\":2},\"metadata\":{" \
		"\"inspector_output_format_version\":\"v4.2\",\"git_rev\":\"ncclinsp " \
		NCCLINSP_VERSION "\",\"rec_mechanism\":\"nccl_profiler_interface\"," \
		"\"dump_timestamp_us\":1700000005000000,\"hostname\":\"node7\",\"pid\":4711}"

TEST(a_collective_has_all_that_there_is)
{
	check_record("{}", "{" CONTEXT ",\"coll_perf\":{\"coll\":\"AllReduce\",\"coll_algo\":"
		     "\"RING\",\"coll_proto\":\"LL128\",\"coll_sn\":42,\"coll_msg_size_bytes\":"
		     "1048576,\"coll_exec_time_us\":124,\"coll_timing_source\":\"kernel_gpu\","
		     "\"coll_algobw_gbs\":8.48,\"coll_busbw_gbs\":14.84}}");
}

TEST(a_send_is_of_the_other_kind)
{
	check_record("{\"func\":\"Send\",\"peer\":6,\"seq\":null,\"algo\":null,\"proto\":null,"
		     "\"timing_source\":\"kernel_cpu\",\"busbw_gbs\":8.48}",
		     "{" CONTEXT ",\"p2p_perf\":{\"p2p\":\"Send\",\"p2p_sn\":5,\"p2p_peer\":6,"
		     "\"p2p_msg_size_bytes\":1048576,\"p2p_exec_time_us\":124,"
		     "\"p2p_timing_source\":\"kernel_cpu\",\"p2p_algobw_gbs\":8.48,"
		     "\"p2p_busbw_gbs\":8.48}}");
}

static const struct {
	const char *func;
	json_int_t bytes;
} sizes[] = {
	{ "AllReduce", 1048576 }, { "Broadcast", 1048576 }, { "Reduce", 1048576 },
	{ "AllGather", 131072 }, { "ReduceScatter", 131072 },
};

/* Its size is what one rank gives or gets; ours is the larger of the two buffers. */
TEST_LOOP(a_size_is_that_of_its_definition, 0, FX_COUNT(sizes))
{
	char others[64];

	snprintf(others, sizeof(others), "{\"func\":\"%s\"}", sizes[_i].func);
	ck_assert_int_eq(outcome(others), INSPECTOR_WRITTEN);
	ck_assert_int_eq(json_integer_value(json_object_get(json_object_get(record, "coll_perf"),
							    "coll_msg_size_bytes")),
			 sizes[_i].bytes);
	json_decref(record);
}

TEST(what_is_not_known_is_null)
{
	json_t *perf;

	/* A member of a batch: what it took alone nobody can know. */
	ck_assert_int_eq(outcome("{\"fused\":3,\"algbw_gbs\":null,\"busbw_gbs\":null,"
				 "\"algo\":null,\"comm_name\":null,\"bytes\":null}"),
			 INSPECTOR_WRITTEN);
	perf = json_object_get(record, "coll_perf");
	ck_assert(json_is_null(json_object_get(perf, "coll_busbw_gbs")));
	ck_assert(json_is_null(json_object_get(perf, "coll_algobw_gbs")));
	ck_assert(json_is_null(json_object_get(perf, "coll_msg_size_bytes")));
	ck_assert_str_eq(json_string_value(json_object_get(perf, "coll_algo")), "unknown");
	ck_assert_str_eq(json_string_value(json_object_get(json_object_get(record, "header"),
							   "comm_name")), "unknown");
	json_decref(record);
}

static const struct {
	const char *others;
	enum inspector_outcome outcome;
} left_out[] = {
	{ "{\"exec_ns\":null,\"timing_source\":null}", INSPECTOR_UNTIMED },
	{ "{\"timing_source\":\"enqueue_cpu\"}", INSPECTOR_UNTIMED },
	{ "{\"timing_source\":\"something new\"}", INSPECTOR_UNTIMED },
	{ "{\"exec_ns\":null}", INSPECTOR_UNTIMED },
	{ "{\"func\":\"AlltoAll\",\"derived\":true}", INSPECTOR_DERIVED },
};

TEST_LOOP(what_the_format_cannot_say_is_left_out, 0, FX_COUNT(left_out))
{
	ck_assert_int_eq(outcome(left_out[_i].others), left_out[_i].outcome);
	ck_assert_ptr_null(record);
}

TEST(what_only_the_proxies_saw_is_told_as_cpu_time)
{
	ck_assert_int_eq(outcome("{\"timing_source\":\"proxy_cpu\"}"), INSPECTOR_WRITTEN);
	ck_assert_str_eq(json_string_value(json_object_get(json_object_get(record, "coll_perf"),
							   "coll_timing_source")),
			 "collective_cpu");
	json_decref(record);
}

int main(void)
{
	return fx_run(NULL, NULL);
}
