/* SPDX-License-Identifier: Apache-2.0 */
/* The model and the truth that is written from it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/fixture.h"
#include "tests/fixture_sim.h"
#include "tests/sim/plan_state.h"
#include "tests/sim/truth.h"

#define FOUR "gpus 4\ncomm w ranks 0-3 channels 2\n"

/* The truth of a scenario as text, to be freed; *lines may be NULL. */
static char *truth_of(const char *text, uint64_t seed, int64_t *lines)
{
	struct scenario *scn = fx_scenario(text);
	char *out = NULL;
	size_t size;
	FILE *f = open_memstream(&out, &size);
	int64_t n;

	scenario_reseed(scn, seed);
	n = truth_write(f, scn, NULL, 1000);
	ck_assert_int_ge(n, 0);
	if (lines)
		*lines = n;
	fclose(f);
	scenario_free(scn);
	return out;
}

/* The nth launch of a scenario; the plan stays open until finish(). */
static const struct plan_step *launch(struct plan **planp, const char *text, int nth)
{
	const struct plan_step *step;

	ck_assert_int_eq(plan_new(planp, fx_scenario(text)), 0);
	do {
		ck_assert_int_eq(plan_next(*planp, &step), 0);
		ck_assert_int_ne(step->kind, PLAN_END);
	} while ((step->kind != PLAN_LAUNCH && step->kind != PLAN_REPLAY) || nth--);
	return step;
}

static void finish(struct plan *plan)
{
	struct scenario *scn = (struct scenario *)plan->scn;

	plan_free(plan);
	scenario_free(scn);
}

TEST(a_seed_gives_one_run_and_another_seed_another)
{
	const char *text = FOUR "loop 20\ncompute 1ms jitter 10%\nAllReduce w 1Mi float32\nend\n";
	char *a = truth_of(text, 7, NULL), *b = truth_of(text, 7, NULL);
	char *c = truth_of(text, 8, NULL);

	ck_assert_str_eq(a, b);
	ck_assert_str_ne(a, c);
	free(a);
	free(b);
	free(c);
}

TEST(chance_comes_from_the_seed)
{
	struct plan *plan[2];
	int64_t arrival[2];

	for (int i = 0; i < 2; i++) {
		const char *text = i ? "seed 2\n" FOUR "compute 9ms jitter 10%\nReduce w 1 int8\n" :
				       "seed 3\n" FOUR "compute 9ms jitter 10%\nReduce w 1 int8\n";

		arrival[i] = launch(&plan[i], text, 0)->op->side[0].arrival;
		finish(plan[i]);
	}
	ck_assert(arrival[0] != arrival[1]);
}

TEST(all_ranks_leave_a_collective_together_after_the_last_has_come)
{
	struct plan *plan;
	const struct plan_op *op = launch(&plan, FOUR "late rank 2 by 5ms\n"
					  "AllReduce w 1Mi float32\n", 0)->op;
	int64_t least = PLAN_NEVER, most = 0;

	ck_assert_int_eq(op->last_rank, 2);
	ck_assert_int_eq(op->data_ns, op->side[2].arrival);
	for (int r = 0; r < 4; r++) {
		ck_assert_int_le(op->side[r].arrival, op->data_ns);
		ck_assert_int_gt(op->side[r].stop, op->data_ns);
		least = op->side[r].stop < least ? op->side[r].stop : least;
		most = op->side[r].stop > most ? op->side[r].stop : most;
	}
	ck_assert_int_lt(most - least, 2000);
	ck_assert_int_gt(op->side[0].stop - op->side[0].arrival, 4900000);
	ck_assert_int_lt(op->side[2].stop - op->side[2].arrival, 100000);
	finish(plan);
}

