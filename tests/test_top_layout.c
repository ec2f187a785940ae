/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The live view over many sizes and states.  Answers are made here, in the form
 * of the API; what is checked is text, which is all that a user sees.
 */
#include "tests/fixture.h"

#include <stdlib.h>
#include <string.h>

#include "cli/layout.h"
#include "util/text.h"

#define SECOND UINT64_C(1000000000)
#define NOW    (1000 * SECOND)
#define RANKS  8

static struct view view;
static struct view_answers answers;
static struct layout_state state;
static struct frame frame;

/* ---- answers -------------------------------------------------------------- */

static json_t *make_process(int i)
{
	return json_pack("{s:i s:i s:s s:s s:s}",
			 "pid", 4000 + i, "uid", 1000, "user", "ada", "state", "live",
			 "command", "python");
}

static json_t *make_member(int i)
{
	char bus[16];

	snprintf(bus, sizeof(bus), "0000:%02x:00.0", 16 + i);
	return json_pack("{s:i s:i s:s s:i s:s}",
			 "rank", i, "pid", 4000 + i, "pci_bus_id", bus, "in_flight", 1,
			 "state", "live");
}

static json_t *make_rank_row(int i)
{
	return json_pack("{s:s s:s s:i s:i s:I s:i s:{s:i s:i} s:{s:f} s:f s:s}",
			 "comm_id", "0x01", "comm_name", "größe", "nranks", RANKS, "rank", i,
			 "window_ns", (json_int_t)(10 * SECOND), "ops", 500,
			 "exec", "p50_ns", 17300 + i, "p99_ns", 99000,
			 "busbw_gbs", "mean", 123.4,
			 "share", 0.25, "timing_source", "kernel_gpu");
}

static json_t *make_op_row(int i)
{
	return json_pack("{s:s s:s s:s s:i s:s s:s s:I s:i s:{s:i s:i s:i} s:{s:f} s:s}",
			 "comm_id", "0x01", "comm_name", "größe",
			 "func", i % 2 ? "AllGather" : "AllReduce", "size_class", 1 << (10 + i),
			 "algo", "Ring", "proto", "Simple",
			 "window_ns", (json_int_t)(10 * SECOND), "ops", 1000 - i,
			 "exec", "p50_ns", 17300, "p99_ns", 99000, "max_ns", 123000,
			 "busbw_gbs", "mean", 123.4, "timing_source", "kernel_gpu");
}

static json_t *make_collective(int rank, int seq)
{
	return json_pack("{s:s s:i s:i s:s s:i s:i s:s s:b}",
			 "comm_id", "0x01", "rank", rank, "pid", 4000 + rank,
			 "func", "AllReduce", "seq", seq,
			 "exec_ns", rank == 5 ? 1000000 : 14900000,
			 "timing_source", "kernel_gpu", "complete", 1);
}

static json_t *list_of(const char *name, json_t *(*make)(int i), int n)
{
	json_t *list = json_array();

	for (int i = 0; i < n; i++)
		json_array_append_new(list, make(i));
	return json_pack("{s:o}", name, list);
}

static json_t *add_inflight(const char *event_type, const char *process_state, double age_s)
{
	json_t *row = json_pack("{s:i s:s s:s s:s s:i s:s s:s s:i s:I}",
				"pid", 4003, "process_state", process_state,
				"comm_id", "0x01", "comm_name", "größe", "rank", 3,
				"event_type", event_type, "func", "AllReduce", "seq", 12,
				"age_ns", (json_int_t)(age_s * (double)SECOND));

	json_array_append_new(json_object_get(answers.inflight, "inflight"), row);
	return row;
}

static void setup(void)
{
	json_t *comms = json_array(), *members = list_of("local_ranks", make_member, RANKS);

	memset(&state, 0, sizeof(state));
	state.sort = -1;
	state.interactive = true;
	state.delay_ns = 2 * SECOND;
	answers.status = json_loads(
		"{\"version\": \"0.1.0\", \"host\": \"node7\", \"uptime_ns\": 7980000000000,"
		" \"loop\": \"io_uring\", \"level\": null,"
		" \"ingest\": {\"records\": 1000, \"lost\": 0, \"rejected\": 0}}", 0, NULL);
	answers.processes = list_of("processes", make_process, RANKS);
	json_array_append_new(comms, json_pack("{s:s s:s s:i s:O}", "comm_id", "0x01", "name",
					       "größe", "nranks", RANKS, "local_ranks",
					       json_object_get(members, "local_ranks")));
	json_decref(members);
	answers.comms = json_pack("{s:o}", "comms", comms);
	answers.ranks = list_of("rows", make_rank_row, RANKS);
	answers.ops = list_of("rows", make_op_row, 12);
	answers.inflight = json_pack("{s:[]}", "inflight");
	answers.collectives = json_pack("{s:[]}", "collectives");
}

