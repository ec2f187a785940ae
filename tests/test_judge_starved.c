/* SPDX-License-Identifier: Apache-2.0 */
/* Progress threads without CPU, in rows that are made up. */
#include <string.h>

#include "judge/starved.h"
#include "tests/fixture.h"

#define MS	UINT64_C(1000000)
#define WINDOW	(20000 * MS)
#define ROWS	3

static struct starved_row rows[ROWS];
static struct starved_count count;
static char text[1024];

/* 100 operations in 20 s, of which so many are seen 100 ms late, each in an absence of its own. */
static void row_fill(struct starved_row *row, uint32_t late)
{
	uint64_t back_ns = 0;

	*row = (struct starved_row){ .job = 1, .window_ns = WINDOW, .cpu_share = -1 };
	for (uint32_t i = 0; i < 100; i++)
		starved_add(&row->sum, &back_ns, i * 200 * MS, i < late ? 100 * MS : MS / 2);
}

static void setup(void)
{
	for (uint32_t i = 0; i < ROWS; i++)
		row_fill(&rows[i], 0);
}

static void teardown(void) {}

static const char *say(const struct starved_row *row)
{
	const struct starved_case c = { .row = row, .count = count, .tid = 31,
					.who = { .rank = 3, .world_rank = 3, .pid = 30 } };

	starved_say(&c, text, sizeof(text));
	return text;
}

TEST(thread_that_is_away_is_told_from_two_percent_on_and_until_one)
{
	ck_assert(!starved_rate(rows, ROWS, &count));
	row_fill(&rows[1], 20);
	ck_assert(starved_rate(rows, ROWS, &count));
	ck_assert_int_eq(rows[1].grade, STARVED_AWAY);
	ck_assert_uint_eq(count.all, 3);
	ck_assert_uint_eq(count.starved, 1);
	ck_assert_ptr_eq(starved_worst(rows, ROWS, 1), &rows[1]);
	ck_assert_ptr_eq(strstr(say(&rows[1]), "the progress thread of rank 3 (pid 30) did not run "
				"when needed for 10 % of the time (20 times): it saw 20 of 100 "
				"kernels late, up to 100ms after they had begun. No other of the "
				"3 processes on this node is affected. See what else runs on its "
				"CPUs (taskset -p"), text);
	rows[1].window_ns = 6 * WINDOW;		/* 1.7 % */
	ck_assert(starved_rate(rows, ROWS, &count));
	ck_assert_int_eq(rows[1].grade, STARVED_STILL_AWAY);
	ck_assert(!starved_begins(rows[1].grade));
	rows[1].window_ns = 12 * WINDOW;
	ck_assert(!starved_rate(rows, ROWS, &count));
}

TEST(one_absence_is_one_however_many_kernels_begin_in_it)
{
	struct starved_sum sum = { 0 };
	uint64_t back_ns = 0;

	ck_assert(starved_add(&sum, &back_ns, 100 * MS, 50 * MS));
	ck_assert(starved_add(&sum, &back_ns, 120 * MS, 40 * MS));
	ck_assert(!starved_add(&sum, &back_ns, 130 * MS, UNKNOWN_U64));
	ck_assert_uint_eq(sum.times, 1);
	ck_assert_uint_eq(sum.late, 2);
	ck_assert_uint_eq(sum.away_ns, 60 * MS);
	ck_assert_uint_eq(sum.seen, 2);
	ck_assert_uint_eq(sum.ops, 3);
	ck_assert_double_eq_tol(starved_share(&sum, 900 * MS), 0.1, 1e-9);
	ck_assert(!(starved_share(&sum, 10 * MS) > 1));
}

TEST(wait_for_a_cpu_alone_is_told_where_too_few_kernels_are_watched)
{
	rows[0].sum = (struct starved_sum){ .ops = 200, .seen = 19 };
	rows[0].cpu_share = 0.1;
	ck_assert(starved_rate(rows, ROWS, &count));
	ck_assert_int_eq(rows[0].grade, STARVED_WAITS);
	ck_assert_ptr_nonnull(strstr(say(&rows[0]), "(pid 30) waited for a CPU for 10 % of the "
				     "time; the cost is unknown"));
	ck_assert_ptr_nonnull(strstr(text, "taskset -cp 31"));
	rows[0].cpu_share = 0.06;
	ck_assert(starved_rate(rows, ROWS, &count));
	ck_assert_int_eq(rows[0].grade, STARVED_STILL_WAITS);
	rows[0].sum.seen = 20;
	ck_assert(!starved_rate(rows, ROWS, &count));
}

TEST(worst_of_a_job_speaks_for_it_and_all_of_the_node_are_counted)
{
	row_fill(&rows[0], 30);
	row_fill(&rows[1], 40);
	row_fill(&rows[2], 50);
	rows[0].cpu_share = 0.01;		/* away for 15 %: it slept */
	rows[2].job = 2;
	ck_assert(starved_rate(rows, ROWS, &count));
	ck_assert_ptr_eq(starved_worst(rows, ROWS, 1), &rows[1]);
	ck_assert_ptr_eq(starved_worst(rows, ROWS, 2), &rows[2]);
	ck_assert_ptr_null(starved_worst(rows, ROWS, 3));
	ck_assert_ptr_nonnull(strstr(say(&rows[1]), "3 of the 3 processes on this "
				     "node are affected. There are too few CPUs for all that "
				     "runs here"));
	ck_assert_ptr_nonnull(strstr(say(&rows[0]), "It waited for a CPU for only "));
}

