/* SPDX-License-Identifier: Apache-2.0 */
/* Why an operation does not end: one case after the other, then all kinds of nonsense. */
#include <string.h>

#include "judge/hang.h"
#include "tests/fixture.h"

#define RANKS	4
#define COMMS	3

static struct hang_standing ranks[COMMS][RANKS];
static struct hang_comm comms[COMMS];
static struct hang_input in = { comms, COMMS };
static struct hang_verdict got;

/* Everybody is in the same operation of each communicator, and waits for nothing. */
static void setup(void)
{
	for (uint32_t c = 0; c < COMMS; c++) {
		comms[c] = (struct hang_comm){ RANKS, ranks[c], RANKS };
		for (int32_t r = 0; r < RANKS; r++)
			ranks[c][r] = (struct hang_standing){
				.rank = r, .process = 100 + (uint64_t)r, .posted = true,
				.peer = UNKNOWN_I32, .count = 1024,
				.datatype = "float", .algo = "RING", .proto = "LL",
				.root = UNKNOWN_I32, .channels = 2, .elsewhere = HANG_NONE,
				.room = { .peer = UNKNOWN_I32 }, .data = { .peer = UNKNOWN_I32 },
			};
	}
}

static void expect(uint32_t comm, enum verdict verdict, uint32_t nranks, int32_t first)
{
	hang_decide(&in, comm, &got);
	ck_assert_msg(got.verdict == verdict, "got %s, not %s", words_verdict(got.verdict)->name,
		      words_verdict(verdict)->name);
	ck_assert_uint_eq(got.nranks, nranks);
	if (nranks)
		ck_assert_int_eq(got.ranks[0], first);
}

static void wait_for(int32_t rank, enum hang_wait wait, int32_t peer)
{
	ranks[0][rank].wait = wait;
	ranks[0][rank].peer = peer;
	ranks[0][rank].room.peer = wait == WAIT_CREDIT ? peer : UNKNOWN_I32;
	ranks[0][rank].data.peer = wait == WAIT_RECV ? peer : UNKNOWN_I32;
}

TEST(a_dead_rank_explains_everything_unless_it_was_done)
{
	ranks[0][1].posted = false;
	ranks[0][2].ended = true;
	expect(0, VERDICT_RANK_DEAD, 1, 2);
	ranks[0][2].done = true;
	expect(0, VERDICT_NOT_JOINED, 1, 1);
}

TEST(who_is_nowhere_has_not_joined)
{
	ranks[0][1].posted = false;
	ranks[0][3].posted = false;
	expect(0, VERDICT_NOT_JOINED, 2, 1);
}

TEST(who_is_stopped_and_has_not_come_explains_everything_but_a_death)
{
	ranks[0][1].posted = ranks[0][2].posted = false;
	ranks[0][1].stopped = true;
	ranks[0][1].elsewhere = 1;
	expect(0, VERDICT_STOPPED, 1, 1);
	ck_assert_uint_eq(got.comm, 0);
	ranks[0][0].ended = true;
	expect(0, VERDICT_RANK_DEAD, 1, 0);
}

/* Whoever looks into a process that waits for another one may have stopped it. */
TEST(who_is_stopped_inside_explains_what_no_absence_and_no_argument_does)
{
	for (int32_t r = 0; r < RANKS; r++) {
		ranks[0][r].wants_kernel = true;
		wait_for(r, WAIT_PRODUCE, (r + 1) % RANKS);
	}
	ranks[0][2].stopped = true;
	expect(0, VERDICT_STOPPED, 1, 2);
	ranks[0][3].count = 7;
	expect(0, VERDICT_METADATA_MISMATCH, 1, 3);
	ranks[0][3].posted = false;
	expect(0, VERDICT_NOT_JOINED, 1, 3);
	ranks[0][3].posted = true;
	ranks[0][3].count = 1024;
	ranks[0][2].done = true;
	expect(0, VERDICT_NOT_RUNNING, 3, 0);
}

