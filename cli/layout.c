/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/layout.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "cli/verdict.h"
#include "util/text.h"

#define ARRAY_LEN(a) (sizeof(a) / sizeof((a)[0]))

#define FEWEST_ROWS  3	/* a second table is begun only where so many fit */
#define TEXT_ROWS    15	/* of a second table in text, which nobody can scroll */

/* ---- frame ---------------------------------------------------------------- */

void frame_init(struct frame *frame, int columns, int lines)
{
	frame->columns = columns < LINE_BYTES / 4 ? columns : LINE_BYTES / 4;
	frame->capacity = lines;
	frame->count = 0;
	frame->lines = calloc((size_t)lines + 1, sizeof(*frame->lines));
	if (!frame->lines)
		abort();
}

void frame_deinit(struct frame *frame)
{
	free(frame->lines);
	frame->lines = NULL;
}

struct line *frame_add(struct frame *frame)
{
	struct line *line = &frame->lines[frame->count];

	if (frame->count < frame->capacity)
		frame->count++;
	line_start(line, frame->columns);
	return line;
}

static int room(const struct frame *frame)
{
	return frame->capacity - frame->count;
}

/* ---- the head ------------------------------------------------------------- */

static void put_known(struct line *line, const char *label, const json_t *value)
{
	if (json_is_string(value))
		line_printf(line, LINE_PLAIN, "  %s %s", label, json_string_value(value));
}

static void head_daemon(struct frame *frame, const struct view *view,
			const struct layout_state *state)
{
	const json_t *uptime = report_get(view->status, "uptime_ns");
	struct line *line = frame_add(frame);
	char text[TEXT_MAX];

	line_printf(line, LINE_BOLD, "ncclinsp  %s",
		    json_string_value(report_get(view->status, "host")) ?: "-");
	put_known(line, "ncclinspd", report_get(view->status, "version"));
	if (json_is_integer(uptime)) {
		text_duration(text, sizeof(text), (uint64_t)json_integer_value(uptime));
		line_printf(line, LINE_PLAIN, "  up %s", text);
	}
	put_known(line, "level", report_get(view->status, "level"));
	put_known(line, "loop", report_get(view->status, "loop"));
	if (!state->interactive)
		return;
	text_duration(text, sizeof(text), state->delay_ns);
	if (state->paused)
		line_put(line, LINE_WARN, "  [paused]");
	else
		line_printf(line, LINE_DIM, "  every %s", text);
}

static void head_counts(struct frame *frame, const struct view *view)
{
	struct line *line = frame_add(frame);
	char text[TEXT_MAX];

	line_printf(line, LINE_PLAIN, "processes %d", view->live);
	if (view->died)
		line_printf(line, LINE_BAD, "  %d died", view->died);
	if (view->exited)
		line_printf(line, LINE_DIM, "  %d ended", view->exited);
	if (view->gpus >= 0)
		line_printf(line, LINE_PLAIN, "  GPUs %d", view->gpus);
	else
		line_put(line, LINE_PLAIN, "  GPUs -");
	line_printf(line, LINE_PLAIN, "  communicators %d", view->comms);
	text_count(text, sizeof(text), view->ops_per_s);
	line_printf(line, LINE_PLAIN, "  ops/s %s", text);
	text_count(text, sizeof(text), view->records_per_s);
	line_printf(line, LINE_PLAIN, "  records/s %s", text);
	text_count(text, sizeof(text), view->lost);
	line_printf(line, view->lost > 0 ? LINE_BAD : LINE_PLAIN, "  lost %s%s", text,
		    view->lost > 0 ? "!" : "");
}

static void head_down(struct frame *frame, const struct view *view)
{
	char age[TEXT_MAX];

	line_printf(frame_add(frame), LINE_BAD, "! %s",
		    view->error[0] ? view->error : "not asked yet");
	if (!view->known)
		return;
	text_duration(age, sizeof(age), view->tried_ns - view->now_ns);
	line_printf(frame_add(frame), LINE_WARN, "  trying again; what follows is %s old", age);
}

