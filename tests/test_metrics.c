/* SPDX-License-Identifier: Apache-2.0 */
/* The series: what they count, that they never go back, and that they are bounded. */
#include "ncclinspd/metrics/metrics.h"

#include <ctype.h>

#include "tests/fixture_serve.h"
#include "tests/fx_exposition.h"

#define OTHER_UID	54321

static char *text;

static void setup(void)
{
	fx_serve_open(NULL);
	text = NULL;
}

static void teardown(void)
{
	free(text);
	fx_serve_close();
}

/* A process with `ncomms` communicators of its rank. */
static struct process *add_process(int32_t rank, uint32_t ncomms)
{
	struct process *p = fx_process(100 + rank, 0, rank);

	p->records = 100;
	p->comms = realloc(p->comms, ncomms * sizeof(*p->comms));
	p->ncomms = ncomms;
	for (uint32_t i = 1; i < ncomms; i++) {
		p->comms[i] = p->comms[0];
		p->comms[i].id += i;
		snprintf(p->comms[i].name, sizeof(p->comms[i].name), "c%u", i);
	}
	return p;
}

static struct op make_op(const struct process *p, uint32_t comm, uint64_t bytes)
{
	return (struct op){
		.process_id = p->id, .uid = p->uid, .comm_index = comm, .has_comm_id = true,
		.rank = p->comms[comm].rank, .nranks = 8, .func = FX_FUNC, .bytes = bytes,
		.exec_ns = 15000, .source = TIMING_KERNEL_GPU, .busbw_gbs = 200,
	};
}

static void add_op(const struct op *op)
{
	metrics_op(fx.metrics, op, fx.now_ns);
}

/* Everything as root, or one user, is told it. */
static uint64_t collect(bool all, uid_t uid)
{
	struct exposition e;

	exposition_init(&e, false, 32 << 20);
	metrics_write(fx.metrics, &e, all, uid, fx.now_ns);
	free(text);
	text = fx_exposition_text(&e);
	return e.series;
}

/* The sum of the series of this name, whose labels have this in them; -1: there is none. */
static double sum_of(const char *name, const char *label)
{
	double sum = -1;

	for (const char *line = text; *line; line = strchr(line, '\n') + 1) {
		const char *end = strchr(line, '\n'), *at = strstr(line, label);
		size_t n = strlen(name);

		if (strncmp(line, name, n) || isalpha((unsigned char)line[n]) || line[n] == '_' ||
		    !at || at > end)
			continue;
		while (*end != ' ')
			end--;
		sum = (sum < 0 ? 0 : sum) + strtod(end, NULL);
	}
	return sum;
}

TEST(operations_are_counted_with_their_labels)
{
	struct process *p = add_process(0, 1);
	struct op op = make_op(p, 0, 3 << 20);

	add_op(&op);
	op.exec_ns = 200 * FX_SECOND;
	op.busbw_gbs = 100;
	add_op(&op);
	collect(true, 0);
	ck_assert(strstr(text, "\nncclinsp_ops_total{node=\"node \\\"7\\\"\",uid=\"0\",comm=\"dp\","
			       "comm_id=\"0xd00dfeedcafe0001\",rank=\"0\","
			       "gpu_uuid=\"GPU-00000000-0000-0000-0000-0000000000ab\","
			       "op=\"AllReduce\"} 2\n"));
	ck_assert_double_eq(sum_of("ncclinsp_op_bytes_total", ""), 2 * (3 << 20));
	ck_assert_double_eq(sum_of("ncclinsp_op_duration_seconds_count", "size_class=\"4MiB\""), 2);
	ck_assert_double_eq(sum_of("ncclinsp_op_duration_seconds_bucket", "le=\"1e-05\""), 0);
	ck_assert_double_eq(sum_of("ncclinsp_op_duration_seconds_bucket", "le=\"2e-05\""), 1);
	ck_assert_double_eq(sum_of("ncclinsp_op_duration_seconds_bucket", "le=\"83.88608\""), 1);
	ck_assert_double_eq(sum_of("ncclinsp_op_duration_seconds_bucket", "le=\"+Inf\""), 2);
	ck_assert_double_eq(sum_of("ncclinsp_op_duration_seconds_sum", ""), 200.000015);
	ck_assert_double_eq(sum_of("ncclinsp_op_busbw_bytes_per_second", "naive"), 150e9);
	ck_assert_double_eq(sum_of("ncclinsp_op_busbw_bytes_per_second", "waitfree"), -1);
	fx.now_ns += 61 * FX_SECOND;
	collect(true, 0);
	ck_assert_double_eq(sum_of("ncclinsp_op_busbw_bytes_per_second", "naive"), -1);
}

