/* SPDX-License-Identifier: Apache-2.0 */
/* /v1/ranks: a row for each rank of a communicator, the worst first. */
#include "tests/fixture_serve.h"
#include "util/json.h"

#define MS	UINT64_C(1000000)

static void setup(void)
{
	fx_serve_open(NULL);
}

/* `n` operations of 2 ms, of which the last took `last_ms`. */
static void add_ops(const struct process *p, int n, uint64_t last_ms)
{
	struct op op = {
		.process_id = p->id, .pid = p->pid, .uid = p->uid, .has_comm_id = true,
		.comm_id = FX_COMM_ID, .comm_name = "dp", .rank = p->comms[0].rank, .nranks = 8,
		.func = FX_FUNC, .bytes = 1 << 20, .busbw_gbs = 12, .algbw_gbs = 6,
		.root = UNKNOWN_I32, .peer = UNKNOWN_I32, .complete = true, .sampled = true,
		.exec_ns = 2 * MS, .source = TIMING_KERNEL_GPU,
	};

	for (int i = 0; i < n; i++) {
		if (i == n - 1)
			op.exec_ns = last_ms * MS;
		aggregate_add(fx.aggregate, &op, fx.now_ns);
	}
}

/* The second of two processes comes late by so much, again and again. */
static void add_lateness(int n, uint64_t late_ns)
{
	for (int i = 0; i < n; i++) {
		struct op op[2];

		for (uint32_t k = 0; k < 2; k++)
			op[k] = (struct op){
				.process_id = k + 1, .pid = fx.processes[k]->pid,
				.has_comm_id = true, .comm_id = 1, .rank = (int32_t)k, .nranks = 2,
				.func = FX_FUNC, .seq = UNKNOWN_U64, .complete = true,
				.source = TIMING_KERNEL_GPU, .exec_ns = MS + (k ? 0 : late_ns),
				.gpu_start_ns = fx.now_ns,
			};
		straggler_see(fx.straggler, (const struct op *[]){ &op[0], &op[1] }, 2,
			      fx.processes, fx.nprocesses, fx.now_ns);
		fx_pass(100 * MS);
		straggler_turn(fx.straggler, fx.now_ns);
	}
}

static void report(uint64_t key, enum finding_severity severity, uid_t uid, int32_t rank,
		   const char *evidence)
{
	struct finding f = {
		.kind = rank < 0 ? FINDING_DIED : FINDING_STRAGGLER, .severity = severity,
		.verdict = rank < 0 ? NULL : "STEADY", .uid = uid, .has_comm_id = rank >= 0,
		.comm_id = FX_COMM_ID, .peer = UNKNOWN_I32, .since_ns = fx.now_ns,
	};

	if (rank >= 0)
		finding_add_rank(&f, rank);
	f.evidence_bytes = (uint32_t)snprintf(f.evidence, sizeof(f.evidence), "%s", evidence);
	diagnose_report(fx.diagnose, &finding_straggler, key, &f, fx.now_ns);
}

