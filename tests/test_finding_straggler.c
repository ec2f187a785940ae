/* SPDX-License-Identifier: Apache-2.0 */
/* Ranks that make others wait, as /v1/findings and /v1/comms tell them. */
#include "tests/fixture_serve.h"

#define MS		UINT64_C(1000000)
#define TRANSFER	(2 * MS)
#define WINDOW		600	/* operations, ten a second */

/* Ranks 0 and 1 of eight. */
static void setup(void)
{
	fx_serve_open(NULL);
	fx_process(10, 0, 0);
	fx_process(11, 0, 1);
	straggler_turn(fx.straggler, fx.now_ns);
}

static struct op op_of(const struct process *p, uint64_t inside_ns)
{
	return (struct op){
		.process_id = p->id, .pid = p->pid, .has_comm_id = true, .comm_id = FX_COMM_ID,
		.comm_name = "dp", .rank = p->comms[0].rank, .nranks = 8, .func = FX_FUNC,
		.seq = UNKNOWN_U64,
		.bytes = 8192, .complete = true, .source = TIMING_KERNEL_GPU,
		.exec_ns = inside_ns, .gpu_start_ns = fx.now_ns, .gpu_clock_error_ns = UNKNOWN_U64,
	};
}

/* How much longer than the transfer rank 0 and rank 1 are inside, at every `every`th. */
static void work(int n, int every, uint64_t first_ns, uint64_t second_ns)
{
	for (int k = 0; k < n; k++) {
		uint64_t first = k % every ? 0 : first_ns, second = k % every ? 0 : second_ns;
		struct op ops[2] = { op_of(fx.processes[0], TRANSFER + first),
				     op_of(fx.processes[1], TRANSFER + second) };
		const struct op *const both[2] = { &ops[0], &ops[1] };

		straggler_see(fx.straggler, both, 2, fx.processes, fx.nprocesses, fx.now_ns);
		fx.now_ns += FX_SECOND / 10;
		if (k % 10)
			continue;
		straggler_turn(fx.straggler, fx.now_ns);
		diagnose_look(fx.diagnose, fx.now_ns);
	}
}

static json_t *findings(void)
{
	return fx_get("/v1/findings?active=true", 200);
}

TEST(a_late_rank_is_named_with_evidence_and_a_next_step)
{
	json_t *a;

	work(4 * WINDOW, 1, 5 * MS, 0);
	a = findings();
	ck_assert_uint_eq(json_array_size(fx_at(a, "findings")), 1);
	ck_assert_str_eq(fx_text(a, "findings.0.kind"), "straggler");
	ck_assert_str_eq(fx_text(a, "findings.0.verdict"), "STEADY");
	ck_assert_str_eq(fx_text(a, "findings.0.severity"), "warning");
	ck_assert_str_eq(fx_text(a, "findings.0.comm_name"), "dp");
	ck_assert_uint_eq(fx_number(a, "findings.0.ranks.0"), 1);
	ck_assert_uint_eq(fx_number(a, "findings.0.evidence.pid"), 11);
	ck_assert_uint_eq(fx_number(a, "findings.0.evidence.late_ns"), 5 * MS);
	ck_assert_uint_eq(fx_number(a, "findings.0.evidence.last"),
			  fx_number(a, "findings.0.evidence.judged"));
	ck_assert_ptr_nonnull(strstr(fx_text(a, "findings.0.text"),
				     "rank 1 of dp (pid 11, node7) comes last among the 2 of 8 "));
	ck_assert_ptr_nonnull(strstr(fx_text(a, "findings.0.text"), "py-spy dump -p 11"));
	json_decref(a);
}

static uint64_t case_key;

static void take_key(const struct straggler_case *c, void *arg)
{
	(void)arg;
	case_key = c->key;
}

