/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of keys: what each does, its line in the help, and its place in the menu and the
 * footer.
 */
#include "cli/top/keys.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "cli/top/ask.h"
#include "cli/top/marks.h"
#include "util/list.h"
#include "util/text.h"

#define HELP_KEYS 16	/* columns that name the keys */

static int keys_clamp(int value, int least, int most)
{
	value = value < most ? value : most;
	return value > least ? value : least;
}

/* ---- moving -------------------------------------------------------------------- */

static void act_move(struct place *place, const struct view *view, int step)
{
	place_move(place, step);
}

static void act_page(struct place *place, const struct view *view, int pages)
{
	act_move(place, view, pages * (place->page > 1 ? place->page - 1 : 1));
}

static void act_turn(struct place *place, const struct view *view, int step)
{
	place_screen(place, place->screen + step);
}

static void act_screen(struct place *place, const struct view *view, int screen)
{
	place_screen(place, screen);
}

static void act_enter(struct place *place, const struct view *view, int unused)
{
	place_enter(place);
}

static void act_leave(struct place *place, const struct view *view, int unused)
{
	place_leave(place);
}

/* ---- order --------------------------------------------------------------------- */

/* The next column that the table shows; past the last comes worst first. */
static void act_sort(struct place *place, const struct view *view, int step)
{
	enum view_table table = place_table(place);
	const struct view_table_type *type = &view_tables[table];
	int count = (int)*type->count, *sort = &place->sort[table];

	do {
		*sort += step;
		if (*sort >= count)
			*sort = -1;
		if (*sort < -1)
			*sort = count - 1;
	} while (*sort >= 0 && !type->columns[*sort].header);
}

static void act_unsort(struct place *place, const struct view *view, int unused)
{
	enum view_table table = place_table(place);

	place->sort[table] = -1;
	place->ascending[table] = false;
}

static void act_invert(struct place *place, const struct view *view, int unused)
{
	bool *ascending = &place->ascending[place_table(place)];

	*ascending = !*ascending;
}

/* ---- marks --------------------------------------------------------------------- */

static void act_tag(struct place *place, const struct view *view, int unused)
{
	marks_tag(place);
}

static void act_untag(struct place *place, const struct view *view, int unused)
{
	marks_untag_all(place);
}

static void act_fold(struct place *place, const struct view *view, int how)
{
	marks_fold(place, view, (enum marks_fold)how);
}

static void act_snapshot(struct place *place, const struct view *view, int unused)
{
	place->wish.snapshot = true;
}

/* ---- flags --------------------------------------------------------------------- */

#define FLAG(member) ((int)offsetof(struct place, member))

static void act_toggle(struct place *place, const struct view *view, int offset)
{
	bool *flag = (bool *)((char *)place + offset);

	*flag = !*flag;
	place->help_line = 0;
}

static void act_help(struct place *place, const struct view *view, int unused)
{
	place->help = true;
	place->help_keys = false;
	place->help_line = 0;
}

static void act_menu(struct place *place, const struct view *view, int unused);

/* ---- the table ----------------------------------------------------------------- */

enum { IN_MENU = 1, CHANGES = 2 };	/* CHANGES: what jobs do, or the daemon's files */