TEST(a_row_agrees_with_what_the_other_answers_say)
{
	static const char *const same[][3] = {	/* in a row, there, and where that is */
		{ "comm_id", "comms.0.comm_id", "/v1/comms" },
		{ "comm_name", "comms.0.name", "/v1/comms" },
		{ "nranks", "comms.0.nranks", "/v1/comms" },
		{ "nnodes", "comms.0.nnodes", "/v1/comms" },
		{ "rank", "comms.0.local_ranks.1.rank", "/v1/comms" },
		{ "pid", "comms.0.local_ranks.1.pid", "/v1/comms" },
		{ "gpu_uuid", "comms.0.local_ranks.1.gpu_uuid", "/v1/comms" },
		{ "pci_bus_id", "comms.0.local_ranks.1.pci_bus_id", "/v1/comms" },
		{ "gpu_index", "comms.0.local_ranks.1.gpu_index", "/v1/comms" },
		{ "state", "comms.0.local_ranks.1.state", "/v1/comms" },
		{ "phase", "comms.0.local_ranks.1.phase", "/v1/comms" },
		{ "tag", "comms.0.local_ranks.1.tag", "/v1/comms" },
		{ "tag_name", "comms.0.local_ranks.1.tag_name", "/v1/comms" },
		{ "in_flight", "comms.0.local_ranks.1.in_flight", "/v1/comms" },
		{ "last_op_at", "comms.0.local_ranks.1.last_op_at", "/v1/comms" },
		{ "last_op_mono_ns", "comms.0.local_ranks.1.last_op_mono_ns", "/v1/comms" },
		{ "last_seq", "comms.0.local_ranks.1.last_seq.AllReduce", "/v1/comms" },
		{ "lately", "comms.0.local_ranks.1.waiting.lately", "/v1/comms" },
		{ "job", "comms.0.local_ranks.1.job", "/v1/comms" },
		{ "uid", "processes.1.uid", "/v1/processes" },
		{ "user", "processes.1.user", "/v1/processes" },
		{ "level", "processes.1.level", "/v1/processes" },
		{ "job", "processes.1.job.id", "/v1/processes" },
		{ "global_rank", "processes.1.job.rank", "/v1/processes" },
		{ "host", "host", "/v1/status" },
		{ "window", "rows.0.window", "/v1/summary?window=60s&by=comm,rank" },
		{ "window_ns", "rows.0.window_ns", "/v1/summary?window=60s&by=comm,rank" },
		{ "ops", "rows.0.ops", "/v1/summary?window=60s&by=comm,rank" },
		{ "p50_ns", "rows.0.exec.p50_ns", "/v1/summary?window=60s&by=comm,rank" },
		{ "p99_ns", "rows.0.exec.p99_ns", "/v1/summary?window=60s&by=comm,rank" },
		{ "busbw_gbs", "rows.0.busbw_gbs.mean", "/v1/summary?window=60s&by=comm,rank" },
		{ "share", "rows.0.share", "/v1/summary?window=60s&by=comm,rank" },
		{ "oldest_ns", "inflight.0.age_ns", "/v1/inflight" },
	};
	static const char env[] = "SLURM_JOB_ID=4711\0RANK=9";
	struct process *p;
	json_t *a, *row;

	fx_process(10, 0, 0);
	p = fx_process(11, 0, 3);
	p->comms[0].has_gpu = true;
	memcpy(p->env, env, sizeof(env));
	p->env_bytes = sizeof(env);
	p->phase.name = "eval";
	fx_post(p, 41, 0x5001, 1000);
	add_lateness(40, 20 * MS);
	add_ops(p, 10, 30);
	fx_pass(5 * FX_SECOND);
	a = fx_get("/v1/ranks?window=60s&rank=3", 200);
	ck_assert_uint_eq(fx_number(a, "ranks_total"), 1);
	row = fx_at(a, "ranks.0");
	ck_assert_str_eq(fx_text(row, "last_func"), FX_FUNC);
	ck_assert_uint_eq(fx_number(row, "lost"), 7);
	ck_assert_double_eq_tol(json_number_value(fx_at(row, "ops_per_s")) *
				(double)fx_number(row, "window_ns"), 10e9, 100);
	ck_assert(json_is_null(fx_at(row, "idle")));	/* it has been in one operation for long */
	for (size_t i = 0; i < sizeof(same) / sizeof(same[0]); i++) {
		json_t *other = fx_get(same[i][2], 200);
		json_t *here = fx_at(row, same[i][0]), *there = fx_at(other, same[i][1]);

		ck_assert_msg(json_equal(here, there), "%s is not %s", same[i][0], same[i][1]);
		json_decref(other);
	}
	json_decref(a);
}

