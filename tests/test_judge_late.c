/* SPDX-License-Identifier: Apache-2.0 */
/* Who came last, and when that is more than chance: rows that are made up. */
#include <string.h>

#include "judge/late.h"
#include "tests/fixture.h"

#define US	UINT64_C(1000)
#define MS	UINT64_C(1000000)
#define RANKS	4

static const struct late_usual usual = {
	.known = true, .transfer_ns = MS, .tail_ns = 5 * US,
};
static struct late_part parts[RANKS];
static struct late_op op;
static double scratch[2 * RANKS];

/* Ranks that are inside for so many us. */
static void rate(int32_t nranks, const uint64_t *inside_us)
{
	for (uint32_t i = 0; i < RANKS; i++)
		parts[i] = (struct late_part){ .inside_ns = inside_us[i] * US,
					       .end_error_ns = UNKNOWN_U64 };
	late_measure(parts, RANKS, &op);
	late_rate(parts, RANKS, nranks, &usual, &op, scratch);
}

TEST(who_is_inside_for_the_least_time_came_last_and_costs_the_median_wait)
{
	rate(RANKS, (uint64_t[]){ 3000, 1000, 2900, 3500 });
	ck_assert(op.judged);
	ck_assert_uint_eq(op.last, 1);
	ck_assert_uint_eq(op.first, 3);
	ck_assert_uint_eq(op.blame_ns, 2 * MS);
}

TEST(what_is_apart_as_transfers_end_is_nobodys_doing)
{
	rate(RANKS, (uint64_t[]){ 1000, 1019, 1005, 1010 });
	ck_assert(!op.judged);
	rate(RANKS, (uint64_t[]){ 1000, 1020, 1005, 1010 });
	ck_assert(op.judged);
}

TEST(where_all_that_are_seen_wait_the_last_one_is_elsewhere)
{
	rate(2 * RANKS, (uint64_t[]){ 3000, 3100, 2900, 3500 });
	ck_assert(op.slow && !op.judged);
	ck_assert_uint_eq(op.last, LATE_NOBODY);
	ck_assert_uint_eq(op.slow_ns, 1900 * US);
	rate(RANKS, (uint64_t[]){ 3000, 3100, 2900, 3500 });
	ck_assert(op.slow && op.judged);	/* all are seen: one of them was the last */
	ck_assert_uint_eq(op.last, 2);
}

TEST(lateness_that_is_mostly_waiting_was_handed_on)
{
	ck_assert(late_is_inherited(7 * MS, 10 * MS));
	ck_assert(!late_is_inherited(6 * MS, 10 * MS));
}

TEST(who_is_late_together_shares_what_it_costs)
{
	double shares[RANKS];

	/* 0, 0, 3 and 5 ms late: two wait for both for 3 ms, all others for the last for 2 */
	rate(RANKS, (uint64_t[]){ 6000, 3000, 6000, 1000 });
	late_share(parts, RANKS, &op, shares, scratch);
	ck_assert_uint_eq(op.blame_ns, 5 * MS);
	ck_assert_double_eq(shares[0], 0);
	ck_assert_double_eq(shares[1], 1.5 * MS);
	ck_assert_double_eq(shares[2], 0);
	ck_assert_double_eq(shares[3], 3.5 * MS);
	ck_assert(late_is_worth_following(&op, parts[1].inside_ns));
	ck_assert(!late_is_worth_following(&op, parts[2].inside_ns));
}

TEST(shares_are_the_waiting_that_happened)
{
	for (int k = 0; k < 1000; k++) {
		double shares[RANKS], sum = 0;
		uint64_t inside_us[RANKS];

		for (int i = 0; i < RANKS; i++)
			inside_us[i] = 1000 + fx_random() % 5000;
		rate(RANKS, inside_us);
		late_share(parts, RANKS, &op, shares, scratch);
		for (int i = 0; i < RANKS; i++)
			sum += shares[i];
		ck_assert_double_eq_tol(sum, (double)op.blame_ns, 1);
	}
}

/*
 * A window of 60 operations in 6 s; late_ms[i][k] is how late rank k is in those whose number
 * is i in `turns`.
 */