/* A second rank of its process in the communicator tells that each has a GPU of its own. */
TEST(gpu_of_a_rank_is_looked_up_again_in_another_second)
{
	struct process *p = fx.processes[1];
	struct op op = op_of(p, TRANSFER);
	uint64_t before = straggler_gpu(fx.straggler, &op, fx.processes, fx.nprocesses);

	work(4 * WINDOW, 1, 5 * MS, 0);
	straggler_visit(fx.straggler, take_key, NULL);
	ck_assert_uint_eq(case_key, before);
	p->comms = realloc(p->comms, 2 * sizeof(*p->comms));
	p->comms[p->ncomms++] = p->comms[0];
	ck_assert_uint_ne(straggler_gpu(fx.straggler, &op, fx.processes, fx.nprocesses), before);
	work(22, 1, 5 * MS, 0);
	straggler_visit(fx.straggler, take_key, NULL);
	ck_assert_uint_eq(case_key,
			  straggler_gpu(fx.straggler, &op, fx.processes, fx.nprocesses));
}

/*
 * They call their communicator the same, and its other rank, which tells of the GPU of a rank of
 * the first, is late far more often.
 */
TEST(strangers_in_a_communicator_clear_nobody)
{
	struct process *p = fx_process(20, 1000, 0), *q = fx_process(21, 1000, 1);
	json_t *a;

	for (int k = 0; k < 4 * WINDOW; k++) {
		work(1, 1, 5 * MS, 0);
		for (int i = 0; i < 4; i++) {
			struct op ops[2] = { op_of(p, TRANSFER), op_of(q, TRANSFER + 5 * MS) };
			const struct op *const both[2] = { &ops[0], &ops[1] };

			ops[0].uid = ops[1].uid = 1000;
			straggler_see(fx.straggler, both, 2, fx.processes, fx.nprocesses,
				      fx.now_ns);
		}
	}
	a = findings();
	ck_assert_uint_eq(json_array_size(fx_at(a, "findings")), 2);
	ck_assert_str_eq(fx_text(a, "findings.0.verdict"), "STEADY");
	ck_assert_str_eq(fx_text(a, "findings.1.verdict"), "STEADY");
	ck_assert_uint_eq(fx_number(a, "findings.0.evidence.pid") +
			  fx_number(a, "findings.1.evidence.pid"), 11 + 20);
	json_decref(a);
}

/* A pair of ranks of a communicator, the second of which is late. */
static void work_of_pair(const struct process *p, const struct process *q, uint32_t index)
{
	struct op ops[2] = { op_of(p, TRANSFER + 5 * MS), op_of(q, TRANSFER) };
	const struct op *const both[2] = { &ops[0], &ops[1] };

	for (uint32_t i = 0; i < 2; i++) {
		ops[i].uid = ops[i].account = p->uid;
		ops[i].comm_id = p->comms[index].id;
		ops[i].comm_index = index + (p == q ? i : 0);
		ops[i].rank = (int32_t)i;
	}
	straggler_see(fx.straggler, both, 2, fx.processes, fx.nprocesses, fx.now_ns);
}

#define PAIRS	80

TEST(nobody_fills_the_cases_for_other_users)
{
	struct process *many = fx_process(30, 0, 1), *p = fx_process(20, 1000, 2);
	struct process *q = fx_process(21, 1000, 3);
	size_t of_many = 0, of_other = 0, i;
	json_t *a, *f;

	many->ncomms = 2 * PAIRS;
	many->comms = realloc(many->comms, many->ncomms * sizeof(*many->comms));
	for (uint32_t k = 1; k < many->ncomms; k++) {
		many->comms[k] = many->comms[0];
		many->comms[k].id += k / 2;
		many->comms[k].rank = k % 2;
	}
	for (int k = 0; k < 4 * WINDOW; k++) {
		for (uint32_t pair = 0; pair < PAIRS; pair++)
			work_of_pair(many, many, 2 * pair);
		work_of_pair(p, q, 0);
		work(1, 1, 0, 0);
	}
	a = findings();
	json_array_foreach(fx_at(a, "findings"), i, f) {
		of_many += fx_number(f, "evidence.pid") == 30;
		of_other += fx_number(f, "evidence.pid") == 21;
	}
	ck_assert_uint_gt(of_many, 32);
	ck_assert_uint_eq(of_other, 1);
	json_decref(a);
}

