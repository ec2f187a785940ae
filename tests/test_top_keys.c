/* SPDX-License-Identifier: Apache-2.0 */
/* The live view under its keys: what each one does, as a user sees it. */
#include <stdlib.h>

#include "tests/fixture_view.h"

/* As the first time: what was built before took the answers. */
static void fx_build_again(void)
{
	fx_teardown();
	memset(&fx, 0, sizeof(fx));
	fx_setup();
	fx_build();
}

TEST(tab_goes_round_the_screens)
{
	fx_build();
	ck_assert_int_eq(fx.place.screen, VIEW_RANKS);
	fx_press('\t');
	ck_assert_int_eq(fx.place.screen, VIEW_OPS);
	fx_press(KEYS_PREVIOUS);
	fx_press(KEYS_PREVIOUS);
	ck_assert_int_eq(fx.place.screen, VIEW_JOBS);
	fx_press(KEYS_NEXT);
	ck_assert_int_eq(fx.place.screen, VIEW_RANKS);
	for (int i = 0; i < VIEW_SCREENS; i++) {
		fx_press('1' + i);
		ck_assert_int_eq(fx.place.screen, i);
	}
	fx_press('2');
	fx_show(120, 14);
	ck_assert(fx_shows("ALGO/PROTO"));
}

TEST(the_cursor_stays_inside_the_table_and_on_the_screen)
{
	fx_build();
	fx_press('2');
	fx_show(100, 12);
	fx_press('k');
	ck_assert_int_eq(fx_step()->cursor, 0);
	fx_press('G');
	fx_show(100, 12);
	ck_assert_int_eq(fx_step()->cursor, 11);
	ck_assert_int_eq(fx_step()->scroll, 12 - fx.place.page);
	ck_assert(fx_shows(">größe"));
	ck_assert(fx_shows("2MiB"));
	fx_press('j');
	fx_show(100, 12);
	ck_assert_int_eq(fx_step()->cursor, 11);
	for (int i = 0; i < 12; i++)
		fx_press(KEYS_PAGE_UP);
	ck_assert_int_eq(fx_step()->cursor, 0);
	fx_press('j');
	fx_show(100, 12);
	ck_assert_int_le(fx_step()->scroll, 1);
}

TEST(sorting_goes_through_the_shown_columns_and_back)
{
	fx_build();
	for (int i = 0; i < 100 && (i == 0 || fx.place.sort[VIEW_RANKS] >= 0); i++) {
		int sort;

		fx_press('>');
		sort = fx.place.sort[VIEW_RANKS];
		if (sort >= 0)
			ck_assert_ptr_nonnull(view_tables[VIEW_RANKS].columns[sort].header);
	}
	ck_assert_int_eq(fx.place.sort[VIEW_RANKS], -1);

	fx_press('>');
	ck_assert_ptr_nonnull(strstr(fx_row(0), "  7  0000:17:00.0"));
	fx_press('I');
	ck_assert_ptr_nonnull(strstr(fx_row(0), "  0  0000:10:00.0"));
	fx_press('0');
	ck_assert_int_eq(fx.place.sort[VIEW_RANKS], -1);
	fx_press('<');
	fx_press('>');
	ck_assert_int_eq(fx.place.sort[VIEW_RANKS], -1);
}

TEST(the_menu_sorts_by_the_column_that_is_chosen)
{
	fx_build();
	fx_press(KEYS_SORT);
	fx_show(120, 40);
	ck_assert(fx_shows("Sort by"));
	ck_assert(fx_shows(">worst first"));
	fx_press('j');
	fx_press(KEYS_ENTER);
	ck_assert_ptr_nonnull(strstr(fx_row(0), "  7  0000:17:00.0"));
	fx_press(KEYS_SORT);
	fx_show(120, 40);
	ck_assert(fx_shows(">RANK"));
	fx_press(KEYS_ESCAPE);
	ck_assert_ptr_nonnull(strstr(fx_row(0), "  7  0000:17:00.0"));
}

TEST(pause_help_and_quit_answer_their_keys)
{
	fx_build();
	fx_press('Z');
	fx_show(120, 40);
	ck_assert(fx_shows("[paused]"));
	fx_press('h');
	fx_press('h');
	fx_press(0);
	fx_show(120, 40);
	ck_assert(fx_shows("the next screen"));
	fx_press('p');
	fx_show(120, 40);
	ck_assert(!fx_shows("the next screen"));
	ck_assert(fx_shows("[paused]"));
	fx_press('h');
	fx_press('q');
	ck_assert(!fx.place.help);
	ck_assert(!fx.place.quit);	/* that was of the help, as of menus */
	fx_press('q');
	ck_assert(fx.place.quit);
}