TEST(each_rank_tells_what_it_waited_and_cost_in_the_last_ten_seconds)
{
	json_t *a;

	fx_process(10, 0, 0);
	fx_process(11, 0, 1);
	add_lateness(200, 20 * MS);
	a = fx_get("/v1/ranks?fields=rank,wait,blame,last,late", 200);
	/* every 100 ms rank 0 waits 20 ms for rank 1, which is the worse one */
	ck_assert_uint_eq(fx_number(a, "ranks.0.rank"), 1);
	ck_assert_double_eq_tol(json_number_value(fx_at(a, "ranks.0.blame")), 0.2, 0.02);
	ck_assert_double_eq_tol(json_number_value(fx_at(a, "ranks.0.wait")), 0, 1e-9);
	ck_assert_double_eq_tol(json_number_value(fx_at(a, "ranks.0.last")), 1, 1e-9);
	ck_assert(json_is_true(fx_at(a, "ranks.0.late")));
	ck_assert_double_eq_tol(json_number_value(fx_at(a, "ranks.1.wait")), 0.2, 0.01);
	ck_assert_double_eq_tol(json_number_value(fx_at(a, "ranks.1.blame")), 0, 1e-9);
	ck_assert(json_is_false(fx_at(a, "ranks.1.late")));
	json_decref(a);
	add_lateness(100, 0);
	a = fx_get("/v1/ranks?fields=wait,blame", 200);
	ck_assert_double_eq_tol(json_number_value(fx_at(a, "ranks.0.blame")), 0, 1e-9);
	ck_assert_double_eq_tol(json_number_value(fx_at(a, "ranks.1.wait")), 0, 1e-9);
	json_decref(a);
}

/* Iterations of 50 ms, of which 20 are inside an operation, and 5 of these are waiting. */
TEST(a_rank_tells_its_iteration_and_what_is_in_it)
{
	struct process *p = fx_process(10, 0, 3);
	json_t *a;

	for (int i = 0; i < 300; i++) {
		const struct op op = {
			.process_id = p->id, .has_comm_id = true, .comm_id = FX_COMM_ID,
			.func = FX_FUNC, .bytes = 1 << 20, .source = TIMING_KERNEL_GPU,
			.enqueued_ns = fx.now_ns, .started_ns = fx.now_ns, .exec_ns = 20 * MS,
			.local_ranks = 2, .waitfree_ns = 15 * MS,
		};

		diagnose_ops(fx.diagnose, &(const struct op *){ &op }, 1, fx.now_ns);
		fx_pass(50 * MS);
	}
	a = fx_get("/v1/ranks", 200);
	ck_assert_uint_eq(fx_number(a, "ranks.0.iteration_ns"), 50 * MS);
	ck_assert_double_eq_tol(json_number_value(fx_at(a, "ranks.0.nccl")), 0.4, 1e-4);
	ck_assert_double_eq_tol(json_number_value(fx_at(a, "ranks.0.exposed")), 0.1, 1e-4);
	json_decref(a);
	fx_pass(11000 * MS);
	a = fx_get("/v1/ranks", 200);
	ck_assert(json_is_null(fx_at(a, "ranks.0.nccl")));
	ck_assert(json_is_null(fx_at(a, "ranks.0.exposed")));
	json_decref(a);
}