TEST(who_is_in_another_call_is_out_of_order)
{
	ranks[0][3].posted = false;
	ranks[0][3].other_func = "AllGather";
	ranks[0][3].elsewhere = 1;	/* what it did first is no excuse */
	expect(0, VERDICT_ORDER_MISMATCH, 1, 3);
	ck_assert_str_eq(got.other_func, "AllGather");
}

TEST(where_as_many_came_in_the_other_order_all_are_named)
{
	ranks[0][1].posted = ranks[0][3].posted = false;
	ranks[0][1].other_func = ranks[0][3].other_func = "AllGather";
	expect(0, VERDICT_ORDER_MISMATCH, 4, 1);
}

TEST(who_waits_elsewhere_is_followed_to_the_cause)
{
	ranks[0][3].posted = false;
	ranks[0][3].elsewhere = 1;
	ranks[1][2].posted = false;
	ranks[1][2].elsewhere = 2;
	ranks[2][0].posted = false;
	expect(0, VERDICT_NOT_JOINED, 1, 0);
	ck_assert_uint_eq(got.comm, 2);
}

TEST(a_circle_of_communicators_is_a_deadlock)
{
	ranks[0][3].posted = false;
	ranks[0][3].elsewhere = 1;
	ranks[1][2].posted = false;
	ranks[1][2].elsewhere = 2;
	ranks[2][1].posted = false;
	ranks[2][1].elsewhere = 1;
	expect(0, VERDICT_COMM_DEADLOCK, 2, 2);
	ck_assert_uint_eq(got.ncircle, 2);
	ck_assert_uint_eq(got.circle[0], 1);
	ck_assert_uint_eq(got.circle[1], 2);
}

TEST(gpus_that_began_in_another_order_are_a_deadlock_too)
{
	for (uint32_t c = 0; c < 2; c++)
		for (int32_t r = 0; r < RANKS; r++) {
			ranks[c][r].wants_kernel = true;
			ranks[c][r].kernel_started = 2;
		}
	ranks[0][3].kernel_started = 0;		/* it is in the other one */
	ranks[0][3].elsewhere = 1;
	ranks[1][0].kernel_started = 0;
	ranks[1][0].elsewhere = 0;
	expect(1, VERDICT_COMM_DEADLOCK, 2, 0);
	ck_assert_uint_eq(got.ncircle, 2);
}

/* Nothing tells which of two operations a GPU has begun: only a circle is proof. */
TEST(who_may_be_away_is_followed_in_a_circle_alone)
{
	ranks[0][3].may_be_away = true;
	ranks[0][3].elsewhere = 1;
	wait_for(0, WAIT_RECV, 3);
	expect(0, VERDICT_INTERNAL, 1, 0);
	ranks[1][0].may_be_away = true;
	ranks[1][0].elsewhere = 0;
	expect(0, VERDICT_COMM_DEADLOCK, 2, 3);
	expect(1, VERDICT_COMM_DEADLOCK, 2, 0);
	ranks[1][0].elsewhere = 2;
	expect(0, VERDICT_INTERNAL, 1, 0);
	ranks[1][0].elsewhere = 0;
	ranks[0][1].stopped = true;	/* a surer sign, as is what is on the wire */
	expect(0, VERDICT_STOPPED, 1, 1);
	ranks[0][1].stopped = false;
	ranks[1][2].wait = WAIT_WIRE;
	expect(0, VERDICT_INTERNAL, 1, 0);
	expect(1, VERDICT_LINK, 1, 2);
}

TEST(gpu_that_may_be_elsewhere_is_not_stuck_here)
{
	wait_for(2, WAIT_PRODUCE, 3);
	wait_for(3, WAIT_RECV, 2);
	ranks[0][2].step = 0;
	ranks[0][2].elsewhere = 1;
	ranks[1][2].wait = WAIT_WIRE;
	expect(0, VERDICT_GPU_STUCK, 1, 2);
	ranks[0][2].may_be_away = true;
	expect(0, VERDICT_LINK, 1, 2);
	ck_assert_uint_eq(got.comm, 1);
	ranks[0][2].step = 3;		/* it has come: it, or who has no transfers */
	expect(0, VERDICT_GPU_STUCK, 3, 2);
	ck_assert_uint_eq(got.comm, 0);
}

