/* SPDX-License-Identifier: Apache-2.0 */
/* The moves of the live view between screens, and down into a row's parts and back. */
#include "cli/top/place.h"

#include <stdio.h>
#include <string.h>

#include "cli/top/rows.h"
#include "util/list.h"

#define ROWS_AT_ONCE 64
#define OF_COMM "comm_id", "comm_name", "nranks"

/* The rows that a row consists of, and what they have in common with it. */
static const struct descent {
	enum view_table from;
	enum view_table to;
	const char *keys[9];
} descents[] = {
	{ VIEW_JOBS, VIEW_COMMS, { "job", "user", NULL } },
	{ VIEW_COMMS, VIEW_RANKS, { OF_COMM, "job", "user", NULL } },
	{ VIEW_RANKS, VIEW_KINDS, { OF_COMM, "rank", NULL } },
	{ VIEW_KINDS, VIEW_RUNS,
	  { OF_COMM, "rank", "func", "size_class", "algo", "proto", NULL } },
	{ VIEW_OPS, VIEW_RUNS, { OF_COMM, "func", "size_class", "algo", "proto", NULL } },
};

void place_init(struct place *place, uint64_t delay_ns, bool ascii, bool interactive)
{
	memset(place, 0, sizeof(*place));
	place->delay_ns = delay_ns;
	place->ascii = ascii;
	place->interactive = interactive;
	for (int i = 0; i < VIEW_TABLES; i++)
		place->sort[i] = -1;
	for (int i = 0; i < VIEW_SCREENS; i++)
		place->path[i].step[0].table = (enum view_table)i;
}

static void place_drop_step(struct place_step *step)
{
	json_decref(step->scope);
	json_decref(step->row);
	step->scope = step->row = NULL;
}

void place_deinit(struct place *place)
{
	for (int i = 0; i < VIEW_SCREENS; i++)
		for (int k = 0; k < PLACE_DEEP; k++)
			place_drop_step(&place->path[i].step[k]);
	json_decref(place->under);
	json_decref(place->tags);
	json_decref(place->folded);
	place->under = place->tags = place->folded = NULL;
	menu_close(&place->menu);
	wish_deinit(&place->wish);
}

static const struct place_path *step_path(const struct place *place)
{
	return &place->path[place->screen];
}

struct place_step *place_step(struct place *place)
{
	struct place_path *path = &place->path[place->screen];

	return &path->step[path->depth];
}

enum view_table place_table(const struct place *place)
{
	const struct place_path *path = step_path(place);
	const struct place_step *step = &path->step[path->depth];

	return step->table == VIEW_RANKS && place->tree ? VIEW_TREE : step->table;
}

static struct place_step *place_push(struct place *place, enum view_table table)
{
	struct place_path *path = &place->path[place->screen];
	struct place_step *step;

	if (path->depth + 1 == PLACE_DEEP)
		return NULL;
	step = &path->step[++path->depth];
	place_drop_step(step);
	memset(step, 0, sizeof(*step));
	step->table = table;
	return step;
}

static json_t *step_scope(const json_t *row, const char *const *keys)
{
	json_t *scope = json_object();

	for (; *keys; keys++) {
		json_t *value = json_object_get(row, *keys);

		json_object_set(scope, *keys, value ? value : json_null());
	}
	return scope;
}

void place_enter(struct place *place)
{
	json_t *row = place->under;
	struct place_step *step;

	if (!row || place_step(place)->row)
		return;
	for (size_t i = 0; i < ARRAY_LEN(descents); i++) {
		if (descents[i].from != rows_table(place_table(place), row))
			continue;
		step = place_push(place, descents[i].to);
		if (step)
			step->scope = step_scope(row, descents[i].keys);
		return;
	}
	step = place_push(place, place_table(place));
	if (step) {
		step->row = json_incref(row);
		snprintf(step->key, sizeof(step->key), "%s", (step - 1)->key);
	}
}

static void place_show_table(struct place_step *step, enum view_table table)
{
	if (step->table != table)
		step->cursor = step->scroll = 0;
	step->table = table;
}

