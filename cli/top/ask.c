/* SPDX-License-Identifier: Apache-2.0 */
/* The dialogs of the live view: menus and prompts are opened here, and their answers acted on. */
#include "cli/top/ask.h"

#include <string.h>

#include "cli/top/keys.h"
#include "cli/top/rows.h"
#include "util/text.h"

#define LEAST_DELAY_NS UINT64_C(100000000)

/* ---- menus --------------------------------------------------------------------- */

static const char worst_first[] = "worst first";
static const char all[] = "all";

enum menu_for {
	MENU_USER = PLACE_USER, MENU_GPU = PLACE_GPU, MENU_COMM = PLACE_COMM, MENU_SORT,
	MENU_TARGET, MENU_LEVEL, MENU_ACTION,
};

void ask_sort(struct place *place, const struct view *view, int unused)
{
	enum view_table table = place_table(place);
	const struct view_table_type *type = &view_tables[table];
	json_t *items = json_array();
	int sort = place->sort[table];

	json_array_append_new(items, json_string(worst_first));
	for (size_t i = 0; i < *type->count; i++)
		if (type->columns[i].header)
			json_array_append_new(items, json_string(type->columns[i].header));
	menu_open(&place->menu, "Sort by", MENU_SORT, items,
		  sort < 0 ? worst_first : type->columns[sort].header);
}

void ask_pick(struct place *place, const struct view *view, int pick)
{
	static const char *const titles[] = {
		[PLACE_USER] = "Only this user", [PLACE_GPU] = "Only this GPU",
		[PLACE_COMM] = "Only this communicator",
	};
	json_t *items = rows_values(view, (enum place_pick)pick);

	json_array_insert_new(items, 0, json_string(all));
	menu_open(&place->menu, titles[pick], pick, items,
		  place->pick[pick][0] ? place->pick[pick] : all);
}

void ask_level(struct place *place, const struct view *view, int unused)
{
	menu_open(&place->menu, "Change the level of", MENU_TARGET,
		  wish_targets(&place->wish, place->under, place->tags), "");
}

void ask_trace(struct place *place, const struct view *view, int unused)
{
	char file[CAPTURE_PATH];

	if (place->capture.pid) {
		snprintf(place->wish.told, sizeof(place->wish.told),
			 "! a trace is being taken: one at a time");
		return;
	}
	capture_name(file);
	wish_trace(&place->wish, place->under, place->tags, file);
	prompt_open(&place->prompt, place->wish.question, ASK_CONFIRM, "");
}

void ask_action(struct place *place, json_t *items)
{
	menu_open(&place->menu, "What to do", MENU_ACTION, items, "");
}

static void ask_choose_sort(struct place *place, const char *choice)
{
	enum view_table table = place_table(place);
	const struct view_table_type *type = &view_tables[table];

	place->sort[table] = -1;
	for (size_t i = 0; i < *type->count; i++)
		if (type->columns[i].header && !strcmp(type->columns[i].header, choice))
			place->sort[table] = (int)i;
}

static int ask_choose(struct place *place)
{
	const char *choice = menu_choice(&place->menu);
	int index = place->menu.cursor, what = place->menu.what;

	if (choice && what == MENU_TARGET)
		wish_take_target(&place->wish, index, choice);
	else if (choice && what == MENU_LEVEL)
		wish_take_level(&place->wish, index);
	else if (choice && what == MENU_SORT)
		ask_choose_sort(place, choice);
	else if (choice && what < PLACE_PICKS)
		snprintf(place->pick[what], PLACE_TEXT, "%s", index ? choice : "");
	menu_close(&place->menu);
	if (what == MENU_TARGET)
		menu_open(&place->menu, "Level", MENU_LEVEL, wish_levels(), "net");
	else if (what == MENU_LEVEL)
		prompt_open(&place->prompt, place->wish.question, ASK_CONFIRM, "");
	return choice && what == MENU_ACTION ? index : -1;
}

int ask_press_menu(struct place *place, int key)
{
	struct menu *menu = &place->menu;

	if (key == KEYS_ENTER)
		return ask_choose(place);
	if (key == KEYS_ESCAPE || key == 'q')
		menu_close(menu);
	else if (key == KEYS_UP || key == 'k')
		menu_move(menu, -1);
	else if (key == KEYS_DOWN || key == 'j')
		menu_move(menu, 1);
	else if (key == KEYS_PAGE_UP || key == KEYS_PAGE_DOWN)
		menu_move(menu, key == KEYS_PAGE_UP ? -place->page : place->page);
	else if (key == KEYS_HOME || key == KEYS_END || key == 'G')
		menu_move(menu, key == KEYS_HOME ? -PLACE_FAR : PLACE_FAR);
	return -1;
}