TEST(the_gpu_is_named_where_it_is_known)
{
	json_t *a;

	work(4 * WINDOW, 20, 0, 80 * MS);
	a = findings();
	ck_assert_str_eq(fx_text(a, "findings.0.verdict"), "INTERMITTENT");
	ck_assert_ptr_nonnull(strstr(fx_text(a, "findings.0.text"), "node7, GPU 5)"));
	ck_assert_uint_eq(fx_number(a, "findings.0.whom.0.gpu_index"), 5);
	json_decref(a);
}

/*
 * Three stages of a pipeline: how long each waits in its sends and receives, ten a second, and
 * rank 0 for rank 2 in an operation of both.
 */
static void work_of_stages(int seconds, const uint64_t *wait_ns, uint64_t joint_ns)
{
	for (int k = 0; k < 10 * seconds; k++) {
		struct op both[2] = { op_of(fx.processes[0], TRANSFER + (k % 8 ? joint_ns : 0)),
				      op_of(fx.processes[2], TRANSFER) };
		const struct op *const joint[2] = { &both[0], &both[1] };

		for (uint64_t i = 0; i < 3; i++) {
			struct op op = op_of(fx.processes[i], TRANSFER + (k % 8 ? wait_ns[i] : 0));
			const struct op *one = &op;

			op.func = i ? "Recv" : "Send";
			op.is_p2p = true;
			straggler_see(fx.straggler, &one, 1, fx.processes, fx.nprocesses,
				      fx.now_ns);
		}
		both[0].comm_id = both[1].comm_id = 77;
		straggler_see(fx.straggler, joint, 2, fx.processes, fx.nprocesses, fx.now_ns);
		fx.now_ns += FX_SECOND / 10;
		if (k % 10)
			continue;
		straggler_turn(fx.straggler, fx.now_ns);
		diagnose_look(fx.diagnose, fx.now_ns);
	}
}

TEST(the_stage_that_the_others_wait_for_is_named)
{
	json_t *a;

	fx_process(12, 0, 2);
	work_of_stages(240, (const uint64_t[]){ 20 * MS, 1 * MS, 18 * MS }, 0);
	a = findings();
	ck_assert_uint_eq(json_array_size(fx_at(a, "findings")), 1);
	ck_assert_str_eq(fx_text(a, "findings.0.verdict"), "STEADY");
	ck_assert_uint_eq(fx_number(a, "findings.0.ranks.0"), 1);
	ck_assert_str_eq(fx_text(a, "findings.0.evidence.func"), "Send and Recv");
	ck_assert_ptr_nonnull(strstr(fx_text(a, "findings.0.text"),
				     "rank 1 of dp (pid 11, node7) is the pipeline stage that the "
				     "others wait for among the 3 of 8 ranks"));
	json_decref(a);
}

TEST(stages_that_wait_alike_are_not_whatever_they_wait_in)
{
	json_t *a;

	fx_process(12, 0, 2);
	work_of_stages(240, (const uint64_t[]){ 20 * MS, 20 * MS, 21 * MS }, 0);
	a = findings();
	ck_assert_uint_eq(json_array_size(fx_at(a, "findings")), 0);
	json_decref(a);
}

TEST(a_stage_that_waits_in_another_operation_waits)
{
	json_t *a;

	fx_process(12, 0, 2);
	work_of_stages(240, (const uint64_t[]){ 0, 20 * MS, 20 * MS }, 20 * MS);
	a = findings();
	ck_assert_uint_eq(json_array_size(fx_at(a, "findings")), 1);
	ck_assert_uint_eq(fx_number(a, "findings.0.ranks.0"), 2);	/* it is late there */
	ck_assert_str_eq(fx_text(a, "findings.0.evidence.func"), FX_FUNC);
	json_decref(a);
}

TEST(a_process_that_has_ended_is_late_no_more)
{
	json_t *a;

	work(4 * WINDOW, 1, 5 * MS, 0);
	fx.processes[1]->state = PROCESS_DIED;
	work(60, 1, 5 * MS, 0);
	a = findings();
	ck_assert_uint_eq(json_array_size(fx_at(a, "findings")), 0);
	json_decref(a);
}

