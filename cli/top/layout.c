/* SPDX-License-Identifier: Apache-2.0 */
/* The layout of the live view: it shares the lines out between head, tables, details and footer. */
#include "cli/top/layout.h"

#include <stdio.h>
#include <string.h>

#include "cli/common/prose.h"
#include "cli/top/ask.h"
#include "cli/top/detail.h"
#include "cli/top/head.h"
#include "cli/top/keys.h"
#include "cli/top/marks.h"
#include "cli/top/rows.h"

#define FEWEST_ROWS  3		/* a second table is begun only where so many fit */
#define TEXT_ROWS    15		/* rows of a second table in text, but for ranks */
#define TABS_FROM    9		/* lines of the screen from which each is worth its line */
#define FOOTER_FROM  12
#define PLOT_FROM    20
#define TALL_FROM    36		/* ... a plot of several lines */
#define TALL_PLOT    4
#define DETAIL_LINES 512
#define FITTED_ROWS  512	/* rows by whose cells columns get their width */

static int layout_clamp(int value, int least, int most)
{
	value = value < most ? value : most;
	return value > least ? value : least;
}

/* ---- tables ------------------------------------------------------------------- */

/* One line of the table behind its signs. */
static struct line *put_behind(struct frame *frame, const struct line *cells,
			       const struct place *place, enum line_attr attr, const char *sign)
{
	struct line *line = frame_add(frame);

	line_printf(line, attr, "%.*s", marks_width(place), sign);
	line_append(line, cells);
	return line;
}

static void table_put_header(struct frame *frame, const struct report *report,
			     const struct place *place, int sort)
{
	struct line cells;

	line_start(&cells, frame->columns);
	report_header(report, &cells, sort);
	line_pad(put_behind(frame, &cells, place, LINE_BAR, "  "), LINE_BAR, frame->columns);
}

/* The row under the cursor is told by a sign and by being one bar from end to end. */
static void table_put_row(struct frame *frame, const struct report *report, const json_t *row,
			  const struct place *place, bool tagged, bool here)
{
	const char sign[] = { here ? '>' : ' ', tagged ? '*' : ' ', '\0' };
	struct line cells, *line;

	line_start(&cells, frame->columns);
	report_row(report, row, &cells);
	line = put_behind(frame, &cells, place, LINE_PLAIN, sign);
	if (tagged)
		line_repaint(line, LINE_BOLD);
	if (!here)
		return;
	line_pad(line, LINE_CURSOR, frame->columns);
	line_repaint(line, LINE_CURSOR);
}

/* Has somebody chosen what is shown, beyond where one is? */
static bool place_is_narrowed(const struct place *place)
{
	bool picked = false;

	for (int i = 0; i < PLACE_PICKS; i++)
		picked = picked || place->pick[i][0];
	return picked || place->filter[0];
}

/*
 * The rows that say how wide columns are: all; of very many the first and those that are shown, so
 * that what a frame costs does not grow with rows that nobody sees.
 */
static json_t *rows_to_fit(const struct frame *frame, const json_t *rows, int first)
{
	size_t n = json_array_size(rows), end = (size_t)(first + frame->capacity);
	json_t *some;

	if (n <= FITTED_ROWS)
		return json_incref((json_t *)rows);
	some = json_array();
	for (size_t i = 0; i < FITTED_ROWS; i++)
		json_array_append(some, json_array_get(rows, i));
	for (size_t i = (size_t)first; i < end && i < n; i++)
		if (i >= FITTED_ROWS)
			json_array_append(some, json_array_get(rows, i));
	return some;
}

/* Chooses the columns that there is room for, and their widths. */
static void table_fit(struct report *report, const struct frame *frame, const struct view *view,
		      const struct place *place, enum view_table table, const json_t *rows,
		      int first)
{
	const struct report_style style = {
		.now_ns = view->now_ns, .coarse = place->interactive,
		.varies = json_array_size(view->rows[VIEW_JOBS]) > 1 && !place_job(place),
	};
	json_auto_t *fitted = rows_to_fit(frame, rows, first);

	report_init(report, view_tables[table].columns, *view_tables[table].count, &style);
	report_fit(report, fitted, frame->columns - marks_width(place));
}

/*
 * Rows from `first` on, at most `most`; `cursor` is the one with the cursor, or -1.  False: there
 * was none, else *report is how they were laid out.
 */
