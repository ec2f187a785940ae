/* SPDX-License-Identifier: Apache-2.0 */
/* What goes wrong in a scenario: who suffers, how it looks, and what the truth says. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "nccl/profiler.h"
#include "tests/fixture.h"
#include "tests/fixture_sim.h"
#include "tests/sim/injected.h"
#include "tests/sim/probe.h"
#include "tests/sim/truth.h"
#include "tests/sim/work.h"

#define FOUR "gpus 4\ncomm w ranks 0-3 channels 2\n"
#define FOUR_NODES "nodes 4\npace none\ncomm w ranks 0-3 channels 2\n"
#define TEN "loop 10\nAllReduce w 4Mi float32\nend\n"

typedef int64_t writer(FILE *, const struct scenario *, const struct pace *, uint64_t);

/* What a writer says of a scenario, to be freed. */
static char *text_of(writer *write, const char *text)
{
	struct scenario *scn = fx_scenario(text);
	char *out = NULL;
	size_t size;
	FILE *f = open_memstream(&out, &size);

	ck_assert_int_ge(write(f, scn, NULL, 1000), 0);
	fclose(f);
	scenario_free(scn);
	return out;
}

static int count(const char *text, const char *what)
{
	int n = 0;

	for (const char *p = strstr(text, what); p; p = strstr(p + 1, what))
		n++;
	return n;
}

static int count_in(writer *write, const char *text, const char *what)
{
	char *out = text_of(write, text);
	int n = count(out, what);

	free(out);
	return n;
}

/* Lines that have both. */
static int count_lines(writer *write, const char *text, const char *one, const char *other)
{
	char *out = text_of(write, text), *save = NULL;
	int n = 0;

	for (char *l = strtok_r(out, "\n", &save); l; l = strtok_r(NULL, "\n", &save))
		n += strstr(l, one) && strstr(l, other);
	free(out);
	return n;
}

/* Rows whose lateness is at least this. */
static int late_rows(const char *text, int64_t least_ns)
{
	char *out = text_of(truth_write, text), *save = NULL;
	int n = 0;

	for (char *l = strtok_r(out, "\n", &save); l; l = strtok_r(NULL, "\n", &save))
		n += strtoll(strstr(l, "\"late_ns\":") + 10, NULL, 10) >= least_ns;
	free(out);
	return n;
}

/* ---- the work of one rank in the nth launch ---- */

struct view {
	struct scenario *scn;
	struct plan *plan;
	const struct plan_op *op;
	struct player player;
	struct member member;
	struct work work;
	struct work_sub sub[WORK_MAX_SUBS];
	int nsubs;
};

static struct work_sub *next_sub(void *arg)
{
	struct view *v = arg;

	return &v->sub[v->nsubs++];
}

static void look_late(struct view *v, const char *text, int nth, int rank, int channel,
		      int64_t late_ns)
{
	const struct plan_step *step;
	struct work_sub *sub[WORK_MAX_SUBS];
	struct task task;
	int64_t done;
	int n;

	memset(v, 0, sizeof(*v));
	v->scn = fx_scenario(text);
	ck_assert_int_eq(plan_new(&v->plan, v->scn), 0);
	do {
		ck_assert_int_eq(plan_next(v->plan, &step), 0);
		ck_assert_int_ne(step->kind, PLAN_END);
	} while (step->kind != PLAN_LAUNCH || nth--);
	v->op = step->op;
	v->player.scn = v->scn;
	v->member = (struct member){ .player = &v->player, .comm = v->op->comm, .rank = rank,
				     .world = v->op->comm->world[rank] };
	task = (struct task){ .member = &v->member, .op = *v->op,
			      .side = *plan_side_of(v->op, rank, 0), .mask = 0x7fff,
			      .late_ns = late_ns };
	n = work_subs(&task, channel, false, sub, next_sub, v);
	for (int i = 0; i < n; i++)
		work_plan(&v->work, &task, sub[i], 0, &done);
	work_sort(&v->work);
}

