/* SPDX-License-Identifier: Apache-2.0 */
/* Deaths that have one cause, and lost records, in rows that are made up. */
#include <string.h>

#include "judge/died.h"
#include "judge/loss.h"
#include "tests/fixture.h"

#define SECOND	UINT64_C(1000000000)

static struct death deaths[10];
static const struct death *list[FX_COUNT(deaths)];
static char text[1024];

/* Ranks that died a second after another on two nodes, the first in an operation. */
static void setup(void)
{
	for (uint32_t i = 0; i < FX_COUNT(deaths); i++) {
		deaths[i] = (struct death){
			.ended_ns = (100 + i) * SECOND, .user = 7,
			.who = { .pid = 40 + (int32_t)i, .host = i % 2 ? "node1" : "node0",
				 .command = "train", .rank = (int32_t)i,
				 .world_rank = 10 + (int32_t)i },
			.has_comm_id = true, .comm_id = 0x77, .comm_name = "dp",
			.status = UNKNOWN_I32, .oom_kills = UNKNOWN_U64,
		};
		list[i] = &deaths[i];
	}
	deaths[0].in_flight = 2;
	deaths[0].func = "AllReduce";
	deaths[0].seq = 41;
	deaths[0].op_comm_name = "dp";
}

static void teardown(void) {}

TEST(deaths_of_a_communicator_within_half_a_minute_have_one_cause)
{
	ck_assert(died_have_one_cause(&deaths[0], &deaths[9]));
	deaths[9].ended_ns = deaths[0].ended_ns + 30 * SECOND - 1;
	ck_assert(died_have_one_cause(&deaths[0], &deaths[9]));
	deaths[9].ended_ns++;
	ck_assert(!died_have_one_cause(&deaths[0], &deaths[9]));
	deaths[1].comm_id++;
	ck_assert(!died_have_one_cause(&deaths[0], &deaths[1]));
	deaths[2].user++;
	ck_assert(!died_have_one_cause(&deaths[0], &deaths[2]));
	deaths[3].has_comm_id = false;
	ck_assert(!died_have_one_cause(&deaths[0], &deaths[3]));
}

TEST(first_of_the_dead_is_named_with_its_operation_and_the_others_after_it)
{
	deaths[1].ended_ns += 2 * SECOND;	/* 3 s: more than two clocks may be apart */
	died_say(list, 3, text, sizeof(text));
	ck_assert_ptr_eq(strstr(text, "rank 0 (global rank 10, pid 40, train, node0) died in the "
				      "middle of AllReduce #41 on dp; after it rank 1 (global rank "
				      "11, pid 41, train, node1), rank 2 (global rank 12, pid 42, "
				      "train, node0). It did not end by itself"),
			 text);
	deaths[1].ended_ns -= 2 * SECOND;
	died_say(list, 10, text, sizeof(text));
	ck_assert_ptr_nonnull(strstr(text, " on dp; at about the same time rank 1 (global "));
	ck_assert_ptr_nonnull(strstr(text, "rank 7 (global rank 17, pid 47, train, node1) and 2 "
					    "more. It did"));
}

TEST(death_is_critical_where_an_operation_was_in_flight)
{
	ck_assert(died_is_critical(list, 2));
	ck_assert(!died_is_critical(&list[1], 2));
	deaths[1].who.host = NULL;
	deaths[1].who.world_rank = 1;
	died_say(&list[1], 1, text, sizeof(text));
	ck_assert_ptr_eq(strstr(text, "rank 1 (pid 41, train) died with no operation known to be "
			      "in flight. "), text);
}

