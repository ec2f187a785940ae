/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>

#include "ncclinspd/sums/aggregate.h"
#include "tests/fx_aggregate.h"

#define OPS 6000

/* ---- against everything remembered --------------------------------------- */

static struct op ops[OPS];
static uint64_t added_ns[OPS];

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
	qsort(exec, timed, sizeof(*exec), fx_by_exec);
	ck_assert_uint_eq(row->exec.mean_ns, sum / timed);
	ck_assert_uint_eq(row->exec.max_ns, exec[timed - 1]);
	ck_assert(fx_is_close(row->exec.p50_ns, exec[(timed + 1) / 2 - 1]));
	ck_assert(fx_is_close(row->exec.p99_ns, exec[(uint64_t)ceil(0.99 * (double)timed) - 1]));
	ck_assert_double_eq_tol(row->share * row->sampled_fraction,
				(double)sum / (double)row->window_ns, 1e-6);
}

static uint64_t window_start(uint64_t slices, uint64_t slice_ns)
{
	return (fx.now / slice_ns - (slices - 1)) * slice_ns;
}

TEST_LOOP(every_window_holds_what_happened_in_it, 0, 4)
{
	static const struct {
		uint64_t slices, ns;
	} windows[AGGREGATE_WINDOW_END] = {
#define X(NAME, text, n, ns) { n, ns },
		AGGREGATE_WINDOWS(X)
#undef X
	};
	static struct fx_answer a;

	fx_seed((uint64_t)_i);
	for (int i = 0; i < OPS; i++) {
		uint64_t exec = fx_random() % 10 ? 1000 + fx_random() % 1000000 : UNKNOWN_U64;

		fx.now += fx_random() % 40000000;
		added_ns[i] = fx.now;
		ops[i] = fx_make_op((uint32_t)(fx_random() % 4), (uint32_t)(fx_random() % 3),
				 fx_random() % (1 << 20), exec);
		aggregate_add(fx.agg, &ops[i], fx.now);
		if (fx_random() % 20)
			continue;
		fx_ask(&a, AGGREGATE_1S, AGGREGATE_BY_RANK | AGGREGATE_BY_FUNC);
		for (int r = 0; r < a.n; r++)
			check_row(&a.row[r], window_start(4, FX_SECOND / 4));
	}
	for (int w = 0; w < AGGREGATE_WINDOW_END; w++) {
		fx_ask(&a, (enum aggregate_window)w, AGGREGATE_BY_RANK | AGGREGATE_BY_FUNC);
		ck_assert_int_gt(a.n, 0);
		for (int r = 0; r < a.n; r++)
			check_row(&a.row[r], w == AGGREGATE_ALL ? 0 :
				  window_start(windows[w].slices, windows[w].ns));
	}
	ck_assert_uint_eq(aggregate_stats(fx.agg)->unbinned, 0);
}

TEST(quiet_time_empties_the_windows_and_keeps_the_totals)
{
	struct op op = fx_make_op(0, 0, 4096, 5000);
	struct fx_answer a;

	aggregate_add(fx.agg, &op, fx.now);
	fx.now += 61 * FX_SECOND;
	for (int w = 0; w < AGGREGATE_ALL; w++) {
		fx_ask(&a, (enum aggregate_window)w, 0);
		ck_assert_int_eq(a.n, 0);
	}
	fx_ask(&a, AGGREGATE_ALL, 0);
	ck_assert_uint_eq(a.row[0].ops, 1);
}

/* ---- meaning of the rows ------------------------------------------------- */

