/* SPDX-License-Identifier: Apache-2.0 */
/* The lines that say what is wrong, as text on the screen. */
#include "cli/common/prose.h"
#include "cli/view/findings.h"
#include "tests/fixture_view.h"

START_TEST(the_oldest_in_flight_is_told_with_what_it_waits_for)
{
	json_t *step;

	fx_add_inflight("Coll", "live", 43);
	step = fx_add_inflight("ProxyStep", "live", 42);
	json_object_set_new(step, "step", json_integer(2));
	json_object_set_new(step, "steps", json_integer(8));
	json_object_set_new(step, "state", json_string("RecvWait"));
	json_object_set_new(step, "peer", json_integer(1));
	fx_build();
	ck_assert(fx_shows("! AllReduce #12 on größe hangs for 43s: rank 3 (pid 4003), "
			"awaits data of rank 1, step 2/8;"));
	ck_assert(fx_shows("sends nothing"));
}
END_TEST

START_TEST(the_sender_is_blamed_before_those_who_wait_for_its_data)
{
	static const char *const states[] = { "RecvWait", "SendGPUWait", "SendWait", "RecvWait" };

	fx_add_inflight("Coll", "live", 43);
	for (int rank = 0; rank < 4; rank++) {
		json_t *step = fx_add_inflight("ProxyStep", "live", 42);

		json_object_set_new(step, "rank", json_integer(rank));
		json_object_set_new(step, "pid", json_integer(4000 + rank));
		json_object_set_new(step, "state", json_string(states[rank]));
		json_object_set_new(step, "peer", json_integer((rank + 1) % 4));
	}
	fx_build();
	ck_assert(fx_shows("hangs for 43s: rank 2 (pid 4002), on the wire to rank 3; "
			"check the network"));
}
END_TEST

/* Rank 5 of the first communicator is at `seq`, all others are at 12. */
static void set_last_seqs(int seq)
{
	json_t *comms = json_object_get(fx.answers.comms, "comms"), *member;
	size_t i;

	json_array_foreach(json_object_get(json_array_get(comms, 0), "local_ranks"), i, member)
		json_object_set_new(member, "last_seq",
				    json_pack("{s:i}", "AllReduce", i == 5 ? seq : 12));
}

START_TEST(the_rank_that_does_not_come_is_named)
{
	fx_add_inflight("Coll", "live", 43);
	set_last_seqs(11);
	fx_build();
	ck_assert(fx_shows("! AllReduce #12 on größe hangs for 43s: rank 5 (pid 4005) has not "
			   "come to it, its last is #11;"));
	ck_assert(fx_shows("py-spy dump -p 4005"));
}
END_TEST

START_TEST(nobody_is_absent_where_all_have_come)
{
	fx_add_inflight("Coll", "live", 43);
	set_last_seqs(12);
	fx_build();
	ck_assert(fx_shows("hangs for 43s"));
	ck_assert(!fx_shows("has not come"));
}
END_TEST

START_TEST(a_death_stands_before_what_hangs_because_of_it)
{
	int died;

	fx_add_inflight("Coll", "died", 43);
	fx_add_inflight("Coll", "live", 43);
	fx_build();
	died = fx_find_line("! process 4003 died");
	ck_assert_int_ge(died, 0);
	ck_assert_int_gt(fx_find_line("hangs for 43s, because of that"), died);
}
END_TEST

START_TEST(nobody_says_all_is_well_who_cannot_see)
{
	json_t *process = json_array_get(json_object_get(fx.answers.processes, "processes"), 3);

	json_object_set_new(process, "level", json_string("net"));
	json_object_set_new(process, "sampling", json_null());
	fx_build();
	ck_assert(fx_shows("nothing in flight longer than 1s; but the kernels of 1 of 8 processes "
			"are not seen"));
}
END_TEST

