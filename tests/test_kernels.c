/* SPDX-License-Identifier: Apache-2.0 */
/* A profiler's kernels are found among the daemon's operations, and what hides them is added up. */
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include <zlib.h>

#include "cli/kernels/kernels.h"
#include "tests/fixture.h"

#define OPS	40
#define PID	4711
#define REAL_NS INT64_C(1700000000000000000)	/* CLOCK_REALTIME less CLOCK_MONOTONIC */
#define MONO_NS INT64_C(5000000000000)
#define STEP_NS INT64_C(50000000)

static struct kernels k;
static char why[KERNELS_WHY], path[160];
static json_t *processes, *rows;

/* What the profiler sees of the job of make_job(). */
static struct picture {
	int64_t shift_ns;	/* of its clock */
	int64_t base_ns;	/* its zero */
	int pid, rank;
} picture;

static uint32_t noise(uint32_t i, uint32_t below)
{
	uint64_t x = (i + 1) * UINT64_C(0x9e3779b97f4a7c15);

	x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	return (uint32_t)((x ^ x >> 27) >> 20) % below;
}

static void row_put_time(json_t *row, const char *name, int64_t mono_ns)
{
	int64_t ns = mono_ns + REAL_NS;
	time_t s = (time_t)(ns / 1000000000);
	char key[64], text[64], day[32];
	struct tm tm;

	strftime(day, sizeof(day), "%Y-%m-%dT%H:%M:%S", gmtime_r(&s, &tm));
	snprintf(text, sizeof(text), "%s.%09" PRId64 "Z", day, ns % 1000000000);
	snprintf(key, sizeof(key), "%s_at", name);
	json_object_set_new(row, key, json_string(text));
	snprintf(key, sizeof(key), "%s_mono_ns", name);
	json_object_set_new(row, key, json_integer(mono_ns));
}

static json_t *add_row(int rank, uint32_t i, int64_t start_ns, int64_t stop_ns)
{
	json_t *row = json_pack("{s:i, s:s, s:s, s:i, s:s, s:i, s:i}", "pid", PID, "comm_id",
				"0x0000000000000001", "comm_name", "dp", "rank", rank, "func",
				i % 4 == 3 ? "AllGather" : "AllReduce", "seq", (int)(i / 4),
				"gpu_clock_error_ns", 9000);

	row_put_time(row, "gpu_start", start_ns);
	row_put_time(row, "gpu_stop", stop_ns);
	json_array_append_new(rows, row);
	return row;
}

/* Operation i begins there; four of them are a step. */
static int64_t begin_ns(uint32_t i, uint32_t jitter_ns)
{
	return MONO_NS + i / 4 * STEP_NS + i % 4 * 10000000 +
	       (jitter_ns ? noise(i, jitter_ns) : 0);
}

static int64_t length_ns(uint32_t i)
{
	return 100000 + 40000 * (i % 4);
}

static void make_job(uint32_t jitter_ns)
{
	for (uint32_t i = 0; i < OPS; i++)
		add_row(0, i, begin_ns(i, jitter_ns), begin_ns(i, jitter_ns) + length_ns(i));
}

static void setup(void)
{
	processes = json_pack("[{s:i, s:i, s:{s:i}}]", "pid", PID, "ns_pid", 7, "job", "rank", 3);
	rows = json_array();
	picture = (struct picture){ .base_ns = REAL_NS, .pid = PID, .rank = 3 };
	snprintf(path, sizeof(path), "%s/kernels.json", fx_tmpdir());
}

static void teardown(void)
{
	kernels_deinit(&k);
	json_decref(rows);
	json_decref(processes);
}

/* ---- its file ----------------------------------------------------------------------------- */

static FILE *out;
static const char *separator;

static void draw_begin(void)
{
	out = fopen(path, "w");
	ck_assert_ptr_nonnull(out);
	fprintf(out, "{\"schemaVersion\": 1,\n  \"deviceProperties\": [{\"id\": 0}],\n"
		"  \"distributedInfo\": {\"backend\": \"nccl\", \"rank\": %d}, \"traceEvents\": [",
		picture.rank);
	separator = "\n";
}

