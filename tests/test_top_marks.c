/* SPDX-License-Identifier: Apache-2.0 */
/* The live view: tags, folded branches, what is asked of the daemon, the menu of all that. */
#include "tests/fixture_view.h"

static json_int_t fx_due_pid(size_t i)
{
	return json_integer_value(json_object_get(fx_due(i), "pid"));
}

static const char *fx_due_text(size_t i, const char *key)
{
	return json_string_value(json_object_get(fx_due(i), key)) ?: "-";
}

/* As on a screen: each key has its frame. */
static void fx_type_and_see(const char *keys)
{
	for (; *keys; keys++) {
		fx_press(*keys);
		fx_show(120, 40);
	}
}

/* ---- tags --------------------------------------------------------------------- */

TEST(space_tags_a_row_and_takes_the_tag_away)
{
	fx_build();
	ck_assert(!fx_shows("tagged"));
	ck_assert_ptr_nonnull(strstr(fx_row(0), ">   0"));
	fx_press(' ');
	ck_assert_ptr_nonnull(strstr(fx_row(0), " *   0"));
	ck_assert_ptr_nonnull(strstr(fx_row(1), ">    1"));
	ck_assert(fx_shows("[1 tagged]"));
	fx_press('k');
	ck_assert_ptr_nonnull(strstr(fx_row(0), ">*   0"));
	fx_press(' ');
	ck_assert_ptr_nonnull(strstr(fx_row(0), "    0"));
	ck_assert(!fx_shows("tagged"));
}

TEST(a_tag_stays_with_its_row_in_the_tree_and_in_another_order)
{
	fx_build();
	fx_press(' ');
	fx_press('>');
	ck_assert_ptr_nonnull(strstr(fx_row(7), "*   0"));
	ck_assert_ptr_null(strstr(fx_row(0), "*"));
	fx_press(KEYS_TREE);
	fx_show(120, 40);
	ck_assert(fx_shows("*    rank 0"));
	ck_assert(!fx_shows("*    rank 1"));
	fx_press('U');
	fx_show(120, 40);
	ck_assert(!fx_shows("*    rank 0"));
	ck_assert(!fx_shows("tagged"));
}

TEST(a_level_can_be_wished_of_what_is_tagged)
{
	fx_build();
	fx_type_and_see(" j ");	/* ranks 0 and 2; the cursor is on rank 3 */
	fx_press('L');
	fx_show(120, 40);
	ck_assert(fx_shows("the 2 tagged"));
	fx_press('j');
	fx_press(KEYS_ENTER);
	fx_press('k');
	fx_press(KEYS_ENTER);
	fx_show(120, 40);
	ck_assert(fx_shows("Level of the 2 tagged: kernel.  Do it?"));
	fx_press('y');
	ck_assert_int_eq(fx_due_pid(0), 4000);
	ck_assert_int_eq(fx_due_pid(1), 4002);
	ck_assert_str_eq(fx_due_text(1, "level"), "kernel");
	ck_assert_ptr_null(fx_due(2));
}

TEST(two_ranks_of_one_process_are_asked_for_once)
{
	json_object_set_new(json_array_get(fx_ranks(), 1), "pid", json_integer(4000));
	fx_build();
	fx_type_and_see("  T");
	ck_assert(fx_shows("Trace the 2 tagged for 10 s into trace-"));
	fx_press('y');
	ck_assert_int_eq(fx_due_pid(0), 4000);
	ck_assert_ptr_null(fx_due(1));
}

/* ---- folding ------------------------------------------------------------------- */

static void fx_grow(void)
{
	fx_build();
	fx_press(KEYS_TREE);
	fx_show(120, 40);
}

TEST(a_folded_branch_hides_what_is_in_it_and_tells_how_much)
{
	fx_grow();
	fx_press('j');
	fx_show(120, 40);
	fx_press('-');
	fx_show(120, 40);
	ck_assert_int_eq(fx.place.count, 2);
	ck_assert(fx_shows(">  + größe (8)"));
	ck_assert(!fx_shows("rank 7"));
	fx_press('+');
	fx_show(120, 40);
	ck_assert_int_eq(fx.place.count, 2 + FX_RANKS);
	ck_assert(fx_shows(">  - größe "));
	fx_press('k');
	fx_show(120, 40);
	fx_press('-');
	fx_show(120, 40);
	ck_assert_int_eq(fx.place.count, 1);
	ck_assert(fx_shows(">+ job - (1)"));
}