static void teardown(void)
{
	view_deinit(&view);
	frame_deinit(&frame);
}

static void show(int columns, int lines)
{
	frame_deinit(&frame);
	frame_init(&frame, columns, lines);
	layout_frame(&frame, &view, &state);
}

static void build(void)
{
	view_build(&view, &answers, NOW);
	show(120, 40);
}

/* The first line that holds `text`; -1: none. */
static int find_line(const char *text)
{
	for (int i = 0; i < frame.count; i++)
		if (strstr(frame.lines[i].text, text))
			return i;
	return -1;
}

static bool shows(const char *text)
{
	return find_line(text) >= 0;
}

/* ---- tests ---------------------------------------------------------------- */

START_TEST(every_size_is_kept_and_never_exceeded)
{
	add_inflight("Coll", "live", 43);
	view_build(&view, &answers, NOW);
	for (int columns = 1; columns <= 400; columns += columns < 30 ? 1 : 7) {
		for (int lines = 1; lines <= 120; lines += lines < 12 ? 1 : 9) {
			for (int table = 0; table < VIEW_TABLES; table++) {
				state.table = (enum view_table)table;
				show(columns, lines);
				ck_assert_int_le(frame.count, lines);
				for (int i = 0; i < frame.count; i++)
					ck_assert_int_le(text_width(frame.lines[i].text), columns);
			}
		}
	}
}
END_TEST

START_TEST(an_empty_node_says_so)
{
	json_array_clear(json_object_get(answers.processes, "processes"));
	json_array_clear(json_object_get(answers.comms, "comms"));
	json_array_clear(json_object_get(answers.ops, "rows"));
	build();
	ck_assert(shows("processes 0"));
	ck_assert(shows("no rank is alive"));
	ck_assert(shows("no live process uses NCCL"));
	ck_assert(shows("GPUs -"));
}
END_TEST

START_TEST(the_head_counts_what_there_is)
{
	build();
	ck_assert(shows("node7"));
	ck_assert(shows("up 2h13m"));
	ck_assert(shows("processes 8  GPUs 8  communicators 1"));
	ck_assert(shows("records/s -"));
	ck_assert(shows("lost 0"));
}
END_TEST

START_TEST(records_per_second_come_with_the_second_answer)
{
	json_t *status = json_deep_copy(answers.status);
	struct view_answers later = { .status = status };

	view_build(&view, &answers, NOW);
	json_object_set_new(json_object_get(status, "ingest"), "records", json_integer(25600));
	view_build(&view, &later, NOW + 2 * SECOND);
	show(120, 40);
	ck_assert(shows("records/s 12.3k"));
}
END_TEST

START_TEST(a_loss_is_marked_with_more_than_colour)
{
	json_object_set_new(json_object_get(answers.status, "ingest"), "lost", json_integer(42));
	build();
	ck_assert(shows("lost 42!"));
}
END_TEST

START_TEST(the_oldest_in_flight_is_told_with_what_it_waits_for)
{
	json_t *step;

	add_inflight("Coll", "live", 43);
	step = add_inflight("ProxyStep", "live", 42);
	json_object_set_new(step, "step", json_integer(2));
	json_object_set_new(step, "steps", json_integer(8));
	json_object_set_new(step, "state", json_string("RecvWait"));
	json_object_set_new(step, "peer", json_integer(1));
	build();
	ck_assert(shows("! AllReduce #12 on größe hangs for 43s: rank 3 (pid 4003), step 2/8, "
			"waiting for data from rank 1;"));
	ck_assert(shows("sends nothing"));
}
END_TEST

START_TEST(the_sender_is_blamed_before_those_who_wait_for_its_data)
{
	static const char *const states[] = { "RecvWait", "SendGPUWait", "SendWait", "RecvWait" };

	add_inflight("Coll", "live", 43);
	for (int rank = 0; rank < 4; rank++) {
		json_t *step = add_inflight("ProxyStep", "live", 42);

		json_object_set_new(step, "rank", json_integer(rank));
		json_object_set_new(step, "pid", json_integer(4000 + rank));
		json_object_set_new(step, "state", json_string(states[rank]));
		json_object_set_new(step, "peer", json_integer((rank + 1) % 4));
	}
	build();
	ck_assert(shows("hangs for 43s: rank 2 (pid 4002), waiting for the network to rank 3; "
			"check the network"));
}
END_TEST