static bool is_late(uint32_t turns, const uint64_t (*late_ms)[RANKS], uint32_t rank)
{
	struct late_window w = { .wall_ns = 6000 * MS };
	struct late_tally tally[RANKS] = { 0 };
	double room[2 * RANKS];
	const struct late_view v = { &w, tally, RANKS, RANKS, room };

	for (uint32_t i = 0; i < 60; i++) {
		uint64_t inside_us[RANKS];
		double shares[RANKS];

		for (uint32_t k = 0; k < RANKS; k++)
			inside_us[k] = 20000 - 1000 * late_ms[i % turns][k] + fx_random() % 20;
		rate(RANKS, inside_us);
		late_share(parts, RANKS, &op, shares, scratch);
		late_add(&w, &op, 1);
		late_add_judged(&w, &op);
		for (uint32_t k = 0; k < RANKS; k++)
			late_add_own(&tally[k], k == op.last, op.most_ns - parts[k].inside_ns,
				     (uint64_t)shares[k]);
	}
	return late_is_late(&v, rank);
}

/* The ranks that are late, as bits. */
static const struct {
	const char *how;
	uint32_t turns;
	uint64_t late_ms[RANKS][RANKS];
	unsigned late;
} cases[] = {
	{ "nobody", 1, { { 0 } }, 0 },
	{ "one", 1, { { 3, 0, 0, 0 } }, 1 },
	{ "two alike", 1, { { 0, 3, 0, 3 } }, 2 | 8 },
	{ "two, one by less", 1, { { 0, 6, 2, 0 } }, 2 | 4 },
	{ "two in turn", 2, { { 0, 4, 0, 0 }, { 0, 0, 0, 4 } }, 2 | 8 },
	{ "each in turn", 4, { { 4 }, { 0, 4 }, { 0, 0, 4 }, { 0, 0, 0, 4 } }, 0 },
	{ "evenly", 1, { { 0, 3, 6, 9 } }, 8 },
	{ "too little", 1, { { 0, 1, 0, 0 } }, 0 },
};

TEST_LOOP(who_makes_the_others_wait_is_late_however_many_do, 0, FX_COUNT(cases))
{
	for (uint32_t i = 0; i < RANKS; i++)
		ck_assert_msg(is_late(cases[_i].turns, cases[_i].late_ms, i) ==
			      (cases[_i].late >> i & 1), "%s: rank %u", cases[_i].how, i);
}

static const struct {
	enum late_why why;
	const char *next;
} next_steps[] = {
	{ LATE_WHY_UNKNOWN, "its input pipeline (py-spy dump -p 11)" },
	{ LATE_WHY_GPU, "its GPU is still busy" },
	{ LATE_WHY_HOST, "but its process calls NCCL late: see the process's input pipeline" },
	{ LATE_WHY_LAUNCHES, "launches its 4 ranks one after another" },
};

TEST(the_next_step_suits_the_cause)
{
	struct late_case c = {
		.verdict = VERDICT_STEADY, .func = "AllReduce", .comm_name = "dp", .nranks = 4,
		.seen = 4, .who.pid = 11, .wall_ns = 1000 * MS, .ops = 100, .judged = 100,
		.last = 90, .times = 100, .late_ns = MS, .blame_ns = 90 * MS,
	};
	char text[1024];

	for (int i = 0; i < FX_COUNT(next_steps); i++) {
		c.why = next_steps[i].why;
		c.launched = 4;
		late_say(&c, text, sizeof(text));
		for (int k = 0; k < FX_COUNT(next_steps); k++)
			ck_assert_msg(!strstr(text, next_steps[k].next) == (i != k), "%s", text);
	}
}

static const struct {
	enum late_why why;
	struct late_caller caller;
	const char *said;
} callers[] = {
	{ LATE_WHY_HOST, { 12, 0.5, 0.2, 0, NULL, -1 },
	  "Its thread that calls NCCL (tid 12) was ready to run, but waited for a CPU for 20 % of "
	  "the time. See what else runs on its CPUs (taskset -cp 12" },
	{ LATE_WHY_UNKNOWN, { 12, 0.5, 0.2, 99, "stress", 0.8 },
	  ", most of it for pid 99 (stress). " },
	{ LATE_WHY_HOST, { 12, 0.5, 0.2, 11, "pt_data", 0.8 },
	  ", most of it for other threads of its process (pt_data). " },
	{ LATE_WHY_HOST, { 12, 0.5, 0.2, 99, "stress", 0.1 },
	  "waited for a CPU for 20 % of the time. " },
	{ LATE_WHY_HOST, { 12, 0.97, 0.02, 0, NULL, -1 },
	  "calls NCCL late. The thread that calls NCCL (tid 12) runs for 97 % of the time: "
	  "it computes" },
	{ LATE_WHY_HOST, { 12, 0.28, 0.02, 99, "stress", 1 },
	  "calls NCCL late. The thread that calls NCCL (tid 12) sleeps for 70 % of the time: "
	  "it waits" },
	{ LATE_WHY_HOST, { 12, 0.85, 0.04, 0, NULL, -1 }, "runs for 85 % of the time" },
	{ LATE_WHY_HOST, { 12, 1, 0.04, 0, NULL, -1 }, "runs for 100 % of the time" },
	{ LATE_WHY_UNKNOWN, { 12, 0.97, 0.02, 0, NULL, -1 },
	  "its input pipeline (py-spy dump -p 11)" },
	/* too little for what it costs */
	{ LATE_WHY_HOST, { 12, 0.4, 0.06, 99, "stress", 1 }, "sleeps for 54 % of the time" },
	/* its GPU is late, whatever the thread does */
	{ LATE_WHY_GPU, { 12, 0.5, 0.2, 99, "stress", 0.8 }, "its GPU is still busy" },
};

