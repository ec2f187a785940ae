/* SPDX-License-Identifier: Apache-2.0 */
/* Who is compared with whom, by durations alone, and who must not be. */
#include "ncclinspd/compare/ranks.h"

#include <stdlib.h>
#include <string.h>

#include "tests/fixture.h"

#define MS		UINT64_C(1000000)
#define PROCESSES	4
#define ROOM		4096

static struct ranks *ranks;
static struct process process[PROCESSES], *list[PROCESSES];
static struct comm comms[PROCESSES][2];
static struct op told[ROOM];
static uint32_t ntold;
static uint32_t joints, joint_n, joint_expected;
static uint64_t now_ns;

static size_t processes(void *arg, struct process *const **out)
{
	(void)arg;
	*out = list;
	return PROCESSES;
}

static void take_op(const struct op *op, uint64_t at_ns, void *arg)
{
	(void)arg;
	ck_assert_uint_eq(at_ns, now_ns);
	ck_assert_uint_lt(ntold, ROOM);
	told[ntold++] = *op;
}

static void take_joint(const struct op *const *ops, uint32_t n, uint32_t expected,
		       uint64_t at_ns, void *arg)
{
	(void)arg;
	(void)at_ns;
	for (uint32_t i = 0; i < n; i++) {
		ck_assert_uint_eq(ops[i]->local_ranks, n);
		ck_assert_uint_eq(ops[i]->seq, ops[0]->seq);
		ck_assert_str_eq(ops[i]->comm_name, ops[0]->comm_name);
		ck_assert_int_eq(ops[i]->nranks, ops[0]->nranks);
		ck_assert_uint_eq(ops[i]->uid, ops[0]->uid);
	}
	joints++;
	joint_n = n;
	joint_expected = expected;
}

static struct comm member(int32_t rank, uint64_t id)
{
	return (struct comm){
		.ready = true, .has_id = true, .id = id, .rank = rank, .nranks = 8,
		.name = "tp", .init_ticks = 1000,
	};
}

/* Process i is rank i of communicator 0xc0; the second communicator is not there. */
static void setup_with(const struct ranks_limits *limits)
{
	const struct ranks_hooks hooks = { processes, take_op, take_joint, NULL };

	now_ns = 1000 * MS;
	for (int i = 0; i < PROCESSES; i++) {
		memset(comms[i], 0, sizeof(comms[i]));
		comms[i][0] = member(i, 0xc0);
		process[i] = (struct process){
			.id = (uint64_t)i + 1, .comms = comms[i], .ncomms = 2,
			.clock = { .kind = NCI_CLOCK_MONOTONIC, .ns_per_tick = 1 },
		};
		list[i] = &process[i];
	}
	ck_assert_int_eq(ranks_new(&ranks, limits, &hooks), 0);
}

static void setup(void)
{
	setup_with(NULL);
}

static void teardown(void)
{
	ranks_free(ranks);
}

static struct op op_of(uint32_t p, uint32_t comm, name_t func, uint64_t seq, uint64_t exec_ns)
{
	return (struct op){
		.process_id = process[p].id, .comm_index = comm, .has_comm_id = true,
		.comm_id = comms[p][comm].id, .comm_name = "tp", .nranks = 8,
		.rank = comms[p][comm].rank, .func = func, .seq = seq, .bytes = 8000,
		.complete = true, .source = TIMING_KERNEL_GPU, .exec_ns = exec_ns,
	};
}

static void give(uint32_t p, uint64_t seq, uint64_t exec_ns)
{
	struct op op = op_of(p, 0, "AllReduce", seq, exec_ns);

	ranks_add(ranks, &op, now_ns);
}

static const struct op *told_of(int32_t rank)
{
	for (uint32_t i = ntold; i-- > 0;)
		if (told[i].rank == rank)
			return &told[i];
	return NULL;
}

/* Began at `start` at the latest, and earlier by `error` at most. */
static void give_placed(uint32_t p, uint64_t exec_ns, uint64_t start, uint64_t error)
{
	struct op op = op_of(p, 0, "AllReduce", 5, exec_ns);

	op.gpu_start_mono_ns = start;
	op.gpu_clock_error_ns = error;
	ranks_add(ranks, &op, now_ns);
}

