/* SPDX-License-Identifier: Apache-2.0 */
/* The selection of the live view's rows by scope, choices and filter, and their order. */
#include "cli/top/rows.h"

#include <string.h>

#include "cli/base/member.h"
#include "cli/base/must.h"
#include "cli/table/filter.h"
#include "cli/top/marks.h"

enum view_table rows_table(enum view_table table, const json_t *row)
{
	static const enum view_table of_branch[] = {
		[RANKS_JOB] = VIEW_JOBS, [RANKS_COMM] = VIEW_COMMS, [RANKS_RANK] = VIEW_RANKS,
	};

	if (table != VIEW_TREE)
		return table;
	return of_branch[json_integer_value(json_object_get(row, "branch"))];
}

/* ---- text --------------------------------------------------------------------- */

void rows_key(enum view_table table, const json_t *row, char key[PLACE_KEY])
{
	const struct column column = { NULL, NULL, COL_TEXT, view_tables[table].key, 0, 0, 0 };

	report_cell(&column, row, NULL, key, PLACE_KEY);
}

bool rows_show(enum view_table table, const json_t *row, uint64_t now_ns, const char *text)
{
	const struct view_table_type *type = &view_tables[table];
	const struct report_style style = { .now_ns = now_ns };

	return filter_shows(type->columns, *type->count, row, &style, text);
}

int rows_filter(const struct place *place, enum view_table table, struct filter *filter,
		char *why, size_t size)
{
	const struct view_table_type *type = &view_tables[table];

	filter_init(filter, type->columns, *type->count);
	return place->filter[0] ? filter_add(filter, place->filter, why, size) : 0;
}

/* ---- scope -------------------------------------------------------------------- */

bool rows_agree(const json_t *row, const json_t *scope)
{
	const char *key;
	json_t *wanted;

	json_object_foreach((json_t *)scope, key, wanted) {
		const json_t *has = json_object_get(row, key);

		if (!json_equal((json_t *)has ?: json_null(), wanted))
			return false;
	}
	return true;
}

/* ---- choices ------------------------------------------------------------------ */

/* The paths, in a row of the ranks' table, of the values one can choose by. */
static const char *const pick_paths[PLACE_PICKS] = {
	[PLACE_USER] = "user", [PLACE_GPU] = "pci_bus_id|gpu_uuid",
	[PLACE_COMM] = "comm_label|comm_id",
};

static void rank_value(const json_t *rank, enum place_pick pick, char text[PLACE_TEXT])
{
	const struct column column = { NULL, NULL, COL_TEXT, pick_paths[pick], 0, 0, 0 };

	report_cell(&column, rank, NULL, text, PLACE_TEXT);
}

static int texts_compare(const void *left, const void *right)
{
	return strcmp(*(const char *const *)left, *(const char *const *)right);
}

json_t *rows_values(const struct view *view, enum place_pick pick)
{
	json_t *seen = json_object(), *values = json_array(), *unused;
	const char **sorted, *key;
	char text[PLACE_TEXT];
	size_t i, n = 0;

	json_each(rank, view->rows[VIEW_RANKS]) {
		rank_value(rank, pick, text);
		json_object_set_new(seen, text, json_true());
	}
	sorted = must(calloc(json_object_size(seen) + 1, sizeof(*sorted)));
	json_object_foreach(seen, key, unused)
		sorted[n++] = key;
	qsort(sorted, n, sizeof(*sorted), texts_compare);
	for (i = 0; i < n; i++)
		json_array_append_new(values, json_string(sorted[i]));
	free(sorted);
	json_decref(seen);
	return values;
}

static bool place_picks(const struct place *place)
{
	for (int i = 0; i < PLACE_PICKS; i++)
		if (place->pick[i][0])
			return true;
	return false;
}

/* The ranks that were chosen. */
static json_t *place_chosen(const struct view *view, const struct place *place)
{
	json_t *ranks = json_array();
	char text[PLACE_TEXT];

	json_each(rank, view->rows[VIEW_RANKS]) {
		bool fits = true;

		for (int k = 0; k < PLACE_PICKS && fits; k++) {
			rank_value(rank, (enum place_pick)k, text);
			fits = !place->pick[k][0] || !strcmp(place->pick[k], text);
		}
		if (fits)
			json_array_append(ranks, rank);
	}
	return ranks;
}

/* A key that a row does not know cannot contradict. */
static bool row_concerns(const json_t *row, const json_t *rank)
{
	static const char *const keys[] = { "comm_id", "comm_name", "nranks", "rank", "pid",
					    "job", "user" };

	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
		const json_t *has = report_get(row, keys[i]);

		if (has && !json_equal((json_t *)has, json_object_get(rank, keys[i])))
			return false;
	}
	return true;
}

static bool row_concerns_any(const json_t *row, const json_t *ranks)
{
	json_each(rank, ranks)
		if (row_concerns(row, rank))
			return true;
	return false;
}

/* ---- selection ---------------------------------------------------------------- */

static json_t *sort_rows(json_t *rows, const struct place *place, enum view_table table)
{
	int sort = place->sort[table];

	if (sort >= 0)
		report_sort(rows, &view_tables[table].columns[sort], place->ascending[table]);
	return rows;
}

/* A tree is made of the ranks that are left, so that nothing stands under nobody. */
static json_t *select_tree(const struct view *view, const struct place *place,
			   const json_t *scope)
{
	json_t *ranks = rows_select(view, place, VIEW_RANKS, scope), *tree, *shown;

	tree = ranks_tree(sort_rows(ranks, place, VIEW_TREE));
	shown = marks_fold_tree(place, tree);
	json_decref(ranks);
	json_decref(tree);
	return shown;
}

json_t *rows_select(const struct view *view, const struct place *place, enum view_table table,
		    const json_t *scope)
{
	const struct report_style style = { .now_ns = view->now_ns };
	json_t *rows, *ranks;
	struct filter filter;
	char why[PLACE_TEXT];

	if (table == VIEW_TREE)
		return select_tree(view, place, scope);
	rows = json_array();
	ranks = place_picks(place) ? place_chosen(view, place) : NULL;
	if (rows_filter(place, table, &filter, why, sizeof(why)))
		filter_init(&filter, NULL, 0);	/* the table knows no such field */
	json_each(row, view_rows(view, table)) {
		if (!rows_agree(row, scope))
			continue;
		if (ranks && !row_concerns_any(row, ranks))
			continue;
		if (!filter_wants(&filter, row, &style))
			continue;
		json_array_append(rows, row);
	}
	json_decref(ranks);
	return sort_rows(rows, place, table);
}
