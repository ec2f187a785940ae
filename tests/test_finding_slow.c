/* SPDX-License-Identifier: Apache-2.0 */
/* Findings about links that are slower than others, and threads that are away. */
#include "ncclinspd/cpuwait.h"
#include "tests/fixture_proc.h"
#include "tests/fixture_serve.h"

#define STEP_NS	1000000

static void setup(void)
{
	fx_serve_open(NULL);
}

/* What one link did in an operation: times in ns for each of its ten steps. */
static void transfer_of(struct process *p, name_t comm, int32_t rank, int32_t peer,
			uint8_t channel, uint64_t held, uint64_t busy)
{
	const struct nci_ev_proxy_op op = {
		.type = NCI_EV_PROXY_OP, .form = 2 | NCI_FORM_SEND, .rank = rank, .peer = peer,
		.channel = channel, .steps_done = 10, .bytes = 10 << 16,
	};
	const struct nci_ev_proxy_sums sums = {
		.start = 1000, .stop = 1000 + 10 * (held + busy + 20), .steps = 10,
		.bytes = 10 << 16, .busy = 10 * busy, .covered = 10 * (held + busy),
	};
	const struct transfers t = { p, p, 0, comm, NULL, &op, &sums };

	links_add(fx.links, &t, fx.now_ns);
}

static void transfer(int32_t rank, int32_t peer, uint8_t channel, uint64_t held, uint64_t busy)
{
	transfer_of(fx.processes[rank], "dp", rank, peer, channel, held, busy);
}

/*
 * Four ranks in a ring on two channels, for so many seconds, each 50 ms of them on the
 * wire; `slow` is how much longer rank 1 needs on channels `from` and up, `held` for how
 * long each step of rank 3 waits for its peer.
 */
static void run_ring(uint32_t seconds, uint64_t slow, uint8_t from, uint64_t held)
{
	for (uint32_t s = 0; s < seconds; s++) {
		for (int32_t i = 0; i < 40; i++) {
			int32_t rank = i % 4;
			uint8_t channel = (uint8_t)(i / 4 % 2);
			bool hurt = rank == 1 && channel >= from;

			transfer(rank, (rank + 1) % 8, channel, rank == 3 ? held : 0,
				 (hurt ? slow : 1) * STEP_NS);
		}
		fx.now_ns += FX_SECOND;
		diagnose_look(fx.diagnose, fx.now_ns);
	}
}

static void start_ranks(void)
{
	for (int32_t rank = 0; rank < 4; rank++)
		fx_process(100 + rank, 0, rank);
}

static json_t *only_finding(const char *query)
{
	char target[64];
	json_t *a;

	snprintf(target, sizeof(target), "/v1/findings%s", query);
	a = fx_get(target, 200);
	ck_assert_uint_eq(json_array_size(fx_at(a, "findings")), 1);
	return a;
}

START_TEST(even_links_are_no_finding)
{
	json_t *a;

	start_ranks();
	run_ring(30, 1, 0, 0);
	a = fx_get("/v1/findings", 200);
	ck_assert_uint_eq(json_array_size(fx_at(a, "findings")), 0);
	json_decref(a);
}
END_TEST

START_TEST(a_slow_link_is_named_with_what_cannot_be_told)
{
	json_t *a;

	start_ranks();
	run_ring(15, 3, 0, 0);
	a = only_finding("?active=true");
	ck_assert_str_eq(fx_text(a, "findings.0.verdict"), "LINK");
	ck_assert_uint_eq(fx_number(a, "findings.0.ranks.0"), 1);
	ck_assert_uint_eq(fx_number(a, "findings.0.peer"), 2);
	ck_assert_ptr_nonnull(strstr(fx_text(a, "findings.0.text"), "3.0 times"));
	ck_assert_ptr_nonnull(strstr(fx_text(a, "findings.0.text"), "it may be the path"));
	json_decref(a);
}
END_TEST

START_TEST(a_slow_channel_is_told_from_a_slow_link)
{
	json_t *a;

	start_ranks();
	run_ring(15, 3, 1, 0);
	a = only_finding("?active=true");
	ck_assert_str_eq(fx_text(a, "findings.0.verdict"), "CHANNEL");
	ck_assert_uint_eq(fx_number(a, "findings.0.evidence.channel"), 1);
	json_decref(a);
}
END_TEST

START_TEST(it_is_over_when_the_link_is_well_again)
{
	json_t *a;

	start_ranks();
	run_ring(20, 3, 0, 0);
	run_ring(120, 1, 0, 0);
	a = only_finding("");
	ck_assert(json_is_false(fx_at(a, "findings.0.active")));
	json_decref(a);
}
END_TEST

