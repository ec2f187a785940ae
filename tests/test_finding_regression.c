/* SPDX-License-Identifier: Apache-2.0 */
/* Findings about operations that take longer than they used to. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "judge/cusum.h"
#include "ncclinspd/findings/diagnose.h"
#include "tests/fx_evidence.h"
#include "util/log.h"

#define SECOND	UINT64_C(1000000000)
#define KINDS	3
#define LEARN	(CUSUM_LEARN + 2)

static struct diagnose *dg;
static uint64_t now_ns;
static const struct finding *found;
static int nfound;

static struct process process, others, *processes[] = { &process, &others };
static struct comm own[2];
static uid_t users;		/* those that run the same, with communicators of the same ids */

static size_t all_processes(void *arg, struct process *const **list)
{
	(void)arg;
	*list = processes;
	return FX_COUNT(processes);
}

/* The job as its launcher describes it, and the nodes that its communicators are on. */
static void describe(const char *name, const char *world_size, int32_t nnodes)
{
	process = (struct process){ .id = 1, .comms = own, .ncomms = 2, .command = "python3" };
	for (int i = 0; i < 2; i++)
		own[i] = (struct comm){ .ready = true, .has_id = true, .id = 0xc0 + (uint64_t)i,
					.nranks = 8, .nnodes = nnodes };
	process.env_bytes = (uint32_t)snprintf(process.env, sizeof(process.env),
					       "SLURM_JOB_NAME=%s%cWORLD_SIZE=%s", name, 0,
					       world_size) + 1;
	others = process;
	others.id = 2;
	others.uid = 1;
}

static void start(const char *state_dir)
{
	const struct diagnose_config config = { .state_dir = state_dir };
	const struct diagnose_source source = { .processes = all_processes };

	ck_assert_int_eq(diagnose_new(&dg, &config, &source), 0);
}

static void setup(void)
{
	log_set_level(LOG_ERROR);
	now_ns = 100000 * SECOND;
	users = 1;
	describe("llama", "16", 2);
	start(NULL);
}

static void teardown(void)
{
	diagnose_free(dg);
}

static bool keep(const struct finding *f, void *arg)
{
	(void)arg;
	if (f->kind == FINDING_REGRESSION && !f->life.until_ns) {
		found = f;
		nfound++;
	}
	return true;
}

static enum timing_source source = TIMING_KERNEL_GPU;

static int count(void)
{
	nfound = 0;
	diagnose_visit(dg, keep, NULL);
	return nfound;
}

static void add_timed(uid_t user, int comm, int kind, uint64_t ns)
{
	static const char *const names[] = { "dp", "tp" };
	const struct op op = {
		.process_id = 1 + user, .uid = user, .has_comm_id = true,
		.comm_id = 0xc0 + (uint64_t)comm, .comm_index = (uint32_t)comm,
		.comm_name = names[comm], .nranks = 8, .func = "AllReduce", .algo = "RING",
		.proto = "SIMPLE", .bytes = UINT64_C(1) << (20 + kind), .source = source,
		.sampled = true, .complete = true, .exec_ns = ns,
	};

	diagnose_ops(dg, &(const struct op *){ &op }, 1, now_ns);
}

static uint64_t time_alone(int kind, double times)
{
	return (uint64_t)((double)(1000000u << kind) * times *
			  (1 + 0.02 * (double)(fx_random() % 100) / 100));
}

/* Waiting for others makes many longer, and none shorter. */
static void add_op(int comm, int kind, double times)
{
	for (uid_t user = 0; user < users; user++) {
		uint64_t waits = fx_random() % 2 ? fx_random() % 4 : 0;

		add_timed(user, comm, kind, time_alone(kind, times) * (1 + waits));
	}
}

/* Windows of ten seconds, three kinds on each of two communicators. */
static void run(int windows, int comms, int kinds, double times)
{
	for (int w = 0; w < windows; w++) {
		for (int i = 0; i < 2 * KINDS * 30; i++) {
			int comm = i % 2, kind = i / 2 % KINDS;

			add_op(comm, kind, comm < comms && kind < kinds ? times : 1);
		}
		now_ns += 10 * SECOND;
		diagnose_look(dg, now_ns);
	}
}

TEST(what_stays_as_it_was_is_no_finding)
{
	for (int i = 0; i < 30; i++) {
		run(LEARN, 0, 0, 1);
		ck_assert_int_eq(count(), 0);
	}
}

static const struct { int comms, kinds; const char *scope; } changes[] = {
	{ 1, 1, "\"scope\":\"kind\"" },
	{ 1, KINDS, "\"scope\":\"communicator\"" },
	{ 2, KINDS, "\"scope\":\"node\"" },
};

TEST_LOOP(what_became_slower_is_told_with_what_else_did, 0, FX_COUNT(changes))
{
	json_t *evidence;

	run(LEARN, 0, 0, 1);
	run(8, changes[_i].comms, changes[_i].kinds, 1.3);
	ck_assert_int_eq(count(), 1);
	evidence = json_loadb(found->evidence, found->evidence_bytes, 0, NULL);
	fx_evidence_is_explained(evidence);
	json_decref(evidence);
	ck_assert_ptr_nonnull(memmem(found->evidence, found->evidence_bytes, changes[_i].scope,
				     strlen(changes[_i].scope)));
	ck_assert_ptr_nonnull(strstr(found->text, "longer than usual"));
	ck_assert_uint_ge(found->since_ns, now_ns - 110 * SECOND);
	run(20, 0, 0, 1);
	ck_assert_int_eq(count(), 0);
}

/* The network's time says too little of an operation's to be compared, and to be kept. */
TEST(what_the_network_alone_timed_has_no_usual)
{
	source = TIMING_PROXY_CPU;
	run(LEARN, 0, 0, 1);
	run(8, 2, KINDS, 1.3);
	source = TIMING_KERNEL_GPU;
	ck_assert_int_eq(count(), 0);
}