/* ---- tables --------------------------------------------------------------- */

static void put_tabs(struct frame *frame, const struct view *view, enum view_table table)
{
	struct line *line = frame_add(frame);

	for (int i = 0; i < VIEW_TABLES; i++)
		line_printf(line, i == (int)table ? LINE_BAR : LINE_DIM, " %s %zu ",
			    view_tables[i].title, json_array_size(view->rows[i]));
}

/* One table: as many rows as fit, at most `most`, from where the user has scrolled to. */
static void put_table(struct frame *frame, const struct view *view, enum view_table table,
		      const json_t *rows, const struct layout_state *state, int most)
{
	const struct view_table_type *type = &view_tables[table];
	int n = (int)json_array_size(rows);
	struct report report;
	struct line *line;

	if (!n) {
		line_put(frame_add(frame), LINE_DIM, type->nothing);
		return;
	}
	report_init(&report, type->columns, *type->count, view->now_ns);
	report_fit(&report, rows, frame->columns);
	line = frame_add(frame);
	report_header(&report, line, state->sort);
	line_pad(line, LINE_BAR, frame->columns);
	for (int i = state->scroll; i < n && room(frame) > 0; i++) {
		if (i == most) {
			line_printf(frame_add(frame), LINE_DIM, "... %d more", n - most);
			break;
		}
		report_row(&report, json_array_get(rows, (size_t)i), frame_add(frame));
	}
}

static int clamp(int value, int least, int most)
{
	value = value < most ? value : most;
	return value > least ? value : least;
}

static void put_tables(struct frame *frame, const struct view *view, struct layout_state *state)
{
	static const struct layout_state whole = { .sort = -1 };
	const struct view_table_type *type = &view_tables[state->table];
	json_t *rows = json_copy(view->rows[state->table]);

	if (state->sort >= 0)
		report_sort(rows, &type->columns[state->sort], state->ascending);
	state->page = room(frame) - 1;
	state->scroll = clamp(state->scroll, 0, (int)json_array_size(rows) - state->page);
	put_table(frame, view, state->table, rows, state, INT16_MAX);
	json_decref(rows);
	for (int i = 1; i < VIEW_TABLES; i++) {
		enum view_table next = (enum view_table)(((int)state->table + i) % VIEW_TABLES);

		if (room(frame) < FEWEST_ROWS + 2 || !json_array_size(view->rows[next]))
			continue;
		frame_add(frame);
		line_put(frame_add(frame), LINE_BOLD, view_tables[next].title);
		put_table(frame, view, next, view->rows[next], &whole,
			  state->interactive ? INT16_MAX : TEXT_ROWS);
	}
}

static const char *const help[] = {
	"Tab, Right / Shift-Tab, Left   next / previous table      1 2 3   a table directly",
	"Up Down k j  PgUp PgDn  g G    scroll",
	"s / S      sort by the next / previous column; i inverts; 0 is worst first again",
	"p          pause                 h ?   this help            q   quit",
	"",
	"LATE    how long after the first rank on this node this one comes, median.  Told by who",
	"        waits least inside; needs GPU times of AllReduce, AllGather or ReduceScatter.",
	"SHARE   part of the wall time spent inside NCCL's kernels.",
	"OLDEST  the longest that something of this rank has been in flight.",
	"A dash is a value that is not known.  Any key goes back.",
};

static void put_help(struct frame *frame)
{
	for (size_t i = 0; i < ARRAY_LEN(help) && room(frame); i++)
		line_put(frame_add(frame), LINE_PLAIN, help[i]);
}

void layout_frame(struct frame *frame, const struct view *view, struct layout_state *state)
{
	frame->count = 0;
	head_daemon(frame, view, state);
	if (!view->up)
		head_down(frame, view);
	if (view->known) {
		head_counts(frame, view);
		verdicts_put(frame, view);
	}
	if (state->help) {
		frame_add(frame);
		put_help(frame);
		return;
	}
	if (!view->known)
		return;
	if (state->interactive)
		put_tabs(frame, view, state->table);
	else
		frame_add(frame);
	put_tables(frame, view, state);
}

