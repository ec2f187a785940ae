/* SPDX-License-Identifier: Apache-2.0 */
/* Flight Recorder dumps beside snapshots: which group is a communicator's, and who stands where. */
#include <stdarg.h>
#include <string.h>

#include "cli/offline/flight.h"
#include "tests/fixture.h"

#define NOW_NS	UINT64_C(1796000000000000000)	/* since 1970, when the snapshot was written */
#define MS	UINT64_C(1000000)
#define RANKS	4

static struct flight *flight;
static struct local_rank_read rows[RANKS];
static struct shots_node node;
static struct shots_rank ranks[RANKS];
static struct shots_comm comm;
static char entries[1 << 18];
static uint64_t record_id;	/* of the dump's next call */
static json_t *lines;

static void setup(void)
{
	flight = flight_new("/fr");
	node = (struct shots_node){ .host = "a", .clock = { NOW_NS, NOW_NS } };
	comm = (struct shots_comm){ .id = 1, .nranks = RANKS,
				    .ranks = { .at = ranks, .n = RANKS, .room = RANKS } };
	for (int32_t r = 0; r < RANKS; r++) {
		rows[r] = (struct local_rank_read){ .rank = r, .world_rank = r,
						    .last_op_mono_ns = NOW_NS - 10 * MS };
		ranks[r] = (struct shots_rank){ &rows[r], &node, NULL };
	}
	*entries = '\0';
	record_id = 0;
	lines = NULL;
}

static void teardown(void)
{
	flight_free(flight);
	json_decref(lines);
}

static void fx_again(void)
{
	teardown();
	setup();
}

/* One more call of the dump, `ago_ns` before the snapshot. */
static void call(const char *group, const char *name, uint64_t seq, const char *state,
		 uint64_t ago_ns)
{
	size_t used = strlen(entries);
	bool p2p = strchr(name, '>') || strchr(name, '<');

	snprintf(entries + used, sizeof(entries) - used, "%s{\"record_id\": %llu, "
		 "\"process_group\": [\"%s\", \"\"], \"profiling_name\": \"nccl:%s\", "
		 "\"is_p2p\": %s, \"collective_seq_id\": %llu, "
		 "\"p2p_seq_id\": %llu, \"state\": \"%s\", \"time_created_ns\": %llu, \"frames\": ["
		 "{\"name\": \"w\", \"filename\": \"/site-packages/torch/x.py\", \"line\": 7},"
		 "{\"name\": \"step\", \"filename\": \"/home/u/%s.py\", \"line\": 88}]}",
		 used ? "," : "", (unsigned long long)record_id++, group, name,
		 p2p ? "true" : "false", (unsigned long long)seq,
		 (unsigned long long)seq, state, (unsigned long long)(NOW_NS - ago_ns), group);
}

static bool take(int32_t rank, const char *head, const char **why)
{
	static char text[sizeof(entries) + 1024];

	snprintf(text, sizeof(text), "{%s, \"entries\": [%s]}", head, entries);
	*entries = '\0';
	record_id = 0;
	return flight_take(flight, rank, text, strlen(text), why);
}

/* The calls are those of that rank's dump, which has three groups. */
static void dump(int32_t rank)
{
	const char *why = "";
	bool taken = take(rank, "\"version\": \"2.10\", \"pg_config\": {"
			  "\"dp\": {\"name\": \"dp\", \"ranks\": \"[0, 1, 2, 3]\"},"
			  "\"cp\": {\"name\": \"cp\", \"ranks\": \"[0, 1, 2, 3]\"},"
			  "\"tp\": {\"name\": \"tp\", \"ranks\": \"[0, 1]\"}}", &why);

	ck_assert_msg(taken, "%s", why);
}

