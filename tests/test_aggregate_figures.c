/* SPDX-License-Identifier: Apache-2.0 */
/* Each figure of a row against everything remembered and worked out the slow way. */
#include <stdlib.h>

#include "tests/fx_aggregate.h"

#define OPS   3000
#define PROCS 8

static const struct window {
	uint64_t slices, ns;
} windows[] = {
#define X(NAME, text, slices, ns) { slices, ns },
	AGGREGATE_WINDOWS(X)
#undef X
};

static uint64_t window_start(enum aggregate_window w)
{
	return w == AGGREGATE_ALL ? 0 :
	       (fx.now / windows[w].ns - (windows[w].slices - 1)) * windows[w].ns;
}

/* ---- operations of all kinds ----------------------------------------------- */

static struct op ops[OPS];
static uint64_t added_ns[OPS];
static int nops;

static void add(const struct op *op)
{
	added_ns[nops] = fx.now;
	ops[nops++] = *op;
	aggregate_add(fx.agg, op, fx.now);
}

static struct op random_op(void)
{
	struct op op = fx_make_op((uint32_t)(fx_random() % 4), (uint32_t)(fx_random() % 3),
				  1 + fx_random() % (1 << 20), 1000 + fx_random() % 1000000);

	op.process_id += fx_random() % 2 * 4;
	op.comm_index = (uint32_t)(op.rank % 2);
	op.comm_id = 0xabc + op.comm_index;
	op.tag = fx_random() % 3;
	op.phase = fx_random() % 2 ? "eval" : NULL;
	op.peer = fx_random() % 2 ? UNKNOWN_I32 : (int32_t)(fx_random() % 4);
	op.proto = fx_random() % 2 ? "SIMPLE" : "LL";
	op.source = fx_random() % 3 ? TIMING_KERNEL_GPU : TIMING_PROXY_CPU;
	op.queue_ns = fx_random() % 2 ? 300 + fx_random() % 100000 : UNKNOWN_U64;
	ops_bandwidth(&op);
	return op;
}

static void forget_time(struct op *op)
{
	op->exec_ns = UNKNOWN_U64;
	op->source = TIMING_NONE;
	op->algbw_gbs = op->busbw_gbs = -1;
}

static void add_alone(void)
{
	struct op op = random_op();

	if (fx_random() % 8 == 0)
		forget_time(&op);
	if (fx_random() % 8 == 0)
		op.bytes = UNKNOWN_U64;
	ops_bandwidth(&op);
	if (op.exec_ns != UNKNOWN_U64 && fx_random() % 3 == 0) {
		op.waitfree_ns = 1 + fx_random() % op.exec_ns;
		op.busbw_waitfree_gbs = 1 + (double)(fx_random() % 1000);
		op.local_ranks = 2;
	}
	add(&op);
}

/* Members of any rows, some of a batch of which something is not known. */
static void add_batch(void)
{
	uint32_t n = 2 + (uint32_t)(fx_random() % 3);
	bool known = fx_random() % 4;

	for (uint32_t i = 0; i < n; i++) {
		struct op op = random_op();

		op.algbw_gbs = op.busbw_gbs = -1;
		op.fused = known ? n : OP_FUSED;
		op.batch_head = known && i == 0;
		op.batch_ns = known ? 5000 + fx_random() % 1000000 : UNKNOWN_U64;
		op.batch_bytes = known ? 1 << 20 : UNKNOWN_U64;
		op.batch_busbw_gbs = known ? 1 + (double)(fx_random() % 100) : -1;
		op.local_ranks = known ? 4 : 0;
		op.waitfree_ns = known ? op.batch_ns / 3 : 0;
		add(&op);
	}
}

static void add_derived(void)
{
	struct op op = random_op();

	op.func = "AlltoAll";
	op.parts = 6;
	ops_bandwidth(&op);
	add(&op);
}

static void add_random(void)
{
	static void (*const kinds[])(void) = { add_alone, add_alone, add_batch, add_derived };

	fx.now += fx_random() % 60000000;
	kinds[fx_random() % FX_COUNT(kinds)]();
}

/* ---- the slow way ---------------------------------------------------------- */

static bool is_timed(enum timing_source source)
{
	return source != TIMING_NONE && source != TIMING_ENQUEUE_CPU;
}

static uint64_t size_class(uint64_t bytes)
{
	uint64_t class = 1;

	while (class <= bytes / 2)
		class *= 2;
	return bytes == UNKNOWN_U64 || !bytes ? bytes : class;
}

