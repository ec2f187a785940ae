/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The choice of columns by name.  A chosen column that lacks a header or a name gets one made
 * from the other.
 */
#include "cli/table/fields.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "cli/base/must.h"
#include "util/meant.h"

/* "P50(us)" without its unit: as many bytes. */
static size_t header_stem(const char *header)
{
	return strcspn(header, "(");
}

static bool column_has_header(const struct column *column, const char *name)
{
	return column->header && strlen(name) == header_stem(column->header) &&
	       !strncasecmp(name, column->header, strlen(name));
}

static bool text_ends_in(const char *text, const char *end)
{
	size_t len = strlen(text), n = strlen(end);

	return len >= n && !strcmp(text + len - n, end);
}

const struct column *fields_find(const struct column *columns, size_t count, const char *name,
				 bool *raw)
{
	*raw = text_ends_in(name, "_ns") || text_ends_in(name, "_fraction");
	for (size_t i = 0; i < count; i++)
		if (columns[i].name && !strcasecmp(name, columns[i].name))
			return &columns[i];
	for (size_t i = 0; i < count; i++)
		if (column_has_header(&columns[i], name))
			return &columns[i];
	return NULL;
}

void fields_unknown(const struct column *columns, size_t count, const char *name, char *why,
		    size_t size)
{
	struct meant meant = { .wanted = name };

	for (size_t i = 0; i < count; i++)
		if (columns[i].name)
			meant_offer(&meant, columns[i].name);
	snprintf(why, size, "no field '%s'%s%s%s; --fields help lists them", name,
		 meant.best ? "; is it " : "", meant.best ?: "", meant.best ? "?" : "");
}

/* ---- making up what a column lacks ------------------------------------------ */

/* "p50_ns" -> "P50(us)", the unit being that of the column's kind. */
static void column_make_header(const struct column *column, char *made)
{
	static const char *const units[] = { "_ns", "_gbs", "" };
	const char *unit = text_ends_in(column->name, "_gbs") ? "(GB/s)" : report_unit(column);
	const char *const *end = units;

	while (!text_ends_in(column->name, *end))
		end++;
	snprintf(made, FIELD_NAME, "%.*s%s", (int)(strlen(column->name) - strlen(*end)),
		 column->name, unit);
	for (char *c = made; *c && *c != '('; c++)
		*c = (char)toupper((unsigned char)*c);
}

/* "ALGO/PROTO" -> "algo/proto" */
static void column_make_name(const struct column *column, char *made)
{
	snprintf(made, FIELD_NAME, "%.*s", (int)header_stem(column->header), column->header);
	for (char *c = made; *c; c++)
		*c = (char)tolower((unsigned char)*c);
}

static int fields_add(struct fields *fields, const struct column *column)
{
	struct column *to = &fields->columns[fields->count];
	char *made = fields->made[fields->count];

	if (fields->count == REPORT_COLUMNS)
		return -E2BIG;
	*to = *column;
	to->drop &= REPORT_KEY;
	if (!to->header) {
		column_make_header(column, made);
		to->header = made;
	} else if (!to->name) {
		column_make_name(column, made);
		to->name = made;
	}
	fields->count++;
	return 0;
}

int fields_select(struct fields *fields, const struct column *columns, size_t count,
		  const char *list, char **unknown)
{
	char *copy = must(strdup(list)), *left = copy, *name;
	const struct column *column;
	int r = 0;
	bool by_name;

	fields->count = 0;
	while (!r && (name = strsep(&left, ","))) {
		column = fields_find(columns, count, name, &by_name);
		r = column ? fields_add(fields, column) : -ENOENT;
		if (r == -ENOENT)
			*unknown = strdup(name);
	}
	free(copy);
	return r;
}

/* ---- all of them ------------------------------------------------------------- */

/* Does a table that shows this column show what is at `path`? */
static bool column_shows(const struct column *column, const char *path)
{
	size_t len = strlen(path);

	for (const char *at = column->path; column->header && at; at = strpbrk(at, "/|")) {
		at += strspn(at, "/");
		if (*at == '|')
			return false;
		if (!strncmp(at, path, len) && (!at[len] || strchr("/|", at[len])))
			return true;
	}
	return false;
}

static bool columns_show(const struct column *columns, size_t count, const char *path)
{
	for (size_t i = 0; i < count; i++)
		if (column_shows(&columns[i], path))
			return true;
	return false;
}

void fields_widen(struct fields *fields, const struct column *columns, size_t count)
{
	fields->count = 0;
	for (size_t i = 0; i < count; i++)
		if (columns[i].header)
			fields_add(fields, &columns[i]);
	for (size_t i = 0; i < count; i++)
		if (!columns[i].header && !columns_show(columns, count, columns[i].path))
			fields_add(fields, &columns[i]);
}

void fields_list(const struct column *columns, size_t count, bool with_header, FILE *out)
{
	for (size_t i = 0; i < count; i++) {
		const struct column *column = &columns[i];
		char name[FIELD_NAME];
		bool by_name;

		if (column->name)
			snprintf(name, sizeof(name), "%s", column->name);
		else
			column_make_name(column, name);
		if (fields_find(columns, count, name, &by_name) != column)
			continue;	/* the one of that name says more */
		if (with_header)
			fprintf(out, "%-20s  %s\n", name, column->header ?: "-");
		else
			fprintf(out, "%s\n", name);
	}
}