static const struct key_row {
	const char *names;	/* the help's and ncclinsp(1)'s; NULL: those of the row before */
	int keys[6];
	void (*act)(struct place *place, const struct view *view, int argument);
	int argument;
	const char *help;
	const char *footer;	/* NULL: it is not in the footer */
	unsigned flags;
} rows[] = {
	{ "F1 h ?", { KEYS_HELP, 'h', '?' }, act_help, 0,
	  "what this screen shows; again: this help", "F1 Help", 0 },
	{ "Tab Right", { '\t', KEYS_NEXT }, act_turn, 1, "the next screen", "Tab Screen", 0 },
	{ "Shift-Tab Left", { KEYS_PREVIOUS }, act_turn, -1, "the previous screen", NULL, 0 },
	{ "1", { '1' }, act_screen, VIEW_RANKS, "ranks", NULL, 0 },
	{ "2", { '2' }, act_screen, VIEW_OPS, "operations", NULL, 0 },
	{ "3", { '3' }, act_screen, VIEW_PEERS, "peers: network links", NULL, 0 },
	{ "4", { '4' }, act_screen, VIEW_INFLIGHT, "operations in flight", NULL, 0 },
	{ "5", { '5' }, act_screen, VIEW_FINDINGS, "findings, also past ones", NULL, 0 },
	{ "6", { '6' }, act_screen, VIEW_JOBS, "jobs; Enter leads down to their ranks", NULL, 0 },
	{ "Enter", { KEYS_ENTER, '\n' }, act_enter, 0,
	  "open the row: job, communicator, rank, operations, one operation", "Enter Open", 0 },
	{ "Esc", { KEYS_ESCAPE }, act_leave, 0,
	  "back; from the ranks up to communicators and jobs", "Esc Back", 0 },
	{ "Up k", { KEYS_UP, 'k' }, act_move, -1, "up", NULL, 0 },
	{ "Down j", { KEYS_DOWN, 'j' }, act_move, 1, "down", NULL, 0 },
	{ "PgUp Ctrl-U", { KEYS_PAGE_UP, 'U' - '@' }, act_page, -1, "a page up", NULL, 0 },
	{ "PgDn Ctrl-D", { KEYS_PAGE_DOWN, 'D' - '@' }, act_page, 1, "a page down", NULL, 0 },
	{ "Home", { KEYS_HOME }, act_move, -PLACE_FAR, "the first row", NULL, 0 },
	{ "End G", { KEYS_END, 'G' }, act_move, PLACE_FAR, "the last row", NULL, 0 },
	{ "F2 S", { KEYS_MENU, 'S' }, act_menu, 0,
	  "a menu of all actions, where a terminal keeps keys for itself", "F2 Menu", 0 },
	{ "F3 /", { KEYS_SEARCH, '/' }, ask_text, ASK_SEARCH, "search", "F3 Find", IN_MENU },
	{ "n", { 'n' }, ask_search_next, 1, "the next match", NULL, IN_MENU },
	{ "N", { 'N' }, ask_search_next, -1, "the previous match", NULL, IN_MENU },
	{ "F4 \\", { KEYS_FILTER, '\\' }, ask_text, ASK_FILTER,
	  "only rows that show a|b, or with FIELD OP VALUE, as wait > 5", "F4 Filter", IN_MENU },
	{ "F5 t", { KEYS_TREE, 't' }, act_toggle, FLAG(tree),
	  "ranks as a tree of jobs and communicators", "F5 Tree", IN_MENU },
	{ "-", { '-' }, act_fold, MARKS_SHUT, "in the tree: fold the branch", NULL, IN_MENU },
	{ "+", { '+' }, act_fold, MARKS_OPEN, "unfold it", NULL, IN_MENU },
	{ "*", { '*' }, act_fold, MARKS_ALL, "fold all communicators, or unfold all", NULL,
	  IN_MENU },
	{ "F6", { KEYS_SORT }, ask_sort, 0, "choose the column to sort by", "F6 Sort", IN_MENU },
	{ "<", { '<' }, act_sort, -1, "sort by the previous column", NULL, IN_MENU },
	{ "> s", { '>', 's' }, act_sort, 1, "sort by the next column", NULL, IN_MENU },
	{ "I i", { 'I', 'i' }, act_invert, 0, "reverse the order", NULL, IN_MENU },
	{ "0", { '0' }, act_unsort, 0, "worst first again", NULL, IN_MENU },
	{ "F", { 'F' }, act_toggle, FLAG(follow),
	  "keep the cursor on this row when the order changes", NULL, IN_MENU },
	{ "Space", { ' ' }, act_tag, 0, "tag the row for L and T, or remove its tag", NULL,
	  IN_MENU },
	{ "U", { 'U' }, act_untag, 0, "remove all tags", NULL, IN_MENU },
	{ "u", { 'u' }, ask_pick, PLACE_USER, "only one user", NULL, IN_MENU },
	{ "g", { 'g' }, ask_pick, PLACE_GPU, "only one GPU", NULL, IN_MENU },
	{ "c", { 'c' }, ask_pick, PLACE_COMM, "only one communicator", NULL, IN_MENU },
	{ "Z p", { 'Z', 'p' }, act_toggle, FLAG(paused), "pause", NULL, IN_MENU },
	{ "m", { 'm' }, act_toggle, FLAG(mouse),
	  "the mouse on or off: on, clicks choose, open and sort", NULL, IN_MENU },
	{ "d", { 'd' }, ask_text, ASK_DELAY, "seconds between two looks", NULL, IN_MENU },
	{ "L", { 'L' }, ask_level, 0,
	  "change the level of a process, job, communicator or the node", NULL,
	  IN_MENU | CHANGES },
	{ "T", { 'T' }, ask_trace, 0,
	  "record every event of it for 10 s, into a file for Perfetto's UI", NULL,
	  IN_MENU | CHANGES },
	{ "x", { 'x' }, act_snapshot, 0, "make the daemon write everything that it knows to a file",
	  NULL, IN_MENU | CHANGES },
	{ "Ctrl-L", { 'L' - '@' }, NULL, 0, "redraw the screen", NULL, 0 },
	{ "F10 q", { KEYS_QUIT, 'q' }, act_toggle, FLAG(quit), "quit", "F10 Quit", 0 },
};

static const struct key_row *key_row_of(int key)
{
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		for (size_t k = 0; k < ARRAY_LEN(rows[i].keys) && rows[i].keys[k]; k++)
			if (rows[i].keys[k] == key)
				return &rows[i];
	return NULL;
}

static bool key_is_allowed(const struct place *place, const struct key_row *row)
{
	return !(row->flags & CHANGES && place->readonly);
}