/* The few of the circle's smaller communicator are named as the larger one numbers them. */
TEST(ranks_of_a_circle_are_those_of_its_largest_communicator)
{
	comms[1].n = 2;
	ranks[1][0].process = ranks[0][2].process;
	ranks[1][1].process = ranks[0][3].process;
	ranks[0][2].posted = false;
	ranks[0][2].elsewhere = 1;
	ranks[1][1].posted = false;
	ranks[1][1].elsewhere = 0;
	expect(1, VERDICT_COMM_DEADLOCK, 2, 3);
	ck_assert_int_eq(got.ranks[1], 2);
	ck_assert_uint_eq(got.comm, 0);
}

/* One called the second communicator first, and three the first one. */
TEST(of_a_circle_the_few_that_took_another_order_are_named)
{
	ranks[1][2].posted = false;
	ranks[1][2].elsewhere = 0;
	for (int32_t r = 0; r < RANKS; r++) {
		ranks[0][r].posted = r == 2;
		ranks[0][r].elsewhere = r == 2 ? HANG_NONE : 1;
	}
	for (uint32_t comm = 0; comm < 2; comm++) {
		expect(comm, VERDICT_COMM_DEADLOCK, 1, 2);
		ck_assert_uint_eq(got.circle[0], 1);	/* where it is missing: told first */
	}
	ranks[0][0].posted = true;	/* two against one */
	expect(0, VERDICT_COMM_DEADLOCK, 1, 2);
	ranks[0][1].posted = true;	/* nobody can say who */
	expect(0, VERDICT_COMM_DEADLOCK, 2, 3);
}

TEST(the_few_that_differ_from_the_many_are_named)
{
	ranks[0][2].count = 2048;
	expect(0, VERDICT_METADATA_MISMATCH, 1, 2);
	ck_assert_str_eq(got.field, "count");
	ranks[0][1].count = 2048;	/* two against two: nobody can say who */
	expect(0, VERDICT_METADATA_MISMATCH, 4, 0);
	setup();
	ranks[0][0].proto = "SIMPLE";
	expect(0, VERDICT_CONFIG_MISMATCH, 1, 0);
	ck_assert_str_eq(got.field, "proto");
}

TEST(what_is_not_known_differs_from_nothing)
{
	ranks[0][0].count = UNKNOWN_U64;
	ranks[0][1].datatype = NULL;
	ranks[0][2].channels = 0;
	ranks[0][3].algo = NULL;
	expect(0, VERDICT_UNKNOWN, 0, 0);
}

TEST(the_wire_is_a_surer_sign_than_a_gpu_that_waits)
{
	wait_for(0, WAIT_PRODUCE, 1);
	wait_for(1, WAIT_WIRE, 2);
	wait_for(2, WAIT_RECV, 1);
	expect(0, VERDICT_LINK, 1, 1);
	ck_assert_int_eq(got.peer, 2);
}

TEST(a_gpu_that_takes_nothing_is_stuck)
{
	wait_for(0, WAIT_RECV, 3);
	wait_for(1, WAIT_CREDIT, 2);
	wait_for(2, WAIT_CONSUME, 1);
	expect(0, VERDICT_GPU_STUCK, 1, 2);
}

/* Ranks 0 to 2 share a node: what comes from the network goes through their GPUs in turn. */
TEST(a_gpu_that_takes_nothing_may_wait_for_the_next_of_its_node)
{
	for (int32_t r = 0; r < RANKS; r++) {
		wait_for(r, WAIT_NONE, UNKNOWN_I32);
		ranks[0][r].host = r < 3 ? "a" : "b";
	}
	wait_for(1, WAIT_CONSUME, 3);
	ranks[0][1].passes_on = true;
	wait_for(2, WAIT_PRODUCE, 3);
	ranks[0][2].step = 4;
	wait_for(3, WAIT_CREDIT, 1);
	expect(0, VERDICT_GPU_STUCK, 3, 1);
	ck_assert(got.one_of);
	ck_assert_int_eq(got.ranks[1], 0);
	ck_assert_int_eq(got.ranks[2], 2);
	ranks[0][2].step = 0;		/* that is its own */
	expect(0, VERDICT_GPU_STUCK, 1, 2);
	ck_assert(!got.one_of);
	ranks[0][1].passes_on = false;
	expect(0, VERDICT_GPU_STUCK, 1, 1);
	ck_assert(!got.one_of);
}