TEST(help_that_does_not_fit_is_scrolled)
{
	fx_build();
	fx_press(KEYS_HELP);
	fx_press('\t');
	fx_show(80, 24);
	ck_assert(fx_shows("this help"));
	for (int i = 0; i < 10; i++) {
		fx_press(KEYS_PAGE_DOWN);
		fx_show(80, 24);
	}
	ck_assert(!fx_shows("this help"));
	ck_assert(fx_shows("any other key: back"));
	fx_press(KEYS_HOME);
	fx_show(80, 24);
	ck_assert(fx_shows("this help"));
}

/* The words of the table's header, each of which begins a line of the help. */
TEST_LOOP(help_explains_each_column_of_the_screen, 0, VIEW_SCREENS)
{
	char header[LINE_BYTES], *word, *left = header;

	fx_add_inflight("ProxyOp", "live", 43);
	fx.answers.findings = json_loads("{\"findings\": [{\"id\": 1, \"active\": true,"
		" \"kind\": \"stall\", \"severity\": \"critical\","
		" \"text\": \"it hangs\"}]}", 0, NULL);
	fx.answers.peers = json_loads("{\"peers\": [{\"rank\": 1, \"peer\": 2}]}", 0, NULL);
	fx_build();
	fx.place.screen = _i;
	fx_show(80, 40);
	snprintf(header, sizeof(header), "%s", fx.frame.lines[fx_find_line("6 Jobs") + 1].text);
	fx_press('h');
	fx_show(80, 200);
	while ((word = strsep(&left, " "))) {
		int i = 0;

		while (*word && i < fx.frame.count &&
		       (strncmp(fx.frame.lines[i].text, word, strlen(word)) ||
			fx.frame.lines[i].text[strlen(word)] != ' '))
			i++;
		ck_assert_msg(i < fx.frame.count, "%s is not explained", word);
	}
	ck_assert(fx_shows("records/s     The records that"));
	ck_assert(!fx_shows("this help"));
}

TEST(enter_goes_from_job_to_operation_and_escape_back)
{
	fx_build();
	fx_press(KEYS_ESCAPE);
	fx_show(120, 40);
	ck_assert(fx_shows("COMM   JOB") || fx_shows("COMM   "));
	ck_assert_int_eq(fx_step()->table, VIEW_COMMS);
	fx_press(KEYS_ESCAPE);
	fx_show(120, 40);
	ck_assert_int_eq(fx_step()->table, VIEW_JOBS);
	fx_press(KEYS_ESCAPE);
	ck_assert_int_eq(fx_step()->table, VIEW_JOBS);
	fx_press(KEYS_ENTER);
	fx_show(120, 40);
	ck_assert_int_eq(fx_step()->table, VIEW_COMMS);
	fx_press(KEYS_ENTER);
	fx_show(120, 40);
	ck_assert_int_eq(fx_step()->table, VIEW_RANKS);
	ck_assert(fx_shows("comm größe"));
	fx_press('j');
	fx_show(120, 40);
	fx_press(KEYS_ENTER);
	ck_assert_int_eq(fx_step()->table, VIEW_KINDS);
	ck_assert(place_want(&fx.place, "10s").kinds);
	ck_assert_int_eq(json_integer_value(json_object_get(fx_step()->scope, "rank")), 1);
	fx.answers.kinds = json_loads("{\"rows\": [{\"comm_id\": \"0x02\", \"rank\": 7}]}",
				      0, NULL);
	fx_build();
	fx_show(120, 40);	/* others have some, and nobody has set a filter */
	ck_assert(fx_shows("no operation has finished lately; 4 shows what is in flight"));
	ck_assert(!fx_shows("matches the filter"));
	for (int i = 0; i < 3; i++)
		fx_press(KEYS_ESCAPE);
	ck_assert_int_eq(fx_step()->table, VIEW_JOBS);
}

static int fx_most(void)
{
	return place_want(&fx.place, "10s").most;
}