/* All lines as they are told, or as many as there are texts; NULL behind the last one. */
static void ck_lines(int32_t named, const char *text, ...)
{
	va_list args;
	size_t i = 0;

	lines = json_array();
	flight_tell(flight, &comm, &named, named >= 0, lines);
	va_start(args, text);
	for (; text; text = va_arg(args, const char *))
		ck_assert_str_eq(json_string_value(json_array_get(lines, i++)) ?: "", text);
	va_end(args);
	ck_assert_uint_eq(json_array_size(lines), i);
}

#define HEAD "PyTorch's Flight Recorder (/fr), "

#define OTHER_RUN "no call of these ranks at the time of their last operation here: the dumps " \
		  "are of another run, from long before or after, or the call is a CUDA " \
		  "graph's, which PyTorch does not note"

static void dump_that_waits(int32_t rank)
{
	call("dp", "all_reduce", 10, "completed", 20 * MS);
	call("dp", "all_reduce", 11, "started", 10 * MS);
	dump(rank);
}

TEST(the_rank_that_has_not_called_is_told_with_its_last_line)
{
	for (int32_t r = 0; r < 3; r++)
		dump_that_waits(r);
	call("dp", "all_reduce", 10, "completed", 20 * MS);
	call("tp", "all_gather", 40, "completed", 10 * MS);
	rows[3].last_op_mono_ns = NOW_NS - 20 * MS;
	dump(3);
	ck_lines(3, HEAD "process group dp",
		 "rank 3 (global rank 3) has not called all_reduce (collective 11); its last call: "
		 "all_gather (collective 40 of group tp), called at /home/u/tp.py:88 (step)",
		 "ranks 0-2 wait in all_reduce (collective 11 of group dp), called at "
		 "/home/u/dp.py:88 (step)", NULL);
}

TEST(a_rank_that_waits_elsewhere_is_told_so)
{
	for (int32_t r = 0; r < 3; r++)
		dump_that_waits(r);
	call("dp", "all_reduce", 10, "completed", 20 * MS);
	call("tp", "all_gather", 40, "started", 10 * MS);
	rows[3].last_op_mono_ns = NOW_NS - 20 * MS;
	dump(3);
	ck_lines(3, HEAD "process group dp",
		 "rank 3 (global rank 3) has not called all_reduce (collective 11); its last call, "
		 "not over: all_gather (collective 40 of group tp), called at /home/u/tp.py:88 "
		 "(step)",
		 "ranks 0-2 wait in all_reduce (collective 11 of group dp), called at "
		 "/home/u/dp.py:88 (step)", NULL);
}

TEST(a_named_rank_that_called_another_group_first_is_told_so)
{
	comm.nranks = 2;
	comm.ranks.n = 2;
	call("tp", "all_gather", 3, "started", 10 * MS);
	call("dp", "all_reduce", 11, "started", 9 * MS);
	dump(0);
	call("dp", "all_reduce", 10, "completed", 20 * MS);
	call("dp", "all_reduce", 11, "started", 10 * MS);
	call("tp", "all_gather", 3, "started", 9 * MS);
	dump(1);
	ck_lines(1, HEAD "process group tp",
		 "rank 1 (global rank 1) made another call before, which is not over: all_reduce "
		 "(collective 11 of group dp), called at /home/u/dp.py:88 (step)",
		 "ranks 0-1 wait in all_gather (collective 3 of group tp), called at "
		 "/home/u/tp.py:88 (step)", NULL);
}

/* A rank is past the members of a coalesced group, which stay scheduled, when a later one ends. */
TEST(what_is_before_a_call_that_is_over_is_over)
{
	for (int32_t r = 0; r < RANKS; r++) {
		call("dp", "broadcast", 9, "scheduled", 30 * MS);
		call("dp", "broadcast", 9, "scheduled", 30 * MS);
		call("dp", "coalesced", 9, "completed", 30 * MS);
		dump_that_waits(r);
	}
	ck_lines(-1, HEAD "process group dp",
		 "ranks 0-3 wait in all_reduce (collective 11 of group dp), called at "
		 "/home/u/dp.py:88 (step)", NULL);
}