static const struct {
	uint64_t bytes;
	const char *label;
} classes[] = {
	{ 0, "\"1KiB\"" }, { 1024, "\"1KiB\"" }, { 1025, "\"2KiB\"" }, { 1 << 20, "\"1MiB\"" },
	{ UINT64_C(16) << 30, "\"16GiB\"" }, { (UINT64_C(16) << 30) + 1, "\"inf\"" },
};

TEST_LOOP(a_size_class_is_the_power_of_two_that_holds_it, 0, FX_COUNT(classes))
{
	struct op op = make_op(add_process(0, 1), 0, classes[_i].bytes);

	add_op(&op);
	collect(true, 0);
	ck_assert_double_eq(sum_of("ncclinsp_op_duration_seconds_count", classes[_i].label), 1);
}

TEST(what_ran_in_a_batch_or_without_a_time_is_in_no_histogram)
{
	struct op op = make_op(add_process(0, 1), 0, 4096);

	op.fused = 2;
	add_op(&op);
	op.fused = 0;
	op.source = TIMING_NONE;
	op.exec_ns = UNKNOWN_U64;
	op.bytes = UNKNOWN_U64;
	add_op(&op);
	collect(true, 0);
	ck_assert_double_eq(sum_of("ncclinsp_ops_total", ""), 2);
	ck_assert_double_eq(sum_of("ncclinsp_op_bytes_total", ""), 4096);
	ck_assert_double_eq(sum_of("ncclinsp_op_duration_seconds_count", ""), -1);
	ck_assert_double_eq(sum_of("ncclinsp_records_dropped_total", "\"fused\""), 1);
}

TEST(eight_ranks_of_ten_communicators_have_room)
{
	uint64_t series;

	for (int32_t rank = 0; rank < 8; rank++) {
		struct process *p = add_process(rank, 10);

		for (uint32_t comm = 0; comm < 10; comm++) {
			struct op op = make_op(p, comm, 1 << 20);

			op.complete = true;
			add_op(&op);
			op.bytes = 64 << 20;
			add_op(&op);
		}
	}
	metrics_look(fx.metrics, fx.now_ns);
	series = collect(true, 0);
	ck_assert_uint_le(series, 2000);
	ck_assert_double_eq(sum_of("ncclinsp_series_refused_total", ""), 0);
	ck_assert_double_eq(sum_of("ncclinsp_ops_total", "other"), -1);
	ck_assert_double_eq(sum_of("ncclinsp_ops_total", ""), 160);
	ck_assert_double_eq(sum_of("ncclinsp_op_inside_ops_total", ""), 160);
}

TEST(time_inside_is_counted_by_communicator_where_it_tells_ranks_apart)
{
	struct process *p = add_process(3, 2);
	struct op op = make_op(p, 1, 4096);

	op.complete = true;
	op.algo = "RING";
	op.proto = "SIMPLE";
	add_op(&op);
	op.exec_ns = 25000;
	add_op(&op);
	op.source = TIMING_KERNEL_CPU;	/* a time, but not the GPU's */
	add_op(&op);
	op.source = TIMING_KERNEL_GPU;
	op.func = "Broadcast";		/* its root waits for nobody */
	add_op(&op);
	op.func = FX_FUNC;
	op.nranks = 1;
	add_op(&op);
	collect(true, 0);
	ck_assert_ptr_nonnull(strstr(text, "\nncclinsp_op_inside_seconds_total{node=\"node \\\"7"
				     "\\\"\",uid=\"0\",comm=\"c1\",comm_id=\"0x"));
	ck_assert_double_eq(sum_of("ncclinsp_op_inside_seconds_total", "rank=\"3\""), 40e-6);
	ck_assert_double_eq(sum_of("ncclinsp_op_inside_ops_total", ""), 2);
	ck_assert_double_eq(sum_of("ncclinsp_op_duration_seconds_count",
				   "algo=\"RING\",proto=\"SIMPLE\",source=\"kernel_gpu\""), 4);
}

