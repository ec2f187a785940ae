/* SPDX-License-Identifier: Apache-2.0 */
/* The live view over many sizes and states: text, which is all that a user sees. */
#include "tests/fixture_view.h"
#include "util/text.h"

static json_t *fx_make_findings(void)
{
	return json_loads(
		"{\"findings\": ["
		" {\"id\": 1, \"active\": false, \"kind\": \"straggler\","
		"  \"severity\": \"critical\","
		"  \"verdict\": \"STEADY\", \"comm_id\": \"0x01\", \"ranks\": [5],"
		"  \"since_mono_ns\": 100, \"until_mono_ns\": 200, \"text\": \"rank 5 was late\"},"
		" {\"id\": 2, \"active\": true, \"kind\": \"stall\", \"severity\": \"critical\","
		"  \"verdict\": \"GPU_STUCK\", \"comm_id\": \"0x01\", \"ranks\": [3],"
		"  \"since_mono_ns\": 100, \"until_mono_ns\": null,"
		"  \"text\": \"rank 3 hangs. It is stuck.\","
		"  \"evidence\": {\"func\": \"AllReduce\"}}"
		"]}", 0, NULL);
}

/* Everything that can be on the screen, at one size. */
static void fx_try_size(int columns, int lines)
{
	fx_show(columns, lines);
	ck_assert_int_le(fx.frame.count, lines);
	for (int i = 0; i < fx.frame.count; i++)
		ck_assert_int_le(text_width(fx.frame.lines[i].text), columns);
}

static void fx_try_all(int columns, int lines)
{
	for (int screen = 0; screen < VIEW_SCREENS; screen++) {
		fx.place.screen = screen;
		fx_try_size(columns, lines);
	}
	fx.place.screen = VIEW_RANKS;
	fx.place.tree = lines % 2;
	fx.place.help = columns % 2;
	fx_press(columns % 3 ? KEYS_FILTER : 'u');
	fx_try_size(columns, lines);
	fx_press(KEYS_ESCAPE);
	fx.place.help = false;
	fx_press(KEYS_ENTER);
	fx_try_size(columns, lines);
	fx_press(KEYS_ESCAPE);
}

TEST(every_size_is_kept_and_never_exceeded)
{
	fx_add_inflight("Coll", "live", 43);
	fx.answers.findings = fx_make_findings();
	fx.answers.peers = json_pack("{s:[]}", "peers");
	view_build(&fx.view, &fx.answers, FX_NOW);
	for (int i = 0; i < 60; i++)
		view_sample(&fx.view);
	for (int columns = 1; columns <= 400; columns += columns < 30 ? 1 : 7)
		for (int lines = 1; lines <= 120; lines += lines < 12 ? 1 : 9)
			fx_try_all(columns, lines);
}

/* What the smallest screen is for: what is wrong, and the worst row. */
TEST(twenty_columns_and_five_lines_show_the_worst)
{
	fx.answers.findings = fx_make_findings();
	fx_worst_rank(3);
	view_build(&fx.view, &fx.answers, FX_NOW);
	fx_show(20, 5);
	ck_assert_int_eq(fx.frame.count, 5);
	ck_assert_ptr_nonnull(strstr(fx.frame.lines[0].text, "! rank 3"));
	ck_assert_ptr_nonnull(strstr(fx.frame.lines[1].text, "node7"));
	ck_assert_int_eq(fx_find_line("RANK"), 2);
	ck_assert_ptr_nonnull(strstr(fx.frame.lines[3].text, ">   3"));
}

TEST(an_empty_node_says_so)
{
	json_array_clear(json_object_get(fx.answers.processes, "processes"));
	json_array_clear(fx_ranks());
	json_object_set_new(fx.answers.ranks, "gpus_total", json_integer(0));
	json_array_clear(json_object_get(fx.answers.ops, "rows"));
	fx.answers.findings = json_pack("{s:[], s:{s:i}}", "findings", "watched", "live", 0);
	fx_build();
	ck_assert(fx_shows("processes 0"));
	ck_assert(fx_shows("no rank is alive"));
	ck_assert(fx_shows("no live process uses NCCL"));
	ck_assert(fx_shows("GPUs -"));
}