TEST(batched_sends_end_with_their_group)
{
	for (int32_t r = 0; r < RANKS; r++) {
		call("dp", "send 0->1", 5, "scheduled", 30 * MS);
		call("dp", "recv 0<-1", 5, "scheduled", 30 * MS);
		call("dp", "coalesced", 5, "completed", 30 * MS);
		call("dp", "all_reduce", 11, "started", 10 * MS);
		dump(r);
	}
	ck_lines(-1, HEAD "process group dp",
		 "ranks 0-3 wait in all_reduce (collective 11 of group dp), called at "
		 "/home/u/dp.py:88 (step)", NULL);
}

/* Sends to one rank and receives from another are on communicators of their own. */
TEST(a_send_is_not_over_because_a_later_receive_is)
{
	call("dp", "all_reduce", 10, "completed", 40 * MS);
	call("dp", "send 0->1", 5, "started", 30 * MS);
	call("dp", "recv 0<-3", 6, "completed", 20 * MS);
	call("dp", "all_gather_into_tensor_coalesced", 11, "completed", 10 * MS);
	dump(0);
	comm.ranks.n = 1;
	ck_lines(-1, HEAD "process group dp", "rank 0 waits in send 0->1 (send or receive 5 of "
		 "group dp), called at /home/u/dp.py:88 (step)", NULL);
}

/* PyTorch keeps as many calls as TORCH_FR_BUFFER_SIZE: those of a group may all be older. */
TEST(a_rank_whose_dump_has_lost_calls_is_not_said_to_miss)
{
	for (int32_t r = 0; r < 3; r++)
		dump_that_waits(r);
	record_id = 2000;
	call("tp", "all_gather", 40, "completed", 10 * MS);
	dump(3);
	ck_lines(3, HEAD "process group dp",
		 "rank 3 (global rank 3) may have called all_reduce (collective 11), which its "
		 "dump does not tell; its last call: all_gather (collective 40 of group tp), "
		 "called at /home/u/tp.py:88 (step)",
		 "ranks 0-2 wait in all_reduce (collective 11 of group dp), called at "
		 "/home/u/dp.py:88 (step)", NULL);
}

/* A debugger may ask PyTorch for the calls that are not over alone. */
TEST(a_rank_whose_dump_has_gaps_is_not_said_to_miss)
{
	for (int32_t r = 0; r < 3; r++)
		dump_that_waits(r);
	call("dp", "all_reduce", 10, "completed", 20 * MS);
	record_id += 3;
	call("tp", "all_gather", 40, "started", 10 * MS);
	rows[3].last_op_mono_ns = NOW_NS - 20 * MS;
	dump(3);
	ck_lines(3, HEAD "process group dp",
		 "rank 3 (global rank 3) may have called all_reduce (collective 11), which its "
		 "dump does not tell; the last call that it has, not over: all_gather (collective "
		 "40 of group tp), called at /home/u/tp.py:88 (step)",
		 "ranks 0-2 wait in all_reduce (collective 11 of group dp), called at "
		 "/home/u/dp.py:88 (step)", NULL);
}

TEST(a_group_s_last_call_is_found_behind_many_of_another)
{
	for (int32_t r = 0; r < RANKS; r++) {
		call("dp", "all_reduce", 10, "completed", 20 * MS);
		call("dp", "all_reduce", 11, "completed", 10 * MS);
		for (uint64_t i = 0; i < 600; i++)
			call("tp", "all_gather", i + 1, i < 599 ? "completed" : "started",
			     9 * MS);
		dump(r);
	}
	ck_lines(3, HEAD "process group dp", "rank 3 (global rank 3): its last call, not over: "
		 "all_gather (collective 600 of group tp), called at /home/u/tp.py:88 (step)",
		 NULL);
}

