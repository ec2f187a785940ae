/* SPDX-License-Identifier: Apache-2.0 */
/* What an iteration has of NCCL, and of waiting in it. */
#include "ncclinspd/findings/pace.h"

#include <string.h>

#include "tests/fixture.h"

#define MS	UINT64_C(1000000)
#define STEP_MS	100
#define STEPS	200
#define UNTIMED	0

static struct paces paces;
static uint64_t now_ns;

static void setup(void)
{
	now_ns = 1000000 * MS;
}

static void teardown(void)
{
	paces_deinit(&paces);
	memset(&paces, 0, sizeof(paces));
}

/* Milliseconds from the step's beginning.  `moving` of `ms`: the rest of it waits first. */
static void add(uint64_t comm, uint64_t from, uint64_t ms, uint64_t moving)
{
	const struct op op = {
		.process_id = 1, .has_comm_id = true, .comm_id = comm, .func = "AllReduce",
		.bytes = 1 << 20, .source = TIMING_KERNEL_GPU, .enqueued_ns = now_ns + from * MS,
		.started_ns = now_ns + from * MS, .exec_ns = ms ? ms * MS : UNKNOWN_U64,
		.local_ranks = moving ? 2 : 0, .waitfree_ns = moving * MS,
	};

	paces_add(&paces, &op, false);
}

static struct period_step step_later(uint64_t later_ns)
{
	struct period_step step;

	ck_assert(paces_step(&paces, 1, now_ns + later_ns, &step));
	return step;
}

static void ms_are(double ns, double ms)
{
	ck_assert_double_eq_tol(ns / (double)MS, ms, 0.01);
}

TEST(what_overlaps_counts_once)
{
	struct period_step step;

	for (int i = 0; i < STEPS; i++, now_ns += STEP_MS * MS) {
		add(1, 10, 30, 0);
		add(2, 30, 20, 0);
		add(1, 70, 10, 0);
	}
	step = step_later(0);
	ms_are((double)step.step_ns, STEP_MS);
	ms_are(step.inside_ns, 50);
	ck_assert(step.moving_ns < 0);	/* nobody was compared */
}

TEST(waiting_is_exposed_where_nothing_else_moves)
{
	struct period_step step;

	for (int i = 0; i < STEPS; i++, now_ns += STEP_MS * MS) {
		add(1, 0, 40, 10);	/* waits from 0 to 30 ... */
		add(2, 28, 5, 5);	/* ... of which this hides 2 */
	}
	step = step_later(0);
	ms_are(step.inside_ns, 40);
	ms_are(step.moving_ns, 12);
}

/* Those of a communicator that is compared come after others that were posted later. */
TEST(operations_may_come_late)
{
	for (int i = 0; i < STEPS; i++, now_ns += STEP_MS * MS) {
		for (uint64_t k = 1; k < 20; k++)
			add(2, 4 * k, 1, 0);
		add(1, 0, 90, 0);
	}
	ms_are(step_later(0).inside_ns, 90);
}

/* Of random operations, millisecond by millisecond. */
TEST_LOOP(the_sum_is_that_of_the_milliseconds_that_are_covered, 0, 50)
{
	uint64_t from[12], ms[12], covered = 0;
	bool inside[STEP_MS] = { false };

	for (int i = 0; i < 12; i++) {
		from[i] = fx_random() % (STEP_MS - 20);
		ms[i] = 1 + fx_random() % 20;
		memset(inside + from[i], true, ms[i]);
	}
	for (int k = 0; k < STEP_MS; k++)
		covered += inside[k];
	for (int i = 0; i < STEPS; i++, now_ns += STEP_MS * MS)
		for (uint64_t k = 0; k < 12; k++)
			add(k, from[k], ms[k], 0);
	ms_are(step_later(0).inside_ns, (double)covered);
}

TEST(operations_that_are_not_timed_count_as_their_like)
{
	for (int i = 0; i < STEPS; i++, now_ns += STEP_MS * MS) {
		add(1, 10, i % 7 ? UNTIMED : 30, 0);
		add(2, 60, i % 5 ? UNTIMED : 20, 0);
	}
	ms_are(step_later(0).inside_ns, 50);
}

