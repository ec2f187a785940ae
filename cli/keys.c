/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/keys.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "cli/rows.h"
#include "util/text.h"

#define ARRAY_LEN(a) (sizeof(a) / sizeof((a)[0]))

#define LEAST_DELAY_NS UINT64_C(100000000)
#define FAR	       (1 << 20)	/* further than any table reaches */
#define HELP_KEYS      24		/* columns that name the keys */

static int clamp(int value, int least, int most)
{
	value = value < most ? value : most;
	return value > least ? value : least;
}

/* ---- moving -------------------------------------------------------------------- */

static void act_move(struct place *place, const struct view *view, int step)
{
	struct place_step *at = place_step(place);

	(void)view;
	at->cursor = clamp(at->cursor + step, 0, place->count > 0 ? place->count - 1 : 0);
	at->key[0] = '\0';	/* the next frame finds out whose row it is */
}

static void act_page(struct place *place, const struct view *view, int pages)
{
	act_move(place, view, pages * (place->page > 1 ? place->page - 1 : 1));
}

static void act_turn(struct place *place, const struct view *view, int step)
{
	(void)view;
	place_screen(place, place->screen + step);
}

static void act_screen(struct place *place, const struct view *view, int screen)
{
	(void)view;
	place_screen(place, screen);
}

static void act_enter(struct place *place, const struct view *view, int unused)
{
	(void)view;
	(void)unused;
	place_enter(place);
}

static void act_leave(struct place *place, const struct view *view, int unused)
{
	(void)view;
	(void)unused;
	place_leave(place);
}

/* ---- order --------------------------------------------------------------------- */

/* The next column that the table shows; past the last comes worst first. */
static void act_sort(struct place *place, const struct view *view, int step)
{
	enum view_table table = place_table(place);
	const struct view_table_type *type = &view_tables[table];
	int count = (int)*type->count, *sort = &place->sort[table];

	(void)view;
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

	(void)view;
	(void)unused;
	place->sort[table] = -1;
	place->ascending[table] = false;
}

static void act_invert(struct place *place, const struct view *view, int unused)
{
	bool *ascending = &place->ascending[place_table(place)];

	(void)view;
	(void)unused;
	*ascending = !*ascending;
}

enum prompt_for { PROMPT_FILTER, PROMPT_SEARCH, PROMPT_DELAY, PROMPT_CONFIRM };

/* ---- menus --------------------------------------------------------------------- */

static const char worst_first[] = "worst first";
static const char all[] = "all";

enum menu_for {
	MENU_USER = PLACE_USER, MENU_GPU = PLACE_GPU, MENU_COMM = PLACE_COMM, MENU_SORT,
	MENU_TARGET, MENU_LEVEL,
};

static void act_sort_menu(struct place *place, const struct view *view, int unused)
{
	enum view_table table = place_table(place);
	const struct view_table_type *type = &view_tables[table];
	json_t *items = json_array();
	int sort = place->sort[table];

	(void)view;
	(void)unused;
	json_array_append_new(items, json_string(worst_first));
	for (size_t i = 0; i < *type->count; i++)
		if (type->columns[i].header)
			json_array_append_new(items, json_string(type->columns[i].header));
	menu_open(&place->menu, "Sort by", MENU_SORT, items,
		  sort < 0 ? worst_first : type->columns[sort].header);
}

static void act_pick(struct place *place, const struct view *view, int pick)
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

static void act_level(struct place *place, const struct view *view, int unused)
{
	(void)view;
	(void)unused;
	menu_open(&place->menu, "Change the level of", MENU_TARGET,
		  wish_targets(&place->wish, place->under), "");
}

static void choose_sort(struct place *place, const char *choice)
{
	enum view_table table = place_table(place);
	const struct view_table_type *type = &view_tables[table];

	place->sort[table] = -1;
	for (size_t i = 0; i < *type->count; i++)
		if (type->columns[i].header && !strcmp(type->columns[i].header, choice))
			place->sort[table] = (int)i;
}