TEST(nobody_knows_who_waits_while_one_of_them_is_inside_for_a_second)
{
	json_t *a;

	fx_process(10, 0, 0);
	fx_process(11, 0, 1);
	fx_process(12, 77, 1);		/* another user's says that it is of the same one */
	add_ops(fx.processes[0], 10, 2);
	add_ops(fx.processes[1], 10, 2);
	a = fx_get("/v1/ranks?rank=0", 200);
	ck_assert(json_is_null(fx_at(a, "ranks.0.wait")));
	ck_assert_double_eq_tol(json_number_value(fx_at(a, "ranks.0.compared")), 0, 1e-9);
	json_decref(a);
	add_lateness(10, 20 * MS);
	a = fx_get("/v1/ranks?rank=0", 200);
	ck_assert(json_is_false(fx_at(a, "ranks.0.stalled")));
	ck_assert(json_is_real(fx_at(a, "ranks.0.wait")));
	ck_assert_double_eq_tol(json_number_value(fx_at(a, "ranks.0.idle")) +
				json_number_value(fx_at(a, "ranks.0.share")), 1, 1e-6);
	json_decref(a);
	fx_post(fx.processes[0], 41, 0x5001, 1000);
	fx_pass(2 * FX_SECOND);
	a = fx_get("/v1/ranks?fields=pid,stalled,oldest_ns,wait,blame,idle,share", 200);
	ck_assert_uint_eq(fx_number(a, "ranks.0.pid"), 10);
	ck_assert_uint_ge(fx_number(a, "ranks.0.oldest_ns"), FX_SECOND);
	for (int i = 0; i < 2; i++) {
		json_t *row = json_array_get(fx_at(a, "ranks"), (size_t)i);

		ck_assert(json_is_true(fx_at(row, "stalled")));
		ck_assert(json_is_null(fx_at(row, "wait")));
		ck_assert(json_is_null(fx_at(row, "blame")));
		ck_assert(json_is_real(fx_at(row, "share")));
		/* the one that the other waits for is outside */
		ck_assert(i ? json_is_real(fx_at(row, "idle")) : json_is_null(fx_at(row, "idle")));
	}
	ck_assert_uint_eq(fx_number(a, "ranks.2.pid"), 12);
	ck_assert(json_is_false(fx_at(a, "ranks.2.stalled")));
	json_decref(a);
}

TEST(waiting_is_not_known_where_nothing_was_compared_for_ten_seconds)
{
	json_t *a;

	fx_process(10, 0, 0);
	fx_process(11, 0, 1);
	add_lateness(20, 20 * MS);
	fx_pass(12 * FX_SECOND);
	a = fx_get("/v1/ranks?fields=wait,blame,stalled", 200);
	for (int i = 0; i < 2; i++) {
		json_t *row = json_array_get(fx_at(a, "ranks"), (size_t)i);

		ck_assert(json_is_false(fx_at(row, "stalled")));
		ck_assert(json_is_null(fx_at(row, "wait")));
		ck_assert(json_is_null(fx_at(row, "blame")));
	}
	json_decref(a);
}

TEST(of_findings_alike_in_severity_the_one_that_is_found_is_in_the_row)
{
	struct finding f = { .kind = FINDING_STALL, .severity = FINDING_CRITICAL,
			     .grade = FINDING_SUSPECTED, .verdict = "RANK_DEAD",
			     .has_comm_id = true, .comm_id = FX_COMM_ID, .peer = UNKNOWN_I32,
			     .since_ns = FX_SECOND };
	json_t *a;

	fx_process(10, 0, 0);
	report(1, FINDING_CRITICAL, 0, 0, "{}");
	finding_add_rank(&f, 0);
	diagnose_report(fx.diagnose, &finding_stall, 2, &f, fx.now_ns);	/* the newer one */
	a = fx_get("/v1/ranks", 200);
	ck_assert_str_eq(fx_text(a, "ranks.0.verdict"), "STEADY");
	ck_assert_str_eq(fx_text(a, "ranks.0.grade"), "found");
	json_decref(a);
}

