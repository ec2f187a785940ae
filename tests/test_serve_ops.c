/* SPDX-License-Identifier: Apache-2.0 */
/* What the answers say of operations, one by one and summed up. */
#include <check.h>

#include "tests/fixture_serve.h"

static struct op make_op(const struct process *p, uint64_t seq)
{
	return (struct op){
		.process_id = p->id, .pid = p->pid, .uid = p->uid, .has_comm_id = true,
		.comm_id = FX_COMM_ID, .comm_name = "dp", .rank = p->comms[0].rank, .nranks = 8,
		.token = 0x1000 + seq, .func = FX_FUNC, .seq = seq, .count = 1 << 20,
		.datatype = "ncclFloat32", .bytes = 4 << 20, .root = UNKNOWN_I32,
		.peer = UNKNOWN_I32, .algo = "RING", .proto = "SIMPLE", .channels = 8,
		.kernel_started = 8, .kernel_stopped = 8, .complete = true, .sampled = true,
		.enqueued_ns = FX_START_NS + seq, .enqueue_ns = 5000,
		.queue_ns = UNKNOWN_U64, .exec_ns = 2000000, .exec_error_ns = UNKNOWN_U64,
		.source = TIMING_KERNEL_GPU, .done_ns = FX_START_NS + seq + 2000000,
		.algbw_gbs = 2.097152, .busbw_gbs = -1,
	};
}

static void add_op(const struct process *p, uint64_t seq)
{
	struct op op = make_op(p, seq);

	oplog_add(fx.oplog, &op);
	aggregate_add(fx.aggregate, &op, fx.now_ns);
}

static void setup(void)
{
	fx_serve_open(NULL);
}

TEST(collectives_come_newest_first_with_every_field)
{
	static const char *const nulls[] = {
		"root", "peer", "graph", "queue_ns", "exec_error_ns", "busbw_gbs", "gpu_start_at",
		"gpu_stop_at", "arrival_rank_order", "arrival_source", "late_ns", "fused", "tag",
	};
	struct process *p = fx_process(10, 0, 3);
	char path[64];
	json_t *a;

	for (uint64_t seq = 0; seq < 300; seq++)
		add_op(p, seq);
	a = fx_get("/v1/collectives", 200);
	ck_assert_uint_eq(json_array_size(fx_at(a, "collectives")), 100);
	ck_assert_uint_eq(fx_number(a, "collectives.0.seq"), 299);
	ck_assert_str_eq(fx_text(a, "collectives.0.comm_id"), "0xd00dfeedcafe0001");
	ck_assert_str_eq(fx_text(a, "collectives.0.func"), FX_FUNC);
	ck_assert_uint_eq(fx_number(a, "collectives.0.rank"), 3);
	ck_assert_uint_eq(fx_number(a, "collectives.0.pid"), 10);
	ck_assert_uint_eq(fx_number(a, "collectives.0.count"), 1 << 20);
	ck_assert_str_eq(fx_text(a, "collectives.0.datatype"), "ncclFloat32");
	ck_assert_uint_eq(fx_number(a, "collectives.0.bytes"), 4 << 20);
	ck_assert_str_eq(fx_text(a, "collectives.0.algo"), "RING");
	ck_assert_str_eq(fx_text(a, "collectives.0.proto"), "SIMPLE");
	ck_assert_uint_eq(fx_number(a, "collectives.0.channels"), 8);
	ck_assert_str_eq(fx_text(a, "collectives.0.enqueued_at"), "2023-11-14T22:13:20.000000299Z");
	ck_assert_uint_eq(fx_number(a, "collectives.0.enqueued_mono_ns"), FX_START_NS + 299);
	ck_assert_uint_eq(fx_number(a, "collectives.0.enqueue_ns"), 5000);
	ck_assert_uint_eq(fx_number(a, "collectives.0.exec_ns"), 2000000);
	ck_assert_str_eq(fx_text(a, "collectives.0.timing_source"), "kernel_gpu");
	ck_assert_double_eq(json_number_value(fx_at(a, "collectives.0.algbw_gbs")), 2.097152);
	ck_assert(json_is_true(fx_at(a, "collectives.0.sampled")));
	ck_assert(json_is_true(fx_at(a, "collectives.0.complete")));
	ck_assert_uint_eq(fx_number(a, "collectives.0.stamps_refused"), 0);
	for (int i = 0; i < FX_COUNT(nulls); i++) {
		snprintf(path, sizeof(path), "collectives.0.%s", nulls[i]);
		ck_assert_msg(json_is_null(fx_at(a, path)), "%s", path);
	}
	json_decref(a);
}