static void choose(struct place *place)
{
	const char *choice = menu_choice(&place->menu);
	int index = place->menu.cursor, what = place->menu.what;

	if (choice && what == MENU_TARGET)
		wish_take_target(&place->wish, index, choice);
	else if (choice && what == MENU_LEVEL)
		wish_take_level(&place->wish, index);
	else if (choice && what == MENU_SORT)
		choose_sort(place, choice);
	else if (choice)
		snprintf(place->pick[what], PLACE_TEXT, "%s", index ? choice : "");
	menu_close(&place->menu);
	if (what == MENU_TARGET)
		menu_open(&place->menu, "Level", MENU_LEVEL, wish_levels(), "net");
	else if (what == MENU_LEVEL)
		prompt_open(&place->prompt, place->wish.question, PROMPT_CONFIRM, "");
}

static void press_in_menu(struct place *place, int key)
{
	struct menu *menu = &place->menu;

	if (key == KEYS_ENTER)
		choose(place);
	else if (key == KEYS_ESCAPE || key == 'q')
		menu_close(menu);
	else if (key == KEYS_UP || key == 'k')
		menu_move(menu, -1);
	else if (key == KEYS_DOWN || key == 'j')
		menu_move(menu, 1);
	else if (key == KEYS_PAGE_UP || key == KEYS_PAGE_DOWN)
		menu_move(menu, key == KEYS_PAGE_UP ? -place->page : place->page);
	else if (key == KEYS_HOME || key == KEYS_END)
		menu_move(menu, key == KEYS_HOME ? -FAR : FAR);
}

/* ---- prompts ------------------------------------------------------------------- */

static void act_ask(struct place *place, const struct view *view, int what)
{
	char delay[TEXT_MAX];

	(void)view;
	text_duration(delay, sizeof(delay), place->delay_ns);
	if (what == PROMPT_FILTER)
		prompt_open(&place->prompt, "Filter (a|b, FIELD OP VALUE)", what, place->filter);
	else if (what == PROMPT_SEARCH)
		prompt_open(&place->prompt, "Search (a|b)", what, "");
	else
		prompt_open(&place->prompt, "Seconds between two looks", what, delay);
}

/* From the row under the cursor, itself included when `step` is 0, to the next that shows it. */
static void search(struct place *place, const struct view *view, int step)
{
	struct place_step *at = place_step(place);
	enum view_table table = place_table(place);
	json_t *rows = rows_select(view, place, table, at->scope);
	int n = (int)json_array_size(rows);

	for (int i = 0; i < n && place->search[0]; i++) {
		int row = ((at->cursor + step + (step < 0 ? -i : i)) % n + n) % n;

		if (!rows_show(table, json_array_get(rows, (size_t)row), view->now_ns,
			       place->search))
			continue;
		act_move(place, view, row - at->cursor);
		break;
	}
	json_decref(rows);
}

static void act_search_next(struct place *place, const struct view *view, int step)
{
	search(place, view, step);
}

static void take_delay(struct place *place)
{
	uint64_t delay_ns;

	if (text_parse_duration(place->prompt.text, &delay_ns) || delay_ns < LEAST_DELAY_NS) {
		snprintf(place->prompt.error, sizeof(place->prompt.error),
			 "seconds, at least 0.1, as 0.5 or 10s");
		return;
	}
	place->delay_ns = delay_ns;
	prompt_close(&place->prompt);
}

/* What is typed acts at once, so that one sees where it leads. */
static void typed(struct place *place, const struct view *view)
{
	struct prompt *prompt = &place->prompt;

	if (prompt->what == PROMPT_FILTER) {
		snprintf(place->filter, sizeof(place->filter), "%s", prompt->text);
	} else if (prompt->what == PROMPT_SEARCH) {
		snprintf(place->search, sizeof(place->search), "%s", prompt->text);
		search(place, view, 0);
	}
}

static void cancel(struct place *place)
{
	if (place->prompt.what == PROMPT_FILTER)
		snprintf(place->filter, sizeof(place->filter), "%s", place->prompt.before);
	prompt_close(&place->prompt);
}

static void press_in_prompt(struct place *place, const struct view *view, int key)
{
	if (place->prompt.what == PROMPT_CONFIRM) {
		if (key == 'y' || key == 'Y')
			wish_confirm(&place->wish);
		prompt_close(&place->prompt);
	} else if (key == KEYS_ESCAPE) {
		cancel(place);
	} else if (key == KEYS_ENTER && place->prompt.what == PROMPT_DELAY) {
		take_delay(place);
	} else if (key == KEYS_ENTER) {
		prompt_close(&place->prompt);
	} else if (key == KEYS_SEARCH && place->prompt.what == PROMPT_SEARCH) {
		search(place, view, 1);
	} else if (key == KEYS_ERASE) {
		prompt_erase(&place->prompt);
		typed(place, view);
	} else if (key < 0x100) {
		prompt_add(&place->prompt, key);
		typed(place, view);
	}
}