START_TEST(a_receiver_that_has_no_room_is_told_as_such)
{
	json_t *a;

	start_ranks();
	run_ring(15, 1, 0, 10 * STEP_NS);
	a = only_finding("?active=true");
	ck_assert_str_eq(fx_text(a, "findings.0.severity"), "info");
	ck_assert_uint_eq(fx_number(a, "findings.0.ranks.0"), 3);
	ck_assert_uint_eq(fx_number(a, "findings.0.peer"), 4);
	ck_assert_str_eq(fx_text(a, "findings.0.evidence.aspect"), "room");
	json_decref(a);
}
END_TEST

START_TEST(what_costs_next_to_nothing_is_not_told)
{
	json_t *a;

	start_ranks();
	for (int s = 0; s < 30; s++) {
		for (int32_t rank = 0; rank < 4; rank++)
			for (int n = 0; n < 5; n++)
				transfer(rank, (rank + 1) % 8, 0, 0, rank == 1 ? 9 * 1000 : 1000);
		fx.now_ns += FX_SECOND;
		diagnose_look(fx.diagnose, fx.now_ns);
	}
	a = fx_get("/v1/findings", 200);
	ck_assert_uint_eq(json_array_size(fx_at(a, "findings")), 0);
	json_decref(a);
}
END_TEST

/* ---- one link in each communicator ------------------------------------------------ */

enum kin {
	KIN,		/* of one job, name and size */
	OTHER_JOB,
	OTHER_NAME,
	OTHER_SIZE,
};

/*
 * Three communicators, in each of which one rank is here and sends to one elsewhere, on two
 * channels; the last one's transfers take so many times as long.
 */
static void run_lonely_links(enum kin kin, double slow)
{
	static const name_t names[2] = { "dp", "pp" };

	for (int32_t i = 0; i < 3; i++) {
		struct process *p = fx_process(100 + i, 0, 0);

		p->comms = realloc(p->comms, 2 * sizeof(*p->comms));
		p->comms[1] = p->comms[0];
		p->comms[1].id = kin == OTHER_JOB ? 900 + (uint64_t)i : 900;
		p->comms[1].rank = i;
		p->comms[0].id = 70 + (uint64_t)i;
		p->comms[0].nranks = kin == OTHER_SIZE ? 4 + i : 4;
		p->ncomms = 2;
	}
	for (uint32_t s = 0; s < 15; s++) {
		for (int32_t i = 0; i < 3 * 2 * 10; i++) {
			int32_t who = i % 3;
			double ns = who == 2 ? slow * STEP_NS : STEP_NS;

			transfer_of(fx.processes[who], names[kin == OTHER_NAME ? who % 2 : 0], 0, 1,
				    (uint8_t)(i / 3 % 2), 0, (uint64_t)ns);
			if (kin == OTHER_NAME && who == 0)	/* else two are alike */
				transfer_of(fx.processes[who], names[0], 0, 2, 0, 0, STEP_NS);
		}
		fx.now_ns += FX_SECOND;
		diagnose_look(fx.diagnose, fx.now_ns);
	}
}

START_TEST(a_link_that_is_alone_is_compared_with_its_like)
{
	json_t *a;

	run_lonely_links(KIN, 4);
	a = only_finding("?active=true");
	ck_assert_str_eq(fx_text(a, "findings.0.verdict"), "LINK");
	ck_assert_str_eq(fx_text(a, "findings.0.comm_id"), "0x0000000000000048");
	ck_assert_uint_eq(fx_number(a, "findings.0.ranks.0"), 0);
	ck_assert_uint_eq(fx_number(a, "findings.0.peer"), 1);
	ck_assert(json_is_true(fx_at(a, "findings.0.evidence.siblings")));
	ck_assert_ptr_nonnull(strstr(fx_text(a, "findings.0.text"),
				     "4.0 times the time for a byte of the links of other communicators "
				     "like dp"));
	ck_assert_ptr_nonnull(strstr(fx_text(a, "findings.0.text"), "neither has another link here"));
	json_decref(a);
}
END_TEST

START_TEST(what_is_not_alike_is_not_compared)
{
	json_t *a;

	run_lonely_links(_i ? (enum kin)_i : KIN, _i ? 4 : 1.8);
	a = fx_get("/v1/findings", 200);
	ck_assert_uint_eq(json_array_size(fx_at(a, "findings")), 0);
	json_decref(a);
}
END_TEST

/* ---- progress threads ----------------------------------------------------------- */

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
			diagnose_op(fx.diagnose, &op, fx.now_ns);
		}
		if (i % 20 == 0)
			diagnose_look(fx.diagnose, fx.now_ns);
	}
}