TEST(the_head_counts_what_there_is)
{
	fx_build();
	ck_assert(fx_shows("node7"));
	ck_assert(fx_shows("up 2h13m"));
	ck_assert(fx_shows("node7  jobs 1  GPUs 8  records/s -  lost 0  overhead -  level -"));
	ck_assert(fx_shows("processes 8  communicators 1  ops"));
}

static void fx_put_step(json_t *rank, double nccl)
{
	json_object_set_new(rank, "iteration_ns", json_integer(1200000000));
	json_object_set_new(rank, "nccl", json_real(nccl));
}

TEST(the_head_tells_a_step_and_how_much_of_it_is_nccl_s)
{
	for (size_t i = 0; i < FX_RANKS; i++)
		fx_put_step(json_array_get(fx_ranks(), i), 0.34 + 0.01 * (double)(i % 2));
	fx_build();
	ck_assert(fx_shows("processes 8  step 1.2s  NCCL 34.5%  exposed wait -  communicators 1"));
}

/* Two looks: young rows have other ages in each, and ranks differ little in blame. */
TEST_LOOP(what_differs_by_less_than_a_second_stays_where_it_is, 0, 2)
{
	for (int i = 0; i < 3; i++) {
		json_t *row = fx_add_inflight("ProxyOp", "live", i ? 0.001 * ((i + _i) % 2) : 43);

		json_object_set_new(row, "rank", json_integer(i ? 3 - i : 7));
		json_object_set_new(json_array_get(fx_ranks(), (size_t)i), "badness",
				    json_real(i ? 0.01 * ((i + _i) % 2) : 0.5));
	}
	if (_i) {	/* as the daemon sorts them: rank 2 before rank 1 */
		json_array_insert(fx_ranks(), 1, json_array_get(fx_ranks(), 2));
		json_array_remove(fx_ranks(), 3);
	}
	fx_build();
	ck_assert_ptr_nonnull(strstr(fx_row(0), "   0  0000"));
	ck_assert_ptr_nonnull(strstr(fx_row(1), "   1  0000"));
	ck_assert_ptr_nonnull(strstr(fx_row(2), "   2  0000"));
	fx.place.screen = VIEW_INFLIGHT;
	fx_show(120, 40);
	for (int i = 0; i < 3; i++) {
		static const char *const rank[] = { "   7  Proxy", "   1  Proxy", "   2  Proxy" };
		const char *row = fx.frame.lines[fx_find_line("AGE ") + 1 + i].text;

		ck_assert_ptr_nonnull(strstr(row, i ? " <1s " : " 43s "));
		ck_assert_ptr_nonnull(strstr(row, rank[i]));
	}
}

/* The ranks of two jobs, half of the node each. */
static void fx_two_jobs(void)
{
	for (size_t i = 0; i < FX_RANKS; i++) {
		json_t *rank = json_array_get(fx_ranks(), i);

		json_object_set_new(rank, "job", json_string(i < 4 ? "4711" : "4712"));
		json_object_set_new(rank, "comm_id", json_string(i < 4 ? "0x01" : "0x02"));
	}
}

/* The first rows say which screen leads: jobs that come or go later do not change it. */
TEST(the_jobs_lead_where_there_are_several_at_first)
{
	place_lead(&fx.place, &fx.view);	/* no answer yet */
	ck_assert(!fx.place.settled);
	fx_press(KEYS_NONE);			/* a size */
	fx_two_jobs();
	fx_build();
	place_lead(&fx.place, &fx.view);
	ck_assert_int_eq(fx.place.screen, VIEW_JOBS);
	json_array_clear(json_object_get(fx.view.built.ranks, "ranks"));
	fx.answers.ranks = json_deep_copy(fx.view.built.ranks);
	fx_build();
	place_lead(&fx.place, &fx.view);
	ck_assert_int_eq(fx.place.screen, VIEW_JOBS);
}

TEST(the_ranks_lead_where_there_is_one_job_at_first)
{
	fx_build();
	place_lead(&fx.place, &fx.view);
	ck_assert_int_eq(fx.place.screen, VIEW_RANKS);
	fx.answers.ranks = json_deep_copy(fx.view.built.ranks);
	fx_two_jobs();
	fx_build();
	place_lead(&fx.place, &fx.view);
	ck_assert_int_eq(fx.place.screen, VIEW_RANKS);
	fx_press('6');
	fx_show(80, 24);
	ck_assert(fx_shows("6 Jobs 2"));
	ck_assert(fx_shows(">4711"));
	ck_assert_int_gt(fx_find_line("   0  4711  "), fx_find_line(" 4712"));
	fx_press('2');
	place_lead(&fx.place, &fx.view);
	ck_assert_int_eq(fx.place.screen, VIEW_OPS);
}