/* Every tenth finds nobody elsewhere late. */
TEST(who_waits_for_other_nodes_is_no_straggler_and_says_for_how_long)
{
	json_t *a;

	work(WINDOW, 1, 0, 0);
	for (int k = 0; k < 4 * WINDOW / 10; k++) {
		work(9, 1, 5 * MS, 5 * MS);
		work(1, 1, 0, 0);
	}
	a = findings();
	ck_assert_uint_eq(json_array_size(fx_at(a, "findings")), 1);
	ck_assert_str_eq(fx_text(a, "findings.0.verdict"), "ELSEWHERE");
	ck_assert_str_eq(fx_text(a, "findings.0.severity"), "info");
	ck_assert_uint_eq(json_array_size(fx_at(a, "findings.0.ranks")), 0);
	ck_assert(json_is_null(fx_at(a, "findings.0.evidence.pid")));
	json_decref(a);
	a = fx_get("/v1/comms", 200);
	ck_assert_uint_eq(fx_number(a, "comms.0.local_ranks.0.waiting.ops"), 5 * WINDOW);
	ck_assert_uint_eq(fx_number(a, "comms.0.local_ranks.0.waiting.remote_wait_ns"),
			  4 * WINDOW / 10 * 9 * 5 * MS);
	json_decref(a);
}

TEST(who_is_late_is_suspected_before_and_found_as_the_same)
{
	json_t *a;

	work(200, 1, 5 * MS, 0);
	a = findings();
	ck_assert_uint_eq(json_array_size(fx_at(a, "findings")), 1);
	ck_assert_str_eq(fx_text(a, "findings.0.grade"), "suspected");
	ck_assert_str_eq(fx_text(a, "findings.0.verdict"), "STEADY");
	ck_assert_uint_eq(fx_number(a, "findings.0.ranks.0"), 1);
	ck_assert_uint_eq(fx_number(a, "findings.0.evidence.pid"), 11);
	ck_assert_uint_eq(fx_number(a, "findings.0.since_mono_ns"), FX_START_NS);
	ck_assert_ptr_nonnull(strstr(fx_text(a, "findings.0.text"), "It is suspected, and will "
				     "be found if it lasts for three windows of "
				     "1m00s."));
	json_decref(a);
	a = fx_get("/v1/comms", 200);
	ck_assert(json_is_false(fx_at(a, "comms.0.local_ranks.0.waiting.lately.late")));
	ck_assert(json_is_true(fx_at(a, "comms.0.local_ranks.1.waiting.lately.late")));
	ck_assert_str_eq(fx_text(a, "comms.0.local_ranks.1.waiting.lately.func"), FX_FUNC);
	ck_assert_uint_eq(fx_number(a, "comms.0.local_ranks.1.waiting.lately.late_ns"), 5 * MS);
	json_decref(a);
	work(4 * WINDOW, 1, 5 * MS, 0);
	a = findings();
	ck_assert_uint_eq(json_array_size(fx_at(a, "findings")), 1);
	ck_assert_uint_eq(fx_number(a, "findings.0.id"), 1);
	ck_assert_str_eq(fx_text(a, "findings.0.grade"), "found");
	ck_assert_uint_eq(fx_number(a, "findings.0.since_mono_ns"), FX_START_NS);
	ck_assert_ptr_null(strstr(fx_text(a, "findings.0.text"), "suspected"));
	json_decref(a);
}

static const struct {
	const char *how;
	enum process_state state;
	uint64_t finalize_ticks;
} ends[] = {
	{ "exited", PROCESS_EXITED, 0 }, { "died", PROCESS_DIED, 0 }, { "left", PROCESS_LIVE, 1 },
};

TEST_LOOP(who_has_ended_is_suspected_no_more, 0, FX_COUNT(ends))
{
	json_t *a;

	work(200, 1, 5 * MS, 0);
	fx.processes[1]->state = ends[_i].state;
	fx.processes[1]->comms[0].finalize_ticks = ends[_i].finalize_ticks;
	work(60, 1, 5 * MS, 0);
	a = findings();
	ck_assert_msg(json_array_size(fx_at(a, "findings")) == 0, "%s", ends[_i].how);
	json_decref(a);
}

TEST(waiting_is_null_before_anything_is_known)
{
	json_t *a = fx_get("/v1/comms", 200);

	ck_assert(json_is_null(fx_at(a, "comms.0.local_ranks.0.waiting")));
	json_decref(a);
}

