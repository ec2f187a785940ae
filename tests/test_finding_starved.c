/* SPDX-License-Identifier: Apache-2.0 */
/* Findings about threads that are away when the network needs them. */
#include "ncclinspd/findings/cpuwait.h"
#include "tests/fixture_proc.h"
#include "tests/fx_slow.h"

/* Twenty operations a second of each rank; every `nth` of rank 2 is seen so much later. */
static void run_ops(uint32_t seconds, int nth, uint64_t unseen_ns, int32_t others)
{
	struct op op = { .has_comm_id = true, .comm_id = FX_COMM_ID, .comm_name = "dp",
			 .nranks = 8, .proxy_ops = 4 };

	for (uint32_t i = 0; i < 20 * seconds; i++) {
		fx.now_ns += FX_SECOND / 20;
		for (op.rank = 0; op.rank < 4; op.rank++) {
			bool away = i % (uint32_t)nth == 0 && (op.rank == 2 || op.rank < others);

			op.pid = 100 + op.rank;
			op.process_id = (uint64_t)op.rank + 1;
			op.gpu_start_mono_ns = fx.now_ns - FX_SECOND;
			op.unseen_ns = i % 2 ? UNKNOWN_U64 : away ? unseen_ns : 20000;
			diagnose_ops(fx.diagnose, &(const struct op *){ &op }, 1, fx.now_ns);
		}
		if (i % 20 == 0)
			diagnose_look(fx.diagnose, fx.now_ns);
	}
}

TEST(a_thread_that_is_away_is_named_and_its_slow_link_is_not)
{
	json_t *a;

	start_ranks();
	run_ops(10, 4, 20000000, 0);
	a = only_finding("?active=true");
	ck_assert_str_eq(fx_text(a, "findings.0.kind"), "proxy_starved");
	ck_assert_uint_eq(fx_number(a, "findings.0.ranks.0"), 2);
	ck_assert_uint_eq(fx_number(a, "findings.0.evidence.starved"), 1);
	ck_assert_uint_eq(fx_number(a, "findings.0.evidence.processes"), 4);
	ck_assert_ptr_nonnull(strstr(fx_text(a, "findings.0.text"), "No other of the 4 processes"));
	json_decref(a);
	for (int i = 0; i < 5; i++) {
		run_ops(2, 4, 20000000, 0);
		for (int n = 0; n < 40; n++)
			transfer(n % 4, n % 4 + 1, 0, 0, (n % 4 == 2 ? 2 : 1) * STEP_NS);
	}
	json_decref(only_finding("?active=true"));
}

TEST(a_thread_is_not_away_for_more_than_all_of_the_time)
{
	json_t *a;

	start_ranks();
	run_ops(10, 1, 95000000, 0);	/* of each 100 ms, and half of the kernels are watched */
	a = only_finding("?active=true");
	ck_assert_double_eq(json_number_value(fx_at(a, "findings.0.evidence.share")), 1);
	json_decref(a);
}

TEST(threads_that_are_away_together_are_one_finding)
{
	json_t *a;

	start_ranks();
	run_ops(10, 4, 20000000, 2);
	a = only_finding("?active=true");
	ck_assert_uint_eq(json_array_size(fx_at(a, "findings.0.ranks")), 3);
	ck_assert_ptr_nonnull(strstr(fx_text(a, "findings.0.text"), "3 of the 4 processes"));
	json_decref(a);
}

TEST(threads_of_two_jobs_are_two_findings)
{
	json_t *a;

	start_ranks();
	fx.processes[0]->comms[0].id = fx.processes[1]->comms[0].id = 77;
	run_ops(10, 4, 20000000, 1);
	a = fx_get("/v1/findings", 200);
	ck_assert_uint_eq(json_array_size(fx_at(a, "findings")), 2);
	ck_assert_uint_eq(json_array_size(fx_at(a, "findings.0.ranks")), 1);
	ck_assert_uint_eq(json_array_size(fx_at(a, "findings.1.ranks")), 1);
	ck_assert_uint_eq(fx_number(a, "findings.0.ranks.0") + fx_number(a, "findings.1.ranks.0"),
			  2);
	ck_assert_uint_eq(fx_number(a, "findings.0.evidence.starved"), 2);
	json_decref(a);
}