/* By the signal or the exit code, and by what the kernel killed for memory then. */
TEST_LOOP(cause_of_a_death_is_told_where_the_kernel_tells_it, 0, 15)
{
	static const struct {
		int32_t status;
		uint64_t oom_kills;
		const char *words;
		const char *cgroup;
		enum { OWN, ABOVE, SPARED } is;
	} cases[] = {
		{ 9, 0, "killed (SIGKILL), not by the kernel for lack of memory: by a launcher",
		  NULL, OWN },
		{ 9, UNKNOWN_U64, "It was killed (SIGKILL): by a launcher", NULL, OWN },
		{ 9, 1, "the kernel killed 1 process of this node at that time because memory ran "
			"out: perhaps this one", NULL, OWN },
		{ 9, 2, "killed 2 processes of", NULL, OWN },
		{ 9, 2, "kernel killed 1 process of its cgroup (/pod1, limit 1GiB) at that time "
			"because memory ran out: probably this one", "/pod1", OWN },
		{ 9, 2, "kernel killed 1 process of a cgroup above it (/pods, limit 1GiB) at that "
			"time because memory ran out: perhaps this one", "/pods", ABOVE },
		{ 9, 2, "It was killed (SIGKILL), not by the kernel for lack of memory: by a "
			"launcher, a scheduler, the end of its container or a person. See their "
			"logs. The kernel killed 2 processes for memory then, in other cgroups",
		  "/pod1", SPARED },
		{ UNKNOWN_I32, 2, "a signal, the kernel's out-of-memory killer or a crash.",
		  "/pod1", SPARED },
		{ UNKNOWN_I32, 2, "(which killed 1 process of its cgroup (/pod1, limit 1GiB)",
		  "/pod1", OWN },
		{ 9, 0, "not by the kernel for lack", "/pod1", OWN },	/* that was long ago */
		{ 15, 1, "It was ended by SIGTERM: by a launcher", NULL, OWN },
		{ 11, 1, "It crashed (SIGSEGV): see", NULL, OWN },
		{ 11 | 128, 0, "It crashed (SIGSEGV, with a core dump): see", NULL, OWN },
		{ 6, 0, "It aborted (SIGABRT): see its own log", NULL, OWN },
		{ 1 << 8, 0, "It ended by itself, with exit code 1: see its own log", NULL, OWN },
		{ 0, 0, "with exit code 0, but did not destroy its communicators", NULL, OWN },
		{ UNKNOWN_I32, 0, "It did not end by itself: a signal, the kernel's out-of-memory "
				  "killer or a crash.", NULL, OWN },
		{ UNKNOWN_I32, 3, "killer (which killed 3 processes of this node at "
		  "that time) or a crash.", NULL, OWN },
	};

	deaths[0].status = cases[_i].status;
	deaths[0].oom_kills = cases[_i].oom_kills;
	deaths[0].memory_cgroup = cases[_i].cgroup;
	deaths[0].memory_above = cases[_i].is == ABOVE;
	deaths[0].memory_kills = cases[_i].is != SPARED;
	deaths[0].memory_limit_bytes = 1 << 30;
	deaths[1].status = 11;		/* the first one's counts */
	died_say(list, 2, text, sizeof(text));
	ck_assert_msg(strstr(text, cases[_i].words), "%s", text);
	ck_assert_int_eq(text[strlen(text) - 1], '.');
}

/* The probe's word: which process sent the signal, and that the kernel killed for memory. */
TEST_LOOP(sender_of_the_signal_is_named_where_it_is_known, 0, 13)
{
	static const struct {
		int32_t status, sent, sender;
		bool for_memory;
		const char *words;
	} cases[] = {
		{ 9, 9, 812, false, "It was killed by SIGKILL from pid 812 (slurmstepd): see" },
		{ UNKNOWN_I32, 9, 812, false, "It was killed by SIGKILL from pid 812" },
		{ 9, 15, 812, false, "It was killed (SIGKILL)" },	/* that one it outlived */
		{ UNKNOWN_I32, 15, 812, false, "It did not end by itself" },
		{ 9, 9, 0, true, "The kernel killed it (SIGKILL) because memory ran out (cgroup "
				 "job_7): give it" },
		{ UNKNOWN_I32, 9, 0, true, "The kernel killed it (SIGKILL) because memory ran" },
		{ 9, 9, 0, false, "It was killed (SIGKILL)" },
		{ 15, 15, 812, false, "It was ended by SIGTERM from pid 812 (slurmstepd): see" },
		{ 11, 11, 0, false, "It crashed (SIGSEGV): see" },
		{ 11, 11, 812, false, "It was ended by SIGSEGV from pid 812" },
		{ 6, 6, 30, false, "It aborted (SIGABRT): see its own log" },
		{ 15, 15, 30, false, "It ended itself by SIGTERM. See its own log" },
		{ 1 << 8, 15, 812, false, "It ended by itself, with exit code 1" },
	};

	deaths[0].status = cases[_i].status;
	deaths[0].oom_kills = UNKNOWN_U64;
	deaths[0].sent = cases[_i].sent;
	deaths[0].sender = cases[_i].sender;
	deaths[0].sender_command = "slurmstepd";
	deaths[0].for_memory = cases[_i].for_memory;
	deaths[0].cgroup = "job_7";
	deaths[0].who.pid = 30;
	died_say(list, 1, text, sizeof(text));
	ck_assert_msg(strstr(text, cases[_i].words), "%s", text);
}