TEST(ranks_merge_by_histogram_and_share_is_per_member)
{
	struct fx_answer a;

	fx.now += 10 * FX_SECOND;
	for (int i = 0; i < 100; i++)
		for (uint32_t rank = 0; rank < 4; rank++) {
			struct op op = fx_make_op(rank, 0, 4096, rank == 3 ? 1000000 : 10000);

			aggregate_add(fx.agg, &op, fx.now);
		}
	fx_ask(&a, AGGREGATE_10S, AGGREGATE_BY_COMM);
	ck_assert_int_eq(a.n, 1);
	ck_assert_uint_eq(a.row[0].ops, 400);
	ck_assert(fx_is_close(a.row[0].exec.p50_ns, 10000));	/* no mean of medians */
	ck_assert(fx_is_close(a.row[0].exec.p90_ns, 1000000));
	ck_assert_uint_eq(a.row[0].exec.mean_ns, 257500);
	ck_assert_uint_eq(a.row[0].comm_id, 0xabc);
	ck_assert_double_eq_tol(a.row[0].share, 100 * 1030000.0 / 4 / (double)a.row[0].window_ns,
				1e-9);
	ck_assert_double_eq_tol(a.row[0].algbw_gbs, 4096 / 257500.0, 1e-9);
	ck_assert_double_eq_tol(a.row[0].busbw_mean_gbs, 1.5 * 4096 / 257500.0, 1e-9);
	ck_assert_double_eq_tol(a.row[0].busbw_min_gbs, 1.5 * 4096 / 1000000, 1e-5);
	ck_assert_double_eq_tol(a.row[0].busbw_p50_gbs, 1.5 * 4096 / 10000, 0.015);
}

TEST(ranks_of_one_process_are_members_each_and_communicators_are_not)
{
	struct fx_answer a;

	fx.now += FX_SECOND;
	for (uint32_t comm = 0; comm < 4; comm++) {
		struct op op = fx_make_op(0, 0, 4096, 100000000);

		op.comm_index = comm;
		op.rank = (int32_t)(comm % 2);
		op.comm_id = 0x100 + comm / 2;	/* two communicators of two GPUs each */
		aggregate_add(fx.agg, &op, fx.now);
	}
	fx_ask(&a, AGGREGATE_10S, 0);
	ck_assert_int_eq(a.n, 1);
	ck_assert_double_eq_tol(a.row[0].share, 0.2, 1e-6);
}

/* Each comes right after one that has the same mark, most often. */
TEST(operations_that_differ_in_one_thing_have_cells_of_their_own)
{
	enum { VARIANTS = 13 };
	struct op op[VARIANTS];

	for (int i = 0; i < VARIANTS; i++)
		op[i] = fx_make_op(0, 0, 4096, 10000);
	op[1].process_id = 2;
	op[2].comm_index = 1;
	op[3].func = fx_funcs[1];
	op[4].bytes = 8192;
	op[5].algo = "TREE";
	op[6].proto = "LL";
	op[7].tag = 1;
	op[8].phase = "eval";
	op[9].peer = 1;
	op[10].source = TIMING_KERNEL_CPU;
	op[11].parts = 2;
	op[12].process_id = 1 ^ 4096 ^ 8192;	/* one mark with op[0] */
	op[12].bytes = 8192;
	for (int i = 0; i < VARIANTS; i++) {
		aggregate_add(fx.agg, &op[0], fx.now);
		aggregate_add(fx.agg, &op[i], fx.now);
	}
	ck_assert_uint_eq(aggregate_stats(fx.agg)->cells, VARIANTS);
}

