/* SPDX-License-Identifier: Apache-2.0 */
#include "ncclinspd/aggregate.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "ncclinspd/ops.h"
#include "tests/fixture.h"

#define SECOND UINT64_C(1000000000)
#define OPS 6000

static struct aggregate *agg;
static uint64_t now;

static void setup(void)
{
	now = 1000 * SECOND + 123456789;
	ck_assert_int_eq(aggregate_new(&agg, NULL, now), 0);
}

static void teardown(void)
{
	aggregate_free(agg);
}

static const char *const funcs[] = { "AllReduce", "AllGather", "Broadcast" };

static struct op make_op(uint32_t rank, uint32_t func, uint64_t bytes, uint64_t exec_ns)
{
	struct op op = {
		.process_id = rank + 1, .uid = 100 + rank % 2, .comm_index = 0,
		.has_comm_id = true, .comm_id = 0xabc, .comm_name = "dp",
		.rank = (int32_t)rank, .nranks = 4, .func = funcs[func], .algo = "RING",
		.peer = UNKNOWN_I32, .bytes = bytes, .exec_ns = exec_ns, .queue_ns = UNKNOWN_U64,
		.source = exec_ns == UNKNOWN_U64 ? TIMING_NONE : TIMING_KERNEL_GPU,
	};

	ops_bandwidth(&op);
	return op;
}

struct answer {
	struct aggregate_row row[64];
	int n;
};

static bool keep(const struct aggregate_row *row, void *arg)
{
	struct answer *a = arg;

	a->row[a->n++] = *row;
	return a->n < 64;
}

static void ask(struct answer *a, enum aggregate_window window, uint32_t by)
{
	struct aggregate_query query = { .window = window, .by = by, .all_users = true };

	a->n = 0;
	ck_assert_int_eq(aggregate_query(agg, &query, now, keep, a), a->n);
}

/* ---- against everything remembered --------------------------------------- */

static struct op ops[OPS];
static uint64_t added_ns[OPS];