TEST(a_gpu_that_has_not_begun_is_not_running)
{
	for (int32_t r = 0; r < RANKS; r++) {
		ranks[0][r].wants_kernel = true;
		ranks[0][r].kernel_started = 2;
		wait_for(r, WAIT_RECV, (r + 3) % RANKS);
	}
	ranks[0][2].kernel_started = 0;
	wait_for(2, WAIT_PRODUCE, 3);
	expect(0, VERDICT_NOT_RUNNING, 1, 2);
	ranks[0][2].kernel_started = 2;
	expect(0, VERDICT_GPU_STUCK, 1, 2);
}

TEST(a_kernel_whose_transfers_come_forward_is_running)
{
	for (int32_t r = 0; r < RANKS; r++) {
		ranks[0][r].wants_kernel = true;
		wait_for(r, WAIT_RECV, (r + 3) % RANKS);
	}
	wait_for(2, WAIT_PRODUCE, 3);
	ranks[0][2].step = 6;
	expect(0, VERDICT_GPU_STUCK, 1, 2);
	ck_assert(!got.one_of);
}

/* Two of four are here, neither is known to have begun: 2 waits for 1, 3 for its GPU. */
static void lose_a_rank_elsewhere(void)
{
	comms[0].n = 2;
	for (int32_t i = 0; i < 2; i++) {
		ranks[0][i].rank = i + 2;
		ranks[0][i].wants_kernel = true;
		ranks[0][i].step = 0;
	}
	wait_for(0, WAIT_RECV, 1);
	wait_for(1, WAIT_PRODUCE, 0);
}

TEST(a_rank_elsewhere_that_gives_nothing_comes_before_a_kernel_that_nobody_told_of)
{
	lose_a_rank_elsewhere();
	expect(0, VERDICT_UNKNOWN, 0, 0);
	ck_assert_int_eq(got.peer, 1);
	ck_assert(got.remote);
	ck_assert(hang_has_not_begun(&ranks[0][0]) && hang_has_not_begun(&ranks[0][1]));
	wait_for(1, WAIT_NONE, UNKNOWN_I32);	/* its transfers have not begun either */
	ranks[0][1].step = UNKNOWN_I32;
	expect(0, VERDICT_UNKNOWN, 0, 0);
	wait_for(0, WAIT_CREDIT, 1);		/* it has no room for the first either */
	expect(0, VERDICT_UNKNOWN, 0, 0);
	ranks[0][0].kernel_started = 2;		/* one thread still tells, the other may not */
	expect(0, VERDICT_UNKNOWN, 0, 0);
}

TEST(a_kernel_is_missing_only_where_others_were_told_of)
{
	lose_a_rank_elsewhere();
	wait_for(0, WAIT_NONE, UNKNOWN_I32);
	expect(0, VERDICT_UNKNOWN, 0, 0);
	ranks[0][0].kernel_started = 2;
	expect(0, VERDICT_NOT_RUNNING, 1, 3);
	wait_for(0, WAIT_RECV, 1);		/* whose later steps need this node's */
	ranks[0][0].step = 4;
	expect(0, VERDICT_NOT_RUNNING, 1, 3);
	ranks[0][0].done = true;
	expect(0, VERDICT_NOT_RUNNING, 1, 3);
}

TEST(the_only_rank_here_is_not_running_unless_it_waits_for_another)
{
	lose_a_rank_elsewhere();
	comms[0].n = 1;
	expect(0, VERDICT_UNKNOWN, 0, 0);
	ck_assert_int_eq(got.peer, 1);
	wait_for(0, WAIT_PRODUCE, 3);
	expect(0, VERDICT_NOT_RUNNING, 1, 2);
}