static bool has_keys(const struct aggregate_row *row, const struct op *op)
{
	uint32_t by = row->by;

	return !(op->parts && !(by & AGGREGATE_BY_FUNC)) &&
	       !(by & AGGREGATE_BY_COMM && op->comm_id != row->comm_id) &&
	       !(by & AGGREGATE_BY_RANK && op->rank != row->rank) &&
	       !(by & AGGREGATE_BY_FUNC && op->func != row->func) &&
	       !(by & AGGREGATE_BY_PROTO && op->proto != row->proto) &&
	       !(by & AGGREGATE_BY_PEER && op->peer != row->peer) &&
	       !(by & AGGREGATE_BY_TAG && op->tag != row->tag) &&
	       !(by & AGGREGATE_BY_PHASE && op->phase != row->phase) &&
	       !(by & AGGREGATE_BY_SIZE && size_class(op->bytes) != row->size_class);
}

/* The best source that an operation of these keys has in the window. */
static enum timing_source best_source(const struct aggregate_row *row)
{
	enum timing_source best = TIMING_NONE;

	for (int i = 0; i < nops; i++)
		if (added_ns[i] >= window_start(row->window) && has_keys(row, &ops[i]) &&
		    is_timed(ops[i].source) && (!best || ops[i].source < best))
			best = ops[i].source;
	return best;
}

struct values {
	uint64_t n, sum, at[OPS];
};

static struct expected {
	uint64_t ops, sized, bytes, fused, derived, timed;
	struct values exec, batch, queue;
	double timed_bytes, timed_ns, bus, bus_ns, free, free_ns, compared_ns, wait_ns;
	bool member[PROCS + 1];		/* one GPU each */
	uint64_t members;
} e;

static void note(struct values *v, uint64_t value)
{
	if (value == UNKNOWN_U64)
		return;
	v->at[v->n++] = value;
	v->sum += value;
}

static void note_rates(uint64_t bytes, uint64_t ns, double busbw)
{
	if (ns == UNKNOWN_U64)
		return;
	if (bytes != UNKNOWN_U64) {
		e.timed_bytes += (double)bytes;
		e.timed_ns += (double)ns;
	}
	if (busbw >= 0) {
		e.bus += busbw * (double)ns;
		e.bus_ns += (double)ns;
	}
}

static void expect_count(const struct op *op)
{
	e.ops++;
	e.fused += op->fused > 1;
	e.derived += op->parts > 0;
	e.sized += op->bytes != UNKNOWN_U64;
	e.bytes += op->bytes != UNKNOWN_U64 ? op->bytes : 0;
	e.members += !e.member[op->process_id];
	e.member[op->process_id] = true;
}

static void expect_times(const struct op *op)
{
	bool alone = op->fused <= 1, known = op->fused > 1 && op->fused != OP_FUSED;

	e.timed += known || (alone && op->exec_ns != UNKNOWN_U64);
	note(&e.queue, op->queue_ns);
	if (alone) {
		note(&e.exec, op->exec_ns);
		note_rates(op->bytes, op->exec_ns, op->busbw_gbs);
	} else if (op->batch_head) {
		note(&e.batch, op->batch_ns);
		note_rates(op->batch_bytes, op->batch_ns, op->batch_busbw_gbs);
	}
	if (op->busbw_waitfree_gbs > 0) {
		e.free += op->busbw_waitfree_gbs * (double)op->waitfree_ns;
		e.free_ns += (double)op->waitfree_ns;
	}
	if (op->local_ranks && (alone || op->batch_head)) {
		e.compared_ns += (double)op_inside_ns(op);
		e.wait_ns += (double)(op_inside_ns(op) - op->waitfree_ns);
	}
}

static void expect(const struct aggregate_row *row)
{
	enum timing_source best = best_source(row);

	e = (struct expected){ 0 };
	for (int i = 0; i < nops; i++) {
		if (added_ns[i] < window_start(row->window) || !has_keys(row, &ops[i]) ||
		    row->source != (best ? best : ops[i].source))
			continue;
		expect_count(&ops[i]);
		if (ops[i].source == row->source)
			expect_times(&ops[i]);
	}
}

static void check_times(const struct aggregate_times *got, struct values *v)
{
	ck_assert_uint_eq(got->n, v->n);
	if (!v->n) {
		ck_assert_uint_eq(got->p50_ns, UNKNOWN_U64);
		return;
	}
	qsort(v->at, v->n, sizeof(v->at[0]), fx_by_exec);
	ck_assert_uint_eq(got->mean_ns, v->sum / v->n);
	ck_assert_uint_eq(got->max_ns, v->at[v->n - 1]);
	ck_assert(fx_is_close(got->p50_ns, v->at[(uint64_t)ceil(0.5 * (double)v->n) - 1]));
	ck_assert(fx_is_close(got->p90_ns, v->at[(uint64_t)ceil(0.9 * (double)v->n) - 1]));
	ck_assert(fx_is_close(got->p95_ns, v->at[(uint64_t)ceil(0.95 * (double)v->n) - 1]));
	ck_assert(fx_is_close(got->p99_ns, v->at[(uint64_t)ceil(0.99 * (double)v->n) - 1]));
}