TEST(a_process_has_its_container_its_command_and_its_pid)
{
	struct process *p = add_process(3, 1);

	snprintf(p->container, sizeof(p->container), "c0ffee");
	snprintf(p->command, sizeof(p->command), "train");
	metrics_look(fx.metrics, fx.now_ns);
	collect(true, 0);
	ck_assert_double_eq(sum_of("ncclinsp_process_info",
				   ",container_id=\"c0ffee\",command=\"train\",pid=\"103\""), 1);
}

TEST(more_than_there_is_room_for_is_counted_under_other)
{
	static const char *const funcs[] = { "AllReduce", "AllGather", "ReduceScatter" };
	double refused;
	uint64_t series;

	for (int32_t rank = 0; rank < 8; rank++) {
		struct process *p = add_process(rank, 40);

		for (uint32_t i = 0; i < 40 * 3; i++) {
			struct op op = make_op(p, i / 3, UINT64_C(1024) << i % 20);

			op.func = funcs[i % 3];
			add_op(&op);
		}
	}
	metrics_look(fx.metrics, fx.now_ns);
	series = collect(true, 0);
	ck_assert_uint_le(series, 2000);
	ck_assert_uint_gt(series, 1200);
	refused = sum_of("ncclinsp_series_refused_total", "");
	ck_assert_double_gt(refused, 0);
	ck_assert_double_gt(sum_of("ncclinsp_ops_total", "op=\"other\""), 0);
	ck_assert_double_eq(sum_of("ncclinsp_ops_total", ""), 8 * 120);
	ck_assert_double_eq(sum_of("ncclinsp_op_duration_seconds_count", ""), 8 * 120);
	ck_assert_double_le(sum_of("ncclinsp_series", ""), 2000);
}

TEST(a_user_with_few_series_has_them_where_others_have_many)
{
	struct op op = make_op(add_process(9, 2), 0, 4096);

	fx.processes[0]->uid = op.uid = OTHER_UID;
	for (int32_t rank = 0; rank < 7; rank++) {
		struct process *p = add_process(rank, 40);

		for (uint32_t i = 0; i < 120; i++) {
			struct op many = make_op(p, i / 3, UINT64_C(1024) << i % 20);

			add_op(&many);
		}
	}
	add_op(&op);
	collect(false, OTHER_UID);
	ck_assert_double_le(sum_of("ncclinsp_ops_total", ""), 0);
	fx.now_ns += 2 * FX_SECOND;
	metrics_look(fx.metrics, fx.now_ns);
	add_op(&op);
	collect(false, OTHER_UID);
	ck_assert_double_eq(sum_of("ncclinsp_ops_total", ""), 1);
	ck_assert_double_eq(sum_of("ncclinsp_op_duration_seconds_count", ""), 1);
	collect(true, 0);
	ck_assert_double_gt(sum_of("ncclinsp_ops_total", "uid=\"0\""), 20);	/* detail goes */
	ck_assert_double_le(sum_of("ncclinsp_series", ""), 2000);
}

TEST(a_counter_does_not_go_back_when_its_process_is_replaced)
{
	struct process *p = add_process(0, 1);

	metrics_look(fx.metrics, fx.now_ns);
	p->records = 250;
	p->state = PROCESS_DIED;
	metrics_ended(fx.metrics, p, fx.now_ns);
	metrics_look(fx.metrics, fx.now_ns);
	collect(true, 0);
	ck_assert_double_eq(sum_of("ncclinsp_records_total", ""), 250);
	ck_assert_double_eq(sum_of("ncclinsp_processes", ""), 0);
	ck_assert_double_eq(sum_of("ncclinsp_process_exits_total", "\"unknown\""), 1);
	ck_assert_double_eq(sum_of("ncclinsp_process_exits_total", "\"clean\""), 0);
	metrics_forgotten(fx.metrics, p);
	p->id = 77;		/* the next one of the same labels */
	p->records = 5;
	p->state = PROCESS_LIVE;
	metrics_look(fx.metrics, fx.now_ns);
	metrics_look(fx.metrics, fx.now_ns);
	collect(true, 0);
	ck_assert_double_eq(sum_of("ncclinsp_records_total", ""), 255);
	ck_assert_double_eq(sum_of("ncclinsp_processes", ""), 1);
	p->records = 2;		/* who counts them has begun anew */
	metrics_look(fx.metrics, fx.now_ns);
	collect(true, 0);
	ck_assert_double_eq(sum_of("ncclinsp_records_total", ""), 257);
}