static void draw(const char *category, const char *name, int pid, int64_t mono_ns,
		 int64_t length_ns, int stream, uint64_t correlation)
{
	int64_t ns = mono_ns + REAL_NS + picture.shift_ns - picture.base_ns;

	fprintf(out, "%s{\"ph\": \"X\", \"cat\": \"%s\", \"name\": \"%s\", \"pid\": %d,"
		" \"tid\": %d, \"ts\": %" PRId64 ".%03" PRId64 ","
		" \"dur\": %" PRId64 ".%03" PRId64 ", \"args\":"
		" {\"device\": %d, \"stream\": %d, \"correlation\": %" PRIu64 "}}",
		separator, category, name, pid, stream, ns / 1000, ns % 1000, length_ns / 1000,
		length_ns % 1000, pid, stream, correlation);
	separator = ",\n";
}

static void draw_end(void)
{
	fprintf(out, "\n], \"displayTimeUnit\": \"ms\", \"baseTimeNanoseconds\": %" PRId64 "}\n",
		picture.base_ns);
	fclose(out);
}

static void draw_nccl(int device, uint32_t i, int64_t start_ns, int64_t stop_ns)
{
	draw("kernel", i % 4 == 3 ? "ncclDevKernel_AllGather_RING_LL(ncclDevKernelArgs)"
				  : "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgs)",
	     device, start_ns, stop_ns - start_ns, 20, 10 * i + 1);
}

/* CUPTI's kernel begins before the first stamp and ends behind the last one. */
static void draw_job(uint32_t jitter_ns)
{
	draw_begin();
	for (uint32_t i = 0; i < OPS; i++) {
		draw("cuda_runtime", "cudaLaunchKernel", picture.pid,
		     begin_ns(i, jitter_ns) - 30000, 5000, picture.pid, 10 * i + 1);
		draw_nccl(0, i, begin_ns(i, jitter_ns) - 2000,
			  begin_ns(i, jitter_ns) + length_ns(i) + 1500 + noise(i, 1000));
	}
	draw_end();
}

static void read_kernels(void)
{
	ck_assert_msg(!kernels_read(&k, path, why), "%s", why);
}

static void assert_joined(int64_t shift_ns)
{
	ck_assert_msg(!kernels_join(&k, processes, rows, why), "%s", why);
	ck_assert_int_eq(k.host_pid, PID);
	ck_assert_int_eq(k.matched, OPS);
	ck_assert_int_eq(k.compared, OPS);
	ck_assert_int_ge(k.shift_ns, shift_ns + 1500);
	ck_assert_int_le(k.shift_ns, shift_ns + 2500);
	ck_assert_int_eq(k.offset_ns, REAL_NS + k.shift_ns);
	ck_assert_uint_le(k.spread_ns, 1000);
	for (uint32_t i = 0; i < OPS; i++)
		ck_assert_ptr_eq(k.units.at[i].kernel, &k.all.at[i]);
}

static void assert_refused(const char *reason)
{
	ck_assert_int_eq(kernels_join(&k, processes, rows, why), -1);
	ck_assert_msg(strstr(why, reason), "%s", why);
	ck_assert_int_eq(k.host_pid, 0);
	for (uint32_t i = 0; i < k.all.n; i++)
		ck_assert_ptr_null(k.all.at[i].unit);
}

/* ---- clocks ------------------------------------------------------------------------------- */

static const int64_t shifts_ns[] = { 0, 1234567, -9000000, INT64_C(-10800000000000), 777000000 };

TEST_LOOP(operations_are_found_however_the_clocks_are_off, 0, FX_COUNT(shifts_ns))
{
	make_job(3000000);
	picture.shift_ns = shifts_ns[_i];
	picture.base_ns += shifts_ns[_i];
	draw_job(3000000);
	read_kernels();
	assert_joined(shifts_ns[_i]);
}

TEST(steps_that_are_alike_are_told_by_the_time_of_day)
{
	make_job(0);
	draw_job(0);
	read_kernels();
	assert_joined(0);
}

TEST(where_it_is_off_as_well_nothing_is_guessed)
{
	make_job(0);
	picture.shift_ns = 3 * STEP_NS;
	draw_job(0);
	read_kernels();
	assert_refused("several ways");
}