/* Enough of the time to explain half of its absence. */
TEST(limit_of_its_cgroup_is_the_cause_where_it_was_used_up)
{
	struct resources r = { .cpu_cgroup = "/sys/fs/cgroup/pod1", .cpu_limit = 2,
			       .throttled = 0.11, .throttled_periods = 0.2 };
	struct starved_case c = { .row = &rows[0], .resources = &r,
				  .who = { .rank = 3, .world_rank = 3, .pid = 30 } };

	row_fill(&rows[0], 40);		/* away for a fifth of the time */
	rows[0].cpu_share = 0.12;
	rows[0].throttled = 0.11;
	starved_rate(rows, ROWS, &c.count);
	starved_say(&c, text, sizeof(text));
	ck_assert_ptr_nonnull(strstr(text, ". The cause is on its node: its cgroup "
				     "(/sys/fs/cgroup/pod1) was throttled for "
				     "up to 11 % of the time: it may use 2 CPUs, and had used them "
				     "up in 20 % of the periods. Raise that limit (cpu.max; "));
	ck_assert_ptr_null(strstr(text, "It waited for a CPU for only"));
	r.throttled_periods = -1;
	starved_say(&c, text, sizeof(text));
	ck_assert_ptr_nonnull(strstr(text, "it may use 2 CPUs. Raise that limit"));
	rows[0].cpu_share = -1;
	starved_say(&c, text, sizeof(text));
	ck_assert_ptr_nonnull(strstr(text, "was throttled"));
	rows[0].cpu_share = 0.09;		/* throttled threads wait for a CPU */
	starved_say(&c, text, sizeof(text));
	ck_assert_ptr_nonnull(strstr(text, "It waited for a CPU for only"));
	rows[0].cpu_share = 0.12;
	rows[0].throttled = 0.09;
	starved_say(&c, text, sizeof(text));
	ck_assert_ptr_nonnull(strstr(text, "It was ready to run"));
	rows[0].throttled = 0.11;
	c.resources = NULL;
	starved_say(&c, text, sizeof(text));
	ck_assert_ptr_nonnull(strstr(text, "It was ready to run"));
}

TEST(want_of_memory_is_the_cause_where_a_thread_slept)
{
	struct resources r = { .throttled = -1, .memory_cgroup = "/pod1",
			       .memory_bytes = 1023 << 20, .memory_limit_bytes = 1 << 30,
			       .limit_hits = 7, .memory_stalled = 0.3,
			       .swapped_bytes = UNKNOWN_U64 };
	struct starved_case c = { .row = &rows[0], .resources = &r,
				  .who = { .rank = 3, .world_rank = 3, .pid = 30 } };

	row_fill(&rows[0], 40);		/* away for a fifth of the time */
	rows[0].cpu_share = 0.01;
	rows[0].throttled = -1;
	starved_rate(rows, ROWS, &c.count);
	starved_say(&c, text, sizeof(text));
	ck_assert_ptr_nonnull(strstr(text, ". The cause is on its node: its cgroup waited for "
				     "memory for 30 % of the time: "
				     "1023MiB of 1GiB are used in /pod1. Raise that limit"));
	r.memory_stalled = 0.06;	/* less than a third of it */
	starved_say(&c, text, sizeof(text));
	ck_assert_ptr_nonnull(strstr(text, "It waited for a CPU for only"));
	r.memory_stalled = -1;
	r.node_memory_stalled = 0.3;	/* others', perhaps */
	starved_say(&c, text, sizeof(text));
	ck_assert_ptr_nonnull(strstr(text, "freezes its cgroup. Meanwhile processes of this node "
				     "waited for memory for 30 % of the time"));
}

TEST(process_that_had_the_cpu_meanwhile_is_named)
{
	struct starved_case c = { .row = &rows[0], .tid = 31, .taker = 4711,
				  .taker_command = "stress-ng", .taker_share = 0.83,
				  .who = { .rank = 3, .world_rank = 3, .pid = 30 } };

	row_fill(&rows[0], 40);
	rows[0].cpu_share = 0.18;
	starved_rate(rows, ROWS, &c.count);
	starved_say(&c, text, sizeof(text));
	ck_assert_ptr_nonnull(strstr(text, "It was ready to run, but waited for a CPU for 18 % of "
				     "the time. For 83 % of that, its CPU ran pid 4711 "
				     "(stress-ng). See what else runs on its CPUs "
				     "(taskset -cp 31"));
	c.taker = 30;
	starved_say(&c, text, sizeof(text));
	ck_assert_ptr_nonnull(strstr(text, "of that, its CPU ran other threads of its process"));
	c.taker_share = 0.19;			/* many took a little each */
	starved_say(&c, text, sizeof(text));
	ck_assert_ptr_null(strstr(text, "had its CPU"));
	c.taker_share = 0.83;
	rows[0].cpu_share = 0.01;		/* it slept */
	starved_say(&c, text, sizeof(text));
	ck_assert_ptr_null(strstr(text, "had its CPU"));
}

int main(void)
{
	return fx_run(setup, teardown);
}