/* ---- whom ---- */

TEST(an_error_of_the_gpu_is_the_cause_whatever_signal_came)
{
	deaths[0].xid = (struct xid){ .number = 79, .pid = UNKNOWN_I32 };
	deaths[0].status = 9;
	died_say(list, 2, text, sizeof(text));
	ck_assert_ptr_nonnull(strstr(text, " died in the middle of AllReduce #41 on dp, because "
				     "of Xid 79 (GPU has "
				     "fallen off the bus) on its GPU; "));
	ck_assert_ptr_nonnull(strstr(text, ". The GPU or its driver is at fault: drain the node"));
	ck_assert_ptr_null(strstr(text, "SIGKILL"));
	deaths[0].xid.number = 31;
	died_say(list, 1, text, sizeof(text));
	ck_assert_ptr_nonnull(strstr(text, "Such an error comes more often from the program"));
	deaths[0].xid.number = 7777;
	died_say(list, 1, text, sizeof(text));
	ck_assert_ptr_nonnull(strstr(text, ", because of Xid 7777 on its GPU. See NVIDIA's list"));
}

TEST(several_are_told_by_their_numbers_in_the_job_where_these_differ)
{
	struct whom who[] = { { .rank = 0, .world_rank = 0, .pid = 40 },
			      { .rank = 1, .world_rank = 1, .pid = 43 },
			      { .rank = 2, .world_rank = UNKNOWN_I32 } };
	struct phrase phrase;

	phrase_start(&phrase, text, sizeof(text));
	whom_add_several(&phrase, who, FX_COUNT(who));
	ck_assert_str_eq(text, " (pids 40,43)");
	who[1].world_rank = 5;
	phrase_start(&phrase, text, sizeof(text));
	whom_add_several(&phrase, who, FX_COUNT(who));
	ck_assert_str_eq(text, " (global ranks 0,5, pids 40,43)");
	phrase_start(&phrase, text, sizeof(text));
	whom_add_several(&phrase, &who[2], 1);
	ck_assert_str_eq(text, "");
}

TEST(several_are_told_node_by_node)
{
	static const char place[] = "0000:3b:00.0";
	const struct whom who[] = {
		{ .rank = 0, .world_rank = 8, .pid = 40, .host = "a", .pci_bus_id = place },
		{ .rank = 1, .world_rank = 9, .pid = 43, .host = "a", .pci_bus_id = place,
		  .gpu_index = 3 },
		{ .rank = 2, .world_rank = 10, .pid = 40, .host = "b", .pci_bus_id = place,
		  .gpu_index = 1 },
		{ .rank = 3, .world_rank = 11, .pid = 44, .host = "b", .pci_bus_id = place,
		  .gpu_index = UNKNOWN_I32 },
	};
	struct phrase phrase;

	phrase_start(&phrase, text, sizeof(text));
	whom_add_several(&phrase, who, 2);
	ck_assert_str_eq(text, " (global ranks 8-9, pids 40,43, a, GPUs 0,3)");
	phrase_start(&phrase, text, sizeof(text));
	whom_add_several(&phrase, who, 3);
	ck_assert_str_eq(text, " (global ranks 8-9, pids 40,43, a, GPUs 0,3; "
			 "global rank 10, pid 40, b, GPU 1)");
	phrase_start(&phrase, text, sizeof(text));
	whom_add_several(&phrase, &who[2], 2);
	ck_assert_str_eq(text, " (global ranks 10-11, pids 40,44, b, GPU 1)");
	phrase_start(&phrase, text, sizeof(text));
	whom_add(&phrase, &who[3]);
	ck_assert_str_eq(text, " (global rank 11, pid 44, b, GPU 0000:3b:00.0)");
}