TEST(a_slow_link_slows_the_whole_ring)
{
	struct plan *fast, *slow;
	const struct plan_op *a = launch(&fast, FOUR "AllReduce w 16Mi float32\n", 0)->op;
	const struct plan_op *b = launch(&slow, FOUR "link 1 to 2 rate 20GB/s\n"
					 "AllReduce w 16Mi float32\n", 0)->op;

	ck_assert_int_gt(b->side[3].stop - b->data_ns, 8 * (a->side[3].stop - a->data_ns));
	finish(fast);
	finish(slow);
}

TEST(sequence_numbers_count_per_communicator_and_function)
{
	struct plan *plan;
	const struct plan_step *step = launch(&plan, FOUR
		"loop 3\nAllReduce w 1 int8\nReduce w 1 int8\nend\nAllReduce w 1 int8\n", 6);

	ck_assert_uint_eq(step->op->side[1].seq, 3);
	ck_assert_uint_eq(step->op->index, 6);
	finish(plan);
}

TEST(collectives_of_one_group_are_one_kernel)
{
	struct plan *plan;
	const struct plan_step *step = launch(&plan, FOUR
		"group\nAllReduce w 1Mi float32\nAllReduce w 2Mi float32\nend\n", 0);

	ck_assert_int_eq(step->nops, 2);
	for (int i = 0; i < 2; i++) {
		ck_assert_int_eq(step->op[i].members, 2);
		ck_assert_int_eq(step->op[i].side[0].arrival, step->op[0].side[0].arrival);
		ck_assert_int_eq(step->op[i].side[0].stop, step->op[0].side[0].stop);
	}
	ck_assert_int_eq(step->op[1].first_channel, 2);
	finish(plan);
}

TEST(a_receive_waits_for_its_sender)
{
	struct plan *plan;
	const struct plan_op *op = launch(&plan, FOUR "late rank 0 by 3ms\n"
					  "Send w 1Ki float32 from 0 to 3\n", 0)->op;

	ck_assert_int_eq(op->side[0].func, FUNC_SEND);
	ck_assert_int_eq(op->side[1].rank, 3);
	ck_assert_int_ge(op->side[1].stop - op->side[1].arrival, 3000000);
	ck_assert_uint_eq(op->bytes, 4096);
	finish(plan);
}

TEST(gpu_clocks_run_as_the_scenario_says)
{
	struct scenario *s = fx_scenario("gpus 2\nclock offset 1ms drift 100ppm ranks 1\n");

	ck_assert_uint_eq(plan_gpu_clock(s, 0, 3200000000) - plan_gpu_clock(s, 0, 0), 3200000000);
	ck_assert_uint_eq(plan_gpu_clock(s, 1, 0) - plan_gpu_clock(s, 0, 0), 1000000);
	ck_assert_uint_eq(plan_gpu_clock(s, 1, 3200000000) - plan_gpu_clock(s, 1, 0), 3200320000);
	scenario_free(s);
}

TEST(who_never_joins_makes_all_others_wait_for_ever)
{
	struct plan *plan;
	const struct plan_step *step = launch(&plan, FOUR "absent rank 1 comm w op 2\n"
		"loop forever\nAllReduce w 1Ki float32\nend\n", 2);

	ck_assert_int_eq(step->op->side[1].enqueued, PLAN_NEVER);
	ck_assert_int_ne(step->op->side[0].arrival, PLAN_NEVER);
	ck_assert_int_eq(step->op->side[0].stop, PLAN_NEVER);
	ck_assert_int_eq(step->op->last_rank, -1);
	do
		ck_assert_int_eq(plan_next(plan, &step), 0);
	while (step->kind == PLAN_SYNC);
	ck_assert_int_eq(step->kind, PLAN_END);
	finish(plan);
}

TEST(the_truth_has_a_line_for_each_operation_and_rank_that_called)
{
	int64_t lines;
	char *t = truth_of(FOUR "absent rank 1 comm w op 2\n"
			   "loop forever\nAllReduce w 1Ki float32\nend\n", 1, &lines);
	const char *last = strrchr(t, '{');

	ck_assert_int_eq(lines, 4 + 4 + 3);
	ck_assert_ptr_nonnull(strstr(last, "\"completed\":false"));
	ck_assert_ptr_nonnull(strstr(last, "\"stop_ns\":null"));
	ck_assert_ptr_nonnull(strstr(last, "\"last_rank\":null"));
	free(t);
}