/* Rank 5 of the first communicator is at `seq`, all others are at 12. */
static void set_last_seqs(int seq)
{
	json_t *member;
	size_t i;

	json_array_foreach(json_object_get(json_array_get(json_object_get(answers.comms, "comms"),
							  0), "local_ranks"), i, member)
		json_object_set_new(member, "last_seq",
				    json_pack("{s:i}", "AllReduce", i == 5 ? seq : 12));
}

START_TEST(the_rank_that_does_not_come_is_named)
{
	add_inflight("Coll", "live", 43);
	set_last_seqs(11);
	build();
	ck_assert(shows("! AllReduce #12 on größe hangs for 43s: rank 5 (pid 4005) has not come to "
			"it, its last is #11;"));
	ck_assert(shows("py-spy dump -p 4005"));
}
END_TEST

START_TEST(nobody_is_absent_where_all_have_come)
{
	add_inflight("Coll", "live", 43);
	set_last_seqs(12);
	build();
	ck_assert(shows("hangs for 43s"));
	ck_assert(!shows("has not come"));
}
END_TEST

START_TEST(a_death_stands_before_what_hangs_because_of_it)
{
	int died;

	add_inflight("Coll", "died", 43);
	add_inflight("Coll", "live", 43);
	build();
	died = find_line("! process 4003 died");
	ck_assert_int_ge(died, 0);
	ck_assert_int_gt(find_line("hangs for 43s, because of that"), died);
}
END_TEST

START_TEST(nobody_says_all_is_well_who_cannot_see)
{
	json_t *process = json_array_get(json_object_get(answers.processes, "processes"), 3);

	json_object_set_new(process, "level", json_string("net"));
	json_object_set_new(process, "sampling", json_null());
	build();
	ck_assert(shows("nothing in flight longer than 1s; but the kernels of 1 of 8 processes "
			"are not seen"));
}
END_TEST

START_TEST(what_is_wrong_is_said_in_full_on_a_narrow_terminal)
{
	add_inflight("Coll", "live", 43);
	set_last_seqs(11);
	view_build(&view, &answers, NOW);
	show(80, 24);
	ck_assert(shows("! AllReduce #12 on größe hangs for 43s: rank 5 (pid 4005) has not come"));
	ck_assert(shows("last is #11; see what that process does: gdb -p 4005, py-spy dump -p"));
}
END_TEST

START_TEST(what_the_dead_left_is_not_taken_for_a_stall)
{
	json_t *process = json_array_get(json_object_get(answers.processes, "processes"), 3);

	add_inflight("Coll", "died", 43);
	json_object_set_new(process, "state", json_string("died"));
	json_object_set_new(process, "ended_mono_ns",
			    json_integer((json_int_t)(NOW - 130 * SECOND)));
	build();
	ck_assert(shows("! process 4003 died 2m10s ago in the middle of "
			"AllReduce #12 on größe, rank 3"));
	ck_assert(shows("nothing in flight longer than 1s"));
}
END_TEST

START_TEST(a_late_rank_is_named_and_listed_first)
{
	int header;

	for (int seq = 0; seq < 6; seq++)
		for (int rank = 0; rank < RANKS; rank++)
			json_array_append_new(json_object_get(answers.collectives, "collectives"),
					      make_collective(rank, seq));
	build();
	ck_assert(shows("! rank 5 of größe (pid 4005) comes last in 6 of 6 AllReduce, 13.9ms "
			"after the first; others wait 13.9ms (p50)"));
	header = find_line("RANK  GPU");
	ck_assert_int_ge(header, 0);
	ck_assert(strstr(frame.lines[header + 1].text, "  5  0000:15:00.0"));
	ck_assert(strstr(frame.lines[header + 1].text, "13900"));
}
END_TEST

START_TEST(a_stalled_rank_is_listed_before_a_healthy_one)
{
	int header;

	add_inflight("Coll", "live", 43);
	build();
	header = find_line("RANK  GPU");
	ck_assert(strstr(frame.lines[header + 1].text, "  3  0000:13:00.0"));
	ck_assert(strstr(frame.lines[header + 1].text, "43s"));
}
END_TEST