TEST(who_sends_may_lack_what_those_without_transfers_have)
{
	for (int32_t r = 0; r < RANKS; r++)
		wait_for(r, WAIT_NONE, UNKNOWN_I32);
	comms[0].nranks = 8;
	wait_for(0, WAIT_RECV, 7);
	ranks[0][0].step = 9;
	wait_for(3, WAIT_PRODUCE, 4);
	ranks[0][3].step = 2;
	expect(0, VERDICT_GPU_STUCK, 3, 3);
	ck_assert(got.one_of);
	ranks[0][3].step = 0;		/* that is its own */
	ranks[0][0].step = 1;
	expect(0, VERDICT_GPU_STUCK, 1, 3);
	ck_assert(!got.one_of);
}

TEST(a_gpu_that_may_lack_data_from_another_node_is_not_accused)
{
	comms[0].nranks = 8;
	wait_for(0, WAIT_RECV, 7);
	wait_for(3, WAIT_PRODUCE, 4);
	ranks[0][0].step = 2;
	ranks[0][3].step = 4;
	expect(0, VERDICT_UNKNOWN, 0, 0);
	ck_assert_int_eq(got.peer, 7);
	ranks[0][3].step = 0;		/* that it does not depend on */
	expect(0, VERDICT_GPU_STUCK, 1, 3);
}

TEST(a_circle_of_waits_is_internal_only_if_all_ranks_are_seen)
{
	for (int32_t r = 0; r < RANKS; r++)
		wait_for(r, WAIT_RECV, (r + 3) % RANKS);
	expect(0, VERDICT_INTERNAL, 4, 0);
	for (int32_t r = 0; r < RANKS; r++) {	/* all may be behind another one's hang */
		ranks[0][r].may_be_away = true;
		ranks[0][r].elsewhere = 1;
	}
	ranks[1][2].wait = WAIT_WIRE;
	expect(0, VERDICT_LINK, 1, 2);
	ck_assert_uint_eq(got.comm, 1);
	ranks[0][3].step = 1;			/* one has come here */
	expect(0, VERDICT_INTERNAL, 4, 0);
	ranks[0][3].step = 0;
	ranks[0][3].may_be_away = false;
	expect(0, VERDICT_INTERNAL, 4, 0);
	comms[0].nranks = 8;
	expect(0, VERDICT_UNKNOWN, 0, 0);
	ck_assert(got.remote);
}

/* Rank 1 may not send to rank 2, which waits for it; so do all behind it. */
TEST(a_receiver_that_gives_its_sender_no_room_is_named)
{
	for (int32_t r = 0; r < RANKS; r++) {
		wait_for(r, WAIT_RECV, (r + 3) % RANKS);
		ranks[0][r].step = 2;
	}
	wait_for(1, WAIT_CREDIT, 2);
	ranks[0][1].step = ranks[0][2].step = 0;
	expect(0, VERDICT_NO_ROOM, 1, 2);
	ck_assert_int_eq(got.peer, 1);
	comms[0].nranks = 8;			/* whatever the others wait for */
	wait_for(0, WAIT_RECV, 7);
	expect(0, VERDICT_NO_ROOM, 1, 2);
	comms[0].nranks = RANKS;
	wait_for(0, WAIT_RECV, 3);
	wait_for(2, WAIT_CONSUME, 1);		/* that is why */
	expect(0, VERDICT_GPU_STUCK, 1, 2);
	wait_for(2, WAIT_RECV, 0);		/* it waits for another one */
	expect(0, VERDICT_INTERNAL, 4, 0);
}

/* Each of two sends to the other one, and waits for it: one has no room. */
TEST(who_has_no_room_may_wait_for_data_as_well)
{
	comms[0].n = 2;
	comms[0].nranks = 2;
	wait_for(0, WAIT_RECV, 1);
	wait_for(1, WAIT_RECV, 0);
	expect(0, VERDICT_INTERNAL, 2, 0);
	ranks[0][1].room = (struct hang_wait_for){ .peer = 0, .step = 0 };
	expect(0, VERDICT_NO_ROOM, 1, 0);
	ck_assert_int_eq(got.peer, 1);
}