TEST(of_what_is_in_flight_no_more_is_asked_for_than_may_be_shown)
{
	for (int i = 0; i < 64; i++)
		fx_add_inflight("Coll", "live", 0.9);
	json_object_set_new(fx.answers.inflight, "inflight_total", json_integer(500));
	fx_build();
	ck_assert_int_eq(fx_most(), 0);		/* that screen is not shown */
	fx_press('4');
	fx_show(120, 24);
	ck_assert_int_eq(fx_most(), 64);
	ck_assert_int_eq(fx.place.count, 500);
	fx_press('G');
	ck_assert_int_eq(fx_step()->cursor, 499);
	ck_assert_int_ge(fx_most(), 500);
	fx_show(120, 24);			/* not answered yet */
	ck_assert_int_eq(fx_step()->cursor, 63);
	fx_press(KEYS_HOME);
	fx_press('>');
	ck_assert_int_eq(fx_most(), 0);		/* another order takes all of them */
	fx_press('0');
	fx_press(KEYS_FILTER);
	fx_type("x");
	fx_press(KEYS_ENTER);
	ck_assert_int_eq(fx_most(), 0);
	fx_show(120, 24);
	ck_assert_int_eq(fx.place.count, 0);
}

TEST(a_row_without_parts_is_shown_in_detail)
{
	fx_add_inflight("Coll", "live", 43);
	fx_build();
	fx_press('4');
	fx_show(120, 40);
	fx_press(KEYS_ENTER);
	fx_show(120, 40);
	ck_assert(fx_shows("event_type"));
	ck_assert(fx_shows("43000000000  (43s)"));
	ck_assert(!fx_shows("gone: this is"));
	json_array_clear(fx.view.rows[VIEW_INFLIGHT]);
	fx_show(120, 40);
	ck_assert(fx_shows("gone: this is"));
	ck_assert(fx_shows("43000000000  (43s)"));
	fx_press(KEYS_ESCAPE);
	fx_show(120, 40);
	ck_assert(fx_shows("nothing is in flight"));
}

TEST(the_filter_leaves_what_shows_one_of_its_texts)
{
	fx_build();
	fx_press(KEYS_FILTER);
	fx_type("4002|:16:");
	fx_show(120, 40);
	ck_assert(fx_shows("FIELD OP VALUE): 4002|:16:"));
	ck_assert_int_eq(fx.place.count, 2);
	fx_press(KEYS_ENTER);
	fx_show(120, 40);
	ck_assert(fx_shows("[filter 4002|:16:]"));
	fx_press('\\');
	fx_show(120, 40);
	ck_assert(fx_shows("VALUE):    now: 4002|:16:"));
	fx_type("nonsense");
	fx_show(120, 40);
	ck_assert_int_eq(fx.place.count, 0);
	fx_press(KEYS_ESCAPE);
	fx_show(120, 40);
	ck_assert_int_eq(fx.place.count, 2);
	fx_press('\\');
	fx_press(KEYS_ENTER);
	fx_show(120, 40);
	ck_assert_int_eq(fx.place.count, FX_RANKS);
}

TEST(clicks_choose_open_and_sort)
{
	int header, x;

	fx_build();
	fx_show(120, 40);
	header = fx_find_line("RANK  GPU");
	fx_press(KEYS_CLICK_AT(4, header + 3));
	ck_assert_int_eq(fx_step()->cursor, 2);
	fx_press(KEYS_WHEEL_DOWN);
	ck_assert_int_eq(fx_step()->cursor, 5);
	fx_press(KEYS_WHEEL_UP);
	ck_assert_int_eq(fx_step()->cursor, 2);
	fx_press(KEYS_CLICK_AT(0, 0));	/* nothing is there */
	fx_press(KEYS_CLICK_AT(0, 39));
	ck_assert_int_eq(fx_step()->cursor, 2);
	x = (int)(strstr(fx.frame.lines[header].text, "PID") - fx.frame.lines[header].text);
	fx_press(KEYS_CLICK_AT(x, header));
	ck_assert_ptr_nonnull(strstr(fx_row(0), " 4007 "));
	fx_press(KEYS_CLICK_AT(x, header));
	ck_assert_ptr_nonnull(strstr(fx_row(0), " 4000 "));
	fx_press(KEYS_CLICK_AT(4, header + 3));
	ck_assert_int_eq(fx_step()->table, VIEW_KINDS);
	fx_press('h');
	fx_press(KEYS_CLICK_AT(4, 4));
	ck_assert(!fx.place.help);
}

TEST(a_word_or_all_that_was_typed_can_be_taken_away)
{
	fx_build();
	fx_press('/');
	fx_type("one two  ");
	fx_press('W' - '@');
	ck_assert_str_eq(fx.place.prompt.text, "one ");
	fx_press('W' - '@');
	ck_assert_str_eq(fx.place.prompt.text, "");
	fx_type("three four");
	fx_press('U' - '@');
	ck_assert_str_eq(fx.place.prompt.text, "");
	ck_assert_str_eq(fx.place.search, "");
}

