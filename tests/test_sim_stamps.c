/* SPDX-License-Identifier: Apache-2.0 */
/* What KernelCh is told: NCCL's counters, late polls, and the GPUs' clocks. */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "nccl/profiler.h"
#include "tests/fixture.h"
#include "tests/fixture_sim.h"
#include "tests/sim/plan.h"
#include "tests/sim/probe.h"
#include "tests/sim/ring.h"

/* What the plan has for rank 0's AllReduce number `seq`. */
static struct plan_side true_side(const char *text, uint64_t seq)
{
	struct scenario *scn = fx_scenario(text);
	const struct plan_step *step;
	struct plan_side side = { 0 };
	struct plan *plan;

	ck_assert_int_eq(plan_new(&plan, scn), 0);
	for (;;) {
		ck_assert_int_eq(plan_next(plan, &step), 0);
		ck_assert_int_ne(step->kind, PLAN_END);
		if (step->kind != PLAN_SYNC && step->kind != PLAN_CAPTURE &&
		    step->op->spec->func == FUNC_ALL_REDUCE && step->op->side[0].seq == seq)
			break;
	}
	side = step->op->side[0];
	plan_free(plan);
	scenario_free(scn);
	return side;
}

/* Rank 0's KernelCh of channel 0 of AllReduce number `seq`. */
static const struct probe_kernel *told(uint64_t seq)
{
	const struct probe_kernel *k;
	int n = probe_kernels(&k);

	for (int i = 0; i < n; i++)
		if (!k[i].rank && !k[i].channel && k[i].parent_seq == (int64_t)seq)
			return &k[i];
	ck_abort_msg("AllReduce %d has no KernelCh", (int)seq);
	return NULL;
}

/* Of n AllReduces, those that were not told their own start. */
static int wrong_starts(const char *text, int n)
{
	int wrong = 0;

	for (int i = 0; i < n; i++)
		wrong += told(i)->start != true_side(text, i).gpu_start;
	return wrong;
}

#define ONE_CHANNEL "processes 2\npace none\ncomm w ranks 0,1 channels 1\n"
#define FIVE "loop 5\nAllReduce w 1Ki float32\ncompute 50us\nend\n"

TEST(a_self_send_out_of_place_leaves_the_host_behind_for_good)
{
	const char *text = ONE_CHANNEL "stamps ring\nSend w 1Ki float32 from 0 to 0\n" FIVE;

	fx_play(text, NCCL_KERNEL_CH);
	ck_assert_int_eq(wrong_starts(text, 5), 5);
	for (int i = 1; i < 5; i++) {
		ck_assert_uint_eq(told(i)->start, true_side(text, i - 1).gpu_start);
		ck_assert_uint_eq(told(i)->stop, true_side(text, i - 1).gpu_stop);
	}
}

TEST(each_all_to_all_out_of_place_adds_to_the_drift)
{
	const char *text = ONE_CHANNEL "stamps ring\nAlltoAll w 1Ki float32\n"
			   "AlltoAll w 1Ki float32\nAlltoAll w 1Ki float32\n" FIVE;

	fx_play(text, NCCL_KERNEL_CH);
	ck_assert_uint_eq(told(3)->start, true_side(text, 0).gpu_start);
	ck_assert_uint_eq(told(4)->start, true_side(text, 1).gpu_start);
}

TEST(what_moves_nothing_within_a_rank_does_no_harm)
{
	const char *text = ONE_CHANNEL "stamps ring\nAlltoAll w 1Ki float32 inplace\n" FIVE;

	fx_play(text, NCCL_KERNEL_CH);
	ck_assert_int_eq(wrong_starts(text, 5), 0);
}

TEST(exact_stamps_know_no_drift)
{
	const char *text = ONE_CHANNEL "stamps exact\nAlltoAll w 1Ki float32\n" FIVE;

	fx_play(text, NCCL_KERNEL_CH);
	ck_assert_int_eq(wrong_starts(text, 5), 0);
}

TEST(replays_after_an_eager_operation_are_counted_by_the_gpu_alone)
{
	const char *text = ONE_CHANNEL "stamps ring\ngraph g\nAllReduce w 1Ki float32\nend\n"
			   "replay g\nsync\nAllReduce w 1Ki float32\nsync\n"
			   "replay g\nsync\nAllReduce w 1Ki float32\nsync\n";

	fx_play(text, NCCL_KERNEL_CH);
	ck_assert_uint_eq(told(0)->start, true_side(text, 0).gpu_start);
	ck_assert_uint_eq(told(1)->start, true_side(text, 1).gpu_start);
	ck_assert_uint_eq(told(3)->start, true_side(text, 2).gpu_start);
}