/* The profiler's window is a part of what the daemon knows, and of that not all was timed. */
TEST(what_one_of_them_has_not_seen_is_no_contradiction)
{
	uint32_t matched = 0;

	make_job(3000000);
	for (uint32_t i = OPS; i-- > 0;)
		if (i % 3 == 1)
			json_array_remove(rows, i);
	draw_begin();
	draw("cuda_runtime", "cudaLaunchKernel", PID, MONO_NS, 5000, PID, 1);
	for (uint32_t i = OPS / 2; i < OPS; i++) {
		draw_nccl(0, i, begin_ns(i, 3000000), begin_ns(i, 3000000) + length_ns(i));
		matched += i % 3 != 1;
	}
	draw_end();
	read_kernels();
	ck_assert_msg(!kernels_join(&k, processes, rows, why), "%s", why);
	ck_assert_uint_eq(k.matched, matched);
	ck_assert_uint_eq(k.compared, matched);
	ck_assert_int_eq(k.shift_ns, 0);
}

/* Ten kernels of forty operations, less than 3 ms apart: by so much the clock may be off. */
TEST(a_short_profile_is_found_by_a_clock_of_which_little_is_known)
{
	draw_begin();
	draw("cuda_runtime", "cudaLaunchKernel", PID, MONO_NS, 5000, PID, 1);
	for (uint32_t i = 0; i < OPS; i++) {
		int64_t start_ns = MONO_NS + i * i * 30000 + noise(i, 250000);

		json_object_set_new(add_row(0, i & ~3, start_ns, start_ns + 100000),
				    "gpu_clock_error_ns", json_integer(3000000));
		if (i < 10)
			draw_nccl(0, i & ~3, start_ns, start_ns + 100000);
	}
	draw_end();
	read_kernels();
	ck_assert_msg(!kernels_join(&k, processes, rows, why), "%s", why);
	ck_assert_uint_eq(k.matched, 10);
	ck_assert_int_eq(k.shift_ns, 0);
	ck_assert_uint_eq(k.spread_ns, 0);
}

TEST(a_batch_is_one_kernel)
{
	make_job(3000000);
	for (uint32_t i = 0; i < OPS; i++) {
		json_t *row = json_array_get(rows, i), *copy;
		char token[16];

		snprintf(token, sizeof(token), "0x%x", i + 16);
		json_object_set_new(row, "batch", json_pack("{s:s}", "token", token));
		copy = json_deep_copy(row);
		json_object_set_new(copy, "func", json_string("ReduceScatter"));
		row_put_time(row, "gpu_stop", begin_ns(i, 3000000) + length_ns(i) / 2);
		json_array_append_new(rows, copy);
	}
	draw_job(3000000);
	read_kernels();
	assert_joined(0);
}

/* ---- whose it is -------------------------------------------------------------------------- */

TEST(a_container_counts_its_own_processes)
{
	make_job(3000000);
	picture.pid = 7;
	draw_job(3000000);
	read_kernels();
	assert_joined(0);
}

TEST_LOOP(another_process_is_refused, 0, 3)
{
	static const struct { int pid, rank; } others[] = { { 99, 3 }, { PID, 2 }, { 7, 0 } };

	make_job(3000000);
	picture.pid = others[_i].pid;
	picture.rank = others[_i].rank;
	draw_job(3000000);
	read_kernels();
	assert_refused("no process");
}

/* An older daemon tells no ns_pid, the file no pid: neither is the other. */
TEST(what_neither_tells_is_not_the_same)
{
	make_job(3000000);
	json_object_del(json_array_get(processes, 0), "ns_pid");
	draw_begin();
	for (uint32_t i = 0; i < OPS; i++)
		draw_nccl(0, i, begin_ns(i, 3000000), begin_ns(i, 3000000) + length_ns(i));
	draw_end();
	read_kernels();
	assert_refused("no call of CUDA");
}

TEST(another_job_of_that_pid_and_rank_is_refused)
{
	make_job(3000000);
	draw_job(2000000);	/* all of them begin at other times */
	read_kernels();
	assert_refused("of another process");
}

TEST(a_process_of_two_namespaces_is_none)
{
	make_job(3000000);
	json_array_append_new(processes, json_pack("{s:i, s:i, s:{s:n}}", "pid", PID + 1, "ns_pid",
						   7, "job", "rank"));
	picture.pid = 7;
	draw_job(3000000);
	read_kernels();
	assert_refused("several processes");
}