TEST(the_source_gets_its_turn_in_every_answer_and_within_long_ones)
{
	struct process *p = fx_process(10, 0, 3);
	uint32_t turns;

	json_decref(fx_get("/v1/status", 200));
	ck_assert_uint_eq(fx.meanwhiles, 1);
	for (uint64_t seq = 0; seq < 3000; seq++)
		add_op(p, seq);
	turns = fx.meanwhiles;
	json_decref(fx_get("/v1/collectives?limit=3000", 200));
	/* of a megabyte and more, in 16 KiB blocks */
	ck_assert_uint_gt(fx.meanwhiles - turns, 50);
	turns = fx.meanwhiles;
	json_decref(fx_get("/v1/collectives?pid=11", 200));	/* finds nothing */
	ck_assert_uint_gt(fx.meanwhiles - turns, 10);
}

TEST(nobody_says_complete_of_what_cannot_be_watched)
{
	struct op op = make_op(fx_process(10, 0, 3), 1);
	json_t *a;

	op.kernel_started = op.kernel_stopped = 0;
	oplog_add(fx.oplog, &op);
	op.proxy_ops = 1;
	oplog_add(fx.oplog, &op);
	op.proxy_ops = 0;
	op.complete = false;
	oplog_add(fx.oplog, &op);
	a = fx_get("/v1/collectives", 200);
	ck_assert(json_is_false(fx_at(a, "collectives.0.complete")));
	ck_assert(json_is_true(fx_at(a, "collectives.1.complete")));
	ck_assert(json_is_null(fx_at(a, "collectives.2.complete")));
	json_decref(a);
}

static const struct {
	const char *query;
	size_t rows;
} filters[] = {
	{ "limit=7", 7 },
	{ "limit=10000", 60 },
	{ "rank=3", 30 },
	{ "rank=5", 0 },
	{ "pid=11", 30 },
	{ "pid=12", 0 },
	{ "pid=12,11", 30 },
	{ "pid=10,11&limit=1000", 60 },
	{ "nranks=8&limit=1000", 60 },
	{ "nranks=2", 0 },
	{ "func=AllReduce&pid=10&limit=5", 5 },
	{ "func=Allreduce", 0 },
	{ "comm=d00dfeedcafe0001&limit=1000", 60 },
	{ "comm=0xD00DFEEDCAFE0001&limit=1000", 60 },
	{ "comm=dp&limit=1000", 60 },
	{ "comm=tp&limit=1000", 0 },
	{ "comm=%64p&limit=1000", 60 },
	{ "since_mono_ns=6000000000000000", 0 },
};

TEST_LOOP(collectives_can_be_filtered, 0, FX_COUNT(filters))
{
	struct process *p = fx_process(10, 0, 3), *q = fx_process(11, 0, 4);
	char target[160];
	json_t *a;

	for (uint64_t seq = 0; seq < 30; seq++) {
		add_op(p, seq);
		add_op(q, seq);
	}
	snprintf(target, sizeof(target), "/v1/collectives?%s", filters[_i].query);
	a = fx_get(target, 200);
	ck_assert_msg(json_array_size(fx_at(a, "collectives")) == filters[_i].rows, "%s: %zu",
		      target, json_array_size(fx_at(a, "collectives")));
	json_decref(a);
}

TEST(a_long_answer_stays_as_of_its_request)
{
	static const char request[] = "GET /v1/collectives?limit=10000 HTTP/1.1\r\nHost: x\r\n\r\n";
	struct process *p = fx_process(10, 0, 3);
	int fd = fx_connect();
	char *answer;
	json_t *a;

	for (uint64_t seq = 0; seq < 10000; seq++)
		add_op(p, seq);
	fx_send(fd, request, sizeof(request) - 1);
	for (uint64_t seq = 10000; seq < 40000; seq++)	/* the log forgets the first */
		add_op(p, seq);
	answer = fx_receive(fd, NULL);
	fx_unchunk(answer);
	a = json_loads(fx_body(answer), 0, NULL);
	ck_assert_uint_eq(json_array_size(fx_at(a, "collectives")), 10000);
	ck_assert_uint_eq(fx_number(a, "collectives.0.seq"), 9999);
	ck_assert_uint_eq(fx_number(a, "collectives.9999.seq"), 0);
	json_decref(a);
	free(answer);
	close(fd);
}