START_TEST(ranks_are_joined_from_all_answers)
{
	const char *row;

	build();
	row = frame.lines[find_line("RANK  GPU") + 1].text;
	ck_assert(strstr(row, "ada"));
	ck_assert(strstr(row, "größe"));
	ck_assert(strstr(row, "50.0"));
	ck_assert(strstr(row, "123"));
	ck_assert(strstr(row, "17.3"));
	ck_assert(strstr(row, "25.0"));
}
END_TEST

START_TEST(a_rank_has_the_figures_of_its_own_communicator_only)
{
	json_t *row;
	size_t i;

	json_array_foreach(json_object_get(answers.ranks, "rows"), i, row)
		json_object_set_new(row, i % 2 ? "nranks" : "comm_name", json_null());
	build();
	ck_assert(!strstr(frame.lines[find_line("RANK  GPU") + 1].text, "17.3"));
	ck_assert(!strstr(frame.lines[find_line("RANK  GPU") + 2].text, "17.3"));
}
END_TEST

START_TEST(communicators_of_one_name_are_told_apart)
{
	json_t *comms = json_object_get(answers.comms, "comms");
	json_t *other = json_deep_copy(json_array_get(comms, 0));

	json_object_set_new(other, "comm_id", json_string("0x000000000000beef"));
	json_array_append_new(comms, other);
	build();
	ck_assert(shows("größe:0x01"));
	ck_assert(shows("größe:beef"));
}
END_TEST

START_TEST(what_no_answer_knows_is_a_dash)
{
	json_array_clear(json_object_get(answers.ranks, "rows"));
	build();
	ck_assert(strstr(frame.lines[find_line("RANK  GPU") + 1].text, "-"));
	ck_assert(!strstr(frame.lines[find_line("RANK  GPU") + 1].text, "0.00"));
}
END_TEST

START_TEST(a_lost_daemon_is_told_and_the_last_data_stay)
{
	build();
	view.up = false;
	view.tried_ns = NOW + 12 * SECOND;
	strcpy(view.error, "cannot connect to /run/x: nobody listens");
	show(120, 40);
	ck_assert(shows("! cannot connect to /run/x: nobody listens"));
	ck_assert(shows("what follows is 12s old"));
	ck_assert(shows("RANK  GPU"));
}
END_TEST

START_TEST(without_any_answer_only_the_error_is_shown)
{
	view_build(&view, &answers, NOW);
	view_deinit(&view);
	memset(&view, 0, sizeof(view));
	strcpy(view.error, "cannot connect");
	show(80, 24);
	ck_assert(shows("! cannot connect"));
	ck_assert_int_le(frame.count, 2);
}
END_TEST

START_TEST(tab_goes_round_the_tables)
{
	build();
	ck_assert_int_eq(state.table, VIEW_RANKS);
	layout_key(&state, '\t');
	ck_assert_int_eq(state.table, VIEW_OPS);
	layout_key(&state, LAYOUT_NEXT);
	layout_key(&state, LAYOUT_NEXT);
	ck_assert_int_eq(state.table, VIEW_RANKS);
	layout_key(&state, LAYOUT_PREVIOUS);
	ck_assert_int_eq(state.table, VIEW_INFLIGHT);
	layout_key(&state, '2');
	show(120, 12);
	ck_assert(shows("ALGO/PROTO"));
}
END_TEST

START_TEST(scrolling_stays_inside_the_table)
{
	build();
	state.table = VIEW_OPS;
	show(100, 12);
	layout_key(&state, 'k');
	ck_assert_int_eq(state.scroll, 0);
	layout_key(&state, 'G');
	show(100, 12);
	ck_assert_int_eq(state.scroll, 12 - state.page);
	ck_assert(shows("2MiB"));
	layout_key(&state, 'j');
	show(100, 12);
	ck_assert_int_eq(state.scroll, 12 - state.page);
	layout_key(&state, LAYOUT_PAGE_UP);
	layout_key(&state, LAYOUT_PAGE_UP);
	layout_key(&state, LAYOUT_PAGE_UP);
	ck_assert_int_eq(state.scroll, 0);
}
END_TEST