TEST(the_filter_knows_the_fields_of_the_table)
{
	fx_build();
	fx_press(KEYS_FILTER);
	fx_type("rank>=6");
	fx_press(KEYS_ENTER);
	fx_show(120, 40);
	ck_assert_int_eq(fx.place.count, 2);
	fx_press(KEYS_FILTER);
	fx_show(120, 40);
	ck_assert(fx_shows("now: rank>=6 (Enter: all rows)"));
	fx_press(KEYS_ESCAPE);
	fx_press('5');
	fx_show(120, 40);
	ck_assert(fx_shows("[filter rank>=6]  ! "));
	fx_press('1');
	fx_show(120, 40);
	ck_assert(!fx_shows("[filter rank>=6]  ! "));
}

TEST(searching_moves_the_cursor_on)
{
	fx_build();
	fx_press('/');
	fx_type("000");
	ck_assert_int_eq(fx_step()->cursor, 0);
	fx_type("0:14");
	ck_assert_int_eq(fx_step()->cursor, 4);
	fx_press(KEYS_ENTER);
	fx_press('n');
	ck_assert_int_eq(fx_step()->cursor, 4);
	fx_press('/');
	fx_type("ada");
	fx_press(KEYS_ENTER);
	fx_press('n');
	ck_assert_int_eq(fx_step()->cursor, 5);
	fx_press('N');
	fx_press('N');
	ck_assert_int_eq(fx_step()->cursor, 3);
	fx_press('/');
	fx_press(KEYS_ENTER);	/* nothing new: the last one stays */
	fx_press('n');
	ck_assert_int_eq(fx_step()->cursor, 4);
}

TEST(the_delay_is_taken_when_it_makes_sense)
{
	fx_build();
	fx_press('d');
	fx_show(120, 40);
	ck_assert(fx_shows("now: 2.0s"));
	fx_press(KEYS_ENTER);
	ck_assert_uint_eq(fx.place.delay_ns, 2 * FX_SECOND);
	fx_press('d');
	fx_type("0.01");
	fx_press(KEYS_ENTER);
	fx_show(120, 40);
	ck_assert(fx_shows("! seconds, at least 0.1"));
	fx_press(KEYS_ERASE);
	fx_press(KEYS_ERASE);
	fx_type("5");
	fx_press(KEYS_ENTER);
	fx_show(120, 40);
	ck_assert(fx_shows("every 500ms"));
	fx_press('d');
	fx_press(KEYS_ESCAPE);
	ck_assert_uint_eq(fx.place.delay_ns, FX_SECOND / 2);
}

TEST(one_gpu_can_be_picked_and_let_go)
{
	fx_build();
	fx_press('g');
	fx_show(120, 40);
	ck_assert(fx_shows("Only this GPU"));
	fx_press('j');
	fx_press('j');
	fx_press(KEYS_ENTER);
	fx_show(120, 40);
	ck_assert(fx_shows("[GPU 0000:11:00.0]"));
	ck_assert_int_eq(fx.place.count, 1);
	fx_press('g');
	fx_press(KEYS_HOME);
	fx_press(KEYS_ENTER);
	fx_show(120, 40);
	ck_assert_int_eq(fx.place.count, FX_RANKS);
}

TEST(a_pick_holds_on_every_screen)
{
	fx_add_inflight("Coll", "live", 2);
	fx_build();
	fx_press('4');
	snprintf(fx.place.pick[PLACE_GPU], PLACE_TEXT, "0000:11:00.0");
	fx_show(120, 40);
	ck_assert_int_eq(fx.place.count, 0);
	ck_assert(fx_shows("no row matches the filter"));
	snprintf(fx.place.pick[PLACE_GPU], PLACE_TEXT, "0000:13:00.0");
	fx_show(120, 40);
	ck_assert_int_eq(fx.place.count, 1);
}

TEST(the_tree_has_jobs_above_communicators_above_ranks)
{
	fx_build();
	fx_press(KEYS_TREE);
	fx_show(120, 40);
	ck_assert_int_eq(fx.place.count, 2 + FX_RANKS);
	ck_assert(fx_shows(">- job -"));
	ck_assert(fx_shows("   - größe"));
	ck_assert(fx_shows("     rank 7"));
	fx_press('j');
	fx_show(120, 40);
	fx_press(KEYS_ENTER);
	fx_press(KEYS_TREE);
	fx_show(120, 40);
	ck_assert_int_eq(fx_step()->table, VIEW_RANKS);
	ck_assert_int_eq(fx.place.count, FX_RANKS);
	fx_press(KEYS_ESCAPE);
	fx_press(KEYS_TREE);
	fx_press(KEYS_FILTER);
	fx_type("rank");
	fx_show(120, 40);
	ck_assert_int_eq(fx.place.count, 0);
}