TEST_LOOP(a_late_call_is_explained_by_what_its_thread_does, 0, FX_COUNT(callers))
{
	struct late_case c = {
		.verdict = VERDICT_STEADY, .func = "AllReduce", .comm_name = "dp", .nranks = 4,
		.seen = 4, .who.pid = 11, .wall_ns = 1000 * MS, .ops = 100, .judged = 100,
		.last = 90, .times = 100, .late_ns = MS, .blame_ns = 300 * MS,
		.why = callers[_i].why, .caller = &callers[_i].caller,
	};
	char text[1024];

	late_say(&c, text, sizeof(text));
	ck_assert_msg(strstr(text, callers[_i].said), "%s", text);
}

static const struct {
	enum late_why why;
	struct late_caller caller;
	struct resources resources;
	const char *said, *unsaid;
} lacks[] = {
	/* the limit goes before a process that had the CPU, where its thread waited for one */
	{ LATE_WHY_HOST, { 12, 0.5, 0.2, 99, "stress", 0.8 },
	  { .cpu_cgroup = "/pod1", .cpu_limit = 4, .throttled = 0.41,
	    .throttled_periods = 0.6 },
	  "its node: its cgroup (/pod1) was throttled for up to 41 % of the time: it may use 4 "
	  "CPUs, and had used them up in 60 % of the periods.", "stress" },
	{ LATE_WHY_HOST, { 12, 0.97, 0.02, 0, NULL, -1 },
	  { .cpu_cgroup = "/pod1", .cpu_limit = 4, .throttled = 0.41 },
	  "runs for 97 % of the time", "throttled" },
	{ LATE_WHY_UNKNOWN, { 12, 0.2, 0.02, 0, NULL, -1 },
	  { .cpu_cgroup = "/pod1", .cpu_limit = 4, .throttled = 0.41 },
	  "nvidia-smi", "throttled" },
	{ LATE_WHY_HOST, { 12, 0.5, 0.2, 99, "stress", 0.8 },
	  { .cpu_cgroup = "/pod1", .cpu_limit = 4, .throttled = 0.04 },
	  "for pid 99 (stress)", "throttled" },
	/* a third of what it costs */
	{ LATE_WHY_UNKNOWN, { 12, 0.2, 0.01, 0, NULL, -1 },
	  { .memory_stalled = 0.11, .node_memory_stalled = 0.2 },
	  "its cgroup waited for memory for 11 % of the time: the node is short of it",
	  "nvidia-smi" },
	{ LATE_WHY_UNKNOWN, { 12, 0.2, 0.01, 0, NULL, -1 },
	  { .memory_stalled = 0.11, .node_memory_stalled = -1 },
	  "its cgroup waited for memory for 11 % of the time: it met no limit that is known here",
	  "node is short" },
	/* the whole node's is a remark */
	{ LATE_WHY_UNKNOWN, { 12, 0.2, 0.01, 0, NULL, -1 },
	  { .memory_stalled = -1, .node_memory_stalled = 0.11, .io_stalled = -1,
	    .node_io_stalled = 0.3 },
	  "(py-spy dump -p 11). Meanwhile processes of this node waited for memory for 11 % of "
	  "the time, for disks for 30 % (/proc/pressure), perhaps this one among them.",
	  "The cause is on" },
	{ LATE_WHY_HOST, { 12, 0.2, 0.01, 0, NULL, -1 },
	  { .memory_stalled = -1, .node_memory_stalled = 0.01, .io_stalled = -1,
	    .node_io_stalled = 0.3 },
	  "a device (py-spy dump -p 11). Meanwhile processes of this node waited for disks for "
	  "30 % of the time (/proc/pressure)", "The cause is on" },
	{ LATE_WHY_UNKNOWN, { 12, 0.2, 0.01, 0, NULL, -1 },
	  { .memory_stalled = -1, .node_memory_stalled = 0.09 }, "nvidia-smi", "memory" },
	/* a group that is full of files waits for nothing */
	{ LATE_WHY_HOST, { 12, 0.2, 0.01, 0, NULL, -1 },
	  { .memory_cgroup = "/pod1", .memory_bytes = 1024,
	    .memory_limit_bytes = 1024, .memory_stalled = 0, .node_memory_stalled = 0.5 },
	  "it waits for input, a lock or a device", "memory" },
	{ LATE_WHY_HOST, { 12, 0.2, 0.01, 0, NULL, -1 },
	  { .io_stalled = 0.5 },
	  "sleeps for 79 % of the time: its cgroup waited for disks for 50 % of the time (py-spy",
	  "lock" },
	{ LATE_WHY_HOST, { 12, 0.2, 0.01, 0, NULL, -1 },
	  { .io_stalled = 0.2, .major_faults = 132 },
	  "time: 132 pages a second that it used had to be read from a disk",
	  "waited for disks" },
	{ LATE_WHY_HOST, { 12, 0.97, 0.01, 0, NULL, -1 },
	  { .apart = true, .placement = { "32-63", "1", "0", false } },
	  "Its calling thread may run only on CPUs 32-63, which are at NUMA node 1, but its GPU is "
	  "at node 0: bind it there", "cgroup" },
	{ LATE_WHY_GPU, { 12, 0.97, 0.01, 0, NULL, -1 },
	  { .throttled = 0.5, .apart = true }, "its GPU is still busy", "may run" },
};