static bool table_put(struct frame *frame, const struct view *view, const struct place *place,
		      enum view_table table, const json_t *rows, int first, int most, int cursor,
		      struct report *report)
{
	const struct view_table_type *type = &view_tables[table];
	int n = (int)json_array_size(rows);
	const json_t *row;

	if (!n) {
		line_put(frame_add(frame), LINE_DIM,
			 json_array_size(view_rows(view, table)) && place_is_narrowed(place)
				 ? "no row matches the filter" : type->nothing);
		return false;
	}
	table_fit(report, frame, view, place, table, rows, first);
	table_put_header(frame, report, place, place->sort[table]);
	for (int i = first; i < n && frame_room(frame) > 0; i++) {
		if (i == first + most) {
			line_printf(frame_add(frame), LINE_DIM, "... %d more", n - i);
			break;
		}
		row = json_array_get(rows, (size_t)i);
		table_put_row(frame, report, row, place, marks_is_tagged(place, table, row),
			      i == cursor);
	}
	return true;
}

/* ---- the table that the keys act on ------------------------------------------- */

/* The place of the row that the cursor was on; -1: it has gone. */
static int table_find_key(const json_t *rows, enum view_table table, const char *key)
{
	char has[PLACE_KEY];

	for (size_t i = 0; i < json_array_size(rows) && *key; i++) {
		rows_key(table, json_array_get(rows, i), has);
		if (!strcmp(has, key))
			return (int)i;
	}
	return -1;
}

static void table_put_cursor(struct place *place, const struct view *view, enum view_table table,
			     const json_t *rows)
{
	struct place_step *step = place_step(place);
	int n = (int)json_array_size(rows), found = -1;
	json_t *row;

	if (place->follow)
		found = table_find_key(rows, table, step->key);
	if (found >= 0)
		step->cursor = found;
	step->cursor = layout_clamp(step->cursor, 0, n - 1);
	step->scroll = layout_clamp(step->scroll, step->cursor - place->page + 1, step->cursor);
	step->scroll = layout_clamp(step->scroll, 0, layout_clamp(n - place->page, 0, n));
	place->count = n;
	if (table == VIEW_INFLIGHT && n == (int)json_array_size(view->rows[table]) &&
	    view->inflight_total > n)
		place->count = view->inflight_total;	/* rows below come when one goes there */
	row = json_array_get(rows, (size_t)step->cursor);
	json_decref(place->under);
	place->under = json_incref(row);
	if (row)
		rows_key(table, row, step->key);
}

static void layout_put_first_table(struct frame *frame, const struct view *view,
				   struct place *place)
{
	struct place_step *step = place_step(place);
	enum view_table table = place_table(place);
	json_auto_t *rows = rows_select(view, place, table, step->scope);

	place->page = layout_clamp(frame_room(frame) - 1, 1, INT16_MAX);
	table_put_cursor(place, view, table, rows);
	place->header_line = frame->count;
	if (!table_put(frame, view, place, table, rows, step->scroll, INT16_MAX,
		       place->interactive ? step->cursor : -1, &place->shown))
		place->header_line = -1;
}

/* Other tables there is room for, the screens in their order; keys do not act on them. */
static void layout_put_other_tables(struct frame *frame, const struct view *view,
				    const struct place *place)
{
	for (int i = 1; i < VIEW_FINDINGS; i++) {
		enum view_table next = (enum view_table)(place->screen == VIEW_JOBS
				? i - 1 : (place->screen + i) % VIEW_FINDINGS);
		bool whole = place->interactive || next == VIEW_RANKS;
		struct report report;
		json_t *rows;

		if (frame_room(frame) < FEWEST_ROWS + 2)
			return;
		rows = rows_select(view, place, next, NULL);
		if (json_array_size(rows)) {
			frame_add(frame);
			line_printf(frame_add(frame), LINE_BOLD, "%s%s", view_tables[next].title,
				    next == VIEW_INFLIGHT && view->only_old
					    ? " for more than " VIEW_OLD_TEXT : "");
			table_put(frame, view, place, next, rows, 0,
				  whole ? INT16_MAX : TEXT_ROWS, -1, &report);
		}
		json_decref(rows);
	}
}

/* ---- details ------------------------------------------------------------------- */

