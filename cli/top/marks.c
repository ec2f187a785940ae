/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tags and folds of the live view.  They are kept by a row's key, so that they stay when
 * rows move.
 */
#include "cli/top/marks.h"

#include <stdio.h>
#include <string.h>

#include "cli/base/member.h"
#include "cli/top/rows.h"

#define KEY (PLACE_KEY + 16)

/* ---- tags --------------------------------------------------------------------- */

/* A rank has the same tag in the tree and outside. */
static void row_tag_key(enum view_table table, const json_t *row, char key[KEY])
{
	char name[PLACE_KEY];

	table = rows_table(table, row);
	rows_key(table, row, name);
	snprintf(key, KEY, "%d %s", (int)table, name);
}

void marks_tag(struct place *place)
{
	char key[KEY];

	if (!place->under || place_step(place)->row)
		return;
	if (!place->tags)
		place->tags = json_object();
	row_tag_key(place_table(place), place->under, key);
	if (json_object_del(place->tags, key))
		json_object_set(place->tags, key, place->under);
	place_move(place, 1);
}

void marks_untag_all(struct place *place)
{
	json_object_clear(place->tags);
}

bool marks_is_tagged(const struct place *place, enum view_table table, const json_t *row)
{
	char key[KEY];

	if (!marks_tagged(place))
		return false;
	row_tag_key(table, row, key);
	return json_object_get(place->tags, key);
}

size_t marks_tagged(const struct place *place)
{
	return json_object_size(place->tags);
}

int marks_width(const struct place *place)
{
	return place->interactive ? 1 + (marks_tagged(place) > 0) : 0;
}

/* ---- folding ------------------------------------------------------------------- */

static enum ranks_branch row_branch(const json_t *row)
{
	return (enum ranks_branch)json_integer_value(json_object_get(row, "branch"));
}

static bool row_is_folded(const struct place *place, const json_t *row)
{
	char key[PLACE_KEY];

	if (!json_object_size(place->folded) || row_branch(row) == RANKS_RANK)
		return false;
	rows_key(VIEW_TREE, row, key);
	return json_object_get(place->folded, key);
}

static void row_fold(struct place *place, const json_t *row)
{
	char key[PLACE_KEY];

	rows_key(VIEW_TREE, row, key);
	json_object_set_new(place->folded, key, json_true());
}

/* The branch that the cursor is in; the cursor goes there. */
static json_t *branch_here(struct place *place, const json_t *rows)
{
	int at = place_step(place)->cursor, n = at;

	while (n > 0 && row_branch(json_array_get(rows, (size_t)n)) == RANKS_RANK)
		n--;
	place_move(place, n - at);
	return json_array_get(rows, (size_t)n);
}

static void fold_all(struct place *place, const json_t *rows)
{
	branch_here(place, rows);
	json_each(row, rows)
		if (row_branch(row) == RANKS_COMM)
			row_fold(place, row);
}

static void open_branch(struct place *place)
{
	char key[PLACE_KEY];

	if (!place->under)
		return;
	rows_key(VIEW_TREE, place->under, key);
	json_object_del(place->folded, key);
}

static void fold_branch(struct place *place, const json_t *rows)
{
	json_t *row = branch_here(place, rows);

	if (row)
		row_fold(place, row);
}

void marks_fold(struct place *place, const struct view *view, enum marks_fold how)
{
	json_auto_t *rows = NULL;

	if (place_table(place) != VIEW_TREE || place_step(place)->row)
		return;
	if (!place->folded)
		place->folded = json_object();
	rows = rows_select(view, place, VIEW_TREE, place_step(place)->scope);
	if (how == MARKS_OPEN)
		open_branch(place);
	else if (how == MARKS_SHUT)
		fold_branch(place, rows);
	else if (json_object_size(place->folded))
		json_object_clear(place->folded);
	else
		fold_all(place, rows);
}

/* "- tp:1ecf", or "+ tp:1ecf (2)" with how many ranks, or communicators, are folded away. */
static json_t *with_sign(const json_t *row, bool folded)
{
	json_t *copy = json_copy((json_t *)row);
	const char *name = json_string_value(json_object_get(row, "tree"));
	int indent = (int)strspn(name, " ");
	json_int_t below = json_integer_value(report_get(row, "here|comms"));
	char text[PLACE_TEXT], count[32] = "";

	if (folded && below)
		snprintf(count, sizeof(count), " (%lld)", (long long)below);
	snprintf(text, sizeof(text), "%.*s%c %s%s", indent, name, folded ? '+' : '-',
		 name + indent, count);
	json_object_set_new(copy, "tree", json_string(text));
	return copy;
}

json_t *marks_fold_tree(const struct place *place, const json_t *tree)
{
	int below = RANKS_RANK + 1;	/* branches from there on are folded away */
	json_t *shown = json_array();

	json_each(row, tree) {
		int branch = (int)row_branch(row);

		if (branch >= below)
			continue;
		below = row_is_folded(place, row) ? branch + 1 : RANKS_RANK + 1;
		if (branch == RANKS_RANK)
			json_array_append(shown, row);
		else
			json_array_append_new(shown, with_sign(row, below <= RANKS_RANK));
	}
	return shown;
}