TEST(operations_that_nobody_timed_prove_nothing)
{
	draw_job(3000000);
	read_kernels();
	assert_refused("no operations");
	json_array_append_new(rows, json_pack("{s:i, s:s}", "pid", PID, "func", "AllReduce"));
	assert_refused("too few");
}

/* A chance finds three operations that are as far apart somewhere in an hour. */
TEST(a_few_kernels_of_another_time_prove_nothing)
{
	make_job(3000000);
	picture.shift_ns = 777000000;
	draw_begin();
	draw("cuda_runtime", "cudaLaunchKernel", PID, MONO_NS, 5000, PID, 1);
	for (uint32_t i = 0; i < 3; i++)
		draw_nccl(0, i, begin_ns(i, 3000000), begin_ns(i, 3000000) + length_ns(i));
	draw_end();
	read_kernels();
	assert_refused("several ways");
}

/* Both end together, one came later. */
TEST(each_rank_of_a_process_is_at_its_gpu)
{
	draw_begin();
	draw("cuda_runtime", "cudaLaunchKernel", PID, MONO_NS, 5000, PID, 1);
	for (uint32_t i = 0; i < OPS; i++) {
		int64_t start_ns = begin_ns(i, 3000000), stop_ns = start_ns + length_ns(i);

		add_row(0, i, start_ns, stop_ns);
		add_row(1, i, start_ns + 5000, stop_ns);
		draw_nccl(5, i, start_ns, stop_ns);
		draw_nccl(2, i, start_ns + 5000, stop_ns);
	}
	draw_end();
	read_kernels();
	ck_assert_msg(!kernels_join(&k, processes, rows, why), "%s", why);
	ck_assert_uint_eq(k.matched, 2 * OPS);
	for (uint32_t i = 0; i < k.all.n; i++) {
		const struct kernels_unit *u = k.all.at[i].unit;

		ck_assert_int_eq(json_integer_value(json_object_get(u->row, "rank")),
				 k.all.at[i].device == 2);
	}
}

/* ---- sums --------------------------------------------------------------------------------- */

static int64_t value_of(const json_t *row, const char *key)
{
	const json_t *value = json_object_get(row, key);

	return json_is_integer(value) ? json_integer_value(value) : -1;
}

/*
 * Two steps of a GPU in us.  The host begins the second one at 350, when half of the first one's
 * kernels have not begun; its first kernel begins at 1500.
 *
 *   compute  0-300  400-900        1500-1700
 *   NCCL        200---------1200       1600---2000
 */
static void draw_steps(void)
{
	static const char nccl[] = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(x)";
	static const struct { const char *name; int from, to, stream, correlation; } drawn[] = {
		{ "gemm<\\\"}]\\\\>", 0, 300, 7, 1 }, { nccl, 200, 1200, 20, 2 },
		{ "gemm", 400, 900, 7, 3 }, { "gemm", 1500, 1700, 7, 4 },
		{ nccl, 1600, 2000, 20, 5 },
	};

	draw_begin();
	draw("user_annotation", "ProfilerStep#8", PID, MONO_NS + 350000, 900000, PID, 0);
	draw("user_annotation", "ProfilerStep#7", PID, MONO_NS - 100000, 450000, PID, 0);
	for (int i = 0; i < FX_COUNT(drawn); i++) {
		draw("cuda_runtime", "cudaLaunchKernel", PID,
		     MONO_NS + (i < 3 ? 0 : 400000) + 10000 * i, 5000, PID,
		     (uint64_t)drawn[i].correlation);
		draw("kernel", drawn[i].name, 0, MONO_NS + 1000 * drawn[i].from,
		     1000 * (drawn[i].to - drawn[i].from), drawn[i].stream,
		     (uint64_t)drawn[i].correlation);
	}
	draw_end();
}