TEST(the_worst_come_first_and_a_limit_keeps_these)
{
	static const uint64_t worst[] = { 5, 4, 3, 2 };
	json_t *a;

	for (int i = 0; i < 6; i++)
		fx_process(10 + i, 0, i);
	report(1, FINDING_WARNING, 0, 2, "{}");
	fx_post(fx.processes[3], 41, 0x5001, 1000);	/* in flight since the start */
	report(2, FINDING_CRITICAL, 0, 4, "{}");
	report(3, FINDING_WARNING, 0, 4, "{}");
	fx.processes[5]->state = PROCESS_DIED;
	fx_pass(2 * FX_SECOND);
	a = fx_get("/v1/ranks", 200);
	ck_assert_uint_eq(json_array_size(fx_at(a, "ranks")), 6);
	for (size_t i = 0; i < sizeof(worst) / sizeof(worst[0]); i++) {
		char path[32];

		snprintf(path, sizeof(path), "ranks.%zu.rank", i);
		ck_assert_uint_eq(fx_number(a, path), worst[i]);
	}
	ck_assert_str_eq(fx_text(a, "ranks.0.state"), "died");
	ck_assert_str_eq(fx_text(a, "ranks.1.severity"), "critical");
	ck_assert_str_eq(fx_text(a, "ranks.1.finding"), "straggler");
	ck_assert_str_eq(fx_text(a, "ranks.1.verdict"), "STEADY");
	ck_assert_uint_eq(fx_number(a, "ranks.1.finding_id"), 2);
	ck_assert_str_eq(fx_text(a, "ranks.3.severity"), "warning");
	ck_assert(json_is_null(fx_at(a, "ranks.4.finding")));
	json_decref(a);
	a = fx_get("/v1/ranks?limit=2", 200);
	ck_assert_uint_eq(fx_number(a, "ranks_total"), 6);
	ck_assert_uint_eq(fx_number(a, "comms_total"), 1);
	ck_assert_uint_eq(fx_number(a, "gpus_total"), 1);	/* rank 0's alone is known */
	ck_assert_uint_eq(fx_number(a, "in_flight_total"), 1);
	ck_assert_uint_eq(json_array_size(fx_at(a, "ranks")), 2);
	ck_assert_uint_eq(fx_number(a, "ranks.1.rank"), 4);
	json_decref(a);
}

TEST(a_finding_about_a_process_is_about_its_ranks_and_no_other_user_s)
{
	json_t *a;

	fx_process(10, 0, 0);
	fx_process(11, 0, 1);
	fx_process(12, 77, 1);		/* says that it is the same rank of the same one */
	report(1, FINDING_WARNING, 0, -1, "{\"processes\":[{\"pid\":10}]}");
	report(2, FINDING_WARNING, 0, 1, "{\"processes\":7}");
	a = fx_get("/v1/ranks?pid=10", 200);
	ck_assert_str_eq(fx_text(a, "ranks.0.finding"), "died");
	ck_assert(json_is_null(fx_at(a, "ranks.0.verdict")));
	json_decref(a);
	a = fx_get("/v1/ranks?pid=11", 200);
	ck_assert_str_eq(fx_text(a, "ranks.0.finding"), "straggler");
	json_decref(a);
	a = fx_get("/v1/ranks?pid=12", 200);
	ck_assert(json_is_null(fx_at(a, "ranks.0.finding")));
	json_decref(a);
}

TEST(ranks_that_ended_as_they_should_are_not_among_them)
{
	json_t *a;

	for (int i = 0; i < 4; i++)
		fx_process(10 + i, 0, i);
	fx.processes[0]->state = PROCESS_EXITED;
	fx.processes[1]->comms[0].finalize_ticks = 5;
	fx.processes[2]->comms[0].finalize_ticks = 5;
	fx_post(fx.processes[2], 41, 0x5001, 1000);
	a = fx_get("/v1/ranks?fields=rank,state,in_flight", 200);
	ck_assert_uint_eq(fx_number(a, "ranks_total"), 2);
	ck_assert_uint_eq(fx_number(a, "ranks.0.rank"), 2);
	ck_assert_str_eq(fx_text(a, "ranks.0.state"), "finalized");
	ck_assert_uint_eq(fx_number(a, "ranks.1.rank"), 3);
	json_decref(a);
}