/* ---- keys ----------------------------------------------------------------- */

static void act_table(struct layout_state *state, int table)
{
	state->table = (enum view_table)((table + VIEW_TABLES) % VIEW_TABLES);
	state->scroll = 0;
	state->sort = -1;
	state->ascending = false;
}

static void act_turn(struct layout_state *state, int step)
{
	act_table(state, (int)state->table + step);
}

/* Stays in bounds with any step; layout_frame() knows the table's end. */
static void act_scroll(struct layout_state *state, int step)
{
	state->scroll = clamp(state->scroll + step, 0, INT16_MAX);
}

static void act_page(struct layout_state *state, int pages)
{
	act_scroll(state, pages * (state->page > 0 ? state->page : 1));
}

/* The next column that a table shows; past the last comes the daemon's order. */
static void act_sort(struct layout_state *state, int step)
{
	const struct view_table_type *type = &view_tables[state->table];
	int count = (int)*type->count;

	do {
		state->sort += step;
		if (state->sort >= count)
			state->sort = -1;
		if (state->sort < -1)
			state->sort = count - 1;
	} while (state->sort >= 0 && !type->columns[state->sort].header);
}

static void act_unsort(struct layout_state *state, int unused)
{
	(void)unused;
	state->sort = -1;
	state->ascending = false;
}

static void act_toggle(struct layout_state *state, int offset)
{
	bool *flag = (bool *)((char *)state + offset);

	*flag = !*flag;
}

#define FLAG(member) ((int)offsetof(struct layout_state, member))

static const struct {
	int key;
	void (*act)(struct layout_state *state, int argument);
	int argument;
} keys[] = {
	{ '\t', act_turn, 1 },
	{ LAYOUT_NEXT, act_turn, 1 },
	{ LAYOUT_PREVIOUS, act_turn, -1 },
	{ '1', act_table, VIEW_RANKS },
	{ '2', act_table, VIEW_OPS },
	{ '3', act_table, VIEW_INFLIGHT },
	{ 'k', act_scroll, -1 },
	{ LAYOUT_UP, act_scroll, -1 },
	{ 'j', act_scroll, 1 },
	{ LAYOUT_DOWN, act_scroll, 1 },
	{ LAYOUT_PAGE_UP, act_page, -1 },
	{ LAYOUT_PAGE_DOWN, act_page, 1 },
	{ 'g', act_scroll, -INT16_MAX },
	{ LAYOUT_HOME, act_scroll, -INT16_MAX },
	{ 'G', act_scroll, INT16_MAX },
	{ LAYOUT_END, act_scroll, INT16_MAX },
	{ 's', act_sort, 1 },
	{ '>', act_sort, 1 },
	{ 'S', act_sort, -1 },
	{ '<', act_sort, -1 },
	{ '0', act_unsort, 0 },
	{ 'i', act_toggle, FLAG(ascending) },
	{ 'I', act_toggle, FLAG(ascending) },
	{ 'p', act_toggle, FLAG(paused) },
	{ 'Z', act_toggle, FLAG(paused) },
	{ 'h', act_toggle, FLAG(help) },
	{ '?', act_toggle, FLAG(help) },
	{ LAYOUT_HELP, act_toggle, FLAG(help) },
	{ 'q', act_toggle, FLAG(quit) },
	{ LAYOUT_QUIT, act_toggle, FLAG(quit) },
};

void layout_key(struct layout_state *state, int key)
{
	bool helped = state->help;

	if (!key)
		return;
	for (size_t i = 0; i < ARRAY_LEN(keys); i++)
		if (keys[i].key == key && (!helped || keys[i].argument == FLAG(quit)))
			keys[i].act(state, keys[i].argument);
	if (helped)
		state->help = false;
}