TEST(exposed_time_is_what_no_other_kernel_hides)
{
	static const struct { int64_t step, time, compute, comm, hidden, exposed, idle; } want[] = {
		{ -1, 2000, 1000, 1400, 700, 700, 300 }, { 7, 1500, 800, 1000, 600, 400, 300 },
		{ 8, 500, 200, 400, 100, 300, 0 },
	};
	json_t *told = json_array();

	draw_steps();
	read_kernels();
	kernels_sum(&k, told);
	ck_assert_uint_eq(json_array_size(told), 3);
	for (int i = 0; i < 3; i++) {
		const json_t *row = json_array_get(told, (size_t)i);

		ck_assert_int_eq(value_of(row, "rank"), 3);
		ck_assert_int_eq(value_of(row, "pid"), PID);
		ck_assert_int_eq(value_of(row, "step"), want[i].step);
		ck_assert_int_eq(value_of(row, "time_ns"), 1000 * want[i].time);
		ck_assert_int_eq(value_of(row, "compute_ns"), 1000 * want[i].compute);
		ck_assert_int_eq(value_of(row, "comm_ns"), 1000 * want[i].comm);
		ck_assert_int_eq(value_of(row, "hidden_ns"), 1000 * want[i].hidden);
		ck_assert_int_eq(value_of(row, "exposed_ns"), 1000 * want[i].exposed);
		ck_assert_int_eq(value_of(row, "idle_ns"), 1000 * want[i].idle);
		ck_assert(json_is_null(json_object_get(row, "waited_ns")));
	}
	json_decref(told);
}

/* The second rank, of another process, comes 60 us after the first one. */
static void add_compared(int rank, uint32_t i, int64_t late_ns, const char *host)
{
	json_t *row = add_row(rank, i, begin_ns(i, 3000000) + late_ns,
			      begin_ns(i, 3000000) + length_ns(i));

	json_object_set_new(row, "host", json_string(host));
	json_object_set_new(row, "late_ns", json_integer(late_ns));
	json_object_set_new(row, "arrival_rank_order", json_pack("[i, i]", rank & ~1, rank | 1));
	json_object_set_new(row, "pid", json_integer(PID + rank));
}

/* Rank 0, whose file it is, waits 60 us in operations; a kernel hides the first 20 us. */
static void assert_waited(uint32_t compared, int64_t exposed_ns)
{
	json_t *told = json_array(), *row;
	double part = (double)compared / OPS;

	json_object_set_new(json_array_get(processes, 0), "host", json_string("a"));
	draw_begin();
	draw("cuda_runtime", "cudaLaunchKernel", PID, MONO_NS, 5000, PID, 1);
	for (uint32_t i = 0; i < OPS; i++) {
		draw_nccl(0, i, begin_ns(i, 3000000), begin_ns(i, 3000000) + 100000);
		draw("kernel", "gemm", 0, begin_ns(i, 3000000) - 10000, 30000, 7, 1);
	}
	draw_end();
	read_kernels();
	ck_assert_msg(!kernels_join(&k, processes, rows, why), "%s", why);
	kernels_sum(&k, told);
	row = json_array_get(told, 0);
	ck_assert_int_eq(value_of(row, "exposed_ns"), 80000 * OPS);
	ck_assert_int_eq(value_of(row, "waited_ns"), exposed_ns);
	ck_assert_double_eq_tol(json_real_value(json_object_get(row, "compared_fraction")), part,
				1e-9);
	json_decref(told);
}

TEST(waiting_for_the_last_rank_is_told_where_it_is_exposed)
{
	for (uint32_t i = 0; i < OPS; i += 4) {
		add_compared(0, i, 0, "a");
		add_compared(1, i, 60000, "a");
	}
	assert_waited(OPS / 4, 40000 * OPS / 4);
}

/* A snapshot of each: there rank 3 comes 90 us after rank 2. */
TEST(ranks_of_another_node_are_not_waited_for)
{
	for (uint32_t i = 0; i < OPS; i += 4) {
		add_compared(0, i, 0, "a");
		add_compared(1, i, 60000, "a");
		add_compared(2, i, 0, "b");
		add_compared(3, i, 90000, "b");
	}
	assert_waited(OPS / 4, 40000 * OPS / 4);
}