static void check_rate(double got, double amount, double ns)
{
	if (ns > 0)
		ck_assert_double_eq_tol(got, amount / ns, 1e-6 * (1 + amount / ns));
	else
		ck_assert_double_lt(got, 0);
}

static void check_row(const struct aggregate_row *row)
{
	expect(row);
	ck_assert_uint_eq(row->ops, e.ops);
	ck_assert_uint_eq(row->sized_ops, e.sized);
	ck_assert_uint_eq(row->bytes, e.bytes);
	ck_assert_uint_eq(row->fused, e.fused);
	ck_assert_uint_eq(row->derived, e.derived);
	check_times(&row->exec, &e.exec);
	check_times(&row->batch, &e.batch);
	check_times(&row->queue, &e.queue);
	check_rate(row->algbw_gbs, e.timed_bytes, e.timed_ns);
	check_rate(row->busbw_mean_gbs, e.bus, e.bus_ns);
	check_rate(row->busbw_waitfree_gbs, e.free, e.free_ns);
	check_rate(row->wait_fraction, e.wait_ns, e.compared_ns);
	ck_assert_double_eq_tol(row->sampled_fraction, (double)e.timed / (double)e.ops, 1e-9);
	if (e.exec.n + e.batch.n)
		ck_assert_double_eq_tol(row->share, (double)(e.exec.sum + e.batch.sum) /
					((double)row->window_ns * (double)e.members) *
					(double)e.ops / (double)e.timed, 1e-6);
}

TEST_LOOP(every_figure_of_any_grouping_is_that_of_the_slow_way, 0, 4)
{
	static const uint32_t groupings[] = {
		0, AGGREGATE_BY_FUNC, AGGREGATE_BY_COMM, AGGREGATE_BY_RANK | AGGREGATE_BY_FUNC,
		AGGREGATE_BY_PEER, AGGREGATE_BY_PROTO | AGGREGATE_BY_TAG, AGGREGATE_BY_SIZE,
	};
	static struct fx_answer a;
	uint64_t seen;

	fx_seed((uint64_t)_i);
	nops = 0;
	while (nops < OPS - 4)
		add_random();
	for (uint32_t g = 0; g < FX_COUNT(groupings); g++)
		for (int w = 0; w < AGGREGATE_WINDOW_END; w++) {
			fx_ask(&a, (enum aggregate_window)w, groupings[g]);
			ck_assert_int_lt(a.n, FX_COUNT(a.row));
			seen = 0;
			for (int r = 0; r < a.n; r++) {
				check_row(&a.row[r]);
				seen += a.row[r].ops;
			}
			if (w == AGGREGATE_ALL && groupings[g] & AGGREGATE_BY_FUNC)
				ck_assert_uint_eq(seen, (uint64_t)nops);
		}
}

/* ---- by hand --------------------------------------------------------------- */

TEST(a_batch_counts_once_and_its_members_have_no_time_of_their_own)
{
	struct fx_answer a;

	for (int i = 0; i < 2; i++) {
		struct op op = fx_make_op(0, 0, 1 << 20, 900000);

		op.fused = 2;
		op.batch_head = i == 0;
		op.batch_ns = 1000000;
		op.batch_bytes = 2 << 20;
		op.batch_busbw_gbs = 3;
		aggregate_add(fx.agg, &op, fx.now);
	}
	fx.now += FX_SECOND;
	fx_ask(&a, AGGREGATE_ALL, AGGREGATE_BY_FUNC);
	ck_assert_int_eq(a.n, 1);
	ck_assert_uint_eq(a.row[0].ops, 2);
	ck_assert_uint_eq(a.row[0].fused, 2);
	ck_assert_uint_eq(a.row[0].exec.n, 0);
	ck_assert_uint_eq(a.row[0].batch.n, 1);
	ck_assert_uint_eq(a.row[0].batch.mean_ns, 1000000);
	ck_assert_double_eq_tol(a.row[0].algbw_gbs, (2 << 20) / 1e6, 1e-9);
	ck_assert_double_eq_tol(a.row[0].busbw_mean_gbs, 3, 1e-9);
	ck_assert_double_eq_tol(a.row[0].sampled_fraction, 1, 1e-9);
	ck_assert_double_eq_tol(a.row[0].share, 0.001, 1e-9);
}