START_TEST(a_thread_that_is_away_is_named_and_its_slow_link_is_not)
{
	json_t *a;

	start_ranks();
	run_ops(10, 4, 20000000, 0);
	a = only_finding("?active=true");
	ck_assert_str_eq(fx_text(a, "findings.0.kind"), "proxy_starved");
	ck_assert_uint_eq(fx_number(a, "findings.0.ranks.0"), 2);
	ck_assert_uint_eq(fx_number(a, "findings.0.evidence.starved"), 1);
	ck_assert_uint_eq(fx_number(a, "findings.0.evidence.processes"), 4);
	ck_assert_ptr_nonnull(strstr(fx_text(a, "findings.0.text"), "that of no other of the 4"));
	json_decref(a);
	for (int i = 0; i < 5; i++) {
		run_ops(2, 4, 20000000, 0);
		for (int n = 0; n < 40; n++)
			transfer(n % 4, n % 4 + 1, 0, 0, (n % 4 == 2 ? 2 : 1) * STEP_NS);
	}
	json_decref(only_finding("?active=true"));
}
END_TEST

START_TEST(threads_that_are_away_together_are_one_finding)
{
	json_t *a;

	start_ranks();
	run_ops(10, 4, 20000000, 2);
	a = only_finding("?active=true");
	ck_assert_uint_eq(json_array_size(fx_at(a, "findings.0.ranks")), 3);
	ck_assert_ptr_nonnull(strstr(fx_text(a, "findings.0.text"), "3 of 4 processes"));
	json_decref(a);
}
END_TEST

START_TEST(threads_of_two_jobs_are_two_findings)
{
	json_t *a;

	start_ranks();
	fx.processes[0]->comms[0].id = fx.processes[1]->comms[0].id = 77;
	run_ops(10, 4, 20000000, 1);
	a = fx_get("/v1/findings", 200);
	ck_assert_uint_eq(json_array_size(fx_at(a, "findings")), 2);
	ck_assert_uint_eq(json_array_size(fx_at(a, "findings.0.ranks")), 1);
	ck_assert_uint_eq(json_array_size(fx_at(a, "findings.1.ranks")), 1);
	ck_assert_uint_eq(fx_number(a, "findings.0.ranks.0") + fx_number(a, "findings.1.ranks.0"), 2);
	ck_assert_uint_eq(fx_number(a, "findings.0.evidence.starved"), 2);
	json_decref(a);
}
END_TEST

/* So many absences of 100 ms, one every two seconds, in each of which ten kernels begin. */
static void run_absences(uint32_t absences)
{
	struct op op = { .has_comm_id = true, .comm_id = FX_COMM_ID, .comm_name = "dp",
			 .nranks = 8, .proxy_ops = 4, .rank = 1, .pid = 101, .process_id = 2 };

	for (uint32_t i = 0; i < 40 * absences; i++) {
		uint64_t away_ns = (i % 40) * 10000000;

		op.gpu_start_mono_ns = fx.now_ns + away_ns;
		op.unseen_ns = i % 40 < 10 ? 100000000 - away_ns : 0;
		diagnose_op(fx.diagnose, &op, fx.now_ns);
		if (i % 40 == 39)
			fx.now_ns += 2 * FX_SECOND;
		diagnose_look(fx.diagnose, fx.now_ns);
	}
}

START_TEST(many_kernels_in_one_absence_are_one)
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
END_TEST

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

