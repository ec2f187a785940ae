/* SPDX-License-Identifier: Apache-2.0 */
/* The live view over many sizes and states: text, which is all that a user sees. */
#include <stdlib.h>

#include "tests/fixture_view.h"
#include "util/text.h"

START_TEST(every_size_is_kept_and_never_exceeded)
{
	fx_add_inflight("Coll", "live", 43);
	view_build(&fx.view, &fx.answers, FX_NOW);
	for (int columns = 1; columns <= 400; columns += columns < 30 ? 1 : 7) {
		for (int lines = 1; lines <= 120; lines += lines < 12 ? 1 : 9) {
			for (int table = 0; table < VIEW_TABLES; table++) {
				fx.state.table = (enum view_table)table;
				fx_show(columns, lines);
				ck_assert_int_le(fx.frame.count, lines);
				for (int i = 0; i < fx.frame.count; i++)
					ck_assert_int_le(text_width(fx.frame.lines[i].text), columns);
			}
		}
	}
}
END_TEST

START_TEST(an_empty_node_says_so)
{
	json_array_clear(json_object_get(fx.answers.processes, "processes"));
	json_array_clear(json_object_get(fx.answers.comms, "comms"));
	json_array_clear(json_object_get(fx.answers.ops, "rows"));
	fx_build();
	ck_assert(fx_shows("processes 0"));
	ck_assert(fx_shows("no rank is alive"));
	ck_assert(fx_shows("no live process uses NCCL"));
	ck_assert(fx_shows("GPUs -"));
}
END_TEST

START_TEST(the_head_counts_what_there_is)
{
	fx_build();
	ck_assert(fx_shows("node7"));
	ck_assert(fx_shows("up 2h13m"));
	ck_assert(fx_shows("processes 8  GPUs 8  communicators 1"));
	ck_assert(fx_shows("records/s -"));
	ck_assert(fx_shows("lost 0"));
}
END_TEST

START_TEST(what_is_in_flight_is_counted_where_its_age_is_read)
{
	const json_t *row;

	json_object_set_new(fx_add_inflight("KernelCh", "live", 2), "parent", json_string("0x1"));
	fx_add_inflight("Coll", "live", 3);
	fx_add_inflight("Coll", "live", 2);
	fx_build();
	row = json_array_get(fx.view.rows[VIEW_RANKS], 0);	/* what hangs comes first */
	ck_assert_int_eq(json_integer_value(json_object_get(row, "rank")), 3);
	ck_assert_int_eq(json_integer_value(json_object_get(row, "in_flight")), 2);
	ck_assert_int_eq(json_integer_value(json_object_get(row, "oldest_ns")), 3 * FX_SECOND);
	row = json_array_get(fx.view.rows[VIEW_RANKS], 1);
	ck_assert_int_eq(json_integer_value(json_object_get(row, "in_flight")), 0);
	ck_assert(json_is_null(json_object_get(row, "oldest_ns")));
}
END_TEST

START_TEST(records_per_second_come_with_the_second_answer)
{
	json_t *status = json_deep_copy(fx.answers.status);
	struct view_answers later = { .status = status };

	view_build(&fx.view, &fx.answers, FX_NOW);
	json_object_set_new(json_object_get(status, "ingest"), "records", json_integer(25600));
	view_build(&fx.view, &later, FX_NOW + 2 * FX_SECOND);
	fx_show(120, 40);
	ck_assert(fx_shows("records/s 12.3k"));
}
END_TEST

START_TEST(a_loss_is_marked_with_more_than_colour)
{
	json_object_set_new(json_object_get(fx.answers.status, "ingest"), "lost", json_integer(42));
	fx_build();
	ck_assert(fx_shows("lost 42!"));
}
END_TEST

START_TEST(a_stalled_rank_is_listed_before_a_healthy_one)
{
	int header;

	fx_add_inflight("Coll", "live", 43);
	fx_build();
	header = fx_find_line("RANK  GPU");
	ck_assert(strstr(fx.frame.lines[header + 1].text, "  3  0000:13:00.0"));
	ck_assert(strstr(fx.frame.lines[header + 1].text, "43s"));
}
END_TEST

START_TEST(ranks_are_joined_from_all_answers)
{
	const char *row;

	fx_build();
	row = fx.frame.lines[fx_find_line("RANK  GPU") + 1].text;
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

	json_array_foreach(json_object_get(fx.answers.ranks, "rows"), i, row)
		json_object_set_new(row, i % 2 ? "nranks" : "comm_name", json_null());
	fx_build();
	ck_assert(!strstr(fx.frame.lines[fx_find_line("RANK  GPU") + 1].text, "17.3"));
	ck_assert(!strstr(fx.frame.lines[fx_find_line("RANK  GPU") + 2].text, "17.3"));
}
END_TEST

START_TEST(communicators_of_one_name_are_told_apart)
{
	json_t *comms = json_object_get(fx.answers.comms, "comms");
	json_t *other = json_deep_copy(json_array_get(comms, 0));

	json_object_set_new(other, "comm_id", json_string("0x000000000000beef"));
	json_array_append_new(comms, other);
	fx_build();
	ck_assert(fx_shows("größe:0x01"));
	ck_assert(fx_shows("größe:beef"));
}
END_TEST

START_TEST(what_no_answer_knows_is_a_dash)
{
	json_array_clear(json_object_get(fx.answers.ranks, "rows"));
	fx_build();
	ck_assert(strstr(fx.frame.lines[fx_find_line("RANK  GPU") + 1].text, "-"));
	ck_assert(!strstr(fx.frame.lines[fx_find_line("RANK  GPU") + 1].text, "0.00"));
}
END_TEST

START_TEST(a_lost_daemon_is_told_and_the_last_data_stay)
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
END_TEST