/* 0: rows of two jobs; 1: no jobs; 2: operations of one of two jobs alone. */
TEST_LOOP(eighty_columns_tell_the_job_where_there_are_several, 0, 3)
{
	static const char *const headers[] = {
		[VIEW_RANKS] = "RANK  JOB ", [VIEW_OPS] = "JOB   COMM",
		[VIEW_INFLIGHT] = "AGE  JOB ",
	};

	fx_add_inflight("ProxyOp", "live", 43);
	if (_i != 1)
		fx_two_jobs();
	if (_i != 2) {
		json_object_set_new(json_array_get(json_object_get(fx.answers.ops, "rows"), 1),
				    "comm_id", json_string("0x02"));
		json_object_set_new(fx_add_inflight("ProxyOp", "live", 43), "comm_id",
				    json_string("0x02"));
	}
	view_build(&fx.view, &fx.answers, FX_NOW);
	for (size_t i = 0; i < sizeof(headers) / sizeof(*headers); i++) {
		if (!headers[i])
			continue;
		fx.place.screen = (int)i;
		fx_show(80, 24);
		ck_assert_int_eq(fx_shows(headers[i]), _i != 1);
	}
}

/* 0: ranks of one job; 1: two jobs; 2: a daemon that does not know it. */
TEST_LOOP(eighty_columns_show_the_last_minute, 0, 3)
{
	static const char *const headers[] = { "BLAME(%)   HISTORY  ", "OPS/s   HISTORY  " };
	static const char *const cells[] = { "  -▁█  ", "  █▁-  " };
	json_t *row;
	size_t i;

	json_array_foreach(_i == 2 ? NULL : fx_ranks(), i, row) {
		json_object_set_new(row, "blame_history", json_pack("[n,f,f]", 0.0, i ? 0.0 : 0.5));
		json_object_set_new(row, "ops_history", json_pack("[f,f,n]", 10.0, 0.0));
	}
	if (_i == 1)
		fx_two_jobs();
	fx_build();
	fx.place.screen = _i == 1 ? VIEW_JOBS : VIEW_RANKS;
	fx_show(80, 24);
	ck_assert_int_eq(fx_shows("HISTORY"), _i != 2);
	if (_i == 2)
		return;
	ck_assert(fx_shows(headers[_i]));
	ck_assert(fx_shows(cells[_i]));
	ck_assert(fx_shows("WAIT(%)"));
	ck_assert(fx_shows("VERDICT"));
}

static bool fx_shows_at(int columns, const char *text)
{
	fx_show(columns, 24);
	return fx_shows(text);
}

/* Long names give way before figures do, and have what these leave. */
TEST(few_columns_tell_who_waits_where_names_of_jobs_are_long)
{
	fx_two_jobs();
	for (size_t i = 0; i < 4; i++)
		json_object_set_new(json_array_get(fx_ranks(), i), "job",
				    json_string("pretrain-70b-seed1"));
	fx_build();
	fx.place.screen = VIEW_RANKS;
	ck_assert(fx_shows_at(84, "WAIT(%)  BLAME(%)"));
	ck_assert(fx_shows("  pretrai"));
	ck_assert(fx_shows_at(200, "  pretrain-70b-se~  "));
}

TEST(a_line_of_screens_too_long_for_numbers_has_their_names)
{
	fx_build();
	ck_assert(fx_shows_at(80, "6 Jobs 1"));
	ck_assert(fx_shows_at(72, "5 Findings  6 Jobs"));
	ck_assert(!fx_shows("1 Ranks 8"));
}

/* The rest of one job's step is on no other screen. */
TEST(a_step_comes_before_the_communicators_and_only_jobs_have_a_key)
{
	for (size_t i = 0; i < FX_RANKS; i++)
		fx_put_step(json_array_get(fx_ranks(), i), 0.5);
	fx.answers.findings = fx_make_findings();
	fx_build();
	ck_assert(fx_shows_at(60, "processes 8  step 1.2s  NCCL 50.0%  exposed wait -"));
	ck_assert(!fx_shows("communicators"));
	ck_assert(!fx_shows_at(40, "(key 6)"));
}