START_TEST(whose_kernels_are_not_timed_yet_is_told_from_when_on)
{
	json_t *processes = json_object_get(fx.answers.processes, "processes"), *process;
	json_t *from = _i ? json_null() : json_integer((json_int_t)(FX_NOW + 23 * FX_SECOND / 2));
	size_t i;

	json_array_foreach(processes, i, process) {
		json_object_set_new(process, "level", json_string("net"));
		json_object_set_new(process, "sampling", json_null());
		json_object_set_new(process, "steering",
				    json_pack("{s:s s:O}", "kernels", "settling",
					      "kernels_from_mono_ns", from));
	}
	json_decref(from);
	fx_build();
	ck_assert(!fx_shows("not seen"));
	ck_assert(fx_shows(_i ? "; settling: the kernels of 8 of 8 processes are timed from their "
				"next operation on"
			      : "; settling: the kernels of 8 of 8 processes are timed in 12s"));
}
END_TEST

START_TEST(what_is_wrong_is_said_in_full_on_a_narrow_terminal)
{
	fx_add_inflight("Coll", "live", 43);
	set_last_seqs(11);
	view_build(&fx.view, &fx.answers, FX_NOW);
	fx_show(80, 24);
	ck_assert(fx_shows("! AllReduce #12 on größe hangs for 43s: rank 5 (pid 4005) has not "
			   "come"));
	ck_assert(fx_shows("last is #11; see what that process does: gdb -p 4005, py-spy dump -p"));
}
END_TEST

START_TEST(a_word_is_whole_on_the_narrowest_terminal)
{
	static const char path[] = "NCCL_PROFILER_PLUGIN=/opt/nccl/lib/libnccl-profiler-insp.so";
	struct frame frame;

	prose_begin(&frame, &(struct cli){ .columns = 24 }, PROSE_WIDEST);
	prose_put(&frame, LINE_PLAIN, 2, 4, "start jobs with NCCL_PROFILER_PLUGIN="
		  "/opt/nccl/lib/libnccl-profiler-insp.so and look again");
	ck_assert_int_eq(frame.count, 3);
	ck_assert_str_eq(frame.lines[1].text + 4, path);
	ck_assert_str_eq(frame.lines[2].text, "    and look again");
	frame_deinit(&frame);
}
END_TEST

START_TEST(what_the_dead_left_is_not_taken_for_a_stall)
{
	json_t *process = json_array_get(json_object_get(fx.answers.processes, "processes"), 3);

	fx_add_inflight("Coll", "died", 43);
	json_object_set_new(process, "state", json_string("died"));
	json_object_set_new(process, "ended_mono_ns",
			    json_integer((json_int_t)(FX_NOW - 130 * FX_SECOND)));
	fx_build();
	ck_assert(fx_shows("! process 4003 died 2m10s ago in the middle of "
			"AllReduce #12 on größe, rank 3"));
	ck_assert(fx_shows("nothing in flight longer than 1s"));
}
END_TEST

static json_t *member_of(int rank)
{
	json_t *comm = json_array_get(json_object_get(fx.answers.comms, "comms"), 0);

	return json_array_get(json_object_get(comm, "local_ranks"), (size_t)rank);
}

/* As /v1/comms tells it. */
static void set_lately(int rank, int late, json_int_t blame_ns)
{
	json_object_set_new(member_of(rank), "waiting",
			    json_pack("{s:{s:s s:I s:i s:i s:i s:I s:I s:b}}", "lately",
				      "func", "AllReduce", "window_ns", (json_int_t)(4 * FX_SECOND),
				      "ops", 200, "judged", 180, "last", 170,
				      "late_ns", (json_int_t)13900000, "blame_ns", blame_ns,
				      "late", late));
}