void place_leave(struct place *place)
{
	struct place_path *path = &place->path[place->screen];
	struct place_step *step = &path->step[path->depth];

	if (path->depth) {
		place_drop_step(step);
		path->depth--;
		return;
	}
	if (step->table == VIEW_RANKS) {
		place_show_table(step, VIEW_COMMS);
	} else if (step->table == VIEW_COMMS && place->screen == VIEW_RANKS) {
		place_show_table(step, VIEW_RANKS);
		place->screen = VIEW_JOBS;
	}
}

/* Going to a screen that one is in leads to its beginning. */
void place_screen(struct place *place, int screen)
{
	screen = (screen + VIEW_SCREENS) % VIEW_SCREENS;
	if (screen == place->screen) {
		while (step_path(place)->depth)
			place_leave(place);
		place_show_table(place_step(place), (enum view_table)screen);
	}
	place->screen = screen;
}

void place_lead(struct place *place, const struct view *view)
{
	size_t jobs = json_array_size(view->rows[VIEW_JOBS]);

	if (place->settled || !jobs)
		return;
	place->screen = jobs > 1 ? VIEW_JOBS : VIEW_RANKS;
	place->settled = true;
}

void place_move(struct place *place, int step)
{
	struct place_step *at = place_step(place);
	int last = place->count > 0 ? place->count - 1 : 0;

	at->cursor += step;
	at->cursor = at->cursor < last ? at->cursor : last;
	at->cursor = at->cursor > 0 ? at->cursor : 0;
	at->key[0] = '\0';	/* the next frame finds out whose row it is */
}

const json_t *place_job(const struct place *place)
{
	const struct place_path *path = step_path(place);

	return json_object_get(path->step[path->depth].scope, "job");
}

json_int_t place_process(const struct place *place, const struct view *view)
{
	const struct place_path *path = step_path(place);
	const struct place_step *step = &path->step[path->depth];
	json_t *rank, *scope = step->scope;
	size_t i;

	if (step->row)
		return json_integer_value(report_get(step->row, "pid"));
	if (!report_get(scope, "rank"))
		return 0;
	if (step->table == VIEW_RUNS)
		scope = path->step[path->depth - 1].scope;	/* the rank alone */
	json_array_foreach(view->rows[VIEW_RANKS], i, rank)
		if (rows_agree(rank, scope))
			return json_integer_value(report_get(rank, "pid"));
	return 0;
}

/* Are rows in the order of the daemon, which is worst first, and none left out? */
static bool table_is_plain(const struct place *place, enum view_table table)
{
	for (int i = 0; i < PLACE_PICKS; i++)
		if (place->pick[i][0])
			return false;
	return place->sort[table] < 0 && !place->ascending[table] && !place->filter[0] &&
	       !place->search[0] && !place->follow;
}

/* Rows from the first on that the screen may get to show before the next look; 0: all. */
static int view_most_inflight(const struct place *place, const struct place_step *step)
{
	int shown = step->cursor + 2 * place->page;

	if (!place->interactive || step->table != VIEW_INFLIGHT || step->row ||
	    !table_is_plain(place, VIEW_INFLIGHT) || shown > PLACE_FAR)
		return 0;
	return (shown / ROWS_AT_ONCE + 1) * ROWS_AT_ONCE;
}

struct view_want place_want(const struct place *place, const char *window)
{
	const struct place_path *path = step_path(place);
	const struct place_step *step = &path->step[path->depth];

	return (struct view_want){
		.window = window,
		.peers = step->table == VIEW_PEERS,
		.past = step->table == VIEW_FINDINGS,
		.kinds = step->table == VIEW_KINDS,
		.young = step->table == VIEW_INFLIGHT || !place->interactive,
		.most = view_most_inflight(place, step),
		.whole = step->row,
		.runs = step->table == VIEW_RUNS ? step->scope ?: path->step[path->depth - 1].scope
						 : NULL,
	};
}