TEST(many_ranks_leave_room_for_their_line)
{
	enum { MANY = 1000 };
	static struct local_rank_read many_rows[MANY];
	static struct shots_rank many[MANY];
	static char all[8 * MANY], head[sizeof(all) + 100];
	const char *why, *line;
	size_t used = 0;

	for (int32_t r = 0; r < MANY; r++) {
		used += (size_t)snprintf(all + used, sizeof(all) - used, "%s%d", r ? ", " : "", r);
		many_rows[r] = (struct local_rank_read){ .rank = r, .world_rank = r,
							 .last_op_mono_ns = NOW_NS - 10 * MS };
		many[r] = (struct shots_rank){ &many_rows[r], &node, NULL };
	}
	comm = (struct shots_comm){ .id = 1, .nranks = MANY, .ranks = { many, MANY, MANY } };
	snprintf(head, sizeof(head), "\"version\": \"2.10\", \"pg_config\": {\"w\": {"
		 "\"name\": \"w\", \"ranks\": \"[%s]\"}}", all);
	for (int32_t r = 0; r < MANY; r++) {
		call("w", r % 2 ? "all_gather" : "all_reduce", 1, "started", 10 * MS);
		ck_assert(take(r, head, &why));
	}
	lines = json_array();
	flight_tell(flight, &comm, NULL, 0, lines);
	ck_assert_uint_eq(json_array_size(lines), 3);
	line = json_string_value(json_array_get(lines, 1));
	ck_assert_msg(strstr(line, "ranks 0,2,4,") && strstr(line, "30 and 484 more wait in "
		      "all_reduce (collective 1 of group w), called at /home/u/w.py:88 (step)"),
		      "%s", line);
}

TEST(of_groups_with_the_same_ranks_the_one_called_at_that_time_is_it)
{
	for (int32_t r = 0; r < RANKS; r++) {
		call("dp", "all_reduce", 11, "started", 10 * MS + 1000);
		call("cp", "all_gather", 7, "started", 10 * MS - 1000);
		dump(r);
	}
	ck_lines(-1, HEAD "process group dp",
		 "ranks 0-3 wait in all_reduce (collective 11 of group dp), called at "
		 "/home/u/dp.py:88 (step)", NULL);
	json_decref(lines);
	for (int32_t r = 0; r < RANKS; r++)
		rows[r].last_op_mono_ns = NOW_NS - 9 * MS;
	ck_lines(-1, HEAD "process group cp", "ranks 0-3 wait in all_gather (collective 7 of group "
		 "cp), called at /home/u/cp.py:88 (step)", NULL);
}

TEST(where_two_groups_fit_it_says_so)
{
	for (int32_t r = 0; r < RANKS; r++) {
		call(r % 2 ? "cp" : "dp", "all_reduce", 7, "started", 11 * MS);
		call(r % 2 ? "dp" : "cp", "all_reduce", 7, "started", 10 * MS);
		dump(r);
	}
	lines = json_array();
	flight_tell(flight, &comm, NULL, 0, lines);
	ck_assert_ptr_nonnull(strstr(json_string_value(json_array_get(lines, 0)),
				     "has the same ranks, and fits as well"));
}

/* Jobs of one node have the same ranks, and a fault may stop them together. */
TEST(where_calls_are_long_before_operations_it_may_be_another_job)
{
	for (int32_t r = 0; r < RANKS; r++) {
		call("dp", "all_reduce", 11, "started", r ? 25 * MS : 10 * MS);
		dump(r);
	}
	ck_lines(-1, HEAD "process group dp; not certain: most ranks posted their last operation "
		 "here more than 10 ms after the call, as ranks of another job would",
		 "ranks 0-3 wait in all_reduce (collective 11 of group dp), called at "
		 "/home/u/dp.py:88 (step)", NULL);
}

TEST(without_times_it_goes_by_ranks)
{
	for (int32_t r = 0; r < RANKS; r++) {
		rows[r].last_op_mono_ns = UNKNOWN_U64;
		dump_that_waits(r);
	}
	lines = json_array();
	flight_tell(flight, &comm, NULL, 0, lines);
	ck_assert_ptr_nonnull(strstr(json_string_value(json_array_get(lines, 0)), "not certain"));
}

