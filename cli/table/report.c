/* SPDX-License-Identifier: Apache-2.0 */
/* The layout of tables for people: the order of rows, and the columns that fit a width. */
#include "cli/table/report.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "cli/base/must.h"
#include "util/text.h"

#define SENTENCE 40	/* columns that leave something of one */
#define SENTENCE_LEAST 20	/* columns that still tell, where rows would look alike */
#define NAME_LEAST 8	/* columns that still tell one job or verdict from another */
#define MAIN_DROP 3	/* columns of this and less are a table's main ones */
#define GAP 2
#define FAR_FUTURE (UINT64_C(1) << 62)	/* a now for sorting: ages have the same order then */

/* ---- order ---------------------------------------------------------------- */

struct sort_key {
	json_t *row;
	size_t index;	/* equal rows keep their order */
	bool known;
	bool is_text;
	double value;
	char text[128];
	bool ascending;
};

static int keys_compare(const void *left, const void *right)
{
	const struct sort_key *a = left, *b = right;
	int order;

	if (a->known != b->known)
		return a->known ? -1 : 1;
	order = a->is_text ? strcmp(b->text, a->text)
			   : (a->value < b->value) - (a->value > b->value);
	if (order)
		return a->ascending ? -order : order;
	return (a->index > b->index) - (a->index < b->index);
}

void report_sort(json_t *rows, const struct column *column, bool ascending)
{
	size_t n = json_array_size(rows);
	struct sort_key *keys = must(calloc(n + 1, sizeof(*keys)));

	for (size_t i = 0; i < n; i++) {
		struct sort_key *key = &keys[i];

		key->row = json_incref(json_array_get(rows, i));
		key->index = i;
		key->ascending = ascending;
		key->is_text = report_is_text(column);
		key->known = key->is_text ? report_text(key->row, column->path, key->text,
						       sizeof(key->text))
					  : report_value(column, key->row, FAR_FUTURE, &key->value);
	}
	qsort(keys, n, sizeof(*keys), keys_compare);
	for (size_t i = 0; i < n; i++)
		json_array_set_new(rows, i, keys[i].row);
	free(keys);
}

/* ---- tables --------------------------------------------------------------- */

void report_init(struct report *report, const struct column *columns, size_t count,
		 const struct report_style *style)
{
	report->columns = columns;
	assert(count <= REPORT_COLUMNS);
	report->count = count;
	report->style = *style;
	report_fit(report, NULL, INT16_MAX);
}

static int column_natural_width(const struct report *report, const struct column *column,
				const json_t *rows)
{
	char cell[REPORT_CELL];
	int width;

	report_title(column, &report->style, cell, sizeof(cell));
	width = text_width(cell);
	width = column->least > width ? column->least : width;
	for (size_t i = 0; i < json_array_size(rows); i++) {
		int need;

		report_cell(column, json_array_get(rows, i), &report->style, cell, sizeof(cell));
		need = text_width(cell);
		width = need > width ? need : width;
	}
	return column->most && width > column->most ? column->most : width;
}

static int report_total_width(const struct report *report)
{
	int total = -GAP;

	for (size_t i = 0; i < report->count; i++)
		total += report->width[i] ? report->width[i] + GAP : 0;
	return total;
}

static int column_drop_order(const struct column *column)
{
	return column->drop &
	       ~(REPORT_KEY | REPORT_IF_KNOWN | REPORT_IF_UNUSUAL | REPORT_APART |
		 REPORT_VARIES);
}

static bool column_is_key(const struct column *column)
{
	return report_is_text(column) || column->drop & REPORT_KEY;
}

/* Counts the rows told apart by the columns never dropped, and by one column more. */
static size_t rows_told_apart(const struct report *report, const json_t *rows, size_t more)
{
	json_auto_t *seen = must(json_object());

	for (size_t r = 0; r < json_array_size(rows); r++) {
		char label[REPORT_CELL * 4] = "", cell[REPORT_CELL];
		size_t used = 0;

		for (size_t i = 0; i < report->count && used < sizeof(label) - 1; i++) {
			const struct column *column = &report->columns[i];

			if (!report->width[i] ||
			    (i != more && (column_drop_order(column) || !column_is_key(column))))
				continue;
			report_cell(column, json_array_get(rows, r), &report->style, cell,
				    sizeof(cell));
			used += (size_t)snprintf(label + used, sizeof(label) - used, "%s\n", cell);
		}
		json_object_set_new_nocheck(seen, label, json_true());
	}
	return json_object_size(seen);
}

/* Says whether rows differ in a column; one that does not know it does not count. */
static bool column_varies(const struct column *column, const json_t *rows)
{
	const json_t *first = NULL, *value;

	for (size_t i = 0; i < json_array_size(rows); i++) {
		value = report_get(json_array_get(rows, i), column->path);
		if (first && value && !json_equal((json_t *)first, (json_t *)value))
			return true;
		first = first ?: value;
	}
	return false;
}

/* The order in which columns go; 1: those without which rows look alike; 0: never. */
static void report_put_order(const struct report *report, const json_t *rows,
			     uint16_t order[REPORT_COLUMNS])
{
	size_t least = rows_told_apart(report, rows, SIZE_MAX);

	for (size_t i = 0; i < report->count; i++) {
		order[i] = (uint16_t)(2 * column_drop_order(&report->columns[i]));
		if (report->columns[i].drop & REPORT_APART && report->width[i] &&
		    rows_told_apart(report, rows, i) > least)
			order[i] = 1;
		if (report->columns[i].drop & REPORT_VARIES && report->width[i] &&
		    (report->style.varies || column_varies(&report->columns[i], rows)))
			order[i] = 1;
	}
}