/* Rank 3's GPU has sent what is its own, and waits for what rank 2 waits for. */
TEST(gpu_that_may_lack_data_is_not_stuck_where_a_receiver_gives_no_room)
{
	for (int32_t r = 0; r < RANKS; r++)
		wait_for(r, WAIT_NONE, UNKNOWN_I32);
	wait_for(0, WAIT_RECV, 3);
	wait_for(1, WAIT_CREDIT, 2);
	wait_for(2, WAIT_RECV, 1);
	wait_for(3, WAIT_PRODUCE, 0);
	ranks[0][3].step = 2;
	expect(0, VERDICT_NO_ROOM, 1, 2);
	ck_assert_int_eq(got.peer, 1);
	ranks[0][3].step = 0;		/* that needs nobody */
	expect(0, VERDICT_GPU_STUCK, 1, 3);
	ranks[0][3].step = 2;
	wait_for(1, WAIT_NONE, UNKNOWN_I32);
	wait_for(2, WAIT_NONE, UNKNOWN_I32);
	expect(0, VERDICT_GPU_STUCK, 3, 3);
	ck_assert(got.one_of);
}

TEST(a_wait_for_a_rank_elsewhere_names_that_rank)
{
	comms[0].nranks = 8;
	wait_for(0, WAIT_RECV, 7);
	wait_for(1, WAIT_RECV, 0);
	expect(0, VERDICT_UNKNOWN, 0, 0);
	ck_assert_int_eq(got.peer, 7);
	ck_assert(got.remote);
}

TEST(what_is_over_for_some_is_partial)
{
	ranks[0][0].done = true;
	ranks[0][1].done = true;
	wait_for(2, WAIT_RECV, 1);
	wait_for(3, WAIT_RECV, 2);
	expect(0, VERDICT_PARTIAL, 2, 2);
}

static void make_nonsense(void)
{
	for (uint32_t c = 0; c < COMMS; c++) {
		comms[c] = (struct hang_comm){ (int32_t)(fx_random() % 9) - 1, ranks[c],
						 (uint32_t)(fx_random() % (RANKS + 1)) };
		for (int32_t r = 0; r < RANKS; r++)
			ranks[c][r] = (struct hang_standing){
				.rank = (int32_t)(fx_random() % 6) - 1,
				.ended = !(fx_random() % 5),
				.stopped = !(fx_random() % 5),
				.posted = fx_random() % 3,
				.done = !(fx_random() % 4),
				.wants_kernel = fx_random() % 2,
				.kernel_started = (uint32_t)(fx_random() % 2),
				.wait = (enum hang_wait)(fx_random() % (WAIT_WIRE + 1)),
				.peer = (int32_t)(fx_random() % 9) - 1,
				.count = fx_random() % 4 ? 1 : UNKNOWN_U64,
				.root = fx_random() % 4 ? 0 : UNKNOWN_I32,
				.other_func = fx_random() % 6 ? NULL : "Send",
				.elsewhere = fx_random() % 3 ?
					     (uint32_t)(fx_random() % (COMMS + 1)) : HANG_NONE,
			};
	}
}

static bool is_of(const struct hang_comm *c, int32_t rank)
{
	for (uint32_t i = 0; i < c->n; i++)
		if (c->ranks[i].rank == rank)
			return true;
	return false;
}

TEST_LOOP(nonsense_gets_a_verdict_about_ranks_that_exist, 0, 5)
{
	fx_seed((uint64_t)_i);
	for (int k = 0; k < 2000; k++) {
		make_nonsense();
		hang_decide(&in, 0, &got);
		ck_assert_uint_lt(got.verdict, VERDICT_END);
		ck_assert_uint_lt(got.comm, COMMS);
		ck_assert_uint_le(got.ncircle, COMMS);
		ck_assert_uint_le(got.nranks, HANG_RANKS);
		for (uint32_t i = 0; !got.ncircle && i < got.nranks; i++)
			ck_assert(is_of(&comms[got.comm], got.ranks[i]));
		ck_assert_int_eq(got.verdict == VERDICT_COMM_DEADLOCK, got.ncircle > 0);
	}
}

int main(void)
{
	return fx_run(setup, NULL);
}