START_TEST(a_thread_without_cpu_is_told_from_one_that_sleeps)
{
	const struct { uint64_t wait_ns; const char *text; } cases[] = {
		{ FX_SECOND / 5, "it could have run, and waited for a CPU for 20 % of the time: see what "
				 "shares its CPUs (taskset -cp 103" },
		{ FX_SECOND / 100, "it did not itself wait for a CPU meanwhile (1 % of the time)" },
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
END_TEST

START_TEST(where_the_kernel_tells_nothing_the_reason_is_not_known)
{
	json_t *a;

	start_ranks();
	run_ops(15, 4, 20000000, 0);
	a = only_finding("?active=true");
	ck_assert(json_is_null(fx_at(a, "findings.0.evidence.cpu_wait_share")));
	ck_assert_ptr_null(strstr(fx_text(a, "findings.0.text"), "wait"));
	json_decref(a);
}
END_TEST

/* Twenty operations a second whose kernels nobody watches. */
static void run_unwatched(uint32_t seconds)
{
	struct op op = { .has_comm_id = true, .comm_id = FX_COMM_ID, .comm_name = "dp",
			 .nranks = 8, .proxy_ops = 4, .unseen_ns = UNKNOWN_U64, .rank = 2,
			 .pid = 102, .process_id = 3 };

	for (uint32_t i = 0; i < 20 * seconds; i++) {
		fx.now_ns += FX_SECOND / 20;
		diagnose_op(fx.diagnose, &op, fx.now_ns);
		if (i % 20 == 0)
			diagnose_look(fx.diagnose, fx.now_ns);
	}
}

START_TEST(a_thread_without_cpu_is_told_where_no_kernels_are_watched)
{
	json_t *a;

	start_ranks();
	watch_thread(FX_SECOND / 5);
	run_unwatched(15);
	a = only_finding("?active=true");
	ck_assert_str_eq(fx_text(a, "findings.0.kind"), "proxy_starved");
	ck_assert_str_eq(fx_text(a, "findings.0.severity"), "info");
	ck_assert_uint_eq(fx_number(a, "findings.0.ranks.0"), 2);
	ck_assert_ptr_nonnull(strstr(fx_text(a, "findings.0.text"), "what that costs is not known"));
	ck_assert(json_is_null(fx_at(a, "findings.0.evidence.share")));
	json_decref(a);
	forget_thread();
}
END_TEST

/* Short waits, and long ones of threads whose kernels are seen in time, cost nothing. */
START_TEST(a_thread_that_waits_and_is_in_time_is_no_finding)
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
END_TEST

START_TEST(what_waits_for_a_thread_that_is_away_is_no_slow_peer)
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
END_TEST

START_TEST(what_waits_for_room_at_a_rank_that_is_here_is_not_told)
{
	json_t *a;

	start_ranks();
	for (int i = 0; i < 15; i++) {
		for (int n = 0; n < 40; n++)	/* rank 2 is here, and sends nothing itself */
			if (n % 4 != 2)
				transfer(n % 4, n % 4 + 1, 0, n % 4 == 1 ? 2 * STEP_NS : 0, STEP_NS);
		fx.now_ns += FX_SECOND;
		diagnose_look(fx.diagnose, fx.now_ns);
	}
	a = fx_get("/v1/findings", 200);
	ck_assert_uint_eq(json_array_size(fx_at(a, "findings")), 0);
	json_decref(a);
}
END_TEST

START_TEST(a_rare_hiccup_of_a_thread_is_no_finding)
{
	json_t *a;

	start_ranks();
	run_ops(30, 100, 900000000, 0);
	run_ops(10, 4, 900000, 4);	/* less than a poll that is late */
	a = fx_get("/v1/findings", 200);
	ck_assert_uint_eq(json_array_size(fx_at(a, "findings")), 0);
	json_decref(a);
}
END_TEST

START_TEST(what_a_start_costs_is_no_finding)
{
	json_t *a;

	start_ranks();
	run_ops(3, 4, 3000000, 0);
	run_ops(30, 4, 20000, 0);
	a = fx_get("/v1/findings", 200);
	ck_assert_uint_eq(json_array_size(fx_at(a, "findings")), 0);
	json_decref(a);
}
END_TEST

START_TEST(a_thread_that_is_back_is_no_finding_any_more)
{
	json_t *a;

	start_ranks();
	run_ops(10, 4, 20000000, 0);
	run_ops(90, 4, 20000, 0);
	a = only_finding("");
	ck_assert(json_is_false(fx_at(a, "findings.0.active")));
	json_decref(a);
}
END_TEST

int main(void)
{
	const struct fx_test tests[] = {
		FX_TEST(even_links_are_no_finding),
		FX_TEST(a_slow_link_is_named_with_what_cannot_be_told),
		FX_TEST(a_slow_channel_is_told_from_a_slow_link),
		FX_TEST(it_is_over_when_the_link_is_well_again),
		FX_TEST(a_receiver_that_has_no_room_is_told_as_such),
		FX_TEST(what_costs_next_to_nothing_is_not_told),
		FX_TEST(a_thread_that_is_away_is_named_and_its_slow_link_is_not),
		FX_TEST(threads_that_are_away_together_are_one_finding),
		FX_TEST(threads_of_two_jobs_are_two_findings),
		FX_TEST(what_waits_for_a_thread_that_is_away_is_no_slow_peer),
		FX_TEST(what_waits_for_room_at_a_rank_that_is_here_is_not_told),
		FX_TEST(a_link_that_is_alone_is_compared_with_its_like),
		FX_LOOP(what_is_not_alike_is_not_compared, 0, 4),
		FX_TEST(many_kernels_in_one_absence_are_one),
		FX_LOOP(a_thread_without_cpu_is_told_from_one_that_sleeps, 0, 2),
		FX_TEST(where_the_kernel_tells_nothing_the_reason_is_not_known),
		FX_TEST(a_thread_without_cpu_is_told_where_no_kernels_are_watched),
		FX_LOOP(a_thread_that_waits_and_is_in_time_is_no_finding, 0, 2),
		FX_TEST(a_rare_hiccup_of_a_thread_is_no_finding),
		FX_TEST(what_a_start_costs_is_no_finding),
		FX_TEST(a_thread_that_is_back_is_no_finding_any_more),
	};

	return fx_run(setup, fx_serve_close, tests, FX_COUNT(tests));
}