TEST(folding_at_a_rank_folds_its_communicator_and_goes_there)
{
	fx_grow();
	for (int i = 0; i < 5; i++)
		fx_press('j');
	fx_show(120, 40);
	fx_press('+');		/* means nothing at a rank */
	fx_show(120, 40);
	ck_assert_int_eq(fx_step()->cursor, 5);
	fx_press('-');
	fx_show(120, 40);
	ck_assert_int_eq(fx_step()->cursor, 1);
	ck_assert_int_eq(fx.place.count, 2);
}

TEST(a_star_folds_all_communicators_and_opens_everything)
{
	fx_grow();
	fx_press('*');
	fx_show(120, 40);
	ck_assert_int_eq(fx.place.count, 2);
	ck_assert(fx_shows("- job -"));
	fx_press('*');
	fx_show(120, 40);
	ck_assert_int_eq(fx.place.count, 2 + FX_RANKS);
}

TEST(outside_the_tree_nothing_is_folded)
{
	fx_build();
	fx_press('-');
	fx_press('*');
	fx_press(KEYS_TREE);
	fx_show(120, 40);
	ck_assert_int_eq(fx.place.count, 2 + FX_RANKS);
}

/* ---- what the daemon is asked to do ---------------------------------------------- */

TEST(a_trace_is_of_the_row_for_ten_seconds_and_asks)
{
	fx_build();
	fx_press('T');
	fx_show(120, 40);
	ck_assert(fx_shows("Trace process 4000 for 10 s into trace-2"));
	ck_assert(fx_shows("Z.json.gz? (y/n)"));
	fx_press('n');
	ck_assert_ptr_null(fx.place.wish.due);
	fx_press('T');
	fx_press('y');
	ck_assert_int_eq(fx_due_pid(0), 4000);
	ck_assert_str_eq(fx_due_text(0, "level"), "-");
	ck_assert_int_eq(strncmp(fx.place.wish.file, "trace-2", 7), 0);
}

TEST(a_level_after_a_trace_that_was_refused_is_no_trace)
{
	fx_build();
	fx_press('T');
	fx_press('n');
	fx_type_and_see("L");
	fx_press(KEYS_ENTER);
	fx_press(KEYS_ENTER);
	fx_press('y');
	ck_assert_ptr_nonnull(fx.place.wish.due);
	ck_assert_str_eq(fx.place.wish.file, "");
}

TEST(one_trace_at_a_time)
{
	fx_build();
	fx.place.capture = (struct capture){ .pid = 1, .now_ns = 4 * FX_SECOND,
					     .whom = "process 4000" };
	fx_show(120, 40);
	ck_assert(fx_shows("tracing process 4000: 4 of 10 s"));
	fx_type_and_see("T");
	ck_assert(fx_shows("one at a time"));
	ck_assert(!fx_shows("(y/n)"));
}

/* What a process of its own says is told where a key can take it away again. */
TEST(what_came_of_a_trace_waits_until_no_question_is_in_its_place)
{
	fx_build();
	fx_press('d');
	snprintf(fx.place.wish.told, sizeof(fx.place.wish.told), "written: trace.json.gz, 1KiB");
	fx_press('5');
	fx_press(KEYS_ESCAPE);
	fx_show(120, 40);
	ck_assert(fx_shows("written: trace.json.gz, 1KiB"));
	fx_press('j');
	fx_show(120, 40);
	ck_assert(!fx_shows("written"));
}

TEST(on_an_empty_node_a_trace_is_of_the_node)
{
	json_array_clear(fx_ranks());
	fx_build();
	fx_press('T');
	fx_press('y');
	ck_assert_uint_eq(json_object_size(fx_due(0)), 0);
	ck_assert_str_ne(fx.place.wish.file, "");
}

TEST(readonly_nothing_is_asked_of_the_daemon)
{
	fx_build();
	fx.place.readonly = true;
	fx_type("xTy");
	ck_assert(!fx.place.wish.snapshot);
	ck_assert_ptr_null(fx.place.wish.due);
	fx_press(KEYS_MENU);
	fx_show(120, 60);
	ck_assert(fx_shows("pause"));
	ck_assert(!fx_shows("record every event"));
	ck_assert(!fx_shows("change the level"));
}

/* ---- the menu ------------------------------------------------------------------ */

/* Down to the item that reads so, then Enter. */
static void fx_choose(const char *text)
{
	for (int i = 0; i < 40; i++) {
		fx_show(120, 60);
		if (fx_shows(text) && strchr(fx.frame.lines[fx_find_line(text)].text, '>'))
			break;
		fx_press('j');
	}
	ck_assert(fx_shows(text));
	fx_press(KEYS_ENTER);
	fx_show(120, 60);
}

