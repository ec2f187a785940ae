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
		.bytes = UINT64_C(1) << (20 + i), .source = TIMING_KERNEL_GPU, .sampled = true,
		.complete = true, .expects_kernel = true, .exec_ns = inside_ns,
		.enqueued_ns = posted_ns[rank], .started_ns = posted_ns[rank],
	};

	diagnose_op(dg, &op, now_ns);
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

START_TEST(all_that_compute_longer_are_told_and_nccl_is_not_blamed)
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
END_TEST

/* The others do not compute longer: they wait, inside. */
START_TEST(one_rank_alone_is_not_all)
{
	run(CUSUM_FIRST + 2, 0, 1);
	run(30, 1, 1.44);
	ck_assert_ptr_null(look_for_finding());
}
END_TEST

START_TEST(what_goes_on_for_an_hour_is_usual)
{
	run(CUSUM_FIRST + 2, 0, 1);
	run(12, RANKS, 1.44);
	ck_assert_ptr_nonnull(look_for_finding());
	run(760, RANKS, 1.44);
	ck_assert_ptr_null(look_for_finding());
}
END_TEST

/*
 * A pipeline that is in its sends and receives all the time computes for 1 us or 3, or for nothing,
 * until a longer part of it is taken for its iteration.
 */
static const struct compute_row pipelines[][2] = {
	{ { 2 * MS, 2 * MS - 1000 }, { 2 * MS, 2 * MS - 3000 } },
	{ { 2 * MS, 2 * MS }, { 5 * MS, 2 * MS } },
};

START_TEST(what_hardly_computes_is_not_told)
{
	const struct compute_row *rows = pipelines[_i];
	struct cusum series = { 0 };
	struct compute_case c;

	for (int i = 0; i < CUSUM_FIRST + 12; i++)
		ck_assert(!compute_judge(&series, 5, &rows[i >= CUSUM_FIRST], 1, &c));
	ck_assert_int_eq(series.alarm, 1);
}
END_TEST

int main(void)
{
	const struct fx_test tests[] = {
		FX_TEST(all_that_compute_longer_are_told_and_nccl_is_not_blamed),
		FX_TEST(one_rank_alone_is_not_all),
		FX_TEST(what_goes_on_for_an_hour_is_usual),
		FX_LOOP(what_hardly_computes_is_not_told, 0, FX_COUNT(pipelines)),
	};

	return fx_run(setup, teardown, tests, FX_COUNT(tests));
}