/* What AlltoAllv carries is not told by its bytes: its neighbour's bandwidth is not its own. */
TEST(ranks_that_do_the_same_in_two_ways_have_their_own_bandwidths)
{
	for (uint32_t p = 0; p < PROCESSES; p++) {
		struct op op = op_of(p, 0, p == 1 ? "AlltoAllv" : "AlltoAll", 5, 1000);

		ranks_add(ranks, &op, now_ns);
	}
	ck_assert_uint_eq(joints, 1);
	ck_assert_double_gt(told_of(0)->busbw_waitfree_gbs, 0);
	ck_assert_double_le(told_of(1)->busbw_waitfree_gbs, 0);
	ck_assert_double_gt(told_of(2)->busbw_waitfree_gbs, 0);
}

TEST(where_clocks_tell_for_certain_who_came_when_they_are_believed)
{
	const int32_t order[] = { 3, 1, 0, 2 };

	give_placed(0, 3000, 105000, 1000);	/* ranks leave apart by as much as they come */
	give_placed(1, 2000, 103000, 1000);
	give_placed(2, 9000, 108000, 2999);
	give_placed(3, 8000, 100000, 20000);	/* nobody is before it */
	ck_assert_uint_eq(ntold, 4);
	ck_assert_mem_eq(told_of(0)->arrival, order, sizeof(order));
	ck_assert_int_eq(told_of(0)->arrival_source, ARRIVAL_GPU_CLOCK);
	ck_assert_uint_eq(told_of(3)->late_ns, 0);
	ck_assert_uint_eq(told_of(2)->late_ns, 8000);
	ck_assert_uint_eq(told_of(2)->waitfree_ns, 2000);
}

/* All brackets are of one width, and all ranks by as much apart. */
TEST_LOOP(clocks_tell_from_the_first_nanosecond_beyond_their_brackets, 0, 2)
{
	for (uint32_t p = 0; p < PROCESSES; p++)
		give_placed(p, 9000, 100000 + p * (1000 + (uint64_t)_i), 1000);
	ck_assert_uint_eq(ntold, 4);
	ck_assert_int_eq(told_of(0)->arrival_source, _i ? ARRIVAL_GPU_CLOCK : ARRIVAL_DURATION);
}

static void give_synced(uint32_t p, uint64_t exec_ns, uint64_t sync_ns, bool refused)
{
	struct op op = op_of(p, 0, "AllReduce", 7, exec_ns);

	op.symmetric = op.has_sync = true;
	op.sync_ns = sync_ns;
	op.stamps_refused = refused;
	ranks_add(ranks, &op, now_ns);
}

/* Times inside say something else: of one clock each, they are off by as much as it drifts. */
TEST_LOOP(symmetric_kernels_tell_themselves_who_waited, 0, 2)
{
	const int32_t order[] = { 3, 1, 0, 2 };

	give_synced(0, 3000, 1000, false);
	give_synced(1, 2000, 4000, false);
	give_synced(2, 9000, 0, _i == 1);
	give_synced(3, 8000, 6000, false);
	ck_assert_uint_eq(ntold, 4);
	if (_i == 1) {
		ck_assert_int_eq(told_of(0)->arrival_source, ARRIVAL_DURATION);
		return;
	}
	ck_assert_int_eq(told_of(0)->arrival_source, ARRIVAL_SYNC);
	ck_assert_mem_eq(told_of(0)->arrival, order, sizeof(order));
	ck_assert_uint_eq(told_of(3)->late_ns, 0);
	ck_assert_uint_eq(told_of(2)->late_ns, 6000);
}

static const struct {
	uint64_t start, error;	/* of rank 2 */
	uint64_t first_error;	/* of rank 3, which came before all others */
} uncertain[] = {
	{ 108000, 3000, 1000 },		/* may have come together with rank 0 */
	{ 108000, UNKNOWN_U64, 1000 },
	{ 108000, 1000, 20001 },	/* durations tell more */
	{ 108000, 1000, UNKNOWN_U64 },
	{ 117000, 1000, 1000 },		/* it left 21 us after rank 1: some clock is wrong */
	{ 0, 1000, 1000 },		/* nobody knows when */
};