/* The row as it is now; as it was last, when it has gone. */
static void layout_put_details(struct frame *frame, const struct view *view, struct place *place)
{
	struct place_step *step = place_step(place);
	enum view_table table = step->table == VIEW_TREE ? VIEW_RANKS : step->table;
	json_t *rows = view_rows(view, table);
	int found = table_find_key(rows, table, step->key);
	struct frame all;

	if (found >= 0) {
		json_decref(step->row);
		step->row = json_incref(json_array_get(rows, (size_t)found));
	}
	frame_init(&all, frame->columns, DETAIL_LINES);
	if (found < 0)
		line_put(frame_add(&all), LINE_WARN, "gone: this is its last known state");
	detail_put(&all, step->row);
	place->count = all.count;
	place->page = layout_clamp(frame_room(frame), 1, INT16_MAX);
	step->cursor = layout_clamp(step->cursor, 0,
				    layout_clamp(all.count - place->page, 0, all.count));
	for (int i = step->cursor; i < all.count && frame_room(frame); i++)
		*frame_add(frame) = all.lines[i];
	frame_deinit(&all);
}

/* ---- help ------------------------------------------------------------------------ */

static void help_put_columns(struct frame *frame, const struct report *report,
			     enum view_table table, bool shown)
{
	const struct view_table_type *type = &view_tables[table];

	for (size_t i = 0; i < *type->count; i++)
		if (type->columns[i].header && shown == (report->width[i] > 0))
			prose_put_term(frame, PROSE_TERM, type->columns[i].header,
				       type->meanings[i]);
}

/* The meaning of the table's columns, those first that are shown, and of the head's words. */
static void help_put_screen(struct frame *frame, const struct view *view, const struct place *place)
{
	const struct place_path *path = &place->path[place->screen];
	const struct place_step *step = &path->step[path->depth];
	enum view_table table = place_table(place);
	json_auto_t *rows = rows_select(view, place, table, step->scope);
	struct report report;

	table_fit(&report, frame, view, place, table, rows, step->scroll);
	help_put_columns(frame, &report, table, true);
	line_put(frame_add(frame), LINE_BOLD,
		 "Not shown now: there is no room, or nothing is known");
	help_put_columns(frame, &report, table, false);
	line_put(frame_add(frame), LINE_BOLD, "In the lines above the table");
	head_put_help(frame);
}

static void layout_put_help(struct frame *frame, const struct view *view, struct place *place)
{
	struct line *title = frame_add(frame);
	struct frame all;
	int n;

	frame_init(&all, frame->columns, DETAIL_LINES);
	if (place->help_keys)
		keys_put_help(&all, place);
	else
		help_put_screen(&all, view, place);
	line_printf(title, LINE_BAR, place->help_keys
			    ? " Keys.  Up, Down: scroll; Tab: columns; any other key: back "
			    : " %s.  Up, Down: scroll; h: all keys; any other key: back ",
		    view_tables[place_table(place)].title);
	place->page = frame_room(frame);
	n = all.count - place->page;
	place->help_line = layout_clamp(place->help_line, 0, n > 0 ? n : 0);
	for (int i = place->help_line; i < all.count && frame_room(frame); i++)
		*frame_add(frame) = all.lines[i];
	frame_deinit(&all);
}

/* ---- around the table ----------------------------------------------------------- */

static void tabs_put(struct line *line, const struct view *view, const struct place *place,
		     bool counts)
{
	for (int i = 0; i < VIEW_SCREENS; i++) {
		enum line_attr attr = i == place->screen ? LINE_BAR : LINE_DIM;

		line_printf(line, LINE_PLAIN, "%s", i ? "  " : "");
		line_printf(line, attr, "%d %s", i + 1, view_tables[i].title);
		if (counts && i == VIEW_INFLIGHT)
			line_printf(line, attr, " %lld", (long long)view->in_flight);
		else if (counts && view->rows[i])
			line_printf(line, attr, " %zu", json_array_size(view->rows[i]));
	}
}

/* The screens, with the number of their rows where the line has room for all. */
static void layout_put_tabs(struct frame *frame, const struct view *view, const struct place *place)
{
	struct line whole;

	line_start(&whole, LINE_BYTES / 4);
	tabs_put(&whole, view, place, true);
	tabs_put(frame_add(frame), view, place, whole.columns <= frame->columns);
}