/* What was timed by a worse clock counts there too, but its times do not. */
TEST(operations_count_in_the_row_of_the_best_source)
{
	struct op timed = fx_make_op(0, 0, 4096, 5000);
	struct op untimed = fx_make_op(0, 0, 4096, UNKNOWN_U64);
	struct op proxy = fx_make_op(0, 0, 4096, 7000);
	struct fx_answer a;

	proxy.source = TIMING_PROXY_CPU;
	aggregate_add(fx.agg, &untimed, fx.now);
	aggregate_add(fx.agg, &untimed, fx.now);
	aggregate_add(fx.agg, &untimed, fx.now);
	aggregate_add(fx.agg, &proxy, fx.now);
	aggregate_add(fx.agg, &timed, fx.now);
	fx_ask(&a, AGGREGATE_ALL, AGGREGATE_BY_FUNC);
	ck_assert_int_eq(a.n, 1);
	ck_assert_int_eq(a.row[0].source, TIMING_KERNEL_GPU);
	ck_assert_uint_eq(a.row[0].ops, 5);
	ck_assert_uint_eq(a.row[0].bytes, 5 * 4096);
	ck_assert_uint_eq(a.row[0].exec.n, 1);
	ck_assert_uint_eq(a.row[0].exec.max_ns, 5000);
	ck_assert_double_eq_tol(a.row[0].sampled_fraction, 0.2, 1e-9);
	proxy.bytes = 8192;		/* the only clock that tells of this size */
	aggregate_add(fx.agg, &proxy, fx.now);
	fx_ask(&a, AGGREGATE_ALL, AGGREGATE_BY_FUNC | AGGREGATE_BY_SIZE);
	ck_assert_int_eq(a.n, 2);
	ck_assert_int_eq(a.row[0].source, TIMING_PROXY_CPU);
	ck_assert_uint_eq(a.row[0].exec.max_ns, 7000);
}

TEST(nothing_timed_gives_unknown_and_no_zero)
{
	struct op op = fx_make_op(0, 0, UNKNOWN_U64, UNKNOWN_U64);
	struct fx_answer a;

	aggregate_add(fx.agg, &op, fx.now);
	fx.now += FX_SECOND;
	fx_ask(&a, AGGREGATE_ALL, AGGREGATE_BY_SIZE);
	ck_assert_int_eq(a.n, 1);
	ck_assert_uint_eq(a.row[0].size_class, UNKNOWN_U64);
	ck_assert_uint_eq(a.row[0].sized_ops, 0);
	ck_assert_uint_eq(a.row[0].exec.mean_ns, UNKNOWN_U64);
	ck_assert_uint_eq(a.row[0].exec.p99_ns, UNKNOWN_U64);
	ck_assert_double_lt(a.row[0].algbw_gbs, 0);
	ck_assert_double_lt(a.row[0].busbw_p50_gbs, 0);
	ck_assert_double_lt(a.row[0].share, 0);
}

TEST(size_classes_are_powers_of_two)
{
	static const uint64_t sizes[][2] = { { 0, 0 }, { 1, 1 }, { 4095, 2048 }, { 4096, 4096 } };
	struct fx_answer a;

	for (size_t i = 0; i < 4; i++) {
		struct op op = fx_make_op(0, 0, sizes[i][0], 5000);

		aggregate_add(fx.agg, &op, fx.now);
	}
	fx_ask(&a, AGGREGATE_ALL, AGGREGATE_BY_SIZE);
	ck_assert_int_eq(a.n, 4);
	for (int i = 0; i < 4; i++)
		ck_assert_uint_eq(a.row[i].size_class, sizes[3 - i][1]);
}

TEST(user_sees_own_processes_only)
{
	struct aggregate_query query = { .windows = 1u << AGGREGATE_ALL, .uid = 101 };
	struct fx_answer a;

	for (uint32_t rank = 0; rank < 4; rank++) {
		struct op op = fx_make_op(rank, 0, 4096, 5000);

		aggregate_add(fx.agg, &op, fx.now);
	}
	query.by = AGGREGATE_BY_RANK;
	fx_ask_for(&a, &query);
	ck_assert_int_eq(a.n, 2);
	ck_assert_int_eq(a.row[0].rank % 2, 1);
	ck_assert_int_eq(a.row[1].rank % 2, 1);
}

/* ---- in pieces ----------------------------------------------------------- */

struct guest {
	uint32_t turns, most;	/* operations to add, in all turns */
	uint32_t added;
};