/* ---- flags --------------------------------------------------------------------- */

#define FLAG(member) ((int)offsetof(struct place, member))

static void act_toggle(struct place *place, const struct view *view, int offset)
{
	bool *flag = (bool *)((char *)place + offset);

	(void)view;
	*flag = !*flag;
	place->help_line = 0;
}

/* ---- the table ----------------------------------------------------------------- */

static const struct key_row {
	const char *names;	/* as the help and ncclinsp(1) have them; NULL: of the row before */
	int keys[6];
	void (*act)(struct place *place, const struct view *view, int argument);
	int argument;
	const char *help;
	const char *footer;	/* NULL: it is not in the footer */
} rows[] = {
	{ "F1 h ?", { KEYS_HELP, 'h', '?' }, act_toggle, FLAG(help), "this help", "F1 Help" },
	{ "Tab Right", { '\t', KEYS_NEXT }, act_turn, 1, "the next screen", "Tab Screen" },
	{ "Shift-Tab Left", { KEYS_PREVIOUS }, act_turn, -1, "the previous screen", NULL },
	{ "1", { '1' }, act_screen, VIEW_RANKS, "ranks", NULL },
	{ "2", { '2' }, act_screen, VIEW_OPS, "operations", NULL },
	{ "3", { '3' }, act_screen, VIEW_PEERS, "peers: network links", NULL },
	{ "4", { '4' }, act_screen, VIEW_INFLIGHT, "what is in flight", NULL },
	{ "5", { '5' }, act_screen, VIEW_FINDINGS, "findings, also those that are over", NULL },
	{ "Enter", { KEYS_ENTER, '\n' }, act_enter, 0,
	  "into the row: job, communicator, rank, kind of operation, operation", "Enter Open" },
	{ "Esc", { KEYS_ESCAPE }, act_leave, 0,
	  "back; from the ranks up to communicators and jobs", "Esc Back" },
	{ "Up k", { KEYS_UP, 'k' }, act_move, -1, "up", NULL },
	{ "Down j", { KEYS_DOWN, 'j' }, act_move, 1, "down", NULL },
	{ "PgUp Ctrl-U", { KEYS_PAGE_UP, 'U' - '@' }, act_page, -1, "a page up", NULL },
	{ "PgDn Ctrl-D", { KEYS_PAGE_DOWN, 'D' - '@' }, act_page, 1, "a page down", NULL },
	{ "Home", { KEYS_HOME }, act_move, -FAR, "the first row", NULL },
	{ "End G", { KEYS_END, 'G' }, act_move, FAR, "the last row", NULL },
	{ "F3 /", { KEYS_SEARCH, '/' }, act_ask, PROMPT_SEARCH, "search", "F3 Search" },
	{ "n", { 'n' }, act_search_next, 1, "the next row that was searched for", NULL },
	{ "N", { 'N' }, act_search_next, -1, "the one before", NULL },
	{ "F4 \\", { KEYS_FILTER, '\\' }, act_ask, PROMPT_FILTER,
	  "only rows that show a|b, or with FIELD OP VALUE, as wait > 5", "F4 Filter" },
	{ "F5 t", { KEYS_TREE, 't' }, act_toggle, FLAG(tree),
	  "ranks as a tree of jobs and communicators", "F5 Tree" },
	{ "F6", { KEYS_SORT }, act_sort_menu, 0, "choose the column to sort by", "F6 Sort" },
	{ "< S", { '<', 'S' }, act_sort, -1, "sort by the column before", NULL },
	{ "> s", { '>', 's' }, act_sort, 1, "sort by the next column", NULL },
	{ "I i", { 'I', 'i' }, act_invert, 0, "the other way round", NULL },
	{ "0", { '0' }, act_unsort, 0, "worst first again", NULL },
	{ "F", { 'F' }, act_toggle, FLAG(follow), "follow the row, wherever it is sorted to",
	  NULL },
	{ "u", { 'u' }, act_pick, PLACE_USER, "only one user", NULL },
	{ "g", { 'g' }, act_pick, PLACE_GPU, "only one GPU", NULL },
	{ "c", { 'c' }, act_pick, PLACE_COMM, "only one communicator", NULL },
	{ "Z p", { 'Z', 'p' }, act_toggle, FLAG(paused), "pause", NULL },
	{ "d", { 'd' }, act_ask, PROMPT_DELAY, "seconds between two looks", NULL },
	{ "L", { 'L' }, act_level, 0,
	  "change the level of a process, job, communicator or the node", NULL },
	{ "Ctrl-L", { 'L' - '@' }, NULL, 0, "draw everything anew", NULL },
	{ "F10 q", { KEYS_QUIT, 'q' }, act_toggle, FLAG(quit), "quit", "F10 Quit" },
};