TEST(what_is_in_flight_has_an_age_and_a_number)
{
	struct process *p = add_process(3, 1);

	fx_post(p, 41, 0x5001, 1000);
	fx.now_ns += 9 * FX_SECOND;
	metrics_look(fx.metrics, fx.now_ns);
	collect(true, 0);
	ck_assert_double_eq(sum_of("ncclinsp_inflight_ops", "rank=\"3\""), 1);
	ck_assert_double_eq(sum_of("ncclinsp_inflight_oldest_seconds", "rank=\"3\""), 9);
	ck_assert_double_eq(sum_of("ncclinsp_last_sequence", "op=\"AllReduce\""), 41);
	ck_assert_double_eq(sum_of("ncclinsp_stalled", "comm=\"dp\""), 0);
	ck_assert(strstr(text, "\nncclinsp_comm_info{node=\"node \\\"7\\\"\",uid=\"0\","
			       "comm=\"dp\",comm_id=\"0xd00dfeedcafe0001\",rank=\"3\","
			       "comm_name=\"dp\",nranks=\"8\",nnodes=\"2\",pid=\"103\"} 1\n"));
	ck_assert(strstr(text, "\nncclinsp_inflight_oldest_seconds{node=\"node \\\"7\\\"\","
			       "uid=\"0\",comm=\"dp\",comm_id=\"0xd00dfeedcafe0001\","
			       "rank=\"3\"} 9\n"));
	fx.now_ns += FX_SECOND;
	metrics_look(fx.metrics, fx.now_ns);
	collect(true, 0);
	ck_assert(strstr(text, "rank=\"3\",op=\"AllReduce\",state=\"not_started\","
			       "sequence=\"41\"} 10\n"));
	p->comms[0].finalize_ticks = 1;
	metrics_look(fx.metrics, fx.now_ns);
	collect(true, 0);
	ck_assert_double_eq(sum_of("ncclinsp_inflight_ops", ""), -1);
	ck_assert_double_eq(sum_of("ncclinsp_comm_info", ""), -1);
}

TEST(what_only_settles_is_not_in_flight)
{
	struct process *p = add_process(3, 1);

	fx_settle(p, 0x5001, 1000);
	metrics_look(fx.metrics, fx.now_ns);
	collect(true, 0);
	ck_assert_double_eq(sum_of("ncclinsp_inflight_ops", "rank=\"3\""), 0);
	ck_assert_double_eq(sum_of("ncclinsp_inflight_oldest_seconds", "rank=\"3\""), 0);
	fx_post(p, 41, 0x5002, 2000);
	metrics_look(fx.metrics, fx.now_ns);
	collect(true, 0);
	ck_assert_double_eq(sum_of("ncclinsp_inflight_ops", "rank=\"3\""), 1);
}

static void hours_pass(int n)
{
	for (int i = 0; i < n * 60; i++) {
		fx.now_ns += 60 * FX_SECOND;
		metrics_look(fx.metrics, fx.now_ns);
	}
}

TEST(what_is_alive_stays_and_what_has_gone_is_let_go)
{
	struct process *p = add_process(0, 1);
	struct op op = make_op(p, 0, 4096);

	add_op(&op);
	metrics_look(fx.metrics, fx.now_ns);
	hours_pass(3);
	collect(true, 0);
	ck_assert_double_eq(sum_of("ncclinsp_ops_total", ""), 1);
	ck_assert_double_eq(sum_of("ncclinsp_op_duration_seconds_count", ""), 1);
	fx.nprocesses = 0;
	hours_pass(2);
	collect(true, 0);
	ck_assert_double_eq(sum_of("ncclinsp_ops_total", ""), -1);
	ck_assert_double_eq(sum_of("ncclinsp_series", ""), 0);
	fx.nprocesses = 1;
	add_op(&op);
	collect(true, 0);
	ck_assert_double_eq(sum_of("ncclinsp_ops_total", ""), 1);
}