TEST_LOOP(what_its_node_does_not_give_a_late_rank_is_told_where_it_is_enough, 0, FX_COUNT(lacks))
{
	struct late_case c = {
		.verdict = VERDICT_STEADY, .func = "AllReduce", .comm_name = "dp", .nranks = 4,
		.seen = 4, .who.pid = 11, .wall_ns = 1000 * MS, .ops = 100, .judged = 100,
		.last = 90, .times = 100, .late_ns = MS, .blame_ns = 300 * MS,
		.why = lacks[_i].why, .caller = &lacks[_i].caller,
		.resources = &lacks[_i].resources,
	};
	char text[1024];

	late_say(&c, text, sizeof(text));
	ck_assert_msg(strstr(text, lacks[_i].said) && !strstr(text, lacks[_i].unsaid), "%s", text);
	c.caller = NULL;
	late_say(&c, text, sizeof(text));
	ck_assert(!strstr(text, "calling thread may"));
}

TEST(a_long_list_of_cpus_ends_after_one_of_them)
{
	struct placement p;

	ck_assert(placement_find("32-63", 2, 1, false, &p));
	ck_assert_str_eq(p.cpus, "32-63");
	ck_assert(placement_find("101,103,105,107,109,111,113,115,117,119,121,123,125,127,129,"
				 "1310", 2, 1, false, &p));		/* as long as fits not */
	ck_assert_str_eq(p.cpus, "101,103,105,107,109,111,113,115,117,119,121,123,125,127,129,...");
	ck_assert(placement_find("1010,103,105,107,109,111,113,115,117,119,121,123,125,127,129,"
				 "131", 2, 1, false, &p));
	ck_assert_str_eq(p.cpus, "1010,103,105,107,109,111,113,115,117,119,121,123,125,127,...");
}

TEST(a_slow_gpu_is_the_cause_in_the_first_sentence)
{
	struct gpu_cause gpu = { .gpu = gpu_unknown("0000:3b:00.0"), .since = "12:03:10",
				 .limit = GPU_LIMIT_SW_THERMAL };
	struct late_case c = {
		.verdict = VERDICT_STEADY, .func = "AllReduce", .comm_name = "dp", .nranks = 4,
		.seen = 4, .who.pid = 11, .wall_ns = 1000 * MS, .ops = 100, .judged = 100,
		.last = 90, .times = 100, .late_ns = MS, .blame_ns = 90 * MS, .gpu = &gpu,
	};
	char text[1024];

	gpu.gpu.mean_mhz = 1095;
	gpu.gpu.sm_max_mhz = 1980;
	late_say(&c, text, sizeof(text));
	ck_assert_ptr_nonnull(strstr(text, " (9.0 %): its GPU runs at 1095 of "
				     "1980 MHz, thermal, since 12:03:10. It was last in"));
	ck_assert_ptr_nonnull(strstr(text, " See the cooling of that GPU and node."));
	ck_assert_ptr_null(strstr(text, "py-spy"));
}

int main(void)
{
	return fx_run(NULL, NULL);
}
