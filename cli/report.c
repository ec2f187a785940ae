/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/report.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "util/text.h"

#define GAP   2
#define STALL_NS 1e10
#define CELL_BYTES 512

/* ---- paths ---------------------------------------------------------------- */

static const json_t *descend(const json_t *value, const char *path, size_t len)
{
	char key[64];

	while (value && len) {
		const char *dot = memchr(path, '.', len);
		size_t n = dot ? (size_t)(dot - path) : len;

		if (n >= sizeof(key))
			return NULL;
		memcpy(key, path, n);
		key[n] = '\0';
		value = json_object_get(value, key);
		path += dot ? n + 1 : n;
		len -= dot ? n + 1 : n;
	}
	return json_is_null(value) ? NULL : value;
}

/* The first alternative of a '|' list that is known. */
static const json_t *get(const json_t *row, const char *path, size_t len)
{
	const json_t *found = NULL;

	while (!found && len) {
		const char *bar = memchr(path, '|', len);
		size_t n = bar ? (size_t)(bar - path) : len;

		found = descend(row, path, n);
		if (json_is_string(found) && bar && !json_string_length(found))
			found = NULL;	/* no name was given: the next may say more */
		path += bar ? n + 1 : n;
		len -= bar ? n + 1 : n;
	}
	return found;
}

const json_t *report_get(const json_t *row, const char *path)
{
	return get(row, path, strlen(path));
}

/* ---- values --------------------------------------------------------------- */

static bool sum_of(const json_t *object, double *value)
{
	const char *key;
	json_t *member;

	if (!json_is_object(object))
		return json_is_number(object) ? (*value = json_number_value(object), true) : false;
	*value = 0;
	json_object_foreach((json_t *)object, key, member)
		*value += json_number_value(member);
	return true;
}

bool report_value(const struct column *column, const json_t *row, double *value)
{
	const json_t *got = report_get(row, column->path);

	if (column->kind == COL_SUM)
		return sum_of(got, value);
	if (!json_is_number(got))
		return false;
	*value = json_number_value(got);
	return true;
}

typedef enum line_attr show_fn(double value, uint64_t now_ns, char *buf, size_t size);

static enum line_attr show_integer(double value, uint64_t now_ns, char *buf, size_t size)
{
	(void)now_ns;
	snprintf(buf, size, "%.0f", value);
	return LINE_PLAIN;
}

static enum line_attr show_bytes(double value, uint64_t now_ns, char *buf, size_t size)
{
	(void)now_ns;
	text_bytes(buf, size, (uint64_t)value);
	return LINE_PLAIN;
}

static enum line_attr show_micros(double value, uint64_t now_ns, char *buf, size_t size)
{
	(void)now_ns;
	text_micros(buf, size, value);
	return LINE_PLAIN;
}

static enum line_attr show_age(double value, uint64_t now_ns, char *buf, size_t size)
{
	(void)now_ns;
	text_duration(buf, size, (uint64_t)value);
	return LINE_PLAIN;
}

static enum line_attr show_stall(double value, uint64_t now_ns, char *buf, size_t size)
{
	show_age(value, now_ns, buf, size);
	return value >= STALL_NS ? LINE_BAD : LINE_PLAIN;
}

static enum line_attr show_since(double value, uint64_t now_ns, char *buf, size_t size)
{
	text_duration(buf, size, value < (double)now_ns ? now_ns - (uint64_t)value : 0);
	return LINE_PLAIN;
}

static enum line_attr show_number(double value, uint64_t now_ns, char *buf, size_t size)
{
	(void)now_ns;
	text_number(buf, size, value);
	return LINE_PLAIN;
}

static enum line_attr show_percent(double value, uint64_t now_ns, char *buf, size_t size)
{
	(void)now_ns;
	snprintf(buf, size, "%.1f", value * 100);
	return LINE_PLAIN;
}

/* Little is not nothing. */
static enum line_attr show_loss(double value, uint64_t now_ns, char *buf, size_t size)
{
	if (value > 0 && value < 0.001)
		snprintf(buf, size, "<0.1");
	else
		show_percent(value, now_ns, buf, size);
	return value > 0 ? LINE_BAD : LINE_PLAIN;
}

static enum line_attr show_sum(double value, uint64_t now_ns, char *buf, size_t size)
{
	show_integer(value, now_ns, buf, size);
	return value > 0 ? LINE_BAD : LINE_PLAIN;
}