static void looks(int n)
{
	for (int i = 0; i < n; i++) {
		fx.now_ns += FX_SECOND;
		metrics_look(fx.metrics, fx.now_ns);
	}
	collect(true, 0);
}

TEST(idle_communicators_keep_their_rows_and_others_get_one_when_there_is_room)
{
	add_process(0, 2);
	hours_pass(1);
	add_process(1, 3000);		/* takes all the room there is */
	add_process(2, 1);
	looks(3);
	ck_assert_double_eq(sum_of("ncclinsp_inflight_ops", "rank=\"0\""), 0);
	ck_assert_double_eq(sum_of("ncclinsp_inflight_ops", "rank=\"2\""), -1);
	fx.processes[1]->ncomms = 1;
	hours_pass(1);
	looks(1);
	ck_assert_double_eq(sum_of("ncclinsp_inflight_ops", "rank=\"0\""), 0);
	ck_assert_double_eq(sum_of("ncclinsp_inflight_ops", "rank=\"2\""), 0);
}

/* Iterations of 100 ms, of which 20 are inside an operation, and 15 of these are waiting. */
TEST(a_process_tells_its_iteration_and_what_is_in_it)
{
	struct process *p = add_process(0, 1);

	for (int i = 0; i < 200; i++, fx.now_ns += FX_SECOND / 10) {
		struct op op = make_op(p, 0, 1 << 20);

		op.enqueued_ns = op.started_ns = fx.now_ns;
		op.exec_ns = FX_SECOND / 50;
		op.local_ranks = 2;
		op.waitfree_ns = FX_SECOND / 200;
		diagnose_ops(fx.diagnose, &(const struct op *){ &op }, 1, fx.now_ns);
	}
	looks(8);	/* processes take turns */
	collect(true, 0);
	ck_assert_double_eq_tol(sum_of("ncclinsp_iteration_seconds", ""), 0.1, 1e-6);
	ck_assert_double_eq_tol(sum_of("ncclinsp_iteration_nccl_ratio", ""), 0.2, 1e-6);
	ck_assert_double_eq_tol(sum_of("ncclinsp_iteration_exposed_ratio", ""), 0.15, 1e-6);
}

static void process_put_job(struct process *p, const char *job)
{
	p->env_bytes = (uint32_t)sprintf(p->env, "SLURM_JOB_ID=%s", job) + 1;
}

TEST(a_job_that_has_ended_makes_room_at_once_for_one_that_lives)
{
	struct process *old = add_process(0, 3000), *young;	/* takes all the room there is */
	struct op op;

	process_put_job(old, "old");
	looks(2);
	young = add_process(1, 1);
	op = make_op(young, 0, 4096);
	process_put_job(young, "young");
	add_op(&op);
	looks(2);
	add_op(&op);
	collect(true, 0);
	ck_assert_double_eq(sum_of("ncclinsp_op_duration_seconds_count", "job_id=\"young\""), -1);
	ck_assert_double_eq(sum_of("ncclinsp_processes", "job_id=\"old\""), 1);
	old->state = PROCESS_DIED;
	metrics_ended(fx.metrics, old, fx.now_ns);
	looks(3);
	add_op(&op);
	collect(true, 0);
	ck_assert_double_eq(sum_of("ncclinsp_op_duration_seconds_count", "job_id=\"young\""), 1);
	ck_assert_double_eq(sum_of("ncclinsp_inflight_ops", "job_id=\"young\""), 0);
	ck_assert_double_eq(sum_of("ncclinsp_processes", "job_id=\"old\""), -1);
	ck_assert_double_eq(sum_of("ncclinsp_records_total", "job_id=\"old\""), -1);
}

TEST(a_job_that_has_ended_keeps_its_series_where_there_is_room)
{
	struct process *p = add_process(0, 2);
	struct op op = make_op(p, 0, 4096);

	add_op(&op);
	looks(1);
	p->state = PROCESS_DIED;
	metrics_ended(fx.metrics, p, fx.now_ns);
	looks(3);
	add_process(1, 2);
	looks(3);
	ck_assert_double_eq(sum_of("ncclinsp_op_duration_seconds_count", ""), 1);
	ck_assert_double_eq(sum_of("ncclinsp_process_exits_total", "\"unknown\""), 1);
}