TEST(the_head_tells_the_step_of_the_job_that_one_is_in)
{
	fx_two_jobs();
	for (size_t i = 0; i < FX_RANKS; i++)
		fx_put_step(json_array_get(fx_ranks(), i), i < 4 ? 0.25 : 0.75);
	fx_build();
	fx_show(80, 24);
	ck_assert(fx_shows("4711 step 1.2s  NCCL 25.0%"));
	ck_assert(!fx_shows("NCCL 75.0%"));
	ck_assert(fx_shows("... (key 6)") || fx_shows("exposed wait -"));
	fx_press('6');
	fx_show(80, 24);
	fx_press('j');
	fx_show(80, 24);
	fx_press(KEYS_ENTER);
	fx_show(80, 24);
	ck_assert(fx_shows("4712 step 1.2s  NCCL 75.0%"));
	ck_assert(!fx_shows("4711 step"));
}

TEST(the_head_tells_the_step_of_each_job)
{
	json_t *rank = json_array_get(fx_ranks(), 0);

	fx_put_step(rank, 0.34);
	json_object_set_new(rank, "job", json_string("4711"));
	json_object_set_new(rank, "exposed", json_real(0.125));
	fx_build();
	ck_assert(fx_shows("  4711 step 1.2s  NCCL 34.0%  exposed wait 12.5%"));
}

/* The same answers again, but for the status, as when figures are not asked for. */
static struct view_answers fx_again(void)
{
	return (struct view_answers){
		.status = json_incref(fx.view.built.status),
		.processes = json_incref(fx.view.built.processes),
		.ranks = json_incref(fx.view.built.ranks),
		.ops = json_incref(fx.view.built.ops),
		.inflight = json_deep_copy(fx.view.built.inflight),
		.findings = json_deep_copy(fx.view.built.findings),
	};
}

TEST(ranks_stay_as_they_are_until_something_is_new_of_them)
{
	const json_t *ranks;
	struct view_answers again;

	fx_build();
	ranks = fx.view.rows[VIEW_RANKS];
	again = fx_again();
	view_build(&fx.view, &again, FX_NOW + FX_SECOND);
	ck_assert_ptr_eq(fx.view.rows[VIEW_RANKS], ranks);
	ck_assert_ptr_null(strstr(fx_row(0), "GPU_STUCK"));

	again = fx_again();
	json_decref(again.ranks);
	again.ranks = json_deep_copy(fx.view.built.ranks);
	json_object_set_new(json_array_get(json_object_get(again.ranks, "ranks"), 0), "verdict",
			    json_string("GPU_STUCK"));
	view_build(&fx.view, &again, FX_NOW + 2 * FX_SECOND);
	ck_assert_ptr_nonnull(strstr(fx_row(0), "GPU_STUCK"));
}

TEST(what_is_young_is_counted_where_it_is_not_listed)
{
	fx_add_inflight("Coll", "live", 3);
	fx.answers.only_old = true;
	fx_build();
	ck_assert(fx_shows("In flight for more than 1s"));
	ck_assert(fx_shows("4 In flight 8"));
}

TEST(records_per_second_come_with_the_second_answer)
{
	json_t *status = json_deep_copy(fx.answers.status);
	struct view_answers later = { .status = status };

	view_build(&fx.view, &fx.answers, FX_NOW);
	json_object_set_new(json_object_get(status, "ingest"), "records", json_integer(25600));
	view_build(&fx.view, &later, FX_NOW + 2 * FX_SECOND);
	fx_show(120, 40);
	ck_assert(fx_shows("records/s 12.3k"));
}

TEST(a_rate_stays_when_a_key_asks_again_at_once)
{
	json_t *status = json_deep_copy(fx.answers.status), *same;
	struct view_answers later = { .status = status }, again;

	view_build(&fx.view, &fx.answers, FX_NOW);
	json_object_set_new(json_object_get(status, "ingest"), "records", json_integer(25600));
	same = json_deep_copy(status);
	view_build(&fx.view, &later, FX_NOW + 2 * FX_SECOND);
	again = (struct view_answers){ .status = same };
	view_build(&fx.view, &again, FX_NOW + 2 * FX_SECOND + FX_SECOND / 100);
	fx_show(120, 40);
	ck_assert(fx_shows("records/s 12.3k"));
}