TEST(a_process_that_ended_is_not_accused)
{
	json_t *a;

	start_ranks();
	run_ops(10, 4, 20000000, 1);
	json_decref(only_finding("?active=true"));
	fx.processes[2]->state = PROCESS_EXITED;
	run_ops(1, 4, 20000000, 1);
	a = only_finding("?active=true");	/* of the rank that still is */
	ck_assert_uint_eq(json_array_size(fx_at(a, "findings.0.ranks")), 1);
	ck_assert_uint_eq(fx_number(a, "findings.0.ranks.0"), 0);
	json_decref(a);
	fx.processes[0]->state = PROCESS_DIED;
	diagnose_look(fx.diagnose, fx.now_ns + FX_SECOND);
	a = fx_get("/v1/findings?active=true", 200);
	ck_assert_uint_eq(json_array_size(fx_at(a, "findings")), 0);
	json_decref(a);
	a = only_finding("");
	ck_assert(json_is_true(fx_at(a, "findings.0.with_job")));
	json_decref(a);
}

/* So many absences of 100 ms, one every two seconds, in each of which ten kernels begin. */
static void run_absences(uint32_t absences)
{
	struct op op = { .has_comm_id = true, .comm_id = FX_COMM_ID, .comm_name = "dp",
			 .nranks = 8, .proxy_ops = 4, .rank = 1, .pid = 101, .process_id = 2 };

	for (uint32_t i = 0; i < 40 * absences; i++) {
		uint64_t away_ns = (i % 40) * 10000000;

		op.gpu_start_mono_ns = fx.now_ns + away_ns;
		op.unseen_ns = i % 40 < 10 ? 100000000 - away_ns : 0;
		diagnose_ops(fx.diagnose, &(const struct op *){ &op }, 1, fx.now_ns);
		if (i % 40 == 39)
			fx.now_ns += 2 * FX_SECOND;
		diagnose_look(fx.diagnose, fx.now_ns);
	}
}

TEST(many_kernels_in_one_absence_are_one)
{
	json_t *a;

	start_ranks();
	run_absences(4);	/* a few, whatever they cost, are hiccups */
	a = fx_get("/v1/findings", 200);
	ck_assert_uint_eq(json_array_size(fx_at(a, "findings")), 0);
	json_decref(a);
	run_absences(6);
	a = only_finding("?active=true");
	ck_assert_uint_eq(fx_number(a, "findings.0.evidence.times"), 10);
	ck_assert_uint_eq(fx_number(a, "findings.0.evidence.late"), 100);
	ck_assert_uint_eq(fx_number(a, "findings.0.evidence.late_ns"), 10 * 100000000);
	json_decref(a);
}

/* ---- what the kernel tells of them ------------------------------------------------ */

/* The kernel tells that rank 2's thread waited for so much of the time, twenty seconds long. */
static void watch_thread(uint64_t wait_ns)
{
	struct process *p = fx.processes[2];
	const pid_t tid = p->pid + 1;

	fx_proc_thread(p->pid, p->pid, 0);
	fx_proc_thread(p->pid, tid, 0);
	ck_assert_int_eq(cpuwait_new(&p->cpuwait, fx_proc(), p->pid, FX_PROC_START), 0);
	for (uint64_t s = 0; s < 20; s++) {
		uint32_t files = 10;

		fx_proc_schedstat(p->pid, tid, FX_SECOND, s * wait_ns, 1);
		cpuwait_look(p->cpuwait, &tid, 1, fx.now_ns + s * FX_SECOND, &files);
	}
}

static void forget_thread(void)
{
	cpuwait_free(fx.processes[2]->cpuwait);
}

TEST_LOOP(a_thread_without_cpu_is_told_from_one_that_sleeps, 0, 2)
{
	const struct { uint64_t wait_ns; const char *text; } cases[] = {
		{ FX_SECOND / 5, "It was ready to run, but waited for a CPU for 20 % of the time. "
				 "See what else runs on its CPUs (taskset -cp 103" },
		{ FX_SECOND / 100, "It waited for a CPU for only 1 % of the time: it slept" },
	};
	json_t *a;

	start_ranks();
	watch_thread(cases[_i].wait_ns);
	run_ops(15, 4, 20000000, 0);
	a = only_finding("?active=true");
	ck_assert_ptr_nonnull(strstr(fx_text(a, "findings.0.text"), cases[_i].text));
	ck_assert_double_eq_tol(json_number_value(fx_at(a, "findings.0.evidence.cpu_wait_share")),
				(double)cases[_i].wait_ns / FX_SECOND, 1e-6);
	json_decref(a);
	forget_thread();
}