TEST(a_rank_that_is_learned_later_has_its_own_row)
{
	struct process *p = add_process(UNKNOWN_I32, 1);

	looks(2);
	ck_assert_double_eq(sum_of("ncclinsp_inflight_ops", "rank=\"7\""), -1);
	p->comms[0].rank = 7;
	looks(1);
	ck_assert_double_eq(sum_of("ncclinsp_inflight_ops", "rank=\"7\""), 0);
	ck_assert_double_eq(sum_of("ncclinsp_comm_info", ""), 1);
}

TEST(a_user_sees_what_is_his)
{
	struct op op = make_op(add_process(0, 1), 0, 4096);

	add_op(&op);
	op = make_op(add_process(1, 1), 0, 4096);
	fx.processes[1]->uid = OTHER_UID;
	add_op(&op);
	metrics_look(fx.metrics, fx.now_ns);
	collect(false, OTHER_UID);
	ck_assert_double_eq(sum_of("ncclinsp_ops_total", "uid=\"54321\""), 1);
	ck_assert_ptr_null(strstr(text, "uid=\"0\""));
	ck_assert_ptr_null(strstr(text, "ncclinsp_series"));
	collect(true, 0);
	ck_assert_double_eq(sum_of("ncclinsp_ops_total", ""), 2);
}

/* ---- the fleet profile ------------------------------------------------------------ */

static void fleet_open(void)
{
	metrics_free(fx.metrics);
	fx_metrics_open(true);
}

/* Communicator `comm` of the process posts its operation `seq`, and one ends. */
static void work(struct process *p, uint32_t comm, uint64_t seq)
{
	struct nci_ev_coll coll = {
		.type = NCI_EV_COLL, .form = 2, .comm = (uint16_t)comm, .serial = 1,
		.token = (uint64_t)p->id << 32 | comm << 16 | seq, .start = 1000, .stop = 1050,
		.seq = seq, .count = 1024, .func = 1, .cont = NCI_LINE_CONT, .channels = 2,
		.rank = p->comms[comm].rank,
	};
	struct event ev = { .rec = (const struct nci_record *)&coll, .comm = &p->comms[comm] };
	struct op op = make_op(p, comm, 4096);

	reconstruct_event(fx.reconstruct, p, &ev, fx.now_ns);
	op.complete = true;
	add_op(&op);
}

/* Eight ranks with the communicators of most jobs: of all, of the node, and two across nodes. */
static void add_node(int32_t nranks, uint32_t ncomms)
{
	for (int32_t rank = 0; rank < nranks; rank++) {
		struct process *p = add_process(rank, ncomms);

		p->comms[1].nnodes = 1;
	}
}

/* What all ranks share is used at the beginning only. */
static void node_works(uint32_t ncomms)
{
	for (size_t i = 0; i < fx.nprocesses; i++)
		for (uint32_t comm = 0; comm < ncomms; comm++)
			work(fx.processes[i], comm, comm ? 27 : 3);
}

static int lines_of(const char *name)
{
	size_t n = strlen(name);
	int lines = 0;

	for (const char *line = text; *line; line = strchr(line, '\n') + 1)
		lines += !strncmp(line, name, n) && line[n] == '{';
	return lines;
}

TEST(a_node_of_a_fleet_has_150_series_with_all_that_a_judge_of_many_needs)
{
	fleet_open();
	add_node(8, 4);
	node_works(3);
	metrics_look(fx.metrics, fx.now_ns);
	node_works(3);
	ck_assert_uint_le(collect(true, 0), 150);
	ck_assert_int_eq(lines_of("ncclinsp_comm_info"), 32);
	ck_assert_int_eq(lines_of("ncclinsp_inflight_oldest_seconds"), 32);
	ck_assert_int_eq(lines_of("ncclinsp_last_sequence"), 24);
	ck_assert_int_eq(lines_of("ncclinsp_op_inside_ops_total"), 8);
	ck_assert_int_eq(lines_of("ncclinsp_op_inside_seconds_total"), 8);
	ck_assert_int_eq(lines_of("ncclinsp_process_info"), 8);
	ck_assert_int_eq(lines_of("ncclinsp_op_duration_seconds_bucket"), 0);
	ck_assert_double_eq(sum_of("ncclinsp_op_inside_ops_total", "comm_id="), 8);
	ck_assert_double_eq(sum_of("ncclinsp_series_left_out", ""), 0);
	ck_assert(strstr(text, "\nncclinsp_last_sequence{node=\"node \\\"7\\\"\",comm=\"dp\","
			       "comm_id=\"0xd00dfeedcafe0001\",rank=\"3\",op=\"AllReduce\"} 3\n"));
}

