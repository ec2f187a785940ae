/* SPDX-License-Identifier: Apache-2.0 */
/* Findings about ranks that all compute longer. */
#include <string.h>

#include "judge/slow_compute.h"
#include "ncclinspd/findings/diagnose.h"
#include "tests/fx_evidence.h"
#include "util/log.h"

#define SECOND		UINT64_C(1000000000)
#define MS		UINT64_C(1000000)
#define RANKS		4
#define OPS		3		/* of an iteration */
#define INSIDE_NS	(2 * MS)	/* of an operation */

static struct diagnose *dg;
static uint64_t now_ns;
static const struct finding *found;
static struct process processes[RANKS], *list[RANKS];
static struct comm comms[RANKS];
static uint64_t posted_ns[RANKS];
static bool untimed;		/* nobody tells how long operations take */
static uint64_t other;		/* bytes that iterations of another kind have more */

static size_t all_processes(void *arg, struct process *const **at)
{
	(void)arg;
	*at = list;
	return RANKS;
}

static void setup(void)
{
	const struct diagnose_source source = { .processes = all_processes };

	log_set_level(LOG_ERROR);
	now_ns = 100000 * SECOND;
	untimed = false;
	other = 0;
	for (int i = 0; i < RANKS; i++) {
		comms[i] = (struct comm){ .ready = true, .has_id = true, .id = 0xc0, .rank = i,
					  .nranks = RANKS, .name = "dp" };
		processes[i] = (struct process){ .id = 1 + (uint64_t)i, .comms = &comms[i],
						 .ncomms = 1, .state = PROCESS_LIVE };
		list[i] = &processes[i];
		posted_ns[i] = now_ns;
	}
	ck_assert_int_eq(diagnose_new(&dg, &(struct diagnose_config){ 0 }, &source), 0);
}

static void teardown(void)
{
	diagnose_free(dg);
}

static bool keep(const struct finding *f, void *arg)
{
	(void)arg;
	if (f->kind == FINDING_SLOW_COMPUTE && !f->life.until_ns)
		found = f;
	return true;
}

static const struct finding *look_for_finding(void)
{
	found = NULL;
	diagnose_visit(dg, keep, NULL);
	return found;
}

static void post(int rank, int i, uint64_t inside_ns)
{
	const struct op op = {
		.process_id = processes[rank].id, .has_comm_id = true, .comm_id = 0xc0,
		.comm_name = "dp", .nranks = RANKS, .rank = rank, .func = "AllReduce",
		.bytes = (UINT64_C(1) << (20 + i)) + other, .sampled = true, .complete = true,
		.source = untimed ? TIMING_NONE : TIMING_KERNEL_GPU, .expects_kernel = !untimed,
		.exec_ns = untimed ? UNKNOWN_U64 : inside_ns,
		.enqueued_ns = posted_ns[rank], .started_ns = posted_ns[rank],
	};

	diagnose_ops(dg, &(const struct op *){ &op }, 1, now_ns);
}

/*
 * So many windows of 5 s: iterations of OPS operations, with computing of 30 ms between them,
 * times `slower` on the first ranks; the others wait for these inside.
 */
static void run(int windows, int ranks, double slower)
{
	for (uint64_t end_ns = now_ns + (uint64_t)windows * 5 * SECOND; now_ns < end_ns;) {
		uint64_t longest = ranks ? (uint64_t)(30e6 * slower) : 30 * MS;

		now_ns += SECOND;
		for (int r = 0; r < RANKS; r++)
			while (posted_ns[r] < now_ns)
				for (int i = 0; i < OPS; i++) {
					uint64_t noise = fx_random() % MS;
					uint64_t own = r < ranks ? longest : 30 * MS;

					post(r, i, INSIDE_NS + longest - own);
					posted_ns[r] += longest + INSIDE_NS + noise;
				}
		diagnose_look(dg, now_ns);
	}
}

TEST(all_that_compute_longer_are_told_and_nccl_is_not_blamed)
{
	json_t *evidence;

	run(CUSUM_FIRST + 2, 0, 1);
	ck_assert_ptr_null(look_for_finding());
	run(12, RANKS, 1.44);
	ck_assert_ptr_nonnull(look_for_finding());
	ck_assert_int_eq(found->severity, FINDING_INFO);
	ck_assert_str_eq(found->comm_name, "dp");
	ck_assert_ptr_nonnull(strstr(found->text, "the ranks of dp on this node compute 4"));
	ck_assert_ptr_nonnull(strstr(found->text, "and is not the cause"));
	ck_assert_uint_ge(found->since_ns, now_ns - 65 * SECOND);
	ck_assert_uint_le(found->since_ns, now_ns - 50 * SECOND);
	evidence = json_loadb(found->evidence, found->evidence_bytes, 0, NULL);
	fx_evidence_is_explained(evidence);
	json_decref(evidence);
	run(20, 0, 1);
	ck_assert_ptr_null(look_for_finding());
}

/* The others do not compute longer: they wait, inside. */
TEST(one_rank_alone_is_not_all)
{
	run(CUSUM_FIRST + 2, 0, 1);
	run(30, 1, 1.44);
	ck_assert_ptr_null(look_for_finding());
}