TEST(the_menu_does_what_the_keys_do)
{
	fx_build();
	fx_press('S');
	fx_choose(">Z p     pause");
	ck_assert(fx_shows("[paused]"));
	fx_press(KEYS_MENU);
	fx_choose(">x ");
	ck_assert(fx.place.wish.snapshot);
	fx_press(KEYS_MENU);
	fx_choose(">u ");
	ck_assert(fx_shows("Only this user"));
	fx_press(KEYS_ESCAPE);
	fx.place.readonly = true;	/* fewer items: the last is another */
	fx_press(KEYS_MENU);
	fx_press(KEYS_END);
	fx_press(KEYS_ENTER);
	fx_show(120, 40);
	ck_assert(fx_shows("Seconds between two looks"));
}

/* ---- the process that is looked at ------------------------------------------------ */

static json_t *fx_process(const char *sampling)
{
	json_t *process = fx_make_process(1);

	json_object_set_new(process, "sampling", json_string(sampling));
	return process;
}

TEST(who_is_looked_at_is_who_was_gone_into)
{
	fx_build();
	ck_assert_int_eq(place_process(&fx.place, &fx.view), 0);
	fx_press('j');
	fx_show(120, 40);
	fx_press(KEYS_ENTER);		/* the kinds of operations of rank 1 */
	ck_assert_int_eq(place_process(&fx.place, &fx.view), 4001);
	fx_press(KEYS_ESCAPE);
	ck_assert_int_eq(place_process(&fx.place, &fx.view), 0);
	fx_press(KEYS_ESCAPE);		/* communicators */
	ck_assert_int_eq(place_process(&fx.place, &fx.view), 0);
}

TEST(a_yes_is_asked_for_once_and_renewed_while_one_looks)
{
	struct focus focus = { .said = FOCUS_UNASKED };
	json_t *process = fx_process("budget"), *body;

	ck_assert(!focus_look(&focus, 0, NULL));
	ck_assert(focus_look(&focus, 4001, process));
	ck_assert_ptr_null(focus_due(&focus, FX_NOW));
	focus_answer(&focus, true);
	body = focus_due(&focus, FX_NOW);
	ck_assert_int_eq(json_integer_value(json_object_get(body, "pid")), 4001);
	ck_assert_str_eq(json_string_value(json_object_get(body, "sample")), "all");
	json_decref(body);
	json_object_set_new(process, "sampling", json_string("all"));
	ck_assert(!focus_look(&focus, 4001, process));
	ck_assert_ptr_null(focus_due(&focus, FX_NOW + 19 * FX_SECOND));
	body = focus_due(&focus, FX_NOW + 20 * FX_SECOND);
	ck_assert_ptr_nonnull(body);
	json_decref(body);
	ck_assert(!focus_look(&focus, 0, NULL));	/* looks away */
	ck_assert_ptr_null(focus_due(&focus, FX_NOW + 60 * FX_SECOND));
	json_object_set_new(process, "sampling", json_string("budget"));
	ck_assert(!focus_look(&focus, 4002, process));	/* not asked again */
	body = focus_due(&focus, FX_NOW + 61 * FX_SECOND);
	ck_assert_int_eq(json_integer_value(json_object_get(body, "pid")), 4002);
	json_decref(body);
	json_decref(process);
}

TEST(a_no_is_kept)
{
	struct focus focus = { .said = FOCUS_UNASKED };
	json_t *process = fx_process("budget");

	ck_assert(focus_look(&focus, 4001, process));
	focus_answer(&focus, false);
	ck_assert(!focus_look(&focus, 4001, process));
	ck_assert(!focus_look(&focus, 4002, process));
	ck_assert_ptr_null(focus_due(&focus, FX_NOW));
	json_decref(process);
}

TEST(who_cannot_be_timed_is_not_asked_about)
{
	struct focus focus = { .said = FOCUS_UNASKED };
	json_t *all = fx_process("all"), *dead = fx_process("budget");

	json_object_set_new(dead, "state", json_string("died"));
	ck_assert(!focus_look(&focus, 4001, all));
	ck_assert(!focus_look(&focus, 4001, dead));
	ck_assert(!focus_look(&focus, 4001, NULL));
	json_decref(all);
	json_decref(dead);
}

TEST(who_died_is_no_longer_asked_for)
{
	struct focus focus = { .said = FOCUS_YES };
	json_t *process = fx_process("budget");

	ck_assert(!focus_look(&focus, 4001, process));
	ck_assert(focus.timed);
	json_object_set_new(process, "state", json_string("died"));
	ck_assert(!focus_look(&focus, 4001, process));
	ck_assert_ptr_null(focus_due(&focus, FX_NOW));
	json_decref(process);
}

int main(void)
{
	return fx_run(fx_setup, fx_teardown);
}