TEST_LOOP(else_times_inside_tell_the_order, 0, (int)FX_COUNT(uncertain))
{
	const int32_t order[] = { 2, 3, 0, 1 };

	give_placed(0, 3000, 105000, 1000);
	give_placed(1, 2000, 103000, 1000);
	give_placed(2, 9000, uncertain[_i].start, uncertain[_i].error);
	give_placed(3, 8000, 100000, uncertain[_i].first_error);
	ck_assert_uint_eq(ntold, 4);
	ck_assert_mem_eq(told_of(0)->arrival, order, sizeof(order));
	ck_assert_int_eq(told_of(0)->arrival_source, ARRIVAL_DURATION);
	ck_assert_uint_eq(told_of(1)->late_ns, 7000);
}

TEST(who_was_inside_for_the_least_time_came_last)
{
	const int32_t order[] = { 2, 0, 1, 3 };

	give(0, 5, 3000);
	give(1, 5, 2000);
	give(2, 5, 9000);
	ck_assert_uint_eq(ntold, 0);
	give(3, 5, 1000);
	ck_assert_uint_eq(ntold, 4);
	ck_assert_uint_eq(told_of(3)->late_ns, 8000);
	ck_assert_uint_eq(told_of(2)->late_ns, 0);
	ck_assert_uint_eq(told_of(1)->waitfree_ns, 1000);
	ck_assert_double_eq_tol(told_of(1)->busbw_waitfree_gbs, 8 * 1.75, 1e-9);
	ck_assert_mem_eq(told_of(0)->arrival, order, sizeof(order));
	ck_assert_uint_eq(joints, 1);
	ck_assert_uint_eq(joint_n, 4);
	ck_assert_uint_eq(joint_expected, 4);
}

TEST(who_never_comes_is_waited_for_only_for_a_while)
{
	give(0, 5, 3000);
	give(1, 5, 2000);
	now_ns += RANKS_WAIT_NS - 1;
	ranks_flush(ranks, now_ns);
	ck_assert_uint_eq(ntold, 0);
	now_ns++;
	ranks_flush(ranks, now_ns);
	ck_assert_uint_eq(ntold, 2);
	ck_assert_uint_eq(told_of(1)->late_ns, 1000);
	ck_assert_uint_eq(told_of(1)->local_ranks, 2);
	ck_assert_uint_eq(ranks_stats(ranks)->expired, 1);
}

TEST(who_has_ended_is_not_waited_for)
{
	for (uint32_t p = 0; p < 3; p++)
		give(p, 5, 1000 + p);
	ranks_end(ranks, &process[3], now_ns);
	ck_assert_uint_eq(ntold, 3);
	ck_assert_uint_eq(told_of(0)->local_ranks, 3);
}

/* A broadcast's root waits for nobody; a send, a rank alone: nothing to compare. */
TEST_LOOP(where_it_says_nothing_nothing_is_held, 0, 5)
{
	static const char *const funcs[] = { "Broadcast", "Reduce", "Send", "Gather", "Mystery" };
	struct op op = op_of(0, 0, funcs[_i], 5, 1000);

	ranks_add(ranks, &op, now_ns);
	ck_assert_uint_eq(ntold, 1);
	ck_assert_uint_eq(told[0].local_ranks, 0);
}

TEST(rank_without_a_time_goes_on_at_once_and_is_not_waited_for)
{
	struct op op = op_of(3, 0, "AllReduce", 5, UNKNOWN_U64);

	op.source = TIMING_NONE;
	for (uint32_t p = 0; p < 2; p++)
		give(p, 5, 1000 + p);
	ranks_add(ranks, &op, now_ns);
	ck_assert_uint_eq(ntold, 1);
	give(2, 5, 1002);
	ck_assert_uint_eq(ntold, 4);
	ck_assert_uint_eq(told_of(2)->local_ranks, 3);
	ck_assert_uint_eq(told_of(3)->local_ranks, 0);
}

#define IN_ORDER	40	/* operations of a communicator */