TEST(what_goes_on_for_an_hour_is_usual)
{
	run(CUSUM_FIRST + 2, 0, 1);
	run(12, RANKS, 1.44);
	ck_assert_ptr_nonnull(look_for_finding());
	run(760, RANKS, 1.44);
	ck_assert_ptr_null(look_for_finding());
}

/* Half a minute old, and its operations are timed only since a moment before. */
TEST(young_job_is_told_what_it_computes_longer_at_least)
{
	json_t *evidence;

	untimed = true;
	run(COMPUTE_FIRST + 2, 0, 1);
	untimed = false;
	run(COMPUTE_LASTS - 1, RANKS, 1.44);
	ck_assert_ptr_null(look_for_finding());
	run(1, RANKS, 1.44);
	ck_assert_ptr_nonnull(look_for_finding());
	ck_assert_int_eq(found->severity, FINDING_INFO);
	ck_assert_ptr_nonnull(strstr(found->text, "compute at least 3"));
	ck_assert_ptr_nonnull(strstr(found->text, "of an iteration instead of at most 9"));
	ck_assert_uint_eq(found->since_ns, now_ns - COMPUTE_LASTS * COMPUTE_WINDOW_NS);
	evidence = json_loadb(found->evidence, found->evidence_bytes, 0, NULL);
	fx_evidence_is_explained(evidence);
	ck_assert(json_is_true(json_object_get(evidence, "at_most")));
	ck_assert(json_is_null(json_object_get(evidence, "sigma")));
	json_decref(evidence);
	run(12, RANKS, 1.44);
	ck_assert_ptr_nonnull(look_for_finding());
	run(20, 0, 1);
	ck_assert_ptr_null(look_for_finding());
}

/* All of the increase may be NCCL's, as far as is known. */
TEST(what_nccl_may_have_taken_is_no_computing)
{
	untimed = true;
	run(COMPUTE_FIRST + 2, 0, 1);
	untimed = false;
	run(12, 1, 1.44);
	ck_assert_ptr_null(look_for_finding());
}

TEST(iterations_of_another_kind_are_not_compared)
{
	run(CUSUM_FIRST + 2, 0, 1);
	for (int i = 0; i < 3; i++) {
		other = 64;
		run(8, RANKS, 3);
		other = 0;
		run(10, 0, 1);
		ck_assert_ptr_null(look_for_finding());
	}
	run(12, RANKS, 1.44);
	ck_assert_ptr_nonnull(look_for_finding());
}

TEST(what_was_faster_for_minutes_is_usual)
{
	run(CUSUM_FIRST + 2, 0, 1);
	run(2 * CUSUM_STEADY, RANKS, 0.5);
	run(20, 0, 1);
	ck_assert_ptr_nonnull(look_for_finding());
}

/* ---- windows that are made up --------------------------------------------------- */

static struct compute_series series;
static struct compute_case judged;

static bool window_is_told(uint64_t step_ns, uint64_t inside_ns, uint64_t kind)
{
	const struct compute_row row = { step_ns, step_ns, inside_ns, kind };

	now_ns += COMPUTE_WINDOW_NS;
	return compute_judge(&series, 12, &row, 1, now_ns, &judged);
}

/* Iterations of 4 s, one of which is a checkpoint. */
TEST(one_long_pause_is_not_told)
{
	memset(&series, 0, sizeof(series));
	for (int i = 0; i < 100; i++)
		ck_assert(!window_is_told((i % 25 == 24 ? 30 : 4) * SECOND + fx_random() % MS,
					  SECOND, 1));
	ck_assert_int_eq(series.cusum.alarm, 0);
}

TEST(slow_start_is_not_the_usual)
{
	memset(&series, 0, sizeof(series));
	for (int i = 0; i < 6; i++)
		ck_assert(!window_is_told(100 * MS, UNKNOWN_U64, 1));
	for (int i = 0; i < 8; i++)
		ck_assert(!window_is_told(20 * MS, 2 * MS, 1));
	for (int i = 0; i < COMPUTE_LASTS; i++)
		ck_assert_int_eq(window_is_told(30 * MS, 2 * MS, 1), i == COMPUTE_LASTS - 1);
	ck_assert_uint_eq(judged.since_ns, now_ns - COMPUTE_LASTS * COMPUTE_WINDOW_NS);
}

/*
 * A pipeline that is in its sends and receives all the time computes for 1 us or 3, or for nothing,
 * until a longer part of it is taken for its iteration.
 */
static const struct compute_row pipelines[][2] = {
	{ { 2 * MS, 2 * MS, 2 * MS - 1000, 1 }, { 2 * MS, 2 * MS, 2 * MS - 3000, 1 } },
	{ { 2 * MS, 2 * MS, 2 * MS, 1 }, { 5 * MS, 5 * MS, 2 * MS, 1 } },
};

TEST_LOOP(what_hardly_computes_is_not_told, 0, FX_COUNT(pipelines))
{
	memset(&series, 0, sizeof(series));
	for (int i = 0; i < CUSUM_FIRST + 12; i++) {
		const struct compute_row *row = &pipelines[_i][i > CUSUM_FIRST];

		ck_assert(!window_is_told(row->step_ns, row->inside_ns, row->kind));
	}
	ck_assert_int_eq(series.cusum.alarm, 1);
}

int main(void)
{
	return fx_run(setup, teardown);
}