/* How each kind is shown; no function: it is a text. */
static const struct {
	show_fn *show;
	bool right;
	double usual;
} kinds[COL_KINDS] = {
	[COL_TEXT] = { NULL, false, 0 },       [COL_OP] = { NULL, false, 0 },
	[COL_STATE] = { NULL, false, 0 },      [COL_TIME] = { NULL, false, 0 },
	[COL_INTEGER] = { show_integer, true, 0 }, [COL_BYTES] = { show_bytes, true, 0 },
	[COL_MICROS] = { show_micros, true, 0 }, [COL_AGE] = { show_age, true, 0 },
	[COL_SINCE] = { show_since, true, 0 },  [COL_NUMBER] = { show_number, true, 0 },
	[COL_PERCENT] = { show_percent, true, 1 }, [COL_LOSS] = { show_loss, true, 0 },
	[COL_SUM] = { show_sum, true, 0 },	[COL_STALL] = { show_stall, true, 0 },
};

/* A scalar as text; "-" when it is not known. */
static const char *scalar(const json_t *value, char *buf, size_t size)
{
	if (json_is_string(value))
		return json_string_value(value);
	if (json_is_integer(value))
		snprintf(buf, size, "%" JSON_INTEGER_FORMAT, json_integer_value(value));
	else if (json_is_real(value))
		snprintf(buf, size, "%.15g", json_real_value(value));
	else if (json_is_boolean(value))
		return json_is_true(value) ? "yes" : "no";
	else
		return "-";
	return buf;
}

/* Texts joined by the path's slashes; "-" when none of them is known. */
static bool join_texts(const json_t *row, const char *path, char *buf, size_t size)
{
	bool known = false;
	size_t used = 0;

	buf[0] = '\0';
	for (bool first = true; path && used < size; first = false) {
		const char *slash = strchr(path, '/');
		const json_t *value = get(row, path, slash ? (size_t)(slash - path) : strlen(path));
		char number[TEXT_MAX];

		known = known || value;
		used += (size_t)snprintf(buf + used, size - used, "%s%s", first ? "" : "/",
					 scalar(value, number, sizeof(number)));
		path = slash ? slash + 1 : NULL;
	}
	if (!known)
		snprintf(buf, size, "-");
	return known;
}

/* "2026-01-02T03:04:05.678901234Z" -> "03:04:05.678" here; what is no time stays. */
static void to_time_of_day(char *buf, size_t size)
{
	struct tm utc = { 0 }, local;
	char millis[5] = "";
	const char *rest;
	time_t t;

	rest = strptime(buf, "%Y-%m-%dT%H:%M:%S", &utc);
	if (!rest)
		return;
	if (*rest == '.')
		snprintf(millis, sizeof(millis), "%.4s", rest);
	t = timegm(&utc);
	localtime_r(&t, &local);
	snprintf(buf, size, "%02d:%02d:%02d%s", local.tm_hour, local.tm_min, local.tm_sec, millis);
}

static bool is_derived(const json_t *row)
{
	const json_t *derived = json_object_get(row, "derived");

	return json_is_true(derived) || json_integer_value(derived) > 0;
}

static enum line_attr show_text(const struct column *column, const json_t *row, char *buf,
				size_t size)
{
	join_texts(row, column->path, buf, size);
	if (column->kind == COL_TIME)
		to_time_of_day(buf, size);
	if (column->kind == COL_OP && is_derived(row) && strlen(buf) + 1 < size)
		strcat(buf, "*");
	return column->kind == COL_STATE && !strcmp(buf, "died") ? LINE_BAD : LINE_PLAIN;
}

enum line_attr report_cell(const struct column *column, const json_t *row, uint64_t now_ns,
			   char *buf, size_t size)
{
	double value;

	if (!kinds[column->kind].show)
		return show_text(column, row, buf, size);
	if (!report_value(column, row, &value)) {
		snprintf(buf, size, "-");
		return LINE_DIM;
	}
	return kinds[column->kind].show(value, now_ns, buf, size);
}

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

static int compare_keys(const void *left, const void *right)
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
	struct sort_key *keys = calloc(n + 1, sizeof(*keys));

	if (!keys)
		abort();
	for (size_t i = 0; i < n; i++) {
		struct sort_key *key = &keys[i];

		key->row = json_incref(json_array_get(rows, i));
		key->index = i;
		key->ascending = ascending;
		key->is_text = !kinds[column->kind].show;
		key->known = key->is_text ? join_texts(key->row, column->path, key->text,
						       sizeof(key->text))
					  : report_value(column, key->row, &key->value);
	}
	qsort(keys, n, sizeof(*keys), compare_keys);
	for (size_t i = 0; i < n; i++)
		json_array_set_new(rows, i, keys[i].row);
	free(keys);
}

/* ---- tables --------------------------------------------------------------- */

void report_init(struct report *report, const struct column *columns, size_t count,
		 uint64_t now_ns)
{
	report->columns = columns;
	assert(count <= REPORT_COLUMNS);
	report->count = count;
	report->now_ns = now_ns;
	report_fit(report, NULL, INT16_MAX);
}