TEST(followed_rows_keep_the_cursor_and_others_do_not)
{
	fx_build();
	for (int follow = 0; follow < 2; follow++) {
		fx_build_again();
		fx_press('1');
		fx_press('0');
		fx_press(KEYS_HOME);
		fx_press('j');
		fx_show(120, 40);
		if (follow)
			fx_press('F');
		fx_press('>');
		fx_show(120, 40);
		ck_assert_int_eq(fx_step()->cursor, follow ? 6 : 1);
		fx_press('<');
	}
}

/* Up to the question about the process under the cursor. */
static void fx_ask_for_a_level(void)
{
	fx_press('L');
	fx_show(120, 40);
	ck_assert(fx_shows("Change the level of"));
	ck_assert(fx_shows(">the node"));
	ck_assert(fx_shows("communicator größe"));
	fx_press('j');
	fx_press(KEYS_ENTER);
	fx_show(120, 40);
	ck_assert(fx_shows(">net"));
	fx_press('k');
	fx_press(KEYS_ENTER);
	fx_show(120, 40);
	ck_assert(fx_shows("Level of process 4000: kernel.  Do it? (y/n)"));
}

TEST(a_level_is_wished_only_after_a_yes)
{
	fx_build();
	fx_ask_for_a_level();
	fx_press('n');
	ck_assert_ptr_null(fx.place.wish.due);
	fx_ask_for_a_level();
	fx_press(KEYS_ESCAPE);
	ck_assert_ptr_null(fx.place.wish.due);
	fx_ask_for_a_level();
	fx_press(KEYS_NONE);	/* a size is no answer */
	fx_press('y');
	ck_assert_ptr_nonnull(fx.place.wish.due);
	ck_assert_int_eq(json_integer_value(json_object_get(fx_due(0), "pid")), 4000);
	ck_assert_str_eq(json_string_value(json_object_get(fx_due(0), "level")), "kernel");
	ck_assert_uint_eq(json_object_size(fx_due(0)), 2);
}

TEST(a_question_says_whom_it_concerns_and_what_it_costs)
{
	json_object_set_new(json_array_get(fx_ranks(), 0), "job", json_string("4711"));
	fx_build();
	fx_ask_for_a_level();
	fx_show(80, 24);
	ck_assert(fx_shows("concerns      1 of 8 processes here, of job 4711"));
	ck_assert(fx_shows("costs         at most the budget for timing kernels"));
	ck_assert(fx_shows("sampling is all"));
	ck_assert(!fx_shows("come on top"));
	ck_assert(fx_shows("ends          when somebody changes it again"));
	fx_press('n');
	fx_press('L');
	fx_press(KEYS_ENTER);	/* the node */
	fx_press(KEYS_END);
	fx_press('k');
	fx_press(KEYS_ENTER);
	fx_show(80, 24);
	ck_assert(fx_shows("Level of the node: every operation timed, for 60s"));
	ck_assert(fx_shows("concerns      8 of 8 processes here"));
	ck_assert(fx_shows("ends          by itself"));
}

TEST(readonly_there_is_no_key_for_levels)
{
	fx_build();
	fx.place.readonly = true;
	fx_press('L');
	fx_show(120, 40);
	ck_assert(!fx_shows("Change the level of"));
	fx_press('h');
	fx_show(120, 60);
	ck_assert(!fx_shows("change the level"));
}

TEST(no_key_breaks_the_view)
{
	unsigned seed = 1;

	fx_add_inflight("Coll", "live", 2);
	fx_build();
	for (int i = 0; i < 5000; i++) {
		int key = rand_r(&seed) % 4 ? 0x1000 + rand_r(&seed) % 20 : rand_r(&seed) % 256;

		fx_press(rand_r(&seed) % 8 ? key : KEYS_ENTER);
		fx_show(20 + rand_r(&seed) % 120, 1 + rand_r(&seed) % 50);
		ck_assert_int_ge(fx_step()->scroll, 0);
		ck_assert_int_ge(fx_step()->cursor, 0);
	}
}

int main(void)
{
	return fx_run(fx_setup, fx_teardown);
}