static void look(struct view *v, const char *text, int nth, int rank, int channel)
{
	look_late(v, text, nth, rank, channel, 0);
}

static void look_away(struct view *v)
{
	work_deinit(&v->work);
	plan_free(v->plan);
	scenario_free(v->scn);
}

/* How long the step of a kind of sub was in a state, until the next thing; -1: for ever. */
static int64_t time_in(const struct view *v, enum work_kind kind, int step, int state)
{
	int64_t since = -1;

	for (int i = 0; i < v->work.nactions; i++) {
		const struct work_action *a = &v->work.action[i];

		if (a->sub->kind != kind || a->step != step ||
		    (a->verb != WORK_STEP_STATE && a->verb != WORK_STEP_STOP))
			continue;
		if (a->verb == WORK_STEP_STATE && a->state == state)
			since = since < 0 ? a->at : since;
		else if (since >= 0)
			return a->at - since;
	}
	return -1;
}

/* The state in which the first step that does not end is left; 0: all end. */
static int last_state(const struct view *v, enum work_kind kind)
{
	int state[1024] = { 0 }, n = 0;

	for (int i = 0; i < v->work.nactions; i++) {
		const struct work_action *a = &v->work.action[i];

		if (a->sub->kind != kind || a->step >= 1024)
			continue;
		if (a->verb == WORK_STEP_STATE)
			state[a->step] = a->state;
		if (a->verb == WORK_STEP_STOP)
			state[a->step] = 0;
		n = a->step >= n ? a->step + 1 : n;
	}
	for (int i = 0; i < n; i++)
		if (state[i])
			return state[i];
	return 0;
}

/* ---- a busy machine ---- */

TEST(what_is_launched_late_is_late_as_a_whole_and_no_faster)
{
	const char *text = "nodes 2\ncomm w ranks 0,1 channels 2\nAllReduce w 1Mi float32\n";
	struct view early, late;

	look(&early, text, 0, 0, 1);
	look_late(&late, text, 0, 0, 1, 3000000);
	ck_assert_int_gt(early.work.nactions, 40);
	ck_assert_int_eq(late.work.nactions, early.work.nactions);
	for (int i = 0; i < early.work.nactions; i++)
		ck_assert_int_eq(late.work.action[i].at, early.work.action[i].at + 3000000);
	look_away(&early);
	look_away(&late);
}

TEST(a_kernel_of_who_lives_on_begins_however_late_the_other_was_killed)
{
	const char *text = "nodes 2\nprocesses 2\ncomm w ranks 0,1 channels 1\n"
			   "kill process 1 comm w op 0\nAllReduce w 1Mi float32\n";
	int begun = 0, ended = 0;
	struct view v;

	look_late(&v, text, 0, 0, 0, 50000000);
	for (int i = 0; i < v.work.nactions; i++) {
		begun += v.work.action[i].verb == WORK_KERNEL_START;
		ended += v.work.action[i].verb == WORK_KERNEL_STOP;
	}
	ck_assert_int_eq(begun, 1);
	ck_assert_int_eq(ended, 0);
	look_away(&v);
}

/* ---- slow ---- */

TEST(lateness_may_come_in_bursts)
{
	const char *text = FOUR "late rank 2 by 5ms every 4 for 2 from 1\n" TEN;

	ck_assert_int_eq(count_in(injected_write, text, "\"late\""), 5);
	ck_assert_int_eq(late_rows(text, 4900000), 5);
	ck_assert_int_eq(count_lines(injected_write, text, "\"op\":6", "\"world_rank\":2"), 1);
}