TEST(who_polls_64_works_late_is_told_a_later_one)
{
	const char *text = ONE_CHANNEL "stamps ring\n"
			   "starve rank 0 by 20ms comm w from 10 until 10\n"
			   "loop 100\nAllReduce w 1Ki float32\ncompute 50us\nend\n";

	fx_play(text, NCCL_KERNEL_CH);
	ck_assert_uint_eq(told(9)->start, true_side(text, 9).gpu_start);
	ck_assert_uint_eq(told(10)->start, true_side(text, 74).gpu_start);
	ck_assert_uint_eq(told(35)->start, true_side(text, 99).gpu_start);
	ck_assert_uint_eq(told(36)->start, true_side(text, 36).gpu_start);
	ck_assert_int_eq(wrong_starts(text, 100), 26);
}

/* A thread that launches may get no CPU for a while; the model knows nothing of it. */
TEST(what_was_not_launched_by_now_has_not_run)
{
	const char *text = ONE_CHANNEL "stamps ring\nloop 70\nAllReduce w 1Ki float32\n"
			   "compute 50us\nend\n";
	const struct plan_side first = true_side(text, 0), last = true_side(text, 63),
			       next = true_side(text, 64);
	const int64_t late = 7000000, end = true_side(text, 69).stop + 2 * late;
	struct scenario *scn = fx_scenario(text);
	struct ring *ring;

	ck_assert_int_eq(ring_new(&ring, scn, &scn->comm[0], 0), 0);
	ring_note_launch(ring, first.launched, 0);
	ring_note_launch(ring, last.launched, late);
	ck_assert_uint_eq(ring_stamp(ring, 0, 1, false, end), first.gpu_start);
	ck_assert_uint_eq(ring_stamp(ring, 0, 64, true, last.stop + late - 1), 0);
	ck_assert_uint_eq(ring_stamp(ring, 0, 64, true, end), last.gpu_stop + (uint64_t)late);
	ring_note_launch(ring, next.launched, late);
	ck_assert_uint_eq(ring_stamp(ring, 0, 1, false, end), next.gpu_start + (uint64_t)late);
	ring_free(ring);
	scenario_free(scn);
}

TEST(a_late_poll_of_exact_stamps_is_late_and_true)
{
	const char *text = ONE_CHANNEL "starve rank 0 by 20ms comm w from 10 until 10\n"
			   "loop 100\nAllReduce w 1Ki float32\ncompute 50us\nend\n";

	fx_play(text, NCCL_KERNEL_CH);
	ck_assert_int_eq(wrong_starts(text, 100), 0);
}

/* Rank 0's receive is told before the last of nine AllReduces that ran before it. */
static bool receive_overtakes(void)
{
	const struct probe_kernel *k;
	int n, recv = -1, coll = -1;

	fx_play(ONE_CHANNEL "starve rank 0 by 20ms comm w from 0 until 0\n"
		"loop 9\nAllReduce w 1Ki float32\nend\n"
		"Send w 1Ki float32 from 1 to 0\n", NCCL_KERNEL_CH);
	n = probe_kernels(&k);
	for (int i = 0; i < n; i++) {
		if (k[i].rank)
			continue;
		if (k[i].parent_type == NCCL_P2P)
			recv = i;
		if (k[i].parent_seq == 8)
			coll = i;
	}
	ck_assert_int_ge(recv, 0);
	ck_assert_int_ge(coll, 0);
	if (coll < recv)
		return false;
	ck_assert_uint_lt(k[coll].start, k[recv].start);
	return true;
}

/*
 * The receives' helpers wait in a queue of their own: late polls mix up the order.
 * How late is the machine's matter: a busy one may post the receive only afterwards.
 */
TEST(a_receive_overtakes_collectives_when_the_progress_thread_lags)
{
	int tries = 0;

	while (!receive_overtakes())
		ck_assert_int_lt(++tries, 100);
}

TEST(communicators_that_share_a_thread_count_for_themselves)
{
	const char *text = ONE_CHANNEL "comm v ranks 0,1 channels 1 share w\nstamps ring\n"
			   "AlltoAll w 1Ki float32\n"
			   "loop 5\nAllReduce v 1Ki float32\ncompute 50us\nend\n";

	fx_play(text, NCCL_KERNEL_CH);
	ck_assert_int_eq(wrong_starts(text, 5), 0);
}

TEST(a_clock_may_step_and_tick_coarsely)
{
	struct scenario *s = fx_scenario("gpus 3\nclock tick 1us ranks 1\n"
					 "clock offset 7200s step minus 5ms at 1s ranks 2\n");

	ck_assert_uint_eq(plan_gpu_clock(s, 1, 123456) % 1000, 0);
	ck_assert_uint_ne(plan_gpu_clock(s, 0, 123456) % 1000, 0);
	ck_assert_uint_eq(plan_gpu_clock(s, 2, 0) - plan_gpu_clock(s, 0, 0), 7200000000000);
	ck_assert_uint_eq(plan_gpu_clock(s, 2, 1000000000) - plan_gpu_clock(s, 2, 0), 995000000);
	scenario_free(s);
}

int main(void)
{
	return fx_run(NULL, NULL);
}