TEST(nothing_is_posted_by_a_killed_process)
{
	int64_t lines;
	char *t = truth_of("processes 2\ncomm w ranks 0,1\nkill process 1 comm w op 1\n"
			   "loop forever\nAllReduce w 1Ki float32\nend\n", 1, &lines);

	ck_assert_int_eq(lines, 4);
	ck_assert_ptr_nonnull(strstr(t, "\"fault\":\"kill\""));
	free(t);
}

TEST(an_all_to_all_is_a_send_and_a_receive_for_each_pair)
{
	int64_t lines;
	char *t = truth_of(FOUR "AlltoAll w 1Ki float32\n", 1, &lines);

	ck_assert_int_eq(lines, 32);
	ck_assert_ptr_nonnull(strstr(t, "\"func\":\"Recv\",\"count\":1024"));
	free(t);
}

/* NCCL stamps the works of a batch when all have begun, and when all are done. */
TEST(what_a_channel_sends_and_receives_in_one_batch_ends_together)
{
	struct plan *plan;
	const struct plan_step *step = launch(&plan, "seed 5\n" FOUR "compute 9ms jitter 20%\n"
					      "AlltoAll w 1Mi int8 inplace uneven 50%\n", 0);
	int64_t end[4][2] = { { 0 } };
	int seen = 0;

	for (int i = 0; i < step->nops; i++)
		for (int s = 0; s < 2; s++)
			for (int c = 0; step->op[i].side[s].moves && c < 2; c++, seen++) {
				const struct plan_side *side = &step->op[i].side[s];
				int number = plan_channel_number(&step->op[i], c);

				if (!end[side->rank][number])
					end[side->rank][number] = side->stop;
				ck_assert_int_eq(side->stop, end[side->rank][number]);
			}
	ck_assert_int_eq(seen, 4 * 3 * 2 * 2);
	ck_assert_int_ne(end[0][0], end[1][0]);
	finish(plan);
}

TEST(bytes_are_the_larger_buffer_of_a_rank)
{
	char *t = truth_of(FOUR "AllGather w 1Ki float32\nAllReduce w 1Ki float32\n", 1, NULL);

	ck_assert_ptr_nonnull(strstr(t, "\"func\":\"AllGather\",\"count\":1024,\"datatype\":"
				     "\"ncclFloat32\",\"bytes\":16384"));
	ck_assert_ptr_nonnull(strstr(t, "\"func\":\"AllReduce\",\"count\":1024,\"datatype\":"
				     "\"ncclFloat32\",\"bytes\":4096"));
	free(t);
}

TEST(operations_that_move_nothing_do_not_exist)
{
	int64_t lines;

	free(truth_of("gpus 2\ncomm w ranks 0,1\ncomm one ranks 0\n"
		      "AllReduce w 0 float32\nAllReduce one 1Ki float32\n", 1, &lines));
	ck_assert_int_eq(lines, 0);
}

TEST(a_replay_advances_the_sequence_and_a_capture_does_not)
{
	struct plan *plan;
	const struct plan_step *step = launch(&plan, FOUR
		"graph g\nAllReduce w 1Ki float32\nend\nreplay g 3\n", 2);

	ck_assert_int_eq(step->kind, PLAN_REPLAY);
	ck_assert_uint_eq(step->op->side[0].seq, 2);
	ck_assert_uint_eq(step->op->index, 2);
	finish(plan);
}

TEST(an_aborted_communicator_runs_nothing_more)
{
	int64_t lines;

	free(truth_of(FOUR "abort comm w op 0\nloop 5\nAllReduce w 1Ki float32\nend\n", 1,
		      &lines));
	ck_assert_int_eq(lines, 4);
}

int main(void)
{
	return fx_run(NULL, NULL);
}