TEST(a_slow_link_slows_all_and_shows_in_its_own_steps)
{
	const char *text = FOUR_NODES "slow link 1 to 2 by 8x from 1 until 1\n"
			   "AllReduce w 4Mi float32\nAllReduce w 4Mi float32\n";
	int64_t before, slow, other, whole;
	struct view v;

	look(&v, text, 0, 1, 0);
	before = time_in(&v, WORK_SEND, 3, NCCL_STEP_SEND_WAIT);
	look_away(&v);
	look(&v, text, 1, 1, 0);
	slow = time_in(&v, WORK_SEND, 3, NCCL_STEP_SEND_WAIT);
	whole = v.op->side[3].stop - v.op->data_ns;
	look_away(&v);
	look(&v, text, 1, 0, 0);
	other = time_in(&v, WORK_SEND, 3, NCCL_STEP_SEND_WAIT);
	ck_assert_int_gt(time_in(&v, WORK_SEND, 3, NCCL_STEP_SEND_GPU_WAIT), 4 * before);
	look_away(&v);
	ck_assert_int_gt(slow, 6 * before);
	ck_assert_int_lt(other, 2 * before);
	ck_assert_int_gt(whole, 6 * before * 4);
}

TEST(a_slow_channel_ends_last_and_the_others_end_early)
{
	const char *text = FOUR_NODES "slow channel 1 rank 2 by 5x\nAllReduce w 4Mi float32\n";
	struct plan_span fast, slow;
	int64_t other;
	struct view v;

	look(&v, text, 0, 2, 0);
	other = time_in(&v, WORK_SEND, 3, NCCL_STEP_SEND_WAIT);
	look_away(&v);
	look(&v, text, 0, 2, 1);
	plan_channel(v.scn, v.op, &v.op->side[2], 0, &fast);
	plan_channel(v.scn, v.op, &v.op->side[2], 1, &slow);
	ck_assert_int_gt(slow.stop - v.op->data_ns, 4 * (fast.stop - v.op->data_ns));
	ck_assert_int_gt(time_in(&v, WORK_SEND, 3, NCCL_STEP_SEND_WAIT), 4 * other);
	look_away(&v);
}

TEST(a_starved_progress_thread_holds_up_the_network_and_not_the_gpu)
{
	const char *net = FOUR_NODES "starve rank 1 by 30ms\nAllReduce w 1Ki float32\n";
	const char *local = FOUR "starve rank 1 by 30ms\nAllReduce w 1Ki float32\n";
	struct view v;

	look(&v, net, 0, 0, 0);
	ck_assert_int_ge(v.op->side[0].stop, 30000000);
	look_away(&v);
	look(&v, local, 0, 1, 0);
	ck_assert_int_lt(v.op->side[0].stop, 1000000);
	ck_assert_int_ge(v.work.action[0].at, 30000000);
	look_away(&v);
}

/* ---- what never ends ---- */

static const struct { const char *fault; int rank; int send, recv; } halts[] = {
	{ "freeze rank 1", 1, NCCL_STEP_SEND_GPU_WAIT, NCCL_STEP_RECV_GPU_WAIT },
	{ "freeze rank 1", 0, NCCL_STEP_SEND_PEER_WAIT, NCCL_STEP_RECV_WAIT },
	{ "freeze rank 1", 2, NCCL_STEP_SEND_GPU_WAIT, NCCL_STEP_RECV_WAIT },
	{ "freeze rank 1", 3, NCCL_STEP_SEND_GPU_WAIT, NCCL_STEP_RECV_WAIT },
	{ "stuck rank 1", 1, NCCL_STEP_SEND_WAIT, NCCL_STEP_RECV_WAIT },
	{ "stuck rank 1", 2, NCCL_STEP_SEND_GPU_WAIT, NCCL_STEP_RECV_WAIT },
	{ "mismatch rank 1", 1, NCCL_STEP_SEND_GPU_WAIT, NCCL_STEP_RECV_WAIT },
	{ "mismatch rank 1", 3, NCCL_STEP_SEND_GPU_WAIT, NCCL_STEP_RECV_WAIT },
};