/* Not all wait for all, or nobody knows how long, or only its head stands for it. */
TEST(what_cannot_be_compared_is_left_out)
{
	struct op ops[] = {
		op_of(fx.processes[0], MS), op_of(fx.processes[0], MS), op_of(fx.processes[0], MS),
		op_of(fx.processes[0], MS), op_of(fx.processes[0], MS), op_of(fx.processes[0], MS),
	};
	struct straggler_sums sums;

	ops[0].func = "Broadcast";
	ops[1].func = "Reduce";
	ops[2].func = "Send";
	ops[3].source = TIMING_KERNEL_CPU;
	ops[4].fused = OP_FUSED;
	ops[5].fused = 2;	/* not the head */
	for (int i = 0; i < FX_COUNT(ops); i++) {
		const struct op *one = &ops[i];

		straggler_see(fx.straggler, &one, 1, fx.processes, fx.nprocesses, fx.now_ns);
		ck_assert_msg(!straggler_of(fx.straggler, 1, 0, &sums), "operation %d", i);
	}
}

/* Bursts time one in ten: each of them waits for 20 ms in 100. */
TEST(what_was_timed_stands_for_what_was_not)
{
	json_t *a;

	for (int k = 0; k < 2000; k++) {
		struct op ops[2] = { op_of(fx.processes[0], TRANSFER + 20000000),
				     op_of(fx.processes[1], TRANSFER) };
		const struct op *const both[2] = { &ops[0], &ops[1] };

		for (int i = 0; k % 10 && i < 2; i++) {
			ops[i].source = TIMING_NONE;
			ops[i].exec_ns = UNKNOWN_U64;
		}
		straggler_see(fx.straggler, both, 2, fx.processes, fx.nprocesses, fx.now_ns);
		fx.now_ns += FX_SECOND / 10;
		straggler_turn(fx.straggler, fx.now_ns);
	}
	a = fx_get("/v1/ranks?fields=rank,compared,wait,blame,blame_history,ops_history", 200);
	for (int i = 0; i < 2; i++) {
		json_t *row = json_array_get(fx_at(a, "ranks"), (size_t)i);
		bool waits = fx_number(row, "rank") == 0;

		ck_assert_double_eq_tol(json_number_value(fx_at(row, "compared")), 0.1, 0.001);
		ck_assert_double_eq_tol(json_number_value(fx_at(row, "wait")), waits ? 0.2 : 0,
					0.02);
		ck_assert_double_eq_tol(json_number_value(fx_at(row, "blame")), waits ? 0 : 0.2,
					0.05);
		for (size_t part = 0; part < STRAGGLER_HISTORY; part++) {
			const json_t *blame = fx_at(row, "blame_history");
			const json_t *ops = fx_at(row, "ops_history");

			ck_assert_double_eq_tol(
				json_number_value(json_array_get(blame, part)), waits ? 0 : 0.2,
				0.05);
			ck_assert_double_eq_tol(
				json_number_value(json_array_get(ops, part)), 10, 0.5);
		}
	}
	json_decref(a);
}

TEST(what_is_never_compared_has_a_history_of_its_rate)
{
	json_t *a;

	for (int k = 0; k < 300; k++) {
		struct op op = op_of(fx.processes[0], TRANSFER);
		const struct op *one = &op;

		op.source = TIMING_NONE;
		op.api_only = true;	/* as in graphs */
		straggler_see(fx.straggler, &one, 1, fx.processes, fx.nprocesses, fx.now_ns);
		fx.now_ns += FX_SECOND / 10;
	}
	a = fx_get("/v1/ranks?fields=rank,blame_history,ops_history", 200);
	ck_assert_uint_eq(fx_number(a, "ranks.0.rank"), 0);
	ck_assert(json_is_null(fx_at(a, "ranks.0.blame_history")));
	ck_assert(json_is_null(fx_at(a, "ranks.0.ops_history.0")));
	ck_assert_double_eq_tol(json_number_value(fx_at(a, "ranks.0.ops_history.6")), 10, 0.2);
	ck_assert(json_is_null(fx_at(a, "ranks.1.ops_history")));
	json_decref(a);
}

int main(void)
{
	return fx_run(setup, fx_serve_close);
}