static const name_t order_funcs[] = { "AllReduce", "AllGather" };

/* One id, but another name, size or user: two of the four processes are another's. */
static void make_namesakes(int how)
{
	for (uint32_t p = 0; p < PROCESSES; p++) {
		comms[p][1] = member((int32_t)p, 0xc0);
		if (how == 0)
			strcpy(comms[p][1].name, "dp");
		if (how == 1)
			comms[p][1].nranks = 4;
		if (how == 2)
			process[p] = (struct process){
				.id = p + 1, .uid = p / 2, .comms = comms[p], .ncomms = 1,
				.clock = process[p].clock,
			};
	}
}

static void give_namesakes(int how, uint32_t p, uint32_t c, const uint8_t *func)
{
	static uint32_t given[PROCESSES][2];
	static uint64_t seq[PROCESSES][2][2];
	uint32_t nth;
	struct op op;

	if (!func) {
		memset(given, 0, sizeof(given));
		memset(seq, 0, sizeof(seq));
		return;
	}
	nth = given[p][c]++;
	if (nth >= IN_ORDER)
		return;
	op = op_of(p, c, order_funcs[func[nth]], seq[p][c][func[nth]]++, 1000);
	op.comm_name = c && how == 0 ? "dp" : "tp";
	op.nranks = comms[p][c].nranks;
	op.uid = process[p].uid;
	ranks_add(ranks, &op, now_ns);
}

/* Each communicator's ranks have its functions in one order, and come in any. */
TEST_LOOP(ranks_of_communicators_with_one_id_find_each_other_in_any_order, 0, 60)
{
	uint32_t ncomms = _i % 3 == 2 ? 1 : 2;
	uint8_t func[2][IN_ORDER];

	fx_seed((uint64_t)_i);
	make_namesakes(_i % 3);
	give_namesakes(0, 0, 0, NULL);
	for (uint32_t i = 0; i < 2 * IN_ORDER; i++)
		func[i / IN_ORDER][i % IN_ORDER] = fx_random() % 2;
	for (uint32_t k = 0; k < 100 * IN_ORDER; k++) {
		uint32_t p = (uint32_t)(fx_random() % PROCESSES);
		uint32_t c = (uint32_t)(fx_random() % ncomms);

		give_namesakes(_i % 3, p, c, func[c]);
	}
	ck_assert_uint_eq(joints, 2 * IN_ORDER);
	ck_assert_uint_eq(joint_n, _i % 3 == 2 ? 2 : 4);
	ck_assert_uint_eq(ntold, PROCESSES * ncomms * IN_ORDER);
	for (uint32_t i = 0; i < ntold; i++)
		ck_assert_uint_eq(told[i].local_ranks, joint_n);
}

/* Two shrinks of one parent have one id: a rank number comes twice. */
TEST(communicators_with_one_id_are_never_mixed)
{
	comms[2][0].rank = 0;
	comms[3][0].rank = 1;
	for (uint32_t p = 0; p < 4; p++)
		give(p, 5, 1000 + p);
	ck_assert_uint_eq(ntold, 4);
	for (uint32_t i = 0; i < 4; i++)
		ck_assert_uint_eq(told[i].local_ranks, 0);
	ck_assert_uint_eq(ranks_stats(ranks)->ambiguous, 4);
}

TEST(a_second_communicator_of_one_id_ends_the_comparison)
{
	for (uint32_t p = 0; p < 4; p++)
		give(p, 5, 1000 + p);
	ck_assert_uint_eq(told_of(0)->local_ranks, 4);
	comms[1][1] = member(0, 0xc0);		/* rank 0 again, in another process */
	now_ns += 200 * MS;
	for (uint64_t seq = 6; seq < 8; seq++) {
		struct op op = op_of(1, 1, "AllReduce", seq, 5000);

		ranks_add(ranks, &op, now_ns);
		for (uint32_t p = 0; p < 4; p++)
			give(p, seq, 1000 + p);
	}
	ck_assert_uint_eq(ntold, 14);
	for (uint32_t i = 4; i < ntold; i++)
		ck_assert_uint_eq(told[i].local_ranks, 0);
}