/* Keys that move and turn do not leave the help; h goes on to the keys, then back. */
static void help_press(struct place *place, const struct view *view, int key)
{
	const struct key_row *row = key_row_of(key);

	if (row && row->act == act_move)
		place->help_line = keys_clamp(place->help_line + row->argument, 0, PLACE_FAR);
	else if (row && row->act == act_page)
		place->help_line = keys_clamp(place->help_line + row->argument * place->page, 0,
					      PLACE_FAR);
	else if (row && (row->act == act_turn || (row->act == act_help && !place->help_keys)))
		act_toggle(place, view, FLAG(help_keys));
	else
		place->help = false;
}

/* ---- the menu ------------------------------------------------------------------ */

static bool menu_has(const struct place *place, const struct key_row *row)
{
	return row->flags & IN_MENU && key_is_allowed(place, row);
}

static void act_menu(struct place *place, const struct view *view, int unused)
{
	json_t *items = json_array();

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		char text[PLACE_TEXT];

		if (!menu_has(place, &rows[i]))
			continue;
		snprintf(text, sizeof(text), "%-8s%s", rows[i].names, rows[i].help);
		json_array_append_new(items, json_string(text));
	}
	ask_action(place, items);
}

static void menu_press(struct place *place, const struct view *view, int key)
{
	int chosen = ask_press_menu(place, key);

	for (size_t i = 0; i < ARRAY_LEN(rows) && chosen >= 0; i++)
		if (menu_has(place, &rows[i]) && !chosen--)
			rows[i].act(place, view, rows[i].argument);
}

/* ---- the mouse ----------------------------------------------------------------- */

#define WHEEL_ROWS 3

/* A header sorts by its column, and then the other way round. */
static void click_header(struct place *place, int x)
{
	enum view_table table = place_table(place);
	int column = report_column_at(&place->shown, x - marks_width(place));

	if (column >= 0 && column == place->sort[table])
		place->ascending[table] = !place->ascending[table];
	else if (column >= 0)
		place->sort[table] = column;
}

/* A row gets the cursor, and opens where it has it. */
static void click_press(struct place *place, int x, int y)
{
	struct place_step *step = place_step(place);
	int row = y - place->header_line - 1;

	if (place->header_line < 0 || row < -1 || row >= place->page ||
	    step->scroll + row >= place->count)
		return;
	if (row < 0)
		click_header(place, x);
	else if (step->scroll + row == step->cursor)
		place_enter(place);
	else
		place_move(place, step->scroll + row - step->cursor);
}

/* A click closes the help, and leaves menus and prompts alone; the wheel is keys. */
static void mouse_press(struct place *place, const struct view *view, int key)
{
	int arrow = key == KEYS_WHEEL_UP ? KEYS_UP : KEYS_DOWN;

	if (key >= KEYS_CLICK && place->help)
		place->help = false;
	else if (key >= KEYS_CLICK && !place->menu.title && !place->prompt.label)
		click_press(place, key & 0xfff, key >> 12 & 0xfff);
	for (int i = 0; i < WHEEL_ROWS && key < KEYS_CLICK && !place->prompt.label; i++)
		keys_press(place, view, arrow);
}

void keys_press(struct place *place, const struct view *view, int key)
{
	const struct key_row *row = key_row_of(key);

	if (!key || key == KEYS_NONE)
		return;
	place->settled = true;
	if (key >= KEYS_WHEEL_UP) {
		mouse_press(place, view, key);
		return;
	}
	if (place->prompt.label) {
		ask_press_prompt(place, view, key);
		return;
	}
	place->wish.told[0] = '\0';	/* it has been seen: no prompt was in its place */
	if (place->menu.title)
		menu_press(place, view, key);
	else if (place->help)
		help_press(place, view, key);
	else if (row && row->act && key_is_allowed(place, row))
		row->act(place, view, row->argument);
}

/* ---- help ---------------------------------------------------------------------- */

static void help_put_key(struct line *line, const struct place *place, const struct key_row *row)
{
	line_cell(line, LINE_BOLD, row->names, HELP_KEYS, false);
	if (key_is_allowed(place, row))
		line_put(line, LINE_PLAIN, row->help);
	else
		line_put(line, LINE_DIM, "(--readonly: nothing can be changed)");
}

void keys_put_help(struct frame *frame, const struct place *place)
{
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		help_put_key(frame_add(frame), place, &rows[i]);
}

void keys_put_footer(struct frame *frame, const struct place *place)
{
	struct line *line = frame_add(frame);

	if (place->prompt.label) {
		prompt_put(line, &place->prompt);
		return;
	}
	if (place->wish.told[0]) {
		line_put(line, place->wish.told[0] == '!' ? LINE_BAD : LINE_GOOD,
			 place->wish.told);
		return;
	}
	capture_put(&place->capture, line);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		const char *space;

		if (!rows[i].footer)
			continue;
		space = strchr(rows[i].footer, ' ');
		if (line->columns + text_width(rows[i].footer) - 1 > line->limit)
			break;
		line_printf(line, LINE_BOLD, "%.*s", (int)(space - rows[i].footer),
			    rows[i].footer);
		line_printf(line, LINE_BAR, "%s", space + 1);
		line_put(line, LINE_PLAIN, " ");
	}
}