TEST_LOOP(each_rank_stands_still_in_the_state_that_its_place_has, 0, FX_COUNT(halts))
{
	char text[256];
	struct view v;

	snprintf(text, sizeof(text), FOUR_NODES "%s comm w op 0%s\nAllReduce w 16Mi float32\n",
		 halts[_i].fault, strstr(halts[_i].fault, "mismatch") ? " count 5" : "");
	look(&v, text, 0, halts[_i].rank, 0);
	ck_assert_int_eq(last_state(&v, WORK_SEND), halts[_i].send);
	ck_assert_int_eq(last_state(&v, WORK_RECV), halts[_i].recv);
	ck_assert_int_eq(v.op->side[3].stop, PLAN_NEVER);
	look_away(&v);
}

TEST(a_frozen_gpu_begins_and_does_not_end)
{
	probe_reset(NCCL_KERNEL_CH, 0);
	ck_assert_int_eq(fx_play_version("nodes 2\npace none\ncomm w ranks 0,1 channels 3\n"
					 "freeze rank 1 comm w op 1\n"
					 "loop 4\nAllReduce w 1Ki float32\nend\n", 6), 1);
	ck_assert_int_eq(probe_count("KernelCh S"), 6);
	ck_assert_int_eq(probe_count("KernelCh X"), 3);
}

TEST(who_passes_something_else_is_told_as_he_passes_it_and_nobody_ends)
{
	const char *what[] = { "count 77", "datatype int8", "root 3" };
	const char *told[] = { "\"count\":77,", "\"ncclInt8\"", "\"root\":3" };

	for (int i = 0; i < 3; i++) {
		char text[256];

		snprintf(text, sizeof(text), FOUR "nccl 2.28\nmismatch rank 2 comm w op 1 %s\n"
			 "loop 4\nBroadcast w 1Ki float32\nend\n", what[i]);
		ck_assert_int_eq(count_lines(truth_write, text, told[i], "\"rank\":2"), 1);
		ck_assert_int_eq(count_in(truth_write, text, told[i]), 1);
		ck_assert_int_eq(count_in(truth_write, text, "\"completed\":false"), 4);
		ck_assert_int_eq(count_lines(injected_write, text, "\"mismatch\"",
					     "\"world_rank\":2"), 1);
	}
}

TEST(the_bytes_of_who_passes_something_else_are_his)
{
	ck_assert_int_eq(count_lines(truth_write, FOUR "mismatch rank 2 comm w op 0 count 8\n"
				     "AllGather w 1Ki float32\n", "\"bytes\":128,", "\"rank\":2"),
			 1);
}

TEST(a_rank_that_swaps_two_calls_is_in_the_other_one)
{
	const char *text = FOUR "swap rank 1 comm w op 2\n"
			   "loop 4\nAllReduce w 1Ki float32\nAllGather w 1Ki float32\nend\n";
	const char *out = text_of(truth_write, text);

	ck_assert_int_eq(count(out, "\"completed\":false"), 8);
	ck_assert_int_eq(count_lines(truth_write, text, "\"rank\":1,", "\"completed\":false"), 2);
	ck_assert_ptr_null(strstr(strstr(out, "\"op\":3,"), "\"rank\":0,"));
	ck_assert_int_eq(count_lines(injected_write, text, "\"swap\"", "\"op\":2"), 1);
	free((char *)out);
}

TEST(a_swapped_rank_makes_its_calls_in_the_other_order)
{
	const char *text, *first, *second;

	probe_reset(NCCL_COLL, 0);
	ck_assert_int_eq(fx_play_version("processes 2\npace none\ncomm w ranks 0,1 channels 1\n"
					 "swap rank 0 comm w op 0\n"
					 "AllReduce w 1Ki float32\nAllGather w 1Ki float32\n"
					 "AllReduce w 1Ki float32\n", 6), 1);
	text = probe_text(PROBE_UNIT, 0);
	first = strstr(text, "Coll S <CollApi group=Group AllGather seq=0");
	second = strstr(text, "Coll S <CollApi group=Group AllReduce seq=0");
	ck_assert_ptr_nonnull(first);
	ck_assert_ptr_nonnull(second);
	ck_assert(first < second);
	ck_assert_ptr_nonnull(strstr(text, "AllReduce seq=1"));
}