/* A job's fifth minute: a change that lasts is told within two more, and kept for the next job. */
TEST(a_young_job_is_compared_with_its_first_minutes)
{
	run(CUSUM_FIRST, 0, 0, 1);
	run(12, 2, KINDS, 1.1);
	ck_assert_int_eq(count(), 1);
	ck_assert_uint_le(now_ns - found->since_ns, 130 * SECOND);
	run(60, 2, KINDS, 1.1);
	ck_assert_int_eq(count(), 1);		/* it is not taken for usual */
}

/* Bursts leave one operation in 10 s. */
static void run_rarely(int ops, double times)
{
	for (int i = 0; i < ops; i++) {
		add_timed(0, 0, 0, time_alone(0, times));
		now_ns += 10 * SECOND;
		diagnose_look(dg, now_ns);
	}
}

TEST(operations_that_are_timed_rarely_are_compared_as_well)
{
	uint64_t from_ns;

	run_rarely(4 * LEARN, 1);
	from_ns = now_ns;
	run_rarely(60, 1.5);
	ck_assert_int_eq(count(), 1);
	ck_assert_uint_ge(found->since_ns, from_ns - 120 * SECOND);
	ck_assert_uint_le(found->since_ns, from_ns + 120 * SECOND);
}

/* So many windows before the one that the pause makes long. */
TEST_LOOP(a_pause_makes_no_change_older, 0, 5)
{
	uint64_t from_ns;

	run(LEARN, 0, 0, 1);
	from_ns = now_ns;
	run(_i, 2, KINDS, 1.08);
	now_ns += 7200 * SECOND;
	run(20, 2, KINDS, 1.08);
	ck_assert_int_eq(count(), 1);
	ck_assert_uint_ge(found->since_ns, from_ns - 110 * SECOND);
}

TEST_LOOP(each_user_is_told_of_their_own, 0, FX_COUNT(changes))
{
	users = 2;
	run(LEARN, 0, 0, 1);
	run(8, changes[_i].comms, changes[_i].kinds, 1.3);
	ck_assert_int_eq(count(), 2);
}

TEST(a_job_that_ended_is_slow_no_more)
{
	run(LEARN, 0, 0, 1);
	run(8, 2, KINDS, 1.3);
	ck_assert_int_eq(count(), 1);
	process.state = PROCESS_EXITED;
	for (int i = 0; i < 60; i++) {
		now_ns += SECOND;
		diagnose_look(dg, now_ns);
		ck_assert_int_eq(count(), 0);
	}
}

TEST(what_became_faster_is_the_new_way_of_things)
{
	run(LEARN, 0, 0, 1);
	run(60, 2, KINDS, 0.5);
	ck_assert_int_eq(count(), 0);
	run(10, 2, KINDS, 1);
	ck_assert_int_eq(count(), 1);
}

/* Operations of another user, of ever other sizes. */
static void flood(int n)
{
	for (int i = 0; i < n; i++) {
		const struct op op = {
			.process_id = 2, .uid = 1000, .has_comm_id = true, .comm_id = 0xe1,
			.nranks = 2, .func = "AllReduce", .algo = "RING", .proto = "SIMPLE",
			.bytes = 8 + (uint64_t)i, .source = TIMING_KERNEL_GPU, .exec_ns = 1000,
			.sampled = true, .complete = true,
		};

		diagnose_ops(dg, &(const struct op *){ &op }, 1, now_ns);
	}
}

TEST(nobody_keeps_others_from_learning_what_is_usual)
{
	flood(20000);
	for (int i = 0; i < LEARN; i++) {
		run(1, 0, 0, 1);
		flood(2000);
	}
	run(8, 2, KINDS, 1.3);
	ck_assert_int_eq(count(), 1);
}

static void start_without_baselines(void)
{
	char path[256];

	diagnose_free(dg);
	snprintf(path, sizeof(path), "%s/baselines", fx_tmpdir());
	unlink(path);
	start(fx_tmpdir());
}

/* The next job, which finds the baselines of those before. */
static void next_job(void)
{
	diagnose_free(dg);
	start(fx_tmpdir());
}

TEST(a_baseline_outlives_the_daemon)
{
	start_without_baselines();
	run(LEARN, 0, 0, 1);
	next_job();
	run(12, 2, KINDS, 1.3);
	ck_assert_int_eq(count(), 1);
	ck_assert_ptr_nonnull(strstr(found->text, "as of an earlier job"));
}

TEST(short_jobs_leave_a_baseline_together)
{
	start_without_baselines();
	for (int job = 0; job < 2; job++) {
		run(CUSUM_FIRST / 2, 0, 0, 1);
		next_job();
	}
	run(12, 2, KINDS, 1.3);
	ck_assert_int_eq(count(), 1);
	ck_assert_ptr_nonnull(strstr(found->text, "as of an earlier job"));
}

static const struct { const char *name, *world_size; int32_t nnodes; int findings; } jobs[] = {
	{ "llama", "16", 2, 1 },	/* the same */
	{ "llama-2", "16", 2, 0 },
	{ "llama", "32", 2, 0 },
	{ "llama", "16", 4, 0 },
};

TEST_LOOP(a_baseline_is_of_jobs_of_one_name_and_shape, 0, FX_COUNT(jobs))
{
	start_without_baselines();
	run(LEARN, 0, 0, 1);
	next_job();
	describe(jobs[_i].name, jobs[_i].world_size, jobs[_i].nnodes);
	run(12, 2, KINDS, 1.3);
	ck_assert_int_eq(count(), jobs[_i].findings);
}

int main(void)
{
	return fx_run(setup, teardown);
}