TEST(a_loss_is_marked_with_more_than_colour)
{
	json_object_set_new(json_object_get(fx.answers.status, "ingest"), "lost", json_integer(42));
	fx_build();
	ck_assert(fx_shows("lost 42!"));
}

TEST(ranks_are_listed_as_the_daemon_sorts_them)
{
	int header;

	json_object_set_new(fx_worst_rank(3), "oldest_ns", json_integer(43000000000));
	fx_build();
	header = fx_find_line("RANK  GPU");
	ck_assert(strstr(fx.frame.lines[header + 1].text, "  3  0000:13:00.0"));
	ck_assert(strstr(fx.frame.lines[header + 1].text, "43s"));
}

TEST(a_rank_has_a_row_of_what_the_daemon_says)
{
	const char *row;

	view_build(&fx.view, &fx.answers, FX_NOW);
	fx_show(200, 40);
	row = fx.frame.lines[fx_find_line("RANK  GPU") + 1].text;
	ck_assert(strstr(row, "ada"));
	ck_assert(strstr(row, "größe"));
	ck_assert(strstr(row, "50.0"));
	ck_assert(strstr(row, "123"));
	ck_assert(strstr(row, "17.3"));
	ck_assert(strstr(row, "75.0"));
}

TEST(communicators_of_one_name_are_told_apart)
{
	json_t *other = json_copy(json_array_get(fx_ranks(), 0));

	json_object_set_new(other, "comm_id", json_string("0x000000000000beef"));
	json_array_append_new(fx_ranks(), other);
	fx_build();
	ck_assert(fx_shows("größe:0x01"));
	ck_assert(fx_shows("größe:beef"));
}

TEST(what_no_answer_knows_is_a_dash)
{
	json_t *row;
	size_t i;

	json_array_foreach(fx_ranks(), i, row)
		json_object_set_new(row, "busbw_gbs", json_null());
	fx_build();
	ck_assert(strstr(fx.frame.lines[fx_find_line("RANK  GPU") + 1].text, "-"));
	ck_assert(!strstr(fx.frame.lines[fx_find_line("RANK  GPU") + 1].text, "0.00"));
}

TEST(a_lost_daemon_is_told_and_the_last_data_stay)
{
	fx_build();
	fx.view.up = false;
	fx.view.tried_ns = FX_NOW + 12 * FX_SECOND;
	strcpy(fx.view.error, "cannot connect to /run/x: nobody listens");
	fx_show(120, 40);
	ck_assert(fx_shows("! cannot connect to /run/x: nobody listens"));
	ck_assert(fx_shows("what follows is 12s old"));
	ck_assert(fx_shows("RANK  GPU"));
}

TEST(why_the_daemon_is_lost_is_not_cut)
{
	fx_build();
	fx.view.up = false;
	strcpy(fx.view.error, "cannot connect to /run/ncclinsp/ncclinspd.sock: permission denied; "
	       "you are not in group ncclinsp: see ncclinsp doctor");
	fx_show(80, 24);
	ck_assert(fx_shows("! cannot connect to"));
	ck_assert(fx_shows("see ncclinsp doctor"));
}

TEST(without_any_answer_only_the_error_is_shown)
{
	view_build(&fx.view, &fx.answers, FX_NOW);
	view_deinit(&fx.view);
	memset(&fx.view, 0, sizeof(fx.view));
	strcpy(fx.view.error, "cannot connect");
	fx_show(80, 24);
	ck_assert(fx_shows("! cannot connect"));
	ck_assert(!fx_shows("RANK"));
}

TEST(a_finding_is_told_in_full)
{
	fx.answers.findings = fx_make_findings();
	fx_build();
	fx_press('5');
	fx_show(120, 40);
	ck_assert(fx_shows("critical"));
	ck_assert(fx_shows("over"));
	fx_press(KEYS_ENTER);
	fx_show(120, 40);
	ck_assert(fx_shows("rank 3 hangs. It is stuck."));
	ck_assert(fx_shows("evidence.func"));
}