static int by_exec(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

static bool is_close(uint64_t got, uint64_t exact)
{
	return fabs((double)got - (double)exact) <= 0.0225 * (double)exact + 1;
}

/* The row against the operations with its rank and function since `since_ns`. */
static void check_row(const struct aggregate_row *row, uint64_t since_ns)
{
	static uint64_t exec[OPS];
	uint64_t n = 0, timed = 0, bytes = 0, sum = 0;

	for (int i = 0; i < OPS; i++) {
		if (added_ns[i] < since_ns || ops[i].rank != row->rank || ops[i].func != row->func)
			continue;
		n++;
		bytes += ops[i].bytes;
		if (ops[i].exec_ns == UNKNOWN_U64)
			continue;
		exec[timed++] = ops[i].exec_ns;
		sum += ops[i].exec_ns;
	}
	ck_assert_uint_eq(row->ops, n);
	ck_assert_uint_eq(row->bytes, bytes);
	ck_assert_uint_eq(row->exec.n, timed);
	ck_assert_double_eq_tol(row->sampled_fraction, (double)timed / (double)n, 1e-9);
	if (!timed)
		return;
	qsort(exec, timed, sizeof(*exec), by_exec);
	ck_assert_uint_eq(row->exec.mean_ns, sum / timed);
	ck_assert_uint_eq(row->exec.max_ns, exec[timed - 1]);
	ck_assert(is_close(row->exec.p50_ns, exec[(timed + 1) / 2 - 1]));
	ck_assert(is_close(row->exec.p99_ns, exec[(uint64_t)ceil(0.99 * (double)timed) - 1]));
	ck_assert_double_eq_tol(row->share, (double)sum / (double)row->window_ns, 1e-6);
}

static uint64_t window_start(uint64_t slices, uint64_t slice_ns)
{
	return (now / slice_ns - (slices - 1)) * slice_ns;
}

START_TEST(every_window_holds_what_happened_in_it)
{
	static const struct {
		uint64_t slices, ns;
	} windows[AGGREGATE_WINDOW_END] = {
#define X(NAME, text, n, ns) { n, ns },
		AGGREGATE_WINDOWS(X)
#undef X
	};
	static struct answer a;

	fx_seed((uint64_t)_i);
	for (int i = 0; i < OPS; i++) {
		uint64_t exec = fx_random() % 10 ? 1000 + fx_random() % 1000000 : UNKNOWN_U64;

		now += fx_random() % 40000000;
		added_ns[i] = now;
		ops[i] = make_op((uint32_t)(fx_random() % 4), (uint32_t)(fx_random() % 3),
				 fx_random() % (1 << 20), exec);
		aggregate_add(agg, &ops[i], now);
		if (fx_random() % 20)
			continue;
		ask(&a, AGGREGATE_1S, AGGREGATE_BY_RANK | AGGREGATE_BY_FUNC);
		for (int r = 0; r < a.n; r++)
			check_row(&a.row[r], window_start(4, SECOND / 4));
	}
	for (int w = 0; w < AGGREGATE_WINDOW_END; w++) {
		ask(&a, (enum aggregate_window)w, AGGREGATE_BY_RANK | AGGREGATE_BY_FUNC);
		ck_assert_int_gt(a.n, 0);
		for (int r = 0; r < a.n; r++)
			check_row(&a.row[r], w == AGGREGATE_ALL ? 0 :
				  window_start(windows[w].slices, windows[w].ns));
	}
	ck_assert_uint_eq(aggregate_stats(agg)->unbinned, 0);
}
END_TEST

START_TEST(quiet_time_empties_the_windows_and_keeps_the_totals)
{
	struct op op = make_op(0, 0, 4096, 5000);
	struct answer a;

	aggregate_add(agg, &op, now);
	now += 61 * SECOND;
	for (int w = 0; w < AGGREGATE_ALL; w++) {
		ask(&a, (enum aggregate_window)w, 0);
		ck_assert_int_eq(a.n, 0);
	}
	ask(&a, AGGREGATE_ALL, 0);
	ck_assert_uint_eq(a.row[0].ops, 1);
}
END_TEST

/* ---- meaning of the rows ------------------------------------------------- */

START_TEST(ranks_merge_by_histogram_and_share_is_per_member)
{
	struct answer a;

	now += 10 * SECOND;
	for (int i = 0; i < 100; i++)
		for (uint32_t rank = 0; rank < 4; rank++) {
			struct op op = make_op(rank, 0, 4096, rank == 3 ? 1000000 : 10000);

			aggregate_add(agg, &op, now);
		}
	ask(&a, AGGREGATE_10S, AGGREGATE_BY_COMM);
	ck_assert_int_eq(a.n, 1);
	ck_assert_uint_eq(a.row[0].ops, 400);
	ck_assert(is_close(a.row[0].exec.p50_ns, 10000));	/* no mean of medians */
	ck_assert(is_close(a.row[0].exec.p90_ns, 1000000));
	ck_assert_uint_eq(a.row[0].exec.mean_ns, 257500);
	ck_assert_uint_eq(a.row[0].comm_id, 0xabc);
	ck_assert_double_eq_tol(a.row[0].share, 100 * 1030000.0 / 4 / (double)a.row[0].window_ns,
				1e-9);
	ck_assert_double_eq_tol(a.row[0].algbw_gbs, 4096 / 257500.0, 1e-9);
	ck_assert_double_eq_tol(a.row[0].busbw_mean_gbs, 1.5 * 4096 / 257500.0, 1e-9);
	ck_assert_double_eq_tol(a.row[0].busbw_min_gbs, 1.5 * 4096 / 1000000, 1e-5);
	ck_assert_double_eq_tol(a.row[0].busbw_p50_gbs, 1.5 * 4096 / 10000, 0.015);
}
END_TEST

START_TEST(ranks_of_one_process_are_members_each_and_communicators_are_not)
{
	struct answer a;

	now += SECOND;
	for (uint32_t comm = 0; comm < 4; comm++) {
		struct op op = make_op(0, 0, 4096, 100000000);

		op.comm_index = comm;
		op.rank = (int32_t)(comm % 2);
		op.comm_id = 0x100 + comm / 2;	/* two communicators of two GPUs each */
		aggregate_add(agg, &op, now);
	}
	ask(&a, AGGREGATE_10S, 0);
	ck_assert_int_eq(a.n, 1);
	ck_assert_double_eq_tol(a.row[0].share, 0.2, 1e-6);
}
END_TEST

START_TEST(untimed_operations_count_in_the_row_of_the_best_source)
{
	struct op timed = make_op(0, 0, 4096, 5000), untimed = make_op(0, 0, 4096, UNKNOWN_U64);
	struct op proxy = make_op(0, 0, 4096, 7000);
	struct answer a;

	proxy.source = TIMING_PROXY_CPU;
	aggregate_add(agg, &untimed, now);
	aggregate_add(agg, &untimed, now);
	aggregate_add(agg, &untimed, now);
	aggregate_add(agg, &proxy, now);
	aggregate_add(agg, &timed, now);
	ask(&a, AGGREGATE_ALL, AGGREGATE_BY_FUNC);
	ck_assert_int_eq(a.n, 2);
	ck_assert_int_eq(a.row[0].source, TIMING_PROXY_CPU);
	ck_assert_uint_eq(a.row[0].ops, 1);
	ck_assert_int_eq(a.row[1].source, TIMING_KERNEL_GPU);
	ck_assert_uint_eq(a.row[1].ops, 4);
	ck_assert_double_eq_tol(a.row[1].sampled_fraction, 0.25, 1e-9);
}
END_TEST

START_TEST(nothing_timed_gives_unknown_and_no_zero)
{
	struct op op = make_op(0, 0, UNKNOWN_U64, UNKNOWN_U64);
	struct answer a;

	aggregate_add(agg, &op, now);
	now += SECOND;
	ask(&a, AGGREGATE_ALL, AGGREGATE_BY_SIZE);
	ck_assert_int_eq(a.n, 1);
	ck_assert_uint_eq(a.row[0].size_class, UNKNOWN_U64);
	ck_assert_uint_eq(a.row[0].sized_ops, 0);
	ck_assert_uint_eq(a.row[0].exec.mean_ns, UNKNOWN_U64);
	ck_assert_uint_eq(a.row[0].exec.p99_ns, UNKNOWN_U64);
	ck_assert_double_lt(a.row[0].algbw_gbs, 0);
	ck_assert_double_lt(a.row[0].busbw_p50_gbs, 0);
	ck_assert_double_lt(a.row[0].share, 0);
}
END_TEST

START_TEST(size_classes_are_powers_of_two)
{
	static const uint64_t sizes[][2] = { { 0, 0 }, { 1, 1 }, { 4095, 2048 }, { 4096, 4096 } };
	struct answer a;

	for (size_t i = 0; i < 4; i++) {
		struct op op = make_op(0, 0, sizes[i][0], 5000);

		aggregate_add(agg, &op, now);
	}
	ask(&a, AGGREGATE_ALL, AGGREGATE_BY_SIZE);
	ck_assert_int_eq(a.n, 4);
	for (int i = 0; i < 4; i++)
		ck_assert_uint_eq(a.row[i].size_class, sizes[3 - i][1]);
}
END_TEST

START_TEST(user_sees_own_processes_only)
{
	struct aggregate_query query = { .window = AGGREGATE_ALL, .uid = 101 };
	struct answer a = { .n = 0 };

	for (uint32_t rank = 0; rank < 4; rank++) {
		struct op op = make_op(rank, 0, 4096, 5000);

		aggregate_add(agg, &op, now);
	}
	query.by = AGGREGATE_BY_RANK;
	ck_assert_int_eq(aggregate_query(agg, &query, now, keep, &a), 2);
	ck_assert_int_eq(a.row[0].rank % 2, 1);
	ck_assert_int_eq(a.row[1].rank % 2, 1);
}
END_TEST

/* ---- bounds -------------------------------------------------------------- */

START_TEST(invented_keys_push_out_the_oldest_cells_and_are_counted)
{
	const struct aggregate_limits limits = { .cells = 64, .slices = 100, .chunks = 100 };
	struct answer a;

	aggregate_free(agg);
	ck_assert_int_eq(aggregate_new(&agg, &limits, now), 0);
	for (uint64_t i = 0; i < 100000; i++) {
		struct op op = make_op(0, 0, 4096, 300 + fx_random() % (UINT64_C(1) << 40));

		op.tag = i;
		now += fx_random() % (SECOND / 100);
		aggregate_add(agg, &op, now);
	}
	ck_assert_uint_eq(aggregate_stats(agg)->cells, 64);
	ck_assert_uint_eq(aggregate_stats(agg)->evicted, 100000 - 64);
	ck_assert_uint_gt(aggregate_stats(agg)->unbinned, 0);
	for (int w = 0; w < AGGREGATE_WINDOW_END; w++)
		ask(&a, (enum aggregate_window)w, 0);
	ck_assert_uint_eq(a.row[0].ops, 64);
}
END_TEST

START_TEST(cell_that_was_pushed_out_leaves_nothing_to_its_successor)
{
	const struct aggregate_limits limits = { .cells = 1 };
	struct answer a;

	aggregate_free(agg);
	ck_assert_int_eq(aggregate_new(&agg, &limits, now), 0);
	for (uint64_t tag = 1; tag <= 3; tag++) {
		struct op op = make_op(0, 0, 4096, 5000);

		op.tag = tag;
		aggregate_add(agg, &op, now);
	}
	ask(&a, AGGREGATE_10S, AGGREGATE_BY_TAG);
	ck_assert_int_eq(a.n, 1);
	ck_assert_uint_eq(a.row[0].tag, 3);
	ck_assert_uint_eq(a.row[0].ops, 1);
}
END_TEST

START_TEST(a_thousand_busy_cells_fit_into_their_memory)
{
	for (int second = 0; second < 70 * 4; second++) {
		now += SECOND / 4;
		for (uint64_t cell = 0; cell < 1000; cell++) {
			struct op op = make_op(0, 0, 4096, 4000 + fx_random() % 9000);

			op.tag = cell;
			aggregate_add(agg, &op, now);
		}
	}
	ck_assert_uint_eq(aggregate_stats(agg)->unbinned, 0);
	ck_assert_uint_eq(aggregate_stats(agg)->evicted, 0);
	ck_assert_uint_le(aggregate_stats(agg)->bytes, 24 << 20);
}
END_TEST

int main(void)
{
	const struct fx_test tests[] = {
		FX_LOOP(every_window_holds_what_happened_in_it, 0, 4),
		FX_TEST(quiet_time_empties_the_windows_and_keeps_the_totals),
		FX_TEST(ranks_merge_by_histogram_and_share_is_per_member),
		FX_TEST(ranks_of_one_process_are_members_each_and_communicators_are_not),
		FX_TEST(untimed_operations_count_in_the_row_of_the_best_source),
		FX_TEST(nothing_timed_gives_unknown_and_no_zero),
		FX_TEST(size_classes_are_powers_of_two),
		FX_TEST(user_sees_own_processes_only),
		FX_TEST(invented_keys_push_out_the_oldest_cells_and_are_counted),
		FX_TEST(cell_that_was_pushed_out_leaves_nothing_to_its_successor),
		FX_TEST(a_thousand_busy_cells_fit_into_their_memory),
	};

	return fx_run(setup, teardown, tests, FX_COUNT(tests));
}