/* ---- prompts ------------------------------------------------------------------- */

void ask_text(struct place *place, const struct view *view, int what)
{
	char delay[TEXT_MAX];

	text_duration(delay, sizeof(delay), place->delay_ns);
	if (what == ASK_FILTER)
		prompt_open(&place->prompt, "Filter (a|b, FIELD OP VALUE)", what, place->filter);
	else if (what == ASK_SEARCH)
		prompt_open(&place->prompt, "Search (a|b)", what, place->search);
	else
		prompt_open(&place->prompt, "Seconds between two looks", what, delay);
	if (what == ASK_FILTER)
		place->prompt.enter = " (Enter: all rows)";
}

/* Goes from the row under the cursor, included when `step` is 0, to the next that shows it. */
static void ask_search(struct place *place, const struct view *view, int step)
{
	struct place_step *at = place_step(place);
	enum view_table table = place_table(place);
	json_auto_t *rows = rows_select(view, place, table, at->scope);
	int n = (int)json_array_size(rows);

	for (int i = 0; i < n && place->search[0]; i++) {
		int row = ((at->cursor + step + (step < 0 ? -i : i)) % n + n) % n;

		if (!rows_show(table, json_array_get(rows, (size_t)row), view->now_ns,
			       place->search))
			continue;
		place_move(place, row - at->cursor);
		break;
	}
}

void ask_search_next(struct place *place, const struct view *view, int step)
{
	ask_search(place, view, step);
}

static void ask_take_delay(struct place *place)
{
	uint64_t delay_ns;

	if (!place->prompt.text[0]) {
		prompt_close(&place->prompt);
		return;
	}
	if (text_parse_duration(place->prompt.text, &delay_ns) || delay_ns < LEAST_DELAY_NS) {
		snprintf(place->prompt.error, sizeof(place->prompt.error),
			 "seconds, at least 0.1, as 0.5 or 10s");
		return;
	}
	place->delay_ns = delay_ns;
	prompt_close(&place->prompt);
}

/* The typed text acts at once, so that one sees where it leads.  Without one, a search stays. */
static void ask_typed(struct place *place, const struct view *view)
{
	struct prompt *prompt = &place->prompt;

	if (prompt->what == ASK_FILTER) {
		snprintf(place->filter, sizeof(place->filter), "%s", prompt->text);
	} else if (prompt->what == ASK_SEARCH) {
		snprintf(place->search, sizeof(place->search), "%s",
			 prompt->text[0] ? prompt->text : prompt->before);
		if (prompt->text[0])
			ask_search(place, view, 0);
	}
}

static void ask_cancel(struct place *place)
{
	if (place->prompt.what == ASK_FILTER)
		snprintf(place->filter, sizeof(place->filter), "%s", place->prompt.before);
	prompt_close(&place->prompt);
}

/* Only a clear yes is one. */
static void ask_take_answer(struct place *place, bool yes)
{
	if (place->prompt.what == ASK_FOCUS)
		focus_answer(&place->focus, yes);
	else if (yes)
		wish_confirm(&place->wish);
	prompt_close(&place->prompt);
}

void ask_press_prompt(struct place *place, const struct view *view, int key)
{
	if (place->prompt.what == ASK_CONFIRM || place->prompt.what == ASK_FOCUS) {
		ask_take_answer(place, key == 'y' || key == 'Y');
	} else if (key == KEYS_ESCAPE) {
		ask_cancel(place);
	} else if (key == KEYS_ENTER && place->prompt.what == ASK_DELAY) {
		ask_take_delay(place);
	} else if (key == KEYS_ENTER) {
		ask_typed(place, view);	/* nothing, where nothing was: all rows again */
		prompt_close(&place->prompt);
	} else if (key == KEYS_SEARCH && place->prompt.what == ASK_SEARCH) {
		ask_search(place, view, 1);
	} else if (key == KEYS_ERASE) {
		prompt_erase(&place->prompt);
		ask_typed(place, view);
	} else if (key == 'W' - '@') {
		prompt_erase_word(&place->prompt);
		ask_typed(place, view);
	} else if (key == 'U' - '@') {
		prompt_erase_all(&place->prompt);
		ask_typed(place, view);
	} else if (key < 0x100) {
		prompt_add(&place->prompt, key);
		ask_typed(place, view);
	}
}
