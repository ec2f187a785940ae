/* SPDX-License-Identifier: Apache-2.0 */
/* Series by NCCL Inspector's names: labels, means and sizes as its own, for whom, and how many. */
#include "ncclinspd/metrics/inspector_series.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/fixture.h"
#include "tests/fx_exposition.h"

#define SECOND	UINT64_C(1000000000)
#define ALICE	54321

static struct inspector_series *series;
static struct comm comms[2][2];
static struct process processes[2];
static uint64_t now_ns;
static char *text;

static void setup(void)
{
	now_ns = 1000 * SECOND;
	ck_assert_int_eq(inspector_series_new(&series, "node7", NULL, 1), 0);
	for (int i = 0; i < 2; i++) {
		for (int k = 0; k < 2; k++) {
			comms[i][k] = (struct comm){
				.ready = true, .has_id = true, .id = 0xd0 + (uint64_t)k,
				.rank = i, .nranks = 16, .nnodes = 2, .has_gpu = true,
				.gpu_index = 3 + i,
			};
			strcpy(comms[i][k].name, "dp");
		}
		processes[i] = (struct process){
			.id = 1 + (uint64_t)i, .pid = 100 + i, .api_version = 6,
			.comms = comms[i], .ncomms = 2,
		};
		processes[i].env_bytes = (uint32_t)sprintf(processes[i].env, "SLURM_JOB_ID=7") + 1;
	}
}

static void teardown(void)
{
	inspector_series_free(series);
	free(text);
	text = NULL;
}

static struct op make_op(uint32_t comm, uint64_t bytes, uint64_t us, double busbw_gbs)
{
	return (struct op){
		.comm_index = comm, .nranks = 16, .func = "AllReduce", .algo = "RING",
		.proto = "SIMPLE", .bytes = bytes, .exec_ns = us * 1000,
		.source = TIMING_KERNEL_GPU, .busbw_gbs = busbw_gbs,
	};
}

static void add(int process, const struct op *op)
{
	inspector_series_op(series, &processes[process], op, now_ns);
}

static uint64_t collect(bool all, uid_t uid)
{
	struct exposition e;

	exposition_init(&e, false, 32 << 20);
	inspector_series_write(series, &e, all, uid, now_ns);
	exposition_end(&e);
	free(text);
	text = fx_exposition_text(&e);
	return e.series;
}

static void check_line(const char *line)
{
	char whole[1024];

	snprintf(whole, sizeof(whole), "\n%s\n", line);
	ck_assert_msg(strstr(text, whole), "no %s in %s", line, text);
}

TEST(labels_and_means_are_as_inspector_has_them)
{
	struct op op = make_op(0, 5 << 20, 100, 200);

	add(0, &op);
	op.exec_ns = 300000;
	op.busbw_gbs = 50;
	add(0, &op);
	op.func = "Send";
	op.bytes = 8192;
	add(0, &op);
	ck_assert_uint_eq(collect(true, 0), 4);
#define WHERE "version=\"v6.1\",slurm_job_id=\"7\",node=\"node7\",uid=\"0\",gpu=\"GPU3\"," \
	      "comm_name=\"dp\",n_nodes=\"2\",nranks=\"16\","
	check_line("nccl_bus_bandwidth_gbs{" WHERE "collective=\"AllReduce\","
		   "message_size=\"5-6MB\",algo_proto=\"RING_SIMPLE\"} 100");
	check_line("nccl_collective_exec_time_microseconds{" WHERE "collective=\"AllReduce\","
		   "message_size=\"5-6MB\",algo_proto=\"RING_SIMPLE\"} 200");
	check_line("nccl_p2p_bus_bandwidth_gbs{" WHERE "p2p_operation=\"Send\","
		   "message_size=\"8-9KB\"} 50");
	check_line("nccl_p2p_exec_time_microseconds{" WHERE "p2p_operation=\"Send\","
		   "message_size=\"8-9KB\"} 300");
	check_line("# TYPE nccl_p2p_exec_time_microseconds gauge");
}

static const struct {
	const char *func;
	uint64_t bytes;
	const char *label;	/* NULL: too small */
} sizes[] = {
	{ "AllReduce", 8191, NULL }, { "AllReduce", 8192, "8-9KB" },
	{ "AllReduce", 1048575, "1023-1024KB" }, { "AllReduce", 1 << 20, "1-2MB" },
	{ "AllReduce", UINT64_C(5) << 30, "5-6GB" }, { "Broadcast", 2 << 20, "2-3MB" },
	/* one rank's share */
	{ "AllGather", 16 << 20, "1-2MB" }, { "ReduceScatter", 16 * 8192, "8-9KB" },
	{ "AllGather", 16 * 8191, NULL },
};