TEST(dumps_of_another_run_tell_nothing)
{
	for (int32_t r = 0; r < RANKS; r++) {
		rows[r].last_op_mono_ns = NOW_NS - 5000 * MS;
		dump_that_waits(r);
	}
	ck_lines(3, HEAD OTHER_RUN, NULL);
	json_decref(lines);
	for (int32_t r = 0; r < RANKS; r++)
		rows[r].last_op_mono_ns = NOW_NS + 5000 * MS;
	node.clock = (struct shots_clock){ NOW_NS + 5000 * MS, NOW_NS + 5000 * MS };
	ck_lines(3, HEAD OTHER_RUN, NULL);
	json_decref(lines);
	node.clock.written_ns += 50000 * MS;
	ck_lines(3, HEAD OTHER_RUN, NULL);
}

TEST(a_dump_from_before_and_a_missing_one_are_told)
{
	call("dp", "all_reduce", 11, "started", 20000 * MS);
	dump(0);
	dump_that_waits(1);
	ck_lines(2, HEAD "process group dp",
		 "rank 0 (global rank 0) has a dump that ends before its last operation: it is of "
		 "another run, or was written before, or CUDA graphs ran since",
		 "rank 2 (global rank 2) has no dump in /fr",
		 "rank 1 waits in all_reduce (collective 11 of group dp), called at "
		 "/home/u/dp.py:88 (step)", "1 other rank has no dump", NULL);
}

/* PyTorch sends between two ranks of a group on a communicator of their own. */
TEST(sends_of_two_ranks_are_those_of_a_group_that_has_both)
{
	comm.nranks = 2;
	comm.ranks.n = 2;
	for (int32_t r = 0; r < 2; r++)
		rows[r].world_rank = r + 2;
	call("dp", "all_reduce", 11, "started", 11 * MS);
	call("dp", "send 2->3", 5, "started", 10 * MS);
	dump(2);
	call("dp", "all_reduce", 11, "started", 11 * MS);
	call("dp", "recv 3<-2", 5, "started", 10 * MS);
	dump(3);
	lines = json_array();
	flight_tell(flight, &comm, NULL, 0, lines);
	ck_assert_uint_eq(json_array_size(lines), 3);
	ck_assert_str_eq(json_string_value(json_array_get(lines, 1)), "rank 0 waits in send 2->3 "
			 "(send or receive 5 of group dp), called at /home/u/dp.py:88 (step)");
}

TEST(a_rank_without_its_global_rank_is_told)
{
	rows[3].world_rank = UNKNOWN_I32;
	for (int32_t r = 0; r < 3; r++)
		dump_that_waits(r);
	ck_lines(3, HEAD "process group dp", "rank 3: its global rank is not known, hence not "
		 "which dump is its", "ranks 0-2 wait in all_reduce (collective 11 of group dp), "
		 "called at /home/u/dp.py:88 (step)", NULL);
}

/* PyTorch's word for a group that has no description. */
TEST(an_undefined_description_is_not_shown)
{
	const char *why;

	call("7", "all_reduce", 1, "started", 10 * MS);
	ck_assert(take(0, "\"version\": \"2.10\", \"pg_config\": {\"7\": {\"name\": \"7\", "
		       "\"desc\": \"undefined\", \"ranks\": \"[0, 1, 2, 3]\"}}", &why));
	comm.ranks.n = 1;
	ck_lines(-1, HEAD "process group 7", "rank 0 waits in all_reduce (collective 1 of group "
		 "7), called at /home/u/7.py:88 (step)", NULL);
}

TEST(a_communicator_without_a_group_is_told)
{
	for (int32_t r = 0; r < RANKS; r++)
		dump_that_waits(r);
	rows[1].world_rank = 2;
	rows[2].world_rank = 1;
	ck_lines(-1, HEAD "no process group has these ranks", NULL);
	json_decref(lines);
	for (int32_t r = 0; r < RANKS; r++)
		rows[r].world_rank = r + 8;
	ck_lines(-1, HEAD "no dump of these ranks", NULL);
}