TEST(a_finding_stands_at_the_ranks_that_it_is_about)
{
	json_t *row = fx_worst_rank(3);

	json_object_set_new(row, "finding", json_string("stall"));
	json_object_set_new(row, "verdict", json_string("GPU_STUCK"));
	json_object_set_new(fx_worst_rank(5), "finding", json_string("stall"));
	fx_build();
	ck_assert_ptr_nonnull(strstr(fx_row(0), "STALL"));
	ck_assert_ptr_nonnull(strstr(fx_row(1), "GPU_STUCK"));
	ck_assert_ptr_null(strstr(fx_row(2), "STALL"));
}

static void put_job(json_t *rank, const char *job)
{
	json_object_set_new(rank, "job", json_string(job));
}

/* Of job 4711, of which rank 5 has not come: the only row on the screens that sum up. */
static const char *fx_row_of_job(enum view_table table, const char *grade)
{
	json_t *rank, *row = fx_worst_rank(5);
	size_t i;

	json_array_foreach(fx_ranks(), i, rank)
		put_job(rank, "4711");
	json_object_set_new(row, "finding", json_string("desync"));
	json_object_set_new(row, "verdict", json_string("NOT_JOINED"));
	json_object_set_new(row, "grade", json_string(grade));
	fx_step()->table = table;
	fx_build();
	return fx.frame.lines[fx_find_line("VERDICT") + 1].text;
}

TEST_LOOP(jobs_and_communicators_are_as_suspected_as_their_worst_rank, 0, 2)
{
	const char *row = fx_row_of_job(_i ? VIEW_COMMS : VIEW_JOBS, "suspected");

	ck_assert_ptr_nonnull(strstr(row, "4711"));
	ck_assert_ptr_nonnull(strstr(row, " NOT_JOINED?"));
}

TEST_LOOP(what_is_found_in_a_job_has_no_question_mark, 0, 2)
{
	const char *row = fx_row_of_job(_i ? VIEW_COMMS : VIEW_JOBS, "found");

	ck_assert_ptr_nonnull(strstr(row, " NOT_JOINED"));
	ck_assert_ptr_null(strchr(row, '?'));
}

TEST(the_plot_shows_the_newest_at_its_right_end)
{
	int line;

	fx_build();
	for (int i = 0; i < 5; i++)
		history_push(&fx.view.history, 10, 0.5);
	history_push(&fx.view.history, 100, 0);
	fx_show(80, 24);
	line = fx_find_line("BUSBW(GB/s)  100");
	ck_assert_int_ge(line, 0);
	ck_assert_ptr_nonnull(strstr(fx.frame.lines[line].text, "▁▁▁▁▁█ WAIT(%)"));
	fx.place.ascii = true;
	fx_show(80, 24);
	ck_assert_ptr_nonnull(strstr(fx.frame.lines[line].text, ".....# WAIT(%)"));
	history_push(&fx.view.history, -1, -1);
	fx_show(80, 24);
	ck_assert_int_ge(fx_find_line("BUSBW(GB/s)    -"), 0);
}

TEST(the_history_is_bounded)
{
	struct history *history = &fx.view.history;

	for (int i = 0; i < 3 * HISTORY_SAMPLES; i++)
		history_push(history, i, 0);
	ck_assert(history_get(history, HISTORY_BUSBW, 0) == 3 * HISTORY_SAMPLES - 1);
	ck_assert(history_get(history, HISTORY_BUSBW, HISTORY_SAMPLES - 1) ==
		  2 * HISTORY_SAMPLES);
	ck_assert(history_get(history, HISTORY_BUSBW, HISTORY_SAMPLES) < 0);
}

TEST(as_text_a_long_second_table_is_cut_and_says_so)
{
	for (int i = 0; i < 20; i++)
		fx_add_inflight("Coll", "live", 2);
	fx.place.interactive = false;
	view_build(&fx.view, &fx.answers, FX_NOW);
	fx_show(100, 400);
	ck_assert(fx_shows("... 5 more"));
}

TEST(as_text_all_tables_follow_each_other)
{
	fx_add_inflight("Coll", "live", 2);
	fx.place.interactive = false;
	view_build(&fx.view, &fx.answers, FX_NOW);
	fx_show(100, 400);
	ck_assert(fx_shows("RANK"));
	ck_assert(fx_shows("Operations"));
	ck_assert(fx_shows("In flight"));
	ck_assert(!fx_shows("every 2s"));
}

int main(void)
{
	return fx_run(fx_setup, fx_teardown);
}