/* Hide the column that is missed least, of an order of `most` at least; false: none is. */
static bool report_drop_one(struct report *report, const uint16_t order[REPORT_COLUMNS], int most)
{
	int victim = -1;

	for (size_t i = 0; i < report->count; i++) {
		if (!report->width[i] || order[i] < most)
			continue;
		victim = (int)i;
		most = order[i];
	}
	if (victim < 0)
		return false;
	report->width[victim] = 0;
	return true;
}

static bool column_tells(const struct column *column, const json_t *row)
{
	double value;

	if (column->drop & REPORT_IF_KNOWN)
		return report_get(row, column->path);
	return report_value(column, row, 0, &value) && !report_is_usual(column, value);
}

static bool column_is_shown(const struct column *column, const json_t *rows)
{
	bool shown = !(column->drop & (REPORT_IF_KNOWN | REPORT_IF_UNUSUAL));

	for (size_t i = 0; !shown && i < json_array_size(rows); i++)
		shown = column_tells(column, json_array_get(rows, i));
	return shown && column->header;
}

/* The last column that is shown, where that is text; -1: it is not. */
static int report_last_text(const struct report *report)
{
	int last = -1;

	for (size_t i = 0; i < report->count; i++)
		last = report->width[i] ? (int)i : last;
	return last >= 0 && report_is_text(&report->columns[last]) ? last : -1;
}

/* A column as wide as the others leave room, from `least` on, up to what it needs whole. */
static void report_refit(struct report *report, int column, int least, int whole, int limit)
{
	int room = report->width[column] + limit - report_total_width(report);

	report->width[column] = room < whole ? room : whole;
	if (report->width[column] < least)
		report->width[column] = least;
}

/* The column of a name by which rows differ that is longer than its beginning; -1: none. */
static int report_varied(const struct report *report, const uint16_t order[REPORT_COLUMNS])
{
	for (size_t i = 0; i < report->count; i++)
		if (report->columns[i].drop & REPORT_VARIES && order[i] == 1 &&
		    report->width[i] > NAME_LEAST)
			return (int)i;
	return -1;
}

/*
 * A long name, and then a word at the end, give way before main columns do; the name gets back
 * what these leave.
 */
static void report_drop_columns(struct report *report, const json_t *rows, int sentence, int limit)
{
	uint16_t order[REPORT_COLUMNS];
	int varied, whole;

	report_put_order(report, rows, order);
	while (report_total_width(report) > limit &&
	       report_drop_one(report, order, 2 * MAIN_DROP + 1))
		continue;
	varied = report_varied(report, order);
	whole = varied < 0 ? 0 : report->width[varied];
	if (varied >= 0)
		report_refit(report, varied, NAME_LEAST, whole, limit);
	if (varied >= 0 && sentence >= 0 && report->width[sentence] > NAME_LEAST &&
	    report->width[sentence] < SENTENCE_LEAST)
		report_refit(report, sentence, NAME_LEAST, report->width[sentence], limit);
	while (report_total_width(report) > limit && report_drop_one(report, order, 2))
		continue;
	if (report_total_width(report) > limit && sentence >= 0 &&
	    report->width[sentence] > SENTENCE_LEAST)
		report->width[sentence] = SENTENCE_LEAST;
	while (report_total_width(report) > limit && report_drop_one(report, order, 1))
		continue;
	if (varied >= 0 && report->width[varied])
		report_refit(report, varied, NAME_LEAST, whole, limit);
}

/*
 * A sentence at the end gives way before other columns do, as far as it still says
 * something, and takes what they leave.
 */
void report_fit(struct report *report, const json_t *rows, int limit)
{
	int sentence, last, whole;

	for (size_t i = 0; i < report->count; i++)
		report->width[i] = column_is_shown(&report->columns[i], rows)
					   ? column_natural_width(report, &report->columns[i], rows)
					   : 0;
	sentence = report_last_text(report);
	whole = sentence < 0 ? 0 : report->width[sentence];
	if (whole > SENTENCE && !report->columns[sentence].most)
		report->width[sentence] = SENTENCE;
	if (report_total_width(report) > limit)
		report_drop_columns(report, rows, sentence, limit);
	last = report_last_text(report);
	if (last < 0)
		return;
	report_refit(report, last, 1, last == sentence ? whole : report->width[last], limit);
}

int report_column_at(const struct report *report, int x)
{
	for (size_t i = 0; i < report->count && x >= 0; i++) {
		if (!report->width[i])
			continue;
		if (x < report->width[i] + GAP)
			return (int)i;
		x -= report->width[i] + GAP;
	}
	return -1;
}

/* Blanks between this cell and the one before it. */
static void line_put_gap(struct line *line, enum line_attr attr)
{
	if (line->columns)
		line_pad(line, attr, line->columns + GAP);
}

void report_header(const struct report *report, struct line *line, int sort)
{
	char title[REPORT_CELL];

	for (size_t i = 0; i < report->count; i++) {
		enum line_attr attr = (int)i == sort ? LINE_BOLD : LINE_BAR;

		if (!report->width[i])
			continue;
		line_put_gap(line, LINE_BAR);
		report_title(&report->columns[i], &report->style, title, sizeof(title));
		line_cell(line, attr, title, report->width[i],
			  !report_is_text(&report->columns[i]));
	}
}

void report_row(const struct report *report, const json_t *row, struct line *line)
{
	char cell[REPORT_CELL];

	for (size_t i = 0; i < report->count; i++) {
		enum line_attr attr;

		if (!report->width[i])
			continue;
		line_put_gap(line, LINE_PLAIN);
		attr = report_cell(&report->columns[i], row, &report->style, cell, sizeof(cell));
		line_cell(line, attr, cell, report->width[i], !report_is_text(&report->columns[i]));
	}
}