/* A library's line is told with the first that is not a library's. */
TEST(the_line_is_the_innermost_that_is_the_applications)
{
	static const struct { const char *frames, *where; } cases[] = {
#define FRAME(path) "{\"name\": \"f\", \"filename\": \"" path "\", \"line\": 3}"
		{ FRAME("/u/a.py"), ", called at /u/a.py:3 (f)" },
		{ FRAME("/v/dist-packages/torch/nn.py") "," FRAME("/src/torch/distributed/c.py") ","
		  FRAME("<string>") "," FRAME("/lib/libc10.so") "," FRAME("/u/a.py"),
		  ", called at /u/a.py:3 (f)" },
		{ FRAME("/v/site-packages/lib/x.py") "," FRAME("/v/site-packages/torch/y.py") ","
		  FRAME("/u/a.py"), ", called at lib/x.py:3 (f), from /u/a.py:3 (f)" },
		{ FRAME("/tmp/torchinductor_u/ab/c.py") "," FRAME("/u/a.py"),
		  ", called at /tmp/torchinductor_u/ab/c.py:3 (f), from /u/a.py:3 (f)" },
		{ FRAME("/v/site-packages/lib/x.py"), ", called at lib/x.py:3 (f)" },
		{ FRAME("/u/a\\u001b[2J.py"), ", called at /u/a?[2J.py:3 (f)" },
		{ FRAME("/v/site-packages/torch/y.py"), "no line of Python" },
		{ "7, {}, \"a\"", "no line of Python" }, { "", "no line of Python" },
#undef FRAME
	};
	const char *why;

	for (int i = 0; i < FX_COUNT(cases); i++) {
		fx_again();
		snprintf(entries, sizeof(entries), "{\"process_group\": [\"dp\", \"\"], "
			 "\"profiling_name\": \"nccl:x\", \"collective_seq_id\": 1, "
			 "\"time_created_ns\": %llu, \"frames\": [%s]}",
			 (unsigned long long)(NOW_NS - 10 * MS), cases[i].frames);
		ck_assert(take(0, "\"version\": \"2.4\", \"pg_config\": {\"dp\": {"
			       "\"name\": \"dp\", \"ranks\": \"[0, 1, 2, 3]\"}}", &why));
		lines = json_array();
		flight_tell(flight, &comm, NULL, 0, lines);
		ck_assert_msg(strstr(json_string_value(json_array_get(lines, 1)), cases[i].where),
			      "%s", json_string_value(json_array_get(lines, 1)));
	}
}

TEST(other_forms_are_refused)
{
	static const struct { const char *head, *why; } cases[] = {
		{ "\"a\": 1", "has no version" }, { "\"version\": 2", "has no version" },
		{ "\"version\": \"1.0\"", "2.x is known" },
		{ "\"version\": \"3.1\"", "2.x is known" },
		{ "\"version\": \"2.4\"", "without calls" },
	};
	static const char old[] = "{\"version\": \"2.0\", \"entries\": [{\"seq_id\": 1}]}";
	const char *why;

	for (int i = 0; i < FX_COUNT(cases); i++) {
		ck_assert(!take(0, cases[i].head, &why));
		ck_assert_msg(strstr(why, cases[i].why), "%s", why);
	}
	ck_assert(!flight_take(flight, 0, old, sizeof(old) - 1, &why));
	ck_assert_ptr_nonnull(strstr(why, "have no numbers"));
	ck_assert(!flight_take(flight, 0, "\x80\x02" "cos\n", 6, &why));
	ck_assert_str_eq(why, "refused at byte 2: more than plain data: an opcode that could run "
			 "code, or is not known");
	ck_assert(!flight_take(flight, 0, "{", 1, &why));
	ck_assert_str_eq(why, "damaged: no JSON");
}

int main(void)
{
	return fx_run(setup, teardown);
}