TEST(ranks_at_work_are_told_whole_and_what_finds_no_room_is_counted)
{
	double left_out;

	fleet_open();
	add_node(8, 40);	/* before any of them is used */
	looks(2);
	node_works(10);
	looks(3);
	ck_assert_uint_le(collect(true, 0), 150);
	ck_assert_int_eq(lines_of("ncclinsp_process_info"), 8);
	left_out = sum_of("ncclinsp_series_left_out", "");
	ck_assert_int_ge(lines_of("ncclinsp_last_sequence"), 27);
	ck_assert_int_le(lines_of("ncclinsp_comm_info") - lines_of("ncclinsp_last_sequence"), 1);
	ck_assert_double_eq(left_out, 8 * (10 * 5 - 4) - 2 * lines_of("ncclinsp_comm_info") -
			    lines_of("ncclinsp_last_sequence") -
			    2 * lines_of("ncclinsp_op_inside_ops_total"));
}

TEST(what_lives_takes_the_room_of_ranks_that_are_gone_at_once)
{
	fleet_open();
	add_node(7, 10);
	node_works(10);
	looks(2);
	for (size_t i = 1; i < 7; i++) {		/* their job lives on */
		fx.processes[i]->state = PROCESS_DIED;
		metrics_ended(fx.metrics, fx.processes[i], fx.now_ns);
	}
	looks(1);
	ck_assert_double_eq(sum_of("ncclinsp_process_exits_total", "\"unknown\""), 6);
	add_process(31, 2)->comms[0].id = 0x77;		/* nothing says that its job is another */
	work(fx.processes[7], 0, 30);
	looks(2);
	ck_assert_double_eq(sum_of("ncclinsp_last_sequence", "rank=\"31\""), 30);
	ck_assert_double_eq(sum_of("ncclinsp_op_inside_ops_total", "rank=\"31\""), 0);
	ck_assert_double_eq(sum_of("ncclinsp_series_left_out", ""), 0);
	ck_assert_int_eq(lines_of("ncclinsp_comm_info"), 11);	/* its other one is not used */
	looks(60);
	ck_assert_int_eq(lines_of("ncclinsp_comm_info"), 12);
}

TEST(a_finding_has_room_where_all_is_taken)
{
	fleet_open();
	add_node(8, 10);
	node_works(10);
	for (int i = 0; i < 60; i++) {
		fx.now_ns += FX_SECOND;
		diagnose_look(fx.diagnose, fx.now_ns);
		metrics_look(fx.metrics, fx.now_ns);
	}
	ck_assert_uint_le(collect(true, 0), 150);
	ck_assert_double_eq(sum_of("ncclinsp_finding_active", "kind=\"stall\",verdict="), 9);
	ck_assert_double_eq(sum_of("ncclinsp_finding_active", "comm=\"c1\""), -1);
}

/* ---- over the socket -------------------------------------------------------------- */

static char *ask(const char *accept)
{
	char request[256];
	int fd = fx_connect();

	snprintf(request, sizeof(request), "GET /metrics HTTP/1.1\r\nHost: x\r\n%s\r\n", accept);
	fx_send(fd, request, strlen(request));
	return fx_finish(fd);
}

TEST(who_asks_for_openmetrics_gets_it)
{
	char *answer = ask("");

	ck_assert_int_eq(fx_status(answer), 200);
	ck_assert(strstr(answer, "Content-Type: text/plain; version=0.0.4"));
	ck_assert_ptr_null(strstr(answer, "# EOF"));
	free(answer);
	answer = ask("Accept: application/openmetrics-text;version=1.0.0,text/plain;q=0.1\r\n");
	ck_assert(strstr(answer, "Content-Type: application/openmetrics-text; version=1.0.0"));
	ck_assert_str_eq(answer + strlen(answer) - 6, "# EOF\n");
	free(answer);
}

int main(void)
{
	return fx_run(setup, teardown);
}