/* Ids can be forged, and chance has it that they are alike: sums are the process's own. */
TEST(sums_are_those_of_the_process_s_own_communicator)
{
	json_t *a;

	fx_process(10, 0, 3);
	fx_process(11, 0, 3);
	add_ops(fx.processes[0], 3, 2);
	add_ops(fx.processes[1], 5, 2);
	a = fx_get("/v1/ranks?window=all&fields=pid,ops", 200);
	ck_assert_uint_eq(fx_number(a, "ranks.0.pid"), 10);
	ck_assert_uint_eq(fx_number(a, "ranks.0.ops"), 3);
	ck_assert_uint_eq(fx_number(a, "ranks.1.ops"), 5);
	json_decref(a);
}

static const struct {
	const char *query;
	uint64_t rows;
} queries[] = {
	{ "comm=dp", 2 }, { "comm=0xd00dfeedcafe0001", 2 }, { "comm=tp", 1 }, { "comm=pp", 0 },
	{ "nranks=8", 2 }, { "nranks=4", 1 }, { "rank=1", 1 }, { "rank=9", 0 }, { "pid=11,12", 2 },
	{ "comm=dp&rank=0&pid=10", 1 }, { "comm=dp&rank=0&pid=11", 0 },
};

TEST_LOOP(parameters_choose_ranks, 0, (int)(sizeof(queries) / sizeof(queries[0])))
{
	char target[96];
	json_t *a;

	for (int i = 0; i < 3; i++)
		fx_process(10 + i, 0, i);
	strcpy(fx.processes[2]->comms[0].name, "tp");
	fx.processes[2]->comms[0].id++;
	fx.processes[2]->comms[0].nranks = 4;
	snprintf(target, sizeof(target), "/v1/ranks?%s", queries[_i].query);
	a = fx_get(target, 200);
	ck_assert_uint_eq(json_array_size(fx_at(a, "ranks")), queries[_i].rows);
	ck_assert_uint_eq(fx_number(a, "ranks_total"), queries[_i].rows);
	json_decref(a);
	json_decref(fx_get("/v1/ranks?window=1s,10s", 400));
	json_decref(fx_get("/v1/ranks?window=2s", 400));
}

TEST(sums_that_nobody_wants_are_not_worked_out)
{
	uint32_t turns, with, without;

	fx_process(10, 0, 3);
	for (int i = 0; i < 2000; i++) {
		struct op op = { .process_id = 1, .has_comm_id = true, .comm_id = FX_COMM_ID,
				 .comm_name = "dp", .rank = 3, .nranks = 8, .func = FX_FUNC,
				 .peer = i, .exec_ns = MS, .source = TIMING_KERNEL_GPU };

		aggregate_add(fx.aggregate, &op, fx.now_ns);
	}
	turns = fx.meanwhiles;
	json_decref(fx_get("/v1/ranks?fields=rank,ops", 200));
	with = fx.meanwhiles - turns;
	turns = fx.meanwhiles;
	json_decref(fx_get("/v1/ranks?fields=rank,state", 200));
	without = fx.meanwhiles - turns;
	ck_assert_uint_ge(with, without + 5);	/* the source has its turns meanwhile */
}

TEST(a_snapshot_has_the_same_rows)
{
	struct json j;
	json_t *a, *snapshot, *key, *rows;
	const char *name;

	fx_process(10, 0, 3);
	add_ops(fx.processes[0], 10, 2);
	fx_pass(FX_SECOND);
	json_init(&j, 1 << 20);
	ck_assert_int_eq(serve_snapshot(fx.serve, NULL, fx.now_ns, &j), 0);
	snapshot = json_loadb(j.text, j.bytes, 0, NULL);
	json_deinit(&j);
	a = fx_get("/v1/ranks?window=all", 200);
	rows = fx_at(snapshot, "ranks");
	ck_assert_uint_eq(json_array_size(rows), 1);
	json_object_foreach(fx_at(a, "ranks.0"), name, key)
		ck_assert_msg(json_equal(key, json_object_get(json_array_get(rows, 0), name)),
			      "%s", name);
	json_decref(a);
	json_decref(snapshot);
}

int main(void)
{
	return fx_run(setup, fx_serve_close);
}