TEST(sends_that_amount_to_something_are_counted_once_over_all_functions)
{
	struct op send = fx_make_op(0, 0, 4096, 5000), all = fx_make_op(0, 0, 8192, 6000);
	struct fx_answer a;

	send.func = "Send";
	all.func = "AlltoAll";
	all.parts = 2;
	aggregate_add(fx.agg, &send, fx.now);
	aggregate_add(fx.agg, &send, fx.now);
	aggregate_add(fx.agg, &all, fx.now);
	fx_ask(&a, AGGREGATE_ALL, AGGREGATE_BY_FUNC);
	ck_assert_int_eq(a.n, 2);
	fx_ask(&a, AGGREGATE_ALL, AGGREGATE_BY_COMM);
	ck_assert_int_eq(a.n, 1);
	ck_assert_uint_eq(a.row[0].ops, 2);
	ck_assert_uint_eq(a.row[0].bytes, 8192);
}

/* ---- what was lost --------------------------------------------------------- */

#define MOMENTS 400

static struct {
	uint64_t at_ns, process_id, records, lost;
} moments[MOMENTS];

static double lost_since(uint64_t since_ns, uint64_t process_id)
{
	double records = 0, lost = 0;

	for (int i = 0; i < MOMENTS; i++) {
		if (moments[i].at_ns < since_ns ||
		    (process_id && moments[i].process_id != process_id))
			continue;
		records += (double)moments[i].records;
		lost += (double)moments[i].lost;
	}
	return records + lost > 0 ? lost / (records + lost) : -1;
}

static void lose_something(int i, uint64_t total[PROCS + 1][2])
{
	uint64_t process = 1 + fx_random() % 4;
	uint32_t func = (uint32_t)(fx_random() % ((process + 1) / 2));
	struct op op = fx_make_op((uint32_t)process - 1, func, 4096, 5000);

	fx.now += fx_random() % (FX_SECOND / 2);
	moments[i].at_ns = fx.now;
	moments[i].process_id = process;
	moments[i].records = fx_random() % 1000;
	moments[i].lost = fx_random() % 4 ? 0 : fx_random() % 100;
	total[process][0] += moments[i].records;
	total[process][1] += moments[i].lost;
	aggregate_account(fx.agg, process, total[process][0], total[process][1], fx.now);
	aggregate_add(fx.agg, &op, fx.now);
}

TEST_LOOP(each_row_tells_what_its_processes_lost_in_its_window, 0, 4)
{
	uint64_t total[PROCS + 1][2] = { 0 };
	struct fx_answer a;

	fx_seed((uint64_t)_i + 100);
	for (int i = 0; i < MOMENTS; i++)
		lose_something(i, total);
	for (int w = 0; w < AGGREGATE_WINDOW_END; w++) {
		uint64_t since_ns = window_start((enum aggregate_window)w);

		fx_ask(&a, (enum aggregate_window)w, AGGREGATE_BY_RANK);
		for (int r = 0; r < a.n; r++)
			ck_assert_double_eq_tol(a.row[r].lost_fraction, lost_since(since_ns,
						(uint64_t)a.row[r].rank + 1), 1e-9);
		fx_ask(&a, (enum aggregate_window)w, 0);
		if (a.n && w != AGGREGATE_1S)	/* in 1 s some had no operation */
			ck_assert_double_eq_tol(a.row[0].lost_fraction, lost_since(since_ns, 0),
						1e-9);
	}
}

TEST(a_process_without_records_has_no_lost_share)
{
	struct op op = fx_make_op(0, 0, 4096, 5000);
	struct fx_answer a;

	aggregate_add(fx.agg, &op, fx.now);
	fx_ask(&a, AGGREGATE_ALL, 0);
	ck_assert_double_lt(a.row[0].lost_fraction, 0);
}

TEST(a_process_leaves_no_losses_to_the_one_that_takes_its_place)
{
	struct op op = fx_make_op(0, 0, 4096, 5000);
	struct fx_answer a;

	aggregate_account(fx.agg, 1, 100, 100, fx.now);
	aggregate_account(fx.agg, 1025, 100, 0, fx.now);
	aggregate_account(fx.agg, 1, 200, 200, fx.now);
	op.process_id = 1025;
	aggregate_add(fx.agg, &op, fx.now);
	for (int w = 0; w < AGGREGATE_WINDOW_END; w++) {
		fx_ask(&a, (enum aggregate_window)w, 0);
		ck_assert_double_eq_tol(a.row[0].lost_fraction, 0, 1e-12);
	}
}

int main(void)
{
	return fx_run(fx_setup, fx_teardown);
}