TEST(two_communicators_in_the_other_order_wait_for_each_other)
{
	const char *text = "gpus 2\ncomm a ranks 0,1\ncomm b ranks 0,1\n"
			   "swap rank 1 comm a op 1 comm b op 1\n"
			   "loop 4\nAllReduce a 1Ki float32\nAllReduce b 1Ki float32\nend\n";

	ck_assert_int_eq(count_lines(truth_write, text, "\"completed\":false", "\"rank\":1,"), 2);
	ck_assert_int_eq(count_lines(truth_write, text, "\"completed\":false", "\"rank\":0,"), 2);
	/* each one's kernel runs on another communicator */
	ck_assert_int_eq(count_lines(truth_write, text, "\"stop_ns\":null,\"exec_ns\":null,"
				     "\"gpu_start\":null", "\"rank\":1,"), 1);
	ck_assert_int_eq(count_lines(truth_write, text, "\"comm\":\"a\"", "\"arrival_ns\":null"),
			 1);
	ck_assert_int_eq(count_lines(truth_write, text, "\"comm\":\"b\"", "\"arrival_ns\":null"),
			 1);
}

TEST(a_program_that_pauses_leaves_nothing_open)
{
	const char *text = FOUR "pause comm w op 3\n"
			   "loop forever\nAllReduce w 1Ki float32\nend\n";

	ck_assert_int_eq(count_in(truth_write, text, "\"completed\":true"), 12);
	ck_assert_int_eq(count_in(truth_write, text, "\"completed\":false"), 0);
	ck_assert_int_eq(count_lines(injected_write, text, "\"pause\"", "\"world_rank\":null"), 1);
	probe_reset(NCCL_KERNEL_CH, 0);
	ck_assert_int_eq(fx_play_version("pace none\nhold 0\n" FOUR "pause comm w op 3\n"
					 "loop forever\nAllReduce w 1Ki float32\nend\n", 6), 1);
	ck_assert_int_eq(probe_count("KernelCh S"), 24);
	ck_assert_int_eq(probe_count("KernelCh X"), 24);
}

/* ---- noise ---- */

TEST(an_uneven_all_to_all_has_pairs_of_many_sizes)
{
	const char *text = FOUR "AlltoAll w 1000 float32 uneven 50%\n";
	char *out = text_of(truth_write, text);
	int sizes = 0;

	for (int n = 500; n <= 1500; n++) {
		char what[32];

		snprintf(what, sizeof(what), "\"count\":%d,", n);
		ck_assert_int_eq(count(out, what) % 2, 0);	/* the two sides agree */
		sizes += count(out, what) / 2;
	}
	ck_assert_int_eq(sizes, 16);
	ck_assert_int_lt(count(out, "\"count\":1000,"), 4);
	free(out);
}

TEST(a_rare_delay_comes_rarely)
{
	const char *text = FOUR "loop 100\ncompute 100us rare 50ms every 20\n"
			   "AllReduce w 1Ki float32\nend\n";
	int late = late_rows(text, 40000000);

	ck_assert_int_ge(late, 8);
	ck_assert_int_le(late, 40);
}

TEST(what_was_injected_is_told_once_for_each_operation_it_hits)
{
	char *out = text_of(injected_write, "processes 2\ncomm w ranks 0,1\n"
			    "kill process 1 comm w op 2\nloop forever\n"
			    "AllReduce w 1Ki float32\nend\n");

	ck_assert_int_eq(count(out, "\n"), 1);
	ck_assert_ptr_nonnull(strstr(out, "{\"kind\":\"kill\",\"comm\":\"w\""));
	ck_assert_ptr_nonnull(strstr(out, "\"op\":2,\"func\":\"AllReduce\",\"rank\":null,"
				     "\"world_rank\":null,\"process\":1,\"node\":0"));
	ck_assert_ptr_null(strstr(out, "\"at_ns\":null"));
	free(out);
}

int main(void)
{
	return fx_run(NULL, NULL);
}