START_TEST(without_any_answer_only_the_error_is_shown)
{
	view_build(&fx.view, &fx.answers, FX_NOW);
	view_deinit(&fx.view);
	memset(&fx.view, 0, sizeof(fx.view));
	strcpy(fx.view.error, "cannot connect");
	fx_show(80, 24);
	ck_assert(fx_shows("! cannot connect"));
	ck_assert_int_le(fx.frame.count, 2);
}
END_TEST

START_TEST(tab_goes_round_the_tables)
{
	fx_build();
	ck_assert_int_eq(fx.state.table, VIEW_RANKS);
	layout_key(&fx.state, '\t');
	ck_assert_int_eq(fx.state.table, VIEW_OPS);
	layout_key(&fx.state, LAYOUT_NEXT);
	layout_key(&fx.state, LAYOUT_NEXT);
	ck_assert_int_eq(fx.state.table, VIEW_RANKS);
	layout_key(&fx.state, LAYOUT_PREVIOUS);
	ck_assert_int_eq(fx.state.table, VIEW_INFLIGHT);
	layout_key(&fx.state, '2');
	fx_show(120, 12);
	ck_assert(fx_shows("ALGO/PROTO"));
}
END_TEST

START_TEST(scrolling_stays_inside_the_table)
{
	fx_build();
	fx.state.table = VIEW_OPS;
	fx_show(100, 12);
	layout_key(&fx.state, 'k');
	ck_assert_int_eq(fx.state.scroll, 0);
	layout_key(&fx.state, 'G');
	fx_show(100, 12);
	ck_assert_int_eq(fx.state.scroll, 12 - fx.state.page);
	ck_assert(fx_shows("2MiB"));
	layout_key(&fx.state, 'j');
	fx_show(100, 12);
	ck_assert_int_eq(fx.state.scroll, 12 - fx.state.page);
	layout_key(&fx.state, LAYOUT_PAGE_UP);
	layout_key(&fx.state, LAYOUT_PAGE_UP);
	layout_key(&fx.state, LAYOUT_PAGE_UP);
	ck_assert_int_eq(fx.state.scroll, 0);
}
END_TEST

START_TEST(sorting_goes_through_the_shown_columns_and_back)
{
	int header;

	fx_build();
	for (int i = 0; i < 100 && (i == 0 || fx.state.sort >= 0); i++) {
		layout_key(&fx.state, 's');
		if (fx.state.sort >= 0)
			ck_assert_ptr_nonnull(view_tables[VIEW_RANKS].columns[fx.state.sort].header);
	}
	ck_assert_int_eq(fx.state.sort, -1);

	layout_key(&fx.state, 's');
	fx_show(120, 40);
	header = fx_find_line("RANK  GPU");
	ck_assert(strstr(fx.frame.lines[header + 1].text, "  7  0000:17:00.0"));
	layout_key(&fx.state, 'i');
	fx_show(120, 40);
	ck_assert(strstr(fx.frame.lines[header + 1].text, "  0  0000:10:00.0"));
	layout_key(&fx.state, '0');
	ck_assert_int_eq(fx.state.sort, -1);
}
END_TEST

START_TEST(pause_help_and_quit_answer_their_keys)
{
	fx_build();
	layout_key(&fx.state, 'p');
	fx_show(120, 40);
	ck_assert(fx_shows("[paused]"));
	layout_key(&fx.state, 'h');
	layout_key(&fx.state, 0);
	fx_show(120, 40);
	ck_assert(fx_shows("next / previous table"));
	layout_key(&fx.state, 'p');
	fx_show(120, 40);
	ck_assert(!fx_shows("next / previous table"));
	ck_assert(fx_shows("[paused]"));
	layout_key(&fx.state, 'h');
	layout_key(&fx.state, 'q');
	ck_assert(fx.state.quit);
}
END_TEST

START_TEST(no_key_breaks_the_view)
{
	unsigned seed = 1;

	fx_add_inflight("Coll", "live", 2);
	fx_build();
	for (int i = 0; i < 5000; i++) {
		int key = rand_r(&seed) % 4 ? 0x1000 + rand_r(&seed) % 12 : rand_r(&seed) % 256;

		layout_key(&fx.state, key);
		fx_show(20 + rand_r(&seed) % 120, 1 + rand_r(&seed) % 50);
		ck_assert_int_ge(fx.state.scroll, 0);
	}
}
END_TEST

START_TEST(as_text_a_long_second_table_is_cut_and_says_so)
{
	for (int i = 0; i < 20; i++)
		fx_add_inflight("Coll", "live", 2);
	fx.state.interactive = false;
	view_build(&fx.view, &fx.answers, FX_NOW);
	fx_show(100, 400);
	ck_assert(fx_shows("... 5 more"));
}
END_TEST

START_TEST(as_text_all_tables_follow_each_other)
{
	fx_add_inflight("Coll", "live", 2);
	fx.state.interactive = false;
	view_build(&fx.view, &fx.answers, FX_NOW);
	fx_show(100, 400);
	ck_assert(fx_shows("RANK"));
	ck_assert(fx_shows("Operations"));
	ck_assert(fx_shows("In flight"));
	ck_assert(!fx_shows("every 2s"));
}
END_TEST

int main(void)
{
	const struct fx_test tests[] = {
		FX_TEST(every_size_is_kept_and_never_exceeded),
		FX_TEST(an_empty_node_says_so),
		FX_TEST(the_head_counts_what_there_is),
		FX_TEST(what_is_in_flight_is_counted_where_its_age_is_read),
		FX_TEST(records_per_second_come_with_the_second_answer),
		FX_TEST(a_loss_is_marked_with_more_than_colour),
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

	return fx_run(fx_setup, fx_teardown, tests, FX_COUNT(tests));
}