/* ---- lost records ------------------------------------------------------------ */

static struct loss_growth lose(uint64_t records, enum loss_cause cause, uint64_t lost)
{
	const struct loss_row before = { .at_ns = SECOND, .records = 1000, .before = 5 };
	struct loss_row now = before;

	now.at_ns += 20 * SECOND;
	now.records += records;
	now.lost[cause] += lost;
	return loss_compare(&before, &now);
}

TEST(loss_begins_at_one_in_a_thousand_and_goes_on_above_half_of_that)
{
	struct loss_growth l = lose(999000, LOSS_POOL, 1000);

	ck_assert(loss_begins(&l) && loss_goes_on(&l));
	ck_assert_uint_eq(l.window_ns, 20 * SECOND);
	ck_assert_uint_eq(l.before, 0);
	l = lose(999500, LOSS_POOL, 999);
	ck_assert(!loss_begins(&l) && loss_goes_on(&l));
	l = lose(0, LOSS_POOL, 99);	/* too few to matter */
	ck_assert(!loss_begins(&l) && !loss_goes_on(&l));
	l = lose(1000000, LOSS_STRING, 1);
	ck_assert(loss_begins(&l) && !l.all);
}

/* A second of 20 s, and what else: of another cause, unknown, less. */
TEST(daemon_that_waited_for_a_cpu_is_told_where_records_were_overwritten)
{
	static const struct {
		enum loss_cause cause;
		uint64_t waited_ns;
		bool starved;
	} rows[] = {
		{ LOSS_OVERRUN, SECOND, true },
		{ LOSS_OVERRUN, SECOND - 1, false },
		{ LOSS_OVERRUN, UNKNOWN_U64, false },
		{ LOSS_POOL, SECOND, false },
	};
	for (size_t i = 0; i < FX_COUNT(rows); i++) {
		struct loss_case c = { .who = { .rank = UNKNOWN_I32, .world_rank = UNKNOWN_I32,
						.pid = 7, .gpu_index = UNKNOWN_I32 },
				       .comm_name = "" };

		c.growth = lose(1000, rows[i].cause, 1000);
		c.growth.waited_ns = rows[i].waited_ns;
		loss_say(&c, text, sizeof(text));
		ck_assert_int_eq(loss_is_starved(&c.growth), rows[i].starved);
		ck_assert_int_eq(!!strstr(text, ". The daemon itself waited 1.0s of that time "
					  "for a CPU. Its counts"), rows[i].starved);
	}
}

TEST(time_that_the_daemon_waited_is_unknown_where_it_was)
{
	const struct loss_row known = { .waited_ns = 5 }, later = { .waited_ns = 12 };
	const struct loss_row unknown = { .waited_ns = UNKNOWN_U64 };

	ck_assert_uint_eq(loss_compare(&known, &later).waited_ns, 7);
	ck_assert_uint_eq(loss_compare(&unknown, &later).waited_ns, UNKNOWN_U64);
	ck_assert_uint_eq(loss_compare(&known, &unknown).waited_ns, UNKNOWN_U64);
}

TEST(counter_that_falls_has_begun_anew)
{
	const struct loss_row before = { .records = 1000, .lost = { [LOSS_OVERRUN] = 500 } };
	const struct loss_row now = { .records = 900, .lost = { [LOSS_OVERRUN] = 400 } };
	struct loss_growth l = loss_compare(&before, &now);

	ck_assert(!l.all && !l.records && !loss_goes_on(&l));
}

int main(void)
{
	return fx_run(setup, teardown);
}