/* The second half is of another communicator, in which it is rank 1. */
TEST_LOOP(a_rank_of_one_communicator_is_not_the_rank_of_all, 0, 3)
{
	json_t *told = json_array();

	picture.rank = -1;
	make_job(3000000);
	for (uint32_t i = _i ? OPS / 2 : OPS; i < OPS; i++)
		json_object_set_new(json_array_get(rows, i), "rank", json_integer(1));
	if (_i == 2)
		json_object_set_new(json_object_get(json_array_get(processes, 0), "job"), "rank",
				    json_null());
	draw_job(3000000);
	read_kernels();
	ck_assert_msg(!kernels_join(&k, processes, rows, why), "%s", why);
	kernels_sum(&k, told);
	ck_assert_int_eq(value_of(json_array_get(told, 0), "rank"), _i == 2 ? -1 : 3);
	json_decref(told);
}

/* A kernel of no length, which old files have, is the first one and the only one of GPU 1. */
TEST(kernels_of_no_length_are_kernels)
{
	json_t *told = json_array();

	draw_begin();
	draw("kernel", "gemm", 1, MONO_NS, 0, 7, 1);
	draw("kernel", "gemm", 0, MONO_NS, 0, 7, 1);
	draw("kernel", "gemm", 0, MONO_NS + 5000, 1000, 7, 1);
	draw_end();
	read_kernels();
	kernels_sum(&k, told);
	ck_assert_int_eq(value_of(json_array_get(told, 0), "time_ns"), 6000);
	ck_assert_int_eq(value_of(json_array_get(told, 1), "time_ns"), 0);
	json_decref(told);
}

/* Without calls of CUDA the host's times are those of the steps: of all there is on the GPU. */
TEST(steps_of_the_host_end_with_the_last_kernel)
{
	json_t *told = json_array();

	draw_begin();
	draw("user_annotation", "ProfilerStep#1", PID, MONO_NS - 5000, 10000, PID, 0);
	draw("kernel", "gemm", 0, MONO_NS, 10000, 7, 1);
	draw("user_annotation", "ProfilerStep#2", PID, MONO_NS + 70000, 10000, PID, 0);
	draw_end();
	read_kernels();
	kernels_sum(&k, told);
	ck_assert_uint_eq(json_array_size(told), 2);
	ck_assert_int_eq(value_of(json_array_get(told, 1), "time_ns"), 10000);
	json_decref(told);
}

/* ---- files -------------------------------------------------------------------------------- */

static void pack(void)
{
	static char text[1 << 20];
	FILE *in = fopen(path, "r");
	size_t n = fread(text, 1, sizeof(text), in);
	gzFile packed;

	fclose(in);
	packed = gzopen(path, "w");
	gzwrite(packed, text, (unsigned)n);
	gzclose(packed);
}

TEST_LOOP(compressed_or_of_absolute_times_it_is_the_same, 0, 4)
{
	make_job(3000000);
	picture.base_ns = _i & 1 ? 0 : REAL_NS;
	draw_job(3000000);
	if (_i & 2)
		pack();
	read_kernels();
	assert_joined(0);
}

static void assert_unusable(const char *reason)
{
	ck_assert_int_eq(kernels_read(&k, path, why), -1);
	ck_assert_msg(strstr(why, reason), "%s", why);
	kernels_deinit(&k);
	memset(&k, 0, sizeof(k));
}

TEST_LOOP(what_is_no_such_file_is_told, 0, 13)
{
	static const struct { const char *text, *reason; } files[] = {
		{ "", "no trace of PyTorch's profiler" },
		{ "#!/bin/sh\n", "no trace of PyTorch's profiler" },
		{ "[]", "there is no event" }, { "{\"traceEvents\": []}", "there is no event" },
		{ "{}", "no JSON" }, { "{\"traceEvents\": 1}", "no array" },
		{ "{\"traceEvents\": [{\"ph\": \"X\"", "ends early" },
		{ "{\"traceEvents\": [{\"a\": \"\\\"]}", "ends early" },
		{ "{\"traceEvents\": [{}]} ", "no kernel" },
		{ "{\"traceEvents\": [{}]", "ends early" },
		{ "{\"traceEvents\": [}", "ends early" }, { "[1, 2 3]", "ends early" },
		{ "[{\"ph\":\"X\",\"cat\":\"cuda_runtime\",\"pid\":1,\"ts\":1},"
		  "{\"ph\":\"X\",\"cat\":\"cuda_runtime\",\"pid\":2,\"ts\":1}]",
		  "several processes" },
	};

	fx_put_file("kernels.json", "%s", files[_i].text);
	assert_unusable(files[_i].reason);
}