static void layout_put_filter(struct line *line, const struct place *place)
{
	enum view_table table = place_table(place) == VIEW_TREE ? VIEW_RANKS : place_table(place);
	struct filter filter;
	char why[PLACE_TEXT];

	if (!place->filter[0])
		return;
	line_put(line, LINE_PLAIN, "  ");
	line_printf(line, LINE_WARN, "[filter %s]", place->filter);
	if (rows_filter(place, table, &filter, why, sizeof(why)))
		line_printf(line, LINE_BAD, "  ! %s", why);
}

/* "rank 3 of dp  AllReduce": where one is, and what is left out. */
static void layout_put_where(struct frame *frame, struct place *place)
{
	static const struct {
		const char *key;
		const char *label;
	} parts[] = {
		{ "job", "job " }, { "comm_name", "comm " }, { "comm_id", "" },
		{ "rank", "rank " }, { "func", "" }, { "size_class", "size " },
	};
	const struct place_step *step = place_step(place);
	struct line *line;
	bool any = step->scope || step->row ||
		   step->table != (enum view_table)place->screen || place_is_narrowed(place);
	static const char *const labels[PLACE_PICKS] = { "user", "GPU", "communicator" };

	if (!any)
		return;
	line = frame_add(frame);
	if (step->row || step->scope || step->table != (enum view_table)place->screen)
		line_printf(line, LINE_BOLD, "%s%s", view_tables[step->table].title,
			    step->row ? ", details" : "");
	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
		struct column column = { NULL, NULL, COL_TEXT, parts[i].key, 0, 0, 0 };
		char text[PLACE_TEXT];

		if (!report_get(step->scope, parts[i].key))
			continue;
		report_cell(&column, step->scope, NULL, text, sizeof(text));
		line_printf(line, LINE_BOLD, "  %s%s", parts[i].label, text);
	}
	for (int i = 0; i < PLACE_PICKS; i++)
		if (place->pick[i][0]) {
			line_put(line, LINE_PLAIN, "  ");
			line_printf(line, LINE_WARN, "[%s %s]", labels[i], place->pick[i]);
		}
	layout_put_filter(line, place);
}

static void layout_put_plot(struct frame *frame, const struct view *view, const struct place *place)
{
	if (place->interactive && frame->capacity >= PLOT_FROM)
		history_plot(frame, &view->history, frame->capacity >= TALL_FROM ? TALL_PLOT : 1,
			     place->ascii);
}

/* The facts behind the question in the footer; the rows stay below. */
static void layout_put_question(struct frame *frame, const struct view *view,
				const struct place *place)
{
	if (!place->prompt.label)
		return;
	if (place->prompt.what == ASK_CONFIRM)
		wish_put_facts(frame, &place->wish, view->rows[VIEW_RANKS]);
	else if (place->prompt.what == ASK_FOCUS)
		wish_put_focus_facts(frame, place->focus.pid, view->rows[VIEW_RANKS]);
}

/* The part between the head and the footer. */
static void layout_put_body(struct frame *frame, const struct view *view, struct place *place)
{
	if (place->help) {
		layout_put_help(frame, view, place);
		return;
	}
	if (!view->known)
		return;
	layout_put_plot(frame, view, place);
	if (!place->interactive)
		frame_add(frame);
	else if (frame->capacity >= TABS_FROM)
		layout_put_tabs(frame, view, place);
	layout_put_where(frame, place);
	if (place->menu.title) {
		menu_put(frame, &place->menu);
		return;
	}
	layout_put_question(frame, view, place);
	if (place_step(place)->row) {
		layout_put_details(frame, view, place);
		return;
	}
	layout_put_first_table(frame, view, place);
	if (!place_step(place)->scope)
		layout_put_other_tables(frame, view, place);
}

void layout_frame(struct frame *frame, const struct view *view, struct place *place)
{
	bool footer = place->interactive &&
		      (frame->capacity >= FOOTER_FROM || place->prompt.label);

	frame->count = 0;
	place->header_line = -1;
	head_put(frame, view, place);
	if (footer)
		frame->capacity--;
	if (frame->count > frame->capacity)
		frame->count = frame->capacity;
	layout_put_body(frame, view, place);
	if (!footer)
		return;
	while (frame_room(frame) > 0)
		frame_add(frame);
	frame->capacity++;
	keys_put_footer(frame, place);
}