TEST_LOOP(sizes_are_those_of_the_call, 0, FX_COUNT(sizes))
{
	struct op op = make_op(0, sizes[_i].bytes, 100, 1);
	char label[64];

	op.func = sizes[_i].func;
	add(0, &op);
	ck_assert_uint_eq(collect(true, 0), sizes[_i].label ? 2 : 0);
	snprintf(label, sizeof(label), "message_size=\"%s\"", sizes[_i].label ?: "");
	ck_assert(!sizes[_i].label || strstr(text, label));
}

TEST(only_times_of_the_gpu_count)
{
	struct op op = make_op(0, 1 << 20, 100, 1);

	op.source = TIMING_KERNEL_CPU;
	add(0, &op);
	op = make_op(0, 1 << 20, 100, 1);
	op.exec_ns = UNKNOWN_U64;
	add(0, &op);
	op = make_op(0, UNKNOWN_U64, 100, 1);
	add(0, &op);
	op = make_op(7, 1 << 20, 100, 1);	/* it has no such communicator */
	add(0, &op);
	ck_assert_uint_eq(collect(true, 0), 0);
}

/* Two communicators of one name, two ranks of one GPU number: Prometheus takes a series once. */
TEST(what_has_the_same_labels_is_one_series)
{
	struct op op = make_op(0, 1 << 20, 100, 1);

	comms[1][0].gpu_index = 3;
	add(0, &op);
	add(1, &op);
	op.comm_index = 1;
	op.exec_ns = 400000;
	add(0, &op);
	ck_assert_uint_eq(collect(true, 0), 2);
	ck_assert_ptr_nonnull(strstr(text, "algo_proto=\"RING_SIMPLE\"} 200\n"));
	comms[0][1].nnodes = 1;
	add(0, &op);
	ck_assert_uint_eq(collect(true, 0), 4);
}

TEST(what_was_is_told_for_half_a_minute)
{
	struct op op = make_op(0, 1 << 20, 100, 1);

	add(0, &op);
	now_ns += 14 * SECOND;
	ck_assert_uint_eq(collect(true, 0), 2);
	now_ns += 16 * SECOND;
	ck_assert_uint_eq(collect(true, 0), 0);
	op.exec_ns = 700000;
	add(0, &op);
	collect(true, 0);
	ck_assert_ptr_nonnull(strstr(text, "algo_proto=\"RING_SIMPLE\"} 700\n"));
}

TEST(a_user_is_told_of_that_user)
{
	struct op op = make_op(0, 1 << 20, 100, 1);

	processes[1].uid = ALICE;
	comms[1][0].gpu_index = 3;	/* all else alike */
	add(0, &op);
	add(1, &op);
	ck_assert_uint_eq(collect(true, 0), 4);
	ck_assert_ptr_nonnull(strstr(text, "uid=\"0\""));
	ck_assert_uint_eq(collect(false, ALICE), 2);
	ck_assert_ptr_nonnull(strstr(text, "uid=\"54321\""));
	ck_assert_uint_eq(collect(false, ALICE + 1), 0);
}

/* Nor does one who makes more and more of them push out those of others. */
TEST(there_are_only_so_many)
{
	struct op op = make_op(0, 1 << 20, 100, 1);

	processes[1].uid = ALICE;
	add(0, &op);
	for (uint64_t i = 0; i < 2 * INSPECTOR_ROWS; i++) {
		snprintf(comms[1][0].name, sizeof(comms[1][0].name), "c%d", (int)i);
		add(1, &op);
	}
	ck_assert_uint_le(collect(true, 0), 2 * INSPECTOR_ROWS);
	ck_assert_uint_eq(collect(false, 0), 2);
}

TEST(what_is_not_known_is_said_so)
{
	struct op op = make_op(0, 1 << 20, 100, -1);

	comms[0][0].gpu_index = UNKNOWN_I32;
	comms[0][0].name[0] = '\0';
	processes[0].env_bytes = 0;
	op.algo = NULL;
	add(0, &op);
	ck_assert_uint_eq(collect(true, 0), 1);		/* no bandwidth */
	comms[0][0].has_gpu = false;
	add(0, &op);
	ck_assert_uint_eq(collect(true, 0), 1);
	check_line("nccl_collective_exec_time_microseconds{version=\"v6.1\","
		   "slurm_job_id=\"unknown\",node=\"node7\",uid=\"0\",gpu=\"unknown\","
		   "comm_name=\"unknown\",n_nodes=\"2\",nranks=\"16\",collective=\"AllReduce\","
		   "message_size=\"1-2MB\",algo_proto=\"unknown_SIMPLE\"} 100");
}

int main(void)
{
	return fx_run(setup, teardown);
}