TEST(a_summary_has_the_keys_that_were_asked_for)
{
	struct process *p = fx_process(10, 0, 3), *q = fx_process(11, 0, 4);
	json_t *a;

	for (uint64_t seq = 0; seq < 30; seq++) {
		add_op(p, seq);
		add_op(q, seq);
	}
	a = fx_get("/v1/summary?window=60s,all&by=comm,rank", 200);
	ck_assert_uint_eq(json_array_size(fx_at(a, "rows")), 4);
	ck_assert_str_eq(fx_text(a, "rows.0.window"), "60s");
	ck_assert_str_eq(fx_text(a, "rows.3.window"), "all");
	ck_assert_str_eq(fx_text(a, "rows.0.comm_id"), "0xd00dfeedcafe0001");
	ck_assert_str_eq(fx_text(a, "rows.0.comm_name"), "dp");
	ck_assert_uint_eq(fx_number(a, "rows.0.rank") + fx_number(a, "rows.1.rank"), 7);
	ck_assert_ptr_null(fx_at(a, "rows.0.func"));
	ck_assert_uint_eq(fx_number(a, "rows.0.ops"), 30);
	ck_assert_uint_eq(fx_number(a, "rows.0.bytes"), 30ULL * (4 << 20));
	ck_assert_uint_eq(fx_number(a, "rows.0.exec.max_ns"), 2000000);
	ck_assert_uint_eq(fx_number(a, "rows.0.exec.mean_ns"), 2000000);
	ck_assert(json_is_null(fx_at(a, "rows.0.queue.p50_ns")));
	ck_assert(json_is_null(fx_at(a, "rows.0.busbw_waitfree_gbs")));
	ck_assert_str_eq(fx_text(a, "rows.0.timing_source"), "kernel_gpu");
	ck_assert_double_eq(json_number_value(fx_at(a, "rows.0.sampled_fraction")), 1);
	json_decref(a);

	a = fx_get("/v1/summary", 200);
	ck_assert_uint_eq(json_array_size(fx_at(a, "rows")), 1);
	ck_assert_uint_eq(fx_number(a, "rows.0.ops"), 60);
	ck_assert_uint_eq(fx_number(a, "rows.0.size_class"), 4 << 20);
	json_decref(a);
}

/* Windows of 10 s, in which operations take so long without their waits. */
static void run_windows(const struct process *p, int n, uint64_t exec_ns)
{
	for (int w = 0; w < n; w++) {
		for (uint64_t seq = 0; seq < 8; seq++) {
			struct op op = make_op(p, seq);

			op.exec_ns = exec_ns * (seq == 7 ? 5 : 1);
			aggregate_add(fx.aggregate, &op, fx.now_ns);
			diagnose_ops(fx.diagnose, &(const struct op *){ &op }, 1, fx.now_ns);
		}
		fx.now_ns += 10 * FX_SECOND;
		diagnose_look(fx.diagnose, fx.now_ns);
	}
}

TEST(a_kind_of_operation_tells_what_it_usually_takes)
{
	static const char kinds[] = "/v1/summary?by=comm,func,size,algo,proto";
	struct process *p = fx_process(10, 0, 3);
	json_t *a;

	run_windows(p, 23, 2000000);
	a = fx_get(kinds, 200);
	ck_assert(json_is_null(fx_at(a, "rows.0.usual_ns")));
	ck_assert(json_is_null(fx_at(a, "rows.0.usual_busbw_gbs")));
	json_decref(a);

	run_windows(p, 10, 2000000);
	run_windows(p, 10, 3000000);	/* slower than usual */
	a = fx_get(kinds, 200);
	ck_assert_double_eq_tol((double)fx_number(a, "rows.0.usual_ns"), 2e6, 1e3);
	ck_assert_double_eq_tol(json_number_value(fx_at(a, "rows.0.usual_busbw_gbs")),
				2 * 7.0 / 8 * (4 << 20) / 2e6, 0.01);
	json_decref(a);
	a = fx_get("/v1/summary?by=comm,func", 200);	/* of several kinds none is told */
	ck_assert(json_is_null(fx_at(a, "rows.0.usual_ns")));
	json_decref(a);
}

int main(void)
{
	return fx_run(setup, fx_serve_close);
}