static void add_random(void)
{
	struct op op = fx_make_op((uint32_t)(fx_random() % 4), (uint32_t)(fx_random() % 3),
			       1 + fx_random() % (1 << 20), 1000 + fx_random() % 1000000);

	op.tag = fx_random() % 100;
	fx.now += fx_random() % 4000000;
	aggregate_add(fx.agg, &op, fx.now);
}

static void visit_us(void *arg)
{
	struct guest *guest = arg;

	guest->turns++;
	for (int i = 0; i < 50 && guest->added < guest->most; i++, guest->added++)
		add_random();
}

struct rows {
	struct aggregate_row row[8192];
	int n;
};

static bool collect(const struct aggregate_row *row, void *arg)
{
	struct rows *rows = arg;

	ck_assert_int_lt(rows->n, FX_COUNT(rows->row));
	rows->row[rows->n++] = *row;
	return true;
}

static struct rows whole, pieces;

TEST_LOOP(a_query_in_pieces_shows_the_moment_when_it_was_asked, 0, 4)
{
	struct guest guest = { .most = AGGREGATE_HELD };
	struct aggregate_query query = {
		.windows = (1u << AGGREGATE_WINDOW_END) - 1, .all_users = true,
		.by = AGGREGATE_BY_RANK | AGGREGATE_BY_FUNC | AGGREGATE_BY_TAG,
	};
	uint64_t asked;

	fx_seed((uint64_t)_i);
	whole.n = pieces.n = 0;
	for (int i = 0; i < 4000; i++)
		add_random();
	asked = fx.now;
	ck_assert_int_eq(aggregate_query(fx.agg, &query, asked, collect, &whole), whole.n);
	query.meanwhile = visit_us;
	query.meanwhile_arg = &guest;
	ck_assert_int_eq(aggregate_query(fx.agg, &query, asked, collect, &pieces), whole.n);
	ck_assert_uint_gt(guest.turns, 30);
	ck_assert_uint_eq(guest.added, AGGREGATE_HELD);
	ck_assert_mem_eq(whole.row, pieces.row, (size_t)whole.n * sizeof(whole.row[0]));
	ck_assert_uint_eq(aggregate_stats(fx.agg)->added, 4000 + AGGREGATE_HELD);
}

TEST(more_than_can_wait_voids_the_query_and_loses_nothing)
{
	struct guest guest = { .most = AGGREGATE_HELD + 1 };
	struct aggregate_query query = {
		.windows = (1u << AGGREGATE_WINDOW_END) - 1, .all_users = true,
		.by = AGGREGATE_BY_RANK | AGGREGATE_BY_FUNC | AGGREGATE_BY_TAG,
		.meanwhile = visit_us, .meanwhile_arg = &guest,
	};
	struct fx_answer a;

	for (int i = 0; i < 4000; i++)
		add_random();
	whole.n = 0;
	ck_assert_int_eq(aggregate_query(fx.agg, &query, fx.now, collect, &whole), -EAGAIN);
	ck_assert_uint_eq(aggregate_stats(fx.agg)->added, 4000 + AGGREGATE_HELD + 1);
	fx_ask(&a, AGGREGATE_ALL, 0);
	ck_assert_uint_eq(a.row[0].ops, 4000 + AGGREGATE_HELD + 1);
}

/* ---- bounds -------------------------------------------------------------- */

TEST(invented_keys_push_out_the_oldest_cells_and_are_counted)
{
	const struct aggregate_limits limits = { .cells = 64, .slices = 100, .chunks = 100 };
	struct fx_answer a;

	aggregate_free(fx.agg);
	ck_assert_int_eq(aggregate_new(&fx.agg, &limits, fx.now), 0);
	for (uint64_t i = 0; i < 100000; i++) {
		struct op op = fx_make_op(0, 0, 4096, 300 + fx_random() % (UINT64_C(1) << 40));

		op.tag = i;
		fx.now += fx_random() % (FX_SECOND / 100);
		aggregate_add(fx.agg, &op, fx.now);
	}
	ck_assert_uint_eq(aggregate_stats(fx.agg)->cells, 64);
	ck_assert_uint_eq(aggregate_stats(fx.agg)->evicted, 100000 - 64);
	ck_assert_uint_gt(aggregate_stats(fx.agg)->unbinned, 0);
	for (int w = 0; w < AGGREGATE_WINDOW_END; w++)
		fx_ask(&a, (enum aggregate_window)w, 0);
	ck_assert_uint_eq(a.row[0].ops, 64);
}