/* The same, but destroyed before: what is left is clear. */
TEST(destroyed_communicator_of_one_id_is_no_rival)
{
	comms[1][1] = member(0, 0xc0);
	comms[1][1].finalize_ticks = 2000;
	for (uint32_t p = 0; p < 4; p++)
		give(p, 5, 1000 + p);
	ck_assert_uint_eq(told_of(0)->local_ranks, 4);
}

/* Ranks that do not meet: made at other times, of other users, sizes or names. */
TEST_LOOP(what_differs_is_not_one_communicator, 0, 4)
{
	switch (_i) {
	case 0:
		comms[3][0].init_ticks = 60000 * MS;
		break;
	case 1:
		process[3].uid = 7;
		break;
	case 2:
		comms[3][0].nranks = 4;
		break;
	default:
		strcpy(comms[3][0].name, "dp");
	}
	for (uint32_t p = 0; p < 3; p++)
		give(p, 5, 1000 + p);
	ck_assert_uint_eq(ntold, 3);
	ck_assert_uint_eq(told_of(0)->local_ranks, _i ? 3 : 0);
}

TEST_LOOP(ranks_that_did_not_do_the_same_are_not_compared, 0, 2)
{
	struct op op = op_of(3, 0, "AllReduce", 5, 1000);

	if (_i)
		op.bytes = 16000;
	else
		op.fused = 2;
	for (uint32_t p = 0; p < 3; p++)
		give(p, 5, 1000 + p);
	ranks_add(ranks, &op, now_ns);
	ck_assert_uint_eq(ntold, 4);
	ck_assert_uint_eq(told_of(0)->local_ranks, 0);
}

TEST(batches_are_compared_as_one)
{
	for (uint32_t p = 0; p < 4; p++) {
		struct op op = op_of(p, 0, "AllReduce", 5, 10);

		op.fused = 2;
		op.batch_ns = 1000 * (p + 1);
		ranks_add(ranks, &op, now_ns);
	}
	ck_assert_uint_eq(told_of(0)->late_ns, 3000);
	ck_assert_double_le(told_of(0)->busbw_waitfree_gbs, 0);
}

TEST(number_that_is_used_again_is_not_compared_twice)
{
	give(0, 5, 1000);
	give(0, 5, 2000);
	ck_assert_uint_eq(ntold, 1);
	ck_assert_uint_eq(told[0].exec_ns, 2000);
}

/* ---- against what is slow and obvious -------------------------------------- */

#define SEQS	200

static uint64_t exec_of[PROCESSES][SEQS];

static void check_against_all_ranks(const struct op *op)
{
	uint64_t most = 0, least = UINT64_MAX;

	for (uint32_t p = 0; p < PROCESSES; p++) {
		most = exec_of[p][op->seq] > most ? exec_of[p][op->seq] : most;
		least = exec_of[p][op->seq] < least ? exec_of[p][op->seq] : least;
	}
	ck_assert_uint_eq(op->local_ranks, PROCESSES);
	ck_assert_uint_eq(op->late_ns, most - op->exec_ns);
	ck_assert_uint_eq(op->waitfree_ns, least);
	for (uint32_t i = 1; i < PROCESSES; i++)
		ck_assert_uint_ge(exec_of[op->arrival[i - 1]][op->seq],
				  exec_of[op->arrival[i]][op->seq]);
}

TEST_LOOP(any_order_of_coming_gives_the_same_figures, 0, 10)
{
	uint64_t next[PROCESSES] = { 0 };
	uint32_t left = PROCESSES * SEQS;

	fx_seed((uint64_t)_i);
	for (uint32_t p = 0; p < PROCESSES; p++)
		for (uint32_t s = 0; s < SEQS; s++)
			exec_of[p][s] = 1 + fx_random() % 5000;
	while (left) {
		uint32_t p = (uint32_t)(fx_random() % PROCESSES);

		for (uint64_t n = fx_random() % 8; n && next[p] < SEQS; n--, left--) {
			give(p, next[p], exec_of[p][next[p]]);
			next[p]++;
		}
	}
	ck_assert_uint_eq(ntold, PROCESSES * SEQS);
	for (uint32_t i = 0; i < ntold; i++)
		check_against_all_ranks(&told[i]);
}