TEST(a_pipe_without_a_writer_and_a_directory_are_refused_at_once)
{
	snprintf(path, sizeof(path), "%s/pipe", fx_tmpdir());
	ck_assert_int_eq(mkfifo(path, 0600), 0);
	assert_unusable("not a regular file");
	snprintf(path, sizeof(path), "%s", fx_tmpdir());
	assert_unusable("not a regular file");
}

TEST(a_file_that_is_cut_is_told_at_any_byte)
{
	static char text[1 << 20];
	FILE *in;
	size_t n;

	draw_steps();
	in = fopen(path, "r");
	n = fread(text, 1, sizeof(text), in);
	fclose(in);
	while (n && text[n - 1] != '}')
		n--;
	for (size_t cut = 0; cut < n; cut += 7) {
		in = fopen(path, "w");
		fwrite(text, 1, cut, in);
		fclose(in);
		assert_unusable("");
	}
	snprintf(path, sizeof(path), "%s/kernels.json", fx_tmpdir());
	draw_steps();
	pack();
	ck_assert_int_eq(truncate(path, 100), 0);
	assert_unusable("ends early");
}

TEST_LOOP(steps_have_a_number_and_a_bound, 0, 2)
{
	draw_begin();
	draw("user_annotation", "ProfilerStep#-1", PID, MONO_NS, 5000, PID, 0);
	draw("user_annotation", "ProfilerStep#1e9", PID, MONO_NS, 5000, PID, 0);
	for (uint32_t i = 0; i < 10000 + (uint32_t)_i; i++)
		draw("user_annotation", "ProfilerStep#3", PID, MONO_NS, 5000, PID, 0);
	draw("user_annotation", "forward", PID, MONO_NS, 5000, PID, 0);
	draw("kernel", "gemm", 0, MONO_NS, 5000, 7, 1);
	draw_end();
	if (_i) {
		assert_unusable("more than 10,000 steps");
		return;
	}
	read_kernels();
	ck_assert_uint_eq(k.steps.n, 10000);
	ck_assert_uint_eq(k.malformed, 2);
}

/* 17 names of 1 MiB. */
TEST(names_have_a_bound)
{
	static char name[1 << 20];

	memset(name, 'a', sizeof(name) - 1);
	draw_begin();
	for (int i = 0; i < 17; i++) {
		name[0] = (char)('A' + i);
		draw("kernel", name, 0, MONO_NS, 5000, 7, 1);
	}
	draw_end();
	assert_unusable("too many names");
}

TEST(events_that_make_no_sense_are_counted)
{
#define KERNEL(rest) "{\"ph\": \"X\", \"cat\": \"kernel\", " rest "},\n"
	fx_put_file("kernels.json", "%s", "["
		    KERNEL("\"name\": \"a\", \"ts\": 1, \"dur\": 1, \"pid\": 0")
		    KERNEL("\"name\": \"a\", \"ts\": \"1\", \"dur\": 1, \"pid\": 0")
		    KERNEL("\"name\": \"a\", \"ts\": 1, \"dur\": -1, \"pid\": 0")
		    KERNEL("\"name\": \"a\", \"ts\": 1e300, \"dur\": 1, \"pid\": 0")
		    KERNEL("\"name\": \"a\", \"ts\": 1, \"dur\": 1, \"pid\": 64")
		    KERNEL("\"name\": \"a\", \"ts\": 1, \"dur\": 1")
		    KERNEL("\"ts\": 1 \"dur\": 1, \"pid\": 0")
		    KERNEL("\"name\": \"\\u001b[2J\", \"ts\": 2, \"dur\": 1, \"pid\": 0")
		    "{\"ph\": \"i\", \"cat\": \"kernel\", \"ts\": 1}, 3, \"x\", null]");
	read_kernels();
	ck_assert_uint_eq(k.all.n, 2);
	ck_assert_uint_eq(k.malformed, 6);
	ck_assert_str_eq(k.all.at[1].name, "?[2J");
	ck_assert_int_eq(k.pid, UNKNOWN_I32);
	assert_refused("no call of CUDA");
}

int main(void)
{
	return fx_run(setup, teardown);
}