static int natural_width(const struct report *report, const struct column *column,
			 const json_t *rows)
{
	int width = text_width(column->header);
	char cell[CELL_BYTES];

	width = column->least > width ? column->least : width;
	for (size_t i = 0; i < json_array_size(rows); i++) {
		int need;

		report_cell(column, json_array_get(rows, i), report->now_ns, cell, sizeof(cell));
		need = text_width(cell);
		width = need > width ? need : width;
	}
	return column->most && width > column->most ? column->most : width;
}

static int total_width(const struct report *report)
{
	int total = -GAP;

	for (size_t i = 0; i < report->count; i++)
		total += report->width[i] ? report->width[i] + GAP : 0;
	return total;
}

static int drop_order(const struct column *column)
{
	return column->drop & ~(REPORT_IF_KNOWN | REPORT_IF_UNUSUAL);
}

/* Hide the column that is missed least; false when each is needed. */
static bool drop_one(struct report *report)
{
	int victim = -1, most = 1;

	for (size_t i = 0; i < report->count; i++) {
		int order = drop_order(&report->columns[i]);

		if (!report->width[i] || order < most)
			continue;
		victim = (int)i;
		most = order;
	}
	if (victim < 0)
		return false;
	report->width[victim] = 0;
	return true;
}

static bool tells(const struct column *column, const json_t *row)
{
	double value;

	if (column->drop & REPORT_IF_KNOWN)
		return report_get(row, column->path);
	return report_value(column, row, &value) && value != kinds[column->kind].usual;
}

static bool is_shown(const struct column *column, const json_t *rows)
{
	bool shown = !(column->drop & (REPORT_IF_KNOWN | REPORT_IF_UNUSUAL));

	for (size_t i = 0; !shown && i < json_array_size(rows); i++)
		shown = tells(column, json_array_get(rows, i));
	return shown && column->header;
}

void report_fit(struct report *report, const json_t *rows, int limit)
{
	for (size_t i = 0; i < report->count; i++)
		report->width[i] = is_shown(&report->columns[i], rows)
					   ? natural_width(report, &report->columns[i], rows)
					   : 0;
	while (total_width(report) > limit && drop_one(report))
		continue;
}

/* Blanks between this cell and the one before it. */
static void put_gap(struct line *line, enum line_attr attr)
{
	if (line->columns)
		line_pad(line, attr, line->columns + GAP);
}

void report_header(const struct report *report, struct line *line, int sort)
{
	for (size_t i = 0; i < report->count; i++) {
		enum line_attr attr = (int)i == sort ? LINE_BOLD : LINE_BAR;

		if (!report->width[i])
			continue;
		put_gap(line, LINE_BAR);
		line_cell(line, attr, report->columns[i].header, report->width[i],
			  kinds[report->columns[i].kind].right);
	}
}

void report_row(const struct report *report, const json_t *row, struct line *line)
{
	char cell[CELL_BYTES];

	for (size_t i = 0; i < report->count; i++) {
		enum line_attr attr;

		if (!report->width[i])
			continue;
		put_gap(line, LINE_PLAIN);
		attr = report_cell(&report->columns[i], row, report->now_ns, cell, sizeof(cell));
		line_cell(line, attr, cell, report->width[i], kinds[report->columns[i].kind].right);
	}
}

/* ---- CSV ------------------------------------------------------------------ */

static void csv_field(const char *text, FILE *out)
{
	if (!strpbrk(text, ",\"\r\n")) {
		fputs(text, out);
		return;
	}
	fputc('"', out);
	for (; *text; text++)
		fprintf(out, *text == '"' ? "\"\"" : "%c", *text);
	fputc('"', out);
}

static void csv_end(FILE *out)
{
	fputs("\n", out);
}

void report_csv_header(const struct report *report, FILE *out)
{
	const char *comma = "";

	for (size_t i = 0; i < report->count; i++) {
		if (!report->columns[i].name)
			continue;
		fprintf(out, "%s%s", comma, report->columns[i].name);
		comma = ",";
	}
	csv_end(out);
}

/* The raw value, in the API's own unit; empty when it is not known. */
static void csv_value(const struct column *column, const json_t *row, FILE *out)
{
	char text[CELL_BYTES];
	double value;

	if (column->kind == COL_SUM) {
		if (report_value(column, row, &value))
			fprintf(out, "%.0f", value);
	} else if (join_texts(row, column->path, text, sizeof(text))) {
		csv_field(text, out);
	}
}

void report_csv_row(const struct report *report, const json_t *row, FILE *out)
{
	const char *comma = "";

	for (size_t i = 0; i < report->count; i++) {
		if (!report->columns[i].name)
			continue;
		fputs(comma, out);
		csv_value(&report->columns[i], row, out);
		comma = ",";
	}
	csv_end(out);
}