TEST(full_pools_let_the_oldest_go_and_count_it)
{
	const struct ranks_limits small = { .ops = 5, .joints = 3, .cohorts = 1 };

	ranks_free(ranks);
	setup_with(&small);
	for (uint64_t seq = 0; seq < 100; seq++) {
		give(seq % 2, seq, 1000);
		comms[2][1] = member(0, 0xd0 + seq);
		comms[3][1] = member(1, 0xd0 + seq);
		struct op op = op_of(2, 1, "AllReduce", 5, 1000);

		ranks_add(ranks, &op, now_ns);
	}
	now_ns += RANKS_WAIT_NS;
	ranks_flush(ranks, now_ns);
	ck_assert_uint_eq(ntold, 200);
}

/* One process with a table as large as it likes, in turns on communicators that find no room. */
TEST(tables_of_communicators_are_looked_through_only_so_often)
{
	enum { MANY = 20000, TURNS = 100 };
	const struct ranks_limits limits = { .cohorts = 1 };
	struct comm *many = calloc(MANY, sizeof(*many));

	ranks_free(ranks);
	setup_with(&limits);
	for (int i = 0; i < MANY; i++)
		many[i] = member(0, (uint64_t)i);
	process[0].comms = many;
	process[0].ncomms = MANY;
	for (uint32_t i = 0; i < TURNS; i++) {
		struct op op = { .process_id = 1, .has_comm_id = true, .comm_index = i,
				 .comm_id = i, .nranks = 8, .func = "AllReduce", .seq = 1,
				 .complete = true, .source = TIMING_KERNEL_GPU, .exec_ns = 5 };

		ranks_add(ranks, &op, now_ns);
	}
	ck_assert_uint_eq(ntold, TURNS);
	ck_assert_uint_ge(ranks_stats(ranks)->unscanned, TURNS - 5);
	free(many);
}

/* Another user's table costs nothing where it is not looked through. */
TEST(tables_of_other_users_keep_nobody_from_being_compared)
{
	enum { MANY = 60000, TURNS = 20 };
	struct comm *many = calloc(MANY, sizeof(*many));

	for (int i = 0; i < MANY; i++)
		many[i] = member(0, (uint64_t)i);
	process[3].uid = 7;
	process[3].comms = many;
	process[3].ncomms = MANY;
	for (uint32_t i = 0; i < TURNS; i++) {
		struct op op = { .process_id = 1, .has_comm_id = true, .comm_index = 0,
				 .comm_id = 0xc0 + i, .nranks = 8, .func = "AllReduce", .seq = i,
				 .complete = true, .source = TIMING_KERNEL_GPU, .exec_ns = 5 };

		comms[0][0] = member(0, 0xc0 + i);
		ranks_add(ranks, &op, now_ns);
	}
	ck_assert_uint_eq(ranks_stats(ranks)->unscanned, 0);
	free(many);
}

/* The second communicator is another user's, and its other rank never comes. */
TEST(who_waits_without_end_pushes_out_nobody_else)
{
	const struct ranks_limits limits = { .ops = 32, .joints = 8 };

	teardown();
	setup_with(&limits);
	comms[2][1] = member(0, 0xd0);
	comms[3][1] = member(1, 0xd0);
	give(0, 1, 1000);
	for (uint64_t seq = 0; seq < 100; seq++) {
		struct op op = op_of(2, 1, "AllReduce", seq, 1000);

		op.account = 7;
		ranks_add(ranks, &op, now_ns);
	}
	ck_assert_uint_eq(joints, 0);
	for (uint32_t p = 1; p < PROCESSES; p++)
		give(p, 1, 1000);
	ck_assert_uint_eq(joints, 1);
	ck_assert_uint_eq(joint_n, PROCESSES);
	now_ns += RANKS_WAIT_NS;
	ranks_flush(ranks, now_ns);
	ck_assert_uint_gt(ranks_stats(ranks)->expired, 0);
}

int main(void)
{
	return fx_run(setup, teardown);
}