START_TEST(a_late_rank_is_named_and_listed_first)
{
	int header;

	set_lately(5, 1, 2400000000);
	json_object_set_new(fx_worst_rank(5), "late_ns", json_integer(13900000));
	fx_build();
	ck_assert(fx_shows("! rank 5 of größe (pid 4005) comes last in 170 of 200 AllReduce, "
			   "13.9ms after the first; it costs the others"));
	ck_assert(fx_shows("the others 2.4s in") && fx_shows("4.0s; see its GPU's clock"));
	header = fx_find_line("RANK  GPU");
	ck_assert_int_ge(header, 0);
	ck_assert(strstr(fx.frame.lines[header + 1].text, "  5  0000:15:00.0"));
	ck_assert(strstr(fx.frame.lines[header + 1].text, "13900"));
}
END_TEST

START_TEST(whom_the_daemon_does_not_call_late_is_not)
{
	set_lately(5, 0, 2400000000);
	fx_build();
	ck_assert(!fx_shows("comes last"));
}
END_TEST

static const char *const ended[] = { "exited", "died", "finalized" };

START_TEST(who_has_ended_comes_last_no_more)
{
	set_lately(5, 1, 2400000000);
	json_object_set_new(member_of(5), "state", json_string(ended[_i]));
	fx_build();
	ck_assert(!fx_shows("comes last"));
}
END_TEST

START_TEST(the_costliest_come_first_and_the_rest_is_counted)
{
	for (int rank = 0; rank < 4; rank++)
		set_lately(rank, 1, (rank + 1) * 1000000000LL);
	fx_build();
	ck_assert_int_ge(fx_find_line("rank 3 of größe"), 0);
	ck_assert_int_gt(fx_find_line("rank 2 of größe"), fx_find_line("rank 3 of größe"));
	ck_assert(!fx_shows("rank 1 of größe"));
	ck_assert(fx_shows("! 2 more ranks come late"));
}
END_TEST

START_TEST(a_single_one_is_one)
{
	for (int rank = 0; rank < 3; rank++)
		set_lately(rank, 1, (rank + 1) * 1000000000LL);
	fx_build();
	ck_assert(fx_shows("! 1 more rank comes late"));
}
END_TEST

START_TEST(what_the_daemon_has_found_is_not_said_twice)
{
	set_lately(5, 1, 2400000000);
	fx.answers.findings = json_loads(
		"{\"findings\": [{\"active\": true, \"kind\": \"straggler\","
		" \"severity\": \"warning\","
		" \"text\": \"rank 5 comes last, which costs 9 %. See its clock.\","
		" \"since_mono_ns\": 1, \"evidence\": {\"pid\": 4005}}]}", 0, NULL);
	fx_build();
	ck_assert(fx_shows("! rank 5 comes last, which costs 9 %; it began"));
	ck_assert(!fx_shows("in 170 of 200 AllReduce"));
}
END_TEST

START_TEST(findings_stand_before_all_else_and_the_worst_before_them)
{
	fx_add_inflight("Coll", "live", 43);
	set_lately(5, 1, 2400000000);
	fx.answers.findings = json_loads(
		"{\"findings\": ["
		"{\"active\": true, \"kind\": \"slow_peer\", \"severity\": \"info\","
		" \"text\": \"a. x\", \"since_mono_ns\": 1}, "
		"{\"active\": true, \"kind\": \"loss\", \"severity\": \"warning\","
		" \"text\": \"d. x\", \"since_mono_ns\": 1}, "
		"{\"active\": true, \"kind\": \"regression\", \"severity\": \"warning\","
		" \"text\": \"b. x\", \"since_mono_ns\": 1}, "
		"{\"active\": true, \"kind\": \"died\", \"severity\": \"critical\","
		" \"text\": \"c. x\", \"since_mono_ns\": 1}]}", 0, NULL);
	fx_build();
	ck_assert_int_ge(fx_find_line("! c; it began"), 0);
	ck_assert_int_gt(fx_find_line("! b; it began"), fx_find_line("! c; it began"));
	ck_assert_int_gt(fx_find_line("! d; it began"), fx_find_line("! b; it began"));
	ck_assert_int_gt(fx_find_line("hangs for 43s"), fx_find_line("! d; it began"));
	ck_assert_int_gt(fx_find_line("comes last in 170"), fx_find_line("hangs for 43s"));
	ck_assert_int_gt(fx_find_line("a; it began"), fx_find_line("comes last in 170"));
	ck_assert(!fx_shows("nothing in flight"));
	ck_assert(!fx_shows("! a"));
}
END_TEST

