/* SPDX-License-Identifier: Apache-2.0 */
/* The parser of filter expressions, and the comparison of cells with their values. */
#include "cli/table/filter.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "cli/base/must.h"
#include "cli/table/fields.h"
#include "util/list.h"
#include "util/text.h"

/* Longer ones first, as their beginnings are operators as well. */
static const struct filter_op {
	const char *text;
	bool less, equal, more;	/* outcomes of a comparison that it wants */
	bool contains;		/* compares by looking for the value in the cell */
} ops[] = {
	{ "!=", true, false, true, false }, { "!~", true, false, true, true },
	{ "<=", true, true, false, false }, { ">=", false, true, true, false },
	{ "=", false, true, false, false }, { "~", false, true, false, true },
	{ "<", true, false, false, false }, { ">", false, false, true, false },
};

/* ---- reading --------------------------------------------------------------- */

static const struct filter_op *filter_find_op(const char *text)
{
	for (size_t i = 0; i < ARRAY_LEN(ops); i++)
		if (!strncmp(text, ops[i].text, strlen(ops[i].text)))
			return &ops[i];
	return NULL;
}

static bool column_counts_time(const struct column *column)
{
	return column->kind == COL_MICROS || column->kind == COL_AGE ||
	       column->kind == COL_SINCE || column->kind == COL_STALL;
}

/* Reads a number with a unit, or in that of the API's values, or as the column shows it. */
static int column_read_number(const struct column *column, bool raw, const char *text,
			      double *number)
{
	double scale = raw ? 1 : report_scale(column);
	uint64_t ns;
	char *end;

	*number = strtod(text, &end) * scale;
	if (end != text && !*end)
		return 0;
	if (end != text && !strcmp(end, "%")) {
		*number = strtod(text, NULL) / 100;
		return 0;
	}
	if (column->kind == COL_BYTES)
		return text_parse_bytes(text, number);
	if (!column_counts_time(column) || text_parse_duration(text, &ns))
		return -EINVAL;
	*number = (double)ns;
	return 0;
}

static int term_set_comparison(const struct filter *filter, struct filter_term *term,
			       const char *name, char *why, size_t size)
{
	bool raw;

	term->column = fields_find(filter->columns, filter->count, name, &raw);
	if (!term->column) {
		fields_unknown(filter->columns, filter->count, name, why, size);
		return -EINVAL;
	}
	if (report_is_text(term->column) || term->op->contains || !strcmp(term->text, "-"))
		return 0;
	if (!column_read_number(term->column, raw, term->text, &term->number))
		return 0;
	snprintf(why, size, "'%s' is not a number, which the field %s needs", term->text, name);
	return -EINVAL;
}

void filter_init(struct filter *filter, const struct column *columns, size_t count)
{
	filter->columns = columns;
	filter->count = count;
	filter->used = 0;
}

int filter_add(struct filter *filter, const char *expression, char *why, size_t size)
{
	struct filter_term term = { .text = expression };
	size_t len = strspn(expression, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
					"0123456789_/.");
	const char *rest = expression + len;
	char name[FIELD_NAME];
	int r = 0;

	if (filter->used == FILTERS) {
		snprintf(why, size, "at most %d filters can be given", FILTERS);
		return -E2BIG;
	}
	rest += strspn(rest, " ");
	term.op = len && len < sizeof(name) ? filter_find_op(rest) : NULL;
	if (term.op) {
		snprintf(name, sizeof(name), "%.*s", (int)len, expression);
		term.text = rest + strlen(term.op->text);
		term.text += strspn(term.text, " ");
		r = term_set_comparison(filter, &term, name, why, size);
	}
	if (!r)
		*array_must_add(filter->terms, &filter->used) = term;
	return r;
}

/* ---- deciding --------------------------------------------------------------- */

static bool cell_contains_any(const char *cell, const char *strings)
{
	char *copy = must(strdup(strings)), *left = copy, *one;
	bool found = false;

	while (!found && (one = strsep(&left, "|")))
		found = *one && strcasestr(cell, one);
	free(copy);
	return found;
}

bool filter_shows(const struct column *columns, size_t count, const json_t *row,
		  const struct report_style *style, const char *strings)
{
	char cell[REPORT_CELL];

	for (size_t i = 0; i < count; i++) {
		if (!columns[i].header)
			continue;
		report_cell(&columns[i], row, style, cell, sizeof(cell));
		if (cell_contains_any(cell, strings))
			return true;
	}
	return false;
}

/* Compares the cell with the value, as strcmp(); 0 when it contains what it should. */
static int term_compare(const struct filter_term *term, const json_t *row,
			const struct report_style *style)
{
	char cell[REPORT_CELL];
	double value;

	if (term->op->contains) {
		report_cell(term->column, row, style, cell, sizeof(cell));
		return !strcasestr(cell, term->text);
	}
	if (report_is_text(term->column)) {
		report_text(row, term->column->path, cell, sizeof(cell));
		return strcasecmp(cell, term->text);
	}
	report_value(term->column, row, style->now_ns, &value);
	return (value > term->number) - (value < term->number);
}

static bool column_is_known(const struct column *column, const json_t *row,
			    const struct report_style *style)
{
	char text[REPORT_CELL];
	double value;

	if (report_is_text(column))
		return report_text(row, column->path, text, sizeof(text));
	return report_value(column, row, style->now_ns, &value);
}

static bool term_holds(const struct filter_term *term, const json_t *row,
		       const struct report_style *style)
{
	const struct filter_op *op = term->op;
	bool known = column_is_known(term->column, row, style), unlike = op->less && op->more;
	int order;

	if (!strcmp(term->text, "-"))
		return known ? unlike : op->equal;
	if (!known)
		return unlike;
	order = term_compare(term, row, style);
	return order < 0 ? op->less : order > 0 ? op->more : op->equal;
}

bool filter_wants(const struct filter *filter, const json_t *row,
		  const struct report_style *style)
{
	for (size_t i = 0; i < filter->used; i++) {
		const struct filter_term *term = &filter->terms[i];

		if (term->column ? !term_holds(term, row, style)
				 : !filter_shows(filter->columns, filter->count, row, style,
						 term->text))
			return false;
	}
	return true;
}