/* Times that lie far apart take a part of a histogram each. */
TEST(user_who_invents_keys_leaves_others_their_cells_windows_and_percentiles)
{
	const struct aggregate_limits limits = { .cells = 64, .slices = 200, .chunks = 200 };
	struct aggregate_query query = { .uid = 1 };
	struct fx_answer a;

	aggregate_free(fx.agg);
	ck_assert_int_eq(aggregate_new(&fx.agg, &limits, fx.now), 0);
	for (uint64_t i = 0; i < 20000; i++) {
		struct op op = fx_make_op(0, 0, 4096, 5000);

		fx.now += FX_SECOND / 1000;
		op.uid = op.account = 1;
		if (i % 100 == 99)
			aggregate_add(fx.agg, &op, fx.now);
		op = fx_make_op(1, 0, 4096, 300 + fx_random() % (UINT64_C(1) << 40));
		op.uid = op.account = 2;
		op.tag = i;
		aggregate_add(fx.agg, &op, fx.now);
	}
	ck_assert_uint_gt(aggregate_stats(fx.agg)->unbinned, 0);
	for (int w = 0; w < AGGREGATE_WINDOW_END; w++) {
		query.windows = 1u << w;
		fx_ask_for(&a, &query);
		ck_assert_int_eq(a.n, 1);
		ck_assert_uint_eq(a.row[0].exec.n, a.row[0].ops);
		ck_assert_uint_eq(a.row[0].exec.p50_ns, 5000);
	}
	ck_assert_uint_eq(a.row[0].ops, 200);
	query.uid = 2;
	fx_ask_for(&a, &query);
	ck_assert_uint_eq(a.row[0].exec.p50_ns, UNKNOWN_U64);	/* and not that of a few */
	ck_assert_double_eq(a.row[0].busbw_p50_gbs, -1);
}

TEST(cell_that_was_pushed_out_leaves_nothing_to_its_successor)
{
	const struct aggregate_limits limits = { .cells = 1 };
	struct fx_answer a;

	aggregate_free(fx.agg);
	ck_assert_int_eq(aggregate_new(&fx.agg, &limits, fx.now), 0);
	for (uint64_t tag = 1; tag <= 3; tag++) {
		struct op op = fx_make_op(0, 0, 4096, 5000);

		op.tag = tag;
		aggregate_add(fx.agg, &op, fx.now);
	}
	fx_ask(&a, AGGREGATE_10S, AGGREGATE_BY_TAG);
	ck_assert_int_eq(a.n, 1);
	ck_assert_uint_eq(a.row[0].tag, 3);
	ck_assert_uint_eq(a.row[0].ops, 1);
}

TEST(a_thousand_busy_cells_fit_into_their_memory)
{
	for (int second = 0; second < 70 * 4; second++) {
		fx.now += FX_SECOND / 4;
		for (uint64_t cell = 0; cell < 1000; cell++) {
			struct op op = fx_make_op(0, 0, 4096, 4000 + fx_random() % 9000);

			op.tag = cell;
			aggregate_add(fx.agg, &op, fx.now);
		}
	}
	ck_assert_uint_eq(aggregate_stats(fx.agg)->unbinned, 0);
	ck_assert_uint_eq(aggregate_stats(fx.agg)->evicted, 0);
	ck_assert_uint_le(aggregate_stats(fx.agg)->bytes, 43 << 20);
}

int main(void)
{
	return fx_run(fx_setup, fx_teardown);
}