TEST(where_the_kernel_tells_nothing_the_reason_is_not_known)
{
	json_t *a;

	start_ranks();
	run_ops(15, 4, 20000000, 0);
	a = only_finding("?active=true");
	ck_assert(json_is_null(fx_at(a, "findings.0.evidence.cpu_wait_share")));
	ck_assert_ptr_null(strstr(fx_text(a, "findings.0.text"), "wait"));
	json_decref(a);
}

/* Twenty operations a second whose kernels nobody watches. */
static void run_unwatched(uint32_t seconds)
{
	struct op op = { .has_comm_id = true, .comm_id = FX_COMM_ID, .comm_name = "dp",
			 .nranks = 8, .proxy_ops = 4, .unseen_ns = UNKNOWN_U64, .rank = 2,
			 .pid = 102, .process_id = 3 };

	for (uint32_t i = 0; i < 20 * seconds; i++) {
		fx.now_ns += FX_SECOND / 20;
		diagnose_ops(fx.diagnose, &(const struct op *){ &op }, 1, fx.now_ns);
		if (i % 20 == 0)
			diagnose_look(fx.diagnose, fx.now_ns);
	}
}

TEST(a_thread_without_cpu_is_told_where_no_kernels_are_watched)
{
	json_t *a;

	start_ranks();
	watch_thread(FX_SECOND / 5);
	run_unwatched(15);
	a = only_finding("?active=true");
	ck_assert_str_eq(fx_text(a, "findings.0.kind"), "proxy_starved");
	ck_assert_str_eq(fx_text(a, "findings.0.severity"), "info");
	ck_assert_uint_eq(fx_number(a, "findings.0.ranks.0"), 2);
	ck_assert_ptr_nonnull(strstr(fx_text(a, "findings.0.text"),
				     "the cost is unknown"));
	ck_assert(json_is_null(fx_at(a, "findings.0.evidence.share")));
	json_decref(a);
	forget_thread();
}

/* Short waits, and long ones of threads whose kernels are seen in time, cost nothing. */
TEST_LOOP(a_thread_that_waits_and_is_in_time_is_no_finding, 0, 2)
{
	json_t *a;

	start_ranks();
	watch_thread(_i ? FX_SECOND / 30 : FX_SECOND / 2);
	if (_i)
		run_unwatched(15);
	else
		run_ops(15, 4, 20000, 0);
	a = fx_get("/v1/findings", 200);
	ck_assert_uint_eq(json_array_size(fx_at(a, "findings")), 0);
	json_decref(a);
	forget_thread();
}

TEST(what_waits_for_a_thread_that_is_away_is_no_slow_peer)
{
	json_t *a;

	start_ranks();
	for (int i = 0; i < 15; i++) {
		run_ops(1, 4, 20000000, 0);
		for (int n = 0; n < 40; n++)	/* rank 3 sends to who is elsewhere */
			transfer(n % 4, n % 4 + 1, 0, n % 4 == 3 ? 2 * STEP_NS : 0, STEP_NS);
	}
	a = only_finding("?active=true");
	ck_assert_str_eq(fx_text(a, "findings.0.kind"), "proxy_starved");
	json_decref(a);
}

TEST(a_rare_hiccup_of_a_thread_is_no_finding)
{
	json_t *a;

	start_ranks();
	run_ops(30, 100, 900000000, 0);
	run_ops(10, 4, 900000, 4);	/* less than a poll that is late */
	a = fx_get("/v1/findings", 200);
	ck_assert_uint_eq(json_array_size(fx_at(a, "findings")), 0);
	json_decref(a);
}

TEST(what_a_start_costs_is_no_finding)
{
	json_t *a;

	start_ranks();
	run_ops(3, 4, 3000000, 0);
	run_ops(30, 4, 20000, 0);
	a = fx_get("/v1/findings", 200);
	ck_assert_uint_eq(json_array_size(fx_at(a, "findings")), 0);
	json_decref(a);
}

TEST(a_thread_that_is_back_is_no_finding_any_more)
{
	json_t *a;

	start_ranks();
	run_ops(10, 4, 20000000, 0);
	run_ops(90, 4, 20000, 0);
	a = only_finding("");
	ck_assert(json_is_false(fx_at(a, "findings.0.active")));
	json_decref(a);
}

int main(void)
{
	return fx_run(setup, fx_serve_close);
}