START_TEST(sorting_goes_through_the_shown_columns_and_back)
{
	int header;

	build();
	for (int i = 0; i < 100 && (i == 0 || state.sort >= 0); i++) {
		layout_key(&state, 's');
		if (state.sort >= 0)
			ck_assert_ptr_nonnull(view_tables[VIEW_RANKS].columns[state.sort].header);
	}
	ck_assert_int_eq(state.sort, -1);

	layout_key(&state, 's');
	show(120, 40);
	header = find_line("RANK  GPU");
	ck_assert(strstr(frame.lines[header + 1].text, "  7  0000:17:00.0"));
	layout_key(&state, 'i');
	show(120, 40);
	ck_assert(strstr(frame.lines[header + 1].text, "  0  0000:10:00.0"));
	layout_key(&state, '0');
	ck_assert_int_eq(state.sort, -1);
}
END_TEST

START_TEST(pause_help_and_quit_answer_their_keys)
{
	build();
	layout_key(&state, 'p');
	show(120, 40);
	ck_assert(shows("[paused]"));
	layout_key(&state, 'h');
	layout_key(&state, 0);
	show(120, 40);
	ck_assert(shows("next / previous table"));
	layout_key(&state, 'p');
	show(120, 40);
	ck_assert(!shows("next / previous table"));
	ck_assert(shows("[paused]"));
	layout_key(&state, 'h');
	layout_key(&state, 'q');
	ck_assert(state.quit);
}
END_TEST

START_TEST(no_key_breaks_the_view)
{
	unsigned seed = 1;

	add_inflight("Coll", "live", 2);
	build();
	for (int i = 0; i < 5000; i++) {
		int key = rand_r(&seed) % 4 ? 0x1000 + rand_r(&seed) % 12 : rand_r(&seed) % 256;

		layout_key(&state, key);
		show(20 + rand_r(&seed) % 120, 1 + rand_r(&seed) % 50);
		ck_assert_int_ge(state.scroll, 0);
	}
}
END_TEST

START_TEST(as_text_a_long_second_table_is_cut_and_says_so)
{
	for (int i = 0; i < 20; i++)
		add_inflight("Coll", "live", 2);
	state.interactive = false;
	view_build(&view, &answers, NOW);
	show(100, 400);
	ck_assert(shows("... 5 more"));
}
END_TEST

START_TEST(as_text_all_tables_follow_each_other)
{
	add_inflight("Coll", "live", 2);
	state.interactive = false;
	view_build(&view, &answers, NOW);
	show(100, 400);
	ck_assert(shows("RANK"));
	ck_assert(shows("Operations"));
	ck_assert(shows("In flight"));
	ck_assert(!shows("every 2s"));
}
END_TEST

int main(void)
{
	const struct fx_test tests[] = {
		FX_TEST(every_size_is_kept_and_never_exceeded),
		FX_TEST(an_empty_node_says_so),
		FX_TEST(the_head_counts_what_there_is),
		FX_TEST(records_per_second_come_with_the_second_answer),
		FX_TEST(a_loss_is_marked_with_more_than_colour),
		FX_TEST(the_oldest_in_flight_is_told_with_what_it_waits_for),
		FX_TEST(the_sender_is_blamed_before_those_who_wait_for_its_data),
		FX_TEST(the_rank_that_does_not_come_is_named),
		FX_TEST(nobody_is_absent_where_all_have_come),
		FX_TEST(a_death_stands_before_what_hangs_because_of_it),
		FX_TEST(nobody_says_all_is_well_who_cannot_see),
		FX_TEST(what_is_wrong_is_said_in_full_on_a_narrow_terminal),
		FX_TEST(what_the_dead_left_is_not_taken_for_a_stall),
		FX_TEST(a_late_rank_is_named_and_listed_first),
		FX_TEST(a_stalled_rank_is_listed_before_a_healthy_one),
		FX_TEST(ranks_are_joined_from_all_answers),
		FX_TEST(a_rank_has_the_figures_of_its_own_communicator_only),
		FX_TEST(communicators_of_one_name_are_told_apart),
		FX_TEST(what_no_answer_knows_is_a_dash),
		FX_TEST(a_lost_daemon_is_told_and_the_last_data_stay),
		FX_TEST(without_any_answer_only_the_error_is_shown),
		FX_TEST(tab_goes_round_the_tables),
		FX_TEST(scrolling_stays_inside_the_table),
		FX_TEST(sorting_goes_through_the_shown_columns_and_back),
		FX_TEST(pause_help_and_quit_answer_their_keys),
		FX_TEST(no_key_breaks_the_view),
		FX_TEST(as_text_a_long_second_table_is_cut_and_says_so),
		FX_TEST(as_text_all_tables_follow_each_other),
	};

	return fx_run(setup, teardown, tests, FX_COUNT(tests));
}