static const char *const legend[] = {
	"",
	"WAIT    part of the last seconds that the rank waited for others; a mean over ranks",
	"BLAME   part of the time that the others waited for this one",
	"LAST    in how many of the operations in which somebody was late it was the last",
	"LATE    how long after the first rank on this node it comes, in these",
	"IDLE    part of the time spent outside NCCL's kernels",
	"OLDEST  the longest that something of this rank has been in flight",
	"A dash is a value that is not known.",
	"Up and Down scroll, any other key goes back.",
};

static const struct key_row *row_of(int key)
{
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		for (size_t k = 0; k < ARRAY_LEN(rows[i].keys) && rows[i].keys[k]; k++)
			if (rows[i].keys[k] == key)
				return &rows[i];
	return NULL;
}

/* Only what moves, and what quits, does not leave the help. */
static void press_in_help(struct place *place, const struct view *view, int key)
{
	const struct key_row *row = row_of(key);

	if (row && row->act == act_move)
		place->help_line = clamp(place->help_line + row->argument, 0, FAR);
	else if (row && row->act == act_page)
		place->help_line = clamp(place->help_line + row->argument * place->page, 0, FAR);
	else if (row && row->argument == FLAG(quit) && row->act == act_toggle)
		row->act(place, view, row->argument);
	else
		place->help = false;
}

void keys_press(struct place *place, const struct view *view, int key)
{
	const struct key_row *row = row_of(key);

	if (!key)
		return;
	place->wish.told[0] = '\0';
	if (row && row->act == act_level && place->readonly && !place->prompt.label)
		return;
	if (place->prompt.label)
		press_in_prompt(place, view, key);
	else if (place->menu.title)
		press_in_menu(place, key);
	else if (place->help)
		press_in_help(place, view, key);
	else if (row && row->act)
		row->act(place, view, row->argument);
}

/* ---- help ---------------------------------------------------------------------- */

static void put_key(struct line *line, const struct key_row *row)
{
	line_cell(line, LINE_BOLD, row->names, HELP_KEYS, false);
	line_put(line, LINE_PLAIN, row->help);
}

static void put_help_line(struct frame *frame, const struct place *place, int i)
{
	struct line *line = frame_add(frame);

	if (i < (int)ARRAY_LEN(rows) && rows[i].act == act_level && place->readonly)
		line_put(line, LINE_DIM, "(--readonly: nothing can be changed)");
	else if (i >= (int)ARRAY_LEN(rows))
		line_put(line, LINE_PLAIN, legend[i - (int)ARRAY_LEN(rows)]);
	else
		put_key(line, &rows[i]);
}

void keys_put_help(struct frame *frame, struct place *place)
{
	int n = (int)(ARRAY_LEN(rows) + ARRAY_LEN(legend));

	place->page = frame_room(frame);
	place->help_line = clamp(place->help_line, 0, clamp(n - place->page, 0, n));
	for (int i = place->help_line; i < n && frame_room(frame); i++)
		put_help_line(frame, place, i);
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
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		const char *space;

		if (!rows[i].footer)
			continue;
		space = strchr(rows[i].footer, ' ');
		if (line->columns + text_width(rows[i].footer) + 1 > line->limit)
			break;
		line_printf(line, LINE_BOLD, "%.*s", (int)(space - rows[i].footer),
			    rows[i].footer);
		line_printf(line, LINE_BAR, "%s", space + 1);
		line_put(line, LINE_PLAIN, " ");
	}
}