START_TEST(the_table_has_the_worst_first_and_last_what_is_over)
{
	static const char *const order[] = { "died", "slow_peer", "loss", "straggler", "stall" };
	json_t *rows = json_pack("[{s:s s:s s:b}, {s:s s:s s:b}, {s:s s:s s:b}, {s:s s:s s:b},"
				 " {s:s s:s s:b}]",
				 "kind", "stall", "severity", "critical", "active", 0,
				 "kind", "straggler", "severity", "info", "active", 1,
				 "kind", "loss", "severity", "warning", "active", 1,
				 "kind", "slow_peer", "severity", "warning", "active", 1,
				 "kind", "died", "severity", "critical", "active", 1);
	json_t *shaped = findings_reshape(rows, 1);

	for (size_t i = 0; i < FX_COUNT(order); i++)
		ck_assert(finding_is(json_array_get(shaped, i), "kind", order[i]));
	json_decref(shaped);
	json_decref(rows);
}
END_TEST

/* As after a restart of the daemon, which has one about each process. */
START_TEST(notes_do_not_stand_before_what_hangs)
{
	fx_add_inflight("Coll", "live", 43);
	fx.answers.findings = json_loads(
		"{\"findings\": [{\"active\": true, \"kind\": \"loss\", \"severity\": \"info\","
		" \"text\": \"a. x\", \"since_mono_ns\": 1}, {\"active\": true, \"kind\": \"loss\","
		" \"severity\": \"info\", \"text\": \"b. x\", \"since_mono_ns\": 1}]}", 0, NULL);
	fx_build();
	ck_assert_int_eq(fx_find_line("hangs for 43s"), 0);
	ck_assert_int_gt(fx_find_line("2 notes: ncclinsp diagnose"), 0);
	ck_assert(!fx_shows("it began"));
}
END_TEST

int main(void)
{
	const struct fx_test tests[] = {
		FX_TEST(the_oldest_in_flight_is_told_with_what_it_waits_for),
		FX_TEST(the_sender_is_blamed_before_those_who_wait_for_its_data),
		FX_TEST(the_rank_that_does_not_come_is_named),
		FX_TEST(nobody_is_absent_where_all_have_come),
		FX_TEST(a_death_stands_before_what_hangs_because_of_it),
		FX_TEST(nobody_says_all_is_well_who_cannot_see),
		FX_LOOP(whose_kernels_are_not_timed_yet_is_told_from_when_on, 0, 2),
		FX_TEST(what_is_wrong_is_said_in_full_on_a_narrow_terminal),
		FX_TEST(a_word_is_whole_on_the_narrowest_terminal),
		FX_TEST(what_the_dead_left_is_not_taken_for_a_stall),
		FX_TEST(a_late_rank_is_named_and_listed_first),
		FX_TEST(whom_the_daemon_does_not_call_late_is_not),
		FX_LOOP(who_has_ended_comes_last_no_more, 0, FX_COUNT(ended)),
		FX_TEST(the_costliest_come_first_and_the_rest_is_counted),
		FX_TEST(a_single_one_is_one),
		FX_TEST(what_the_daemon_has_found_is_not_said_twice),
		FX_TEST(findings_stand_before_all_else_and_the_worst_before_them),
		FX_TEST(the_table_has_the_worst_first_and_last_what_is_over),
		FX_TEST(notes_do_not_stand_before_what_hangs),
	};

	return fx_run(fx_setup, fx_teardown, tests, FX_COUNT(tests));
}