TEST(where_a_part_is_never_timed_nothing_is_known)
{
	for (int i = 0; i < STEPS; i++, now_ns += STEP_MS * MS) {
		add(1, 10, 30, 0);
		add(2, 60, UNTIMED, 0);
	}
	ms_are((double)step_later(0).step_ns, STEP_MS);
	ck_assert(step_later(0).inside_ns < 0);
}

TEST(what_was_is_not_told_of_now)
{
	for (int i = 0; i < STEPS; i++, now_ns += STEP_MS * MS) {
		add(1, 10, 30, 10);
		add(2, 60, 20, 20);
	}
	ms_are(step_later(10000 * MS).moving_ns, 30);
	ck_assert(step_later(10300 * MS).inside_ns < 0);
	ck_assert(step_later(10300 * MS).moving_ns < 0);
	ms_are((double)step_later(10300 * MS).step_ns, STEP_MS);
}

/* Timed in a burst now and then, of which the last was a while ago. */
TEST(bursts_tell_also_between_them)
{
	for (int i = 0; i < STEPS; i++, now_ns += STEP_MS * MS)
		add(1, 0, i == 20 ? 30 : UNTIMED, i == 20 ? 10 : 0);
	ms_are(step_later(0).inside_ns, 30);
	ms_are(step_later(0).moving_ns, 10);
	for (int i = 0; i < PERIOD_TOKENS; i++, now_ns += STEP_MS * MS)
		add(1, 0, 30, 0);
	ck_assert(step_later(0).moving_ns < 0);
}

/* A change shows after 10 s, or after the first iteration that is longer. */
TEST(it_is_of_the_last_iterations)
{
	for (int i = 0; i < STEPS; i++, now_ns += STEP_MS * MS)
		add(1, 0, 30, 0);
	for (int i = 0; i < 3; i++, now_ns += 20000 * MS)
		add(1, 0, 15000, 0);
	ms_are((double)step_later(0).step_ns, 20000);
	ms_are(step_later(0).inside_ns, 15000);
}

/* They last, and so many others have begun since that one has a number that is like theirs. */
TEST(what_is_known_of_long_jobs_outlasts_short_ones)
{
	struct op op = { .func = "AllReduce", .bytes = 1 << 20 };

	for (uint64_t i = 0; i < 3; i++) {
		now_ns += 60000 * MS;
		for (op.process_id = 1; op.process_id <= 8; op.process_id++) {
			op.enqueued_ns = now_ns;
			paces_add(&paces, &op, false);
		}
	}
	op.process_id = PACES + 4;
	paces_add(&paces, &op, false);
	for (uint64_t id = 1; id <= 8; id++)
		ck_assert_uint_eq(paces_longest_pause(&paces, id), 60000 * MS);
	paces_forget(&paces, op.process_id);
	ck_assert_uint_eq(paces_longest_pause(&paces, op.process_id), 0);
	ck_assert_uint_eq(paces_longest_pause(&paces, 8), 60000 * MS);
}

/* Both have the same; one is told which ranks did what the one before did. */
TEST_LOOP(ranks_of_one_operation_have_the_pace_that_they_have_alone, 0, 20)
{
	struct paces alone = { 0 };

	fx_seed((uint64_t)_i);
	for (int k = 0; k < 400; k++) {
		struct op op = { .has_comm_id = true, .comm_id = 1 + k % 3, .func = "AllReduce",
				 .bytes = 1 << 20, .exec_ns = UNKNOWN_U64 };

		now_ns += (k % 3 ? 1 : 50) * MS;
		for (uint64_t rank = 0; rank < 4; rank++) {
			op.process_id = 1 + rank;
			op.enqueued_ns = fx_random() % 50 ? now_ns : 0;
			paces_add(&paces, &op, rank > 0);
			paces_add(&alone, &op, false);
		}
	}
	for (uint64_t rank = 0; rank < 4; rank++) {
		struct period_step together = { 0 }, wanted = { 0 };

		ck_assert_int_eq(paces_step(&paces, 1 + rank, now_ns, &together),
				 paces_step(&alone, 1 + rank, now_ns, &wanted));
		ck_assert_uint_eq(together.kind, wanted.kind);
		ck_assert_uint_eq(together.step_ns, wanted.step_ns);
	}
	paces_deinit(&alone);
}

int main(void)
{
	return fx_run(setup, teardown);
}
