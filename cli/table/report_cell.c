/* SPDX-License-Identifier: Apache-2.0 */
/* One value of one row: where it is, what it means, how people read it. */
#include "cli/base/intake.h"
#include "cli/table/report.h"

#include <float.h>
#include <math.h>
#include <string.h>
#include <time.h>

#include "util/text.h"

#define STALL_NS 1e10

/* ---- paths ---------------------------------------------------------------- */

static const json_t *cell_descend(const json_t *value, const char *path, size_t len)
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
static const json_t *cell_get(const json_t *row, const char *path, size_t len)
{
	const json_t *found = NULL;

	while (!found && len) {
		const char *bar = memchr(path, '|', len);
		size_t n = bar ? (size_t)(bar - path) : len;

		found = cell_descend(row, path, n);
		if (json_is_string(found) && bar && !json_string_length(found))
			found = NULL;	/* no name was given: the next may say more */
		path += bar ? n + 1 : n;
		len -= bar ? n + 1 : n;
	}
	return found;
}

const json_t *report_get(const json_t *row, const char *path)
{
	return cell_get(row, path, strlen(path));
}

/* ---- values --------------------------------------------------------------- */

static bool cell_sum(const json_t *object, double *value)
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

static bool cell_largest(const json_t *array, double *value)
{
	const json_t *one;
	bool known = false;
	size_t i;

	json_array_foreach((json_t *)array, i, one) {
		if (!json_is_number(one) || (known && json_number_value(one) <= *value))
			continue;
		*value = json_number_value(one);
		known = true;
	}
	return known;
}

bool report_value(const struct column *column, const json_t *row, uint64_t now_ns, double *value)
{
	const json_t *got = report_get(row, column->path);

	if (column->kind == COL_SUM)
		return cell_sum(got, value);
	if (report_is_history(column))
		return cell_largest(got, value);
	if (!json_is_number(got))
		return false;
	*value = json_number_value(got);
	if (column->kind == COL_SINCE)
		*value = *value < (double)now_ns ? (double)now_ns - *value : 0;
	return true;
}

typedef enum line_attr show_fn(double value, enum report_units units, char *buf, size_t size);

/* Tables have thousands of them: digit by digit it takes a tenth of what printf() does. */
static void cell_put_whole(uint64_t value, char *buf, size_t size)
{
	char digits[TEXT_MAX], *at = digits + sizeof(digits);
	size_t n;

	do
		*--at = (char)('0' + value % 10);
	while (value /= 10);
	n = (size_t)(digits + sizeof(digits) - at);
	n = n < size ? n : size - 1;
	memcpy(buf, at, n);
	buf[n] = '\0';
}

static enum line_attr cell_integer(double value, enum report_units units, char *buf, size_t size)
{
	if (value >= 0 && value == (double)intake_whole(value))
		cell_put_whole(intake_whole(value), buf, size);
	else
		snprintf(buf, size, "%.0f", value);
	return LINE_PLAIN;
}

static enum line_attr cell_bytes(double value, enum report_units units, char *buf, size_t size)
{
	if (units == REPORT_SI)
		text_bytes_si(buf, size, intake_whole(value));
	else
		text_bytes(buf, size, intake_whole(value));
	return LINE_PLAIN;
}

static enum line_attr cell_micros(double value, enum report_units units, char *buf, size_t size)
{
	text_micros(buf, size, value);
	return LINE_PLAIN;
}

static enum line_attr cell_age(double value, enum report_units units, char *buf, size_t size)
{
	text_duration(buf, size, intake_whole(value));
	return LINE_PLAIN;
}

static enum line_attr cell_number(double value, enum report_units units, char *buf, size_t size)
{
	if (value > 0 && value < 0.0001)
		snprintf(buf, size, "<0.0001");
	else
		text_number(buf, size, value);
	return LINE_PLAIN;
}

static enum line_attr cell_percent(double value, enum report_units units, char *buf, size_t size)
{
	snprintf(buf, size, "%.1f", value * 100);
	return LINE_PLAIN;
}

/* Little is not nothing. */
static enum line_attr cell_loss(double value, enum report_units units, char *buf, size_t size)
{
	if (value > 0 && value < 0.001)
		snprintf(buf, size, "<0.1");
	else
		cell_percent(value, units, buf, size);
	return LINE_PLAIN;
}

/* The look of each kind, and the value from which on it is bad; no function: it is a text. */
static const struct kind {
	show_fn *show;
	const char *unit;	/* a header's, where cells do not say it */
	const char *raw_unit;
	double scale;		/* base units in that unit, or in a bare number that people write */
	double usual;
	double bad;		/* above this; 0: never */
} kinds[COL_KINDS] = {
	[COL_TEXT] = { NULL, "", "", 1, 0, 0 },
	[COL_OP] = { NULL, "", "", 1, 0, 0 },
	[COL_STATE] = { NULL, "", "", 1, 0, 0 },
	[COL_VERDICT] = { NULL, "", "", 1, 0, 0 },
	[COL_TIME] = { NULL, "", "", 1, 0, 0 },
	[COL_INTEGER] = { cell_integer, "", "", 1, 0, 0 },
	[COL_BYTES] = { cell_bytes, "", "(B)", 1, 0, 0 },
	[COL_MICROS] = { cell_micros, "(us)", "(ns)", 1e3, 0, 0 },
	[COL_AGE] = { cell_age, "", "(ns)", 1e9, 0, 0 },
	[COL_SINCE] = { cell_age, "", "(ns)", 1e9, 0, 0 },
	[COL_NUMBER] = { cell_number, "", "", 1, 0, 0 },
	[COL_PERCENT] = { cell_percent, "(%)", "", 0.01, 1, 0 },
	[COL_LOSS] = { cell_loss, "(%)", "", 0.01, 0, DBL_MIN },
	[COL_SUM] = { cell_integer, "", "", 1, 0, DBL_MIN },
	[COL_STALL] = { cell_age, "", "(ns)", 1e9, 0, STALL_NS },
	[COL_SHARES] = { cell_percent, "(%)", "", 0.01, 1, 0 },
	[COL_RATES] = { cell_number, "", "", 1, 0, 0 },
};

bool report_is_text(const struct column *column)
{
	return !kinds[column->kind].show;
}

const char *report_unit(const struct column *column)
{
	return kinds[column->kind].unit;
}

double report_scale(const struct column *column)
{
	return kinds[column->kind].scale;
}

bool report_is_usual(const struct column *column, double value)
{
	return value == kinds[column->kind].usual;
}

/* A scalar as text; "-" when it is not known. */
static const char *cell_scalar(const json_t *value, char *buf, size_t size)
{
	if (json_is_string(value))
		return json_string_value(value);
	if (json_is_integer(value) && json_integer_value(value) >= 0)
		cell_put_whole((uint64_t)json_integer_value(value), buf, size);
	else if (json_is_integer(value))
		snprintf(buf, size, "%" JSON_INTEGER_FORMAT, json_integer_value(value));
	else if (json_is_real(value))
		snprintf(buf, size, "%.15g", json_real_value(value));
	else if (json_is_boolean(value))
		return json_is_true(value) ? "yes" : "no";
	else
		return "-";
	return buf;
}

/* Copies what there is room for; returns the bytes of that. */
static size_t cell_copy(char *buf, size_t size, const char *text)
{
	size_t n = strlen(text);

	n = n < size ? n : size - 1;
	memcpy(buf, text, n);
	buf[n] = '\0';
	return n;
}

/* The same of a value, or of the values of a list, "; " between them. */
static size_t cell_copy_value(char *buf, size_t size, const json_t *value)
{
	char number[TEXT_MAX];
	size_t used = 0, i;
	json_t *one;

	if (!json_is_array(value))
		return cell_copy(buf, size, cell_scalar(value, number, sizeof(number)));
	json_array_foreach((json_t *)(uintptr_t)value, i, one) {
		used += cell_copy(buf + used, size - used, i ? "; " : "");
		used += cell_copy(buf + used, size - used,
				  cell_scalar(one, number, sizeof(number)));
	}
	return used;
}

bool report_text(const json_t *row, const char *path, char *buf, size_t size)
{
	bool known = false;
	size_t used = 0;

	buf[0] = '\0';
	for (bool first = true; path; first = false) {
		const char *slash = strchr(path, '/');
		const json_t *value = cell_get(row, path,
					       slash ? (size_t)(slash - path) : strlen(path));

		known = known || value;
		if (!first)
			used += cell_copy(buf + used, size - used, "/");
		used += cell_copy_value(buf + used, size - used, value);
		path = slash ? slash + 1 : NULL;
	}
	if (!known)
		cell_copy(buf, size, "-");
	return known;
}

/* "2026-01-02T03:04:05.678901234Z" -> "03:04:05.678" here or in UTC; what is no time stays. */
static void cell_time_of_day(bool in_utc, char *buf, size_t size)
{
	struct tm utc = { 0 }, shown;
	char millis[5] = "";
	const char *rest;
	time_t t;

	rest = strptime(buf, "%Y-%m-%dT%H:%M:%S", &utc);
	if (!rest)
		return;
	if (*rest == '.')
		snprintf(millis, sizeof(millis), "%.4s", rest);
	t = timegm(&utc);
	if (in_utc)
		gmtime_r(&t, &shown);
	else
		localtime_r(&t, &shown);
	snprintf(buf, size, "%02d:%02d:%02d%s", shown.tm_hour, shown.tm_min, shown.tm_sec, millis);
}

static bool row_is_derived(const json_t *row)
{
	const json_t *derived = json_object_get(row, "derived");

	return json_is_true(derived) || json_integer_value(derived) > 0;
}

/* Writes it in capitals; a question mark behind says that the finding is only suspected. */
static void cell_verdict(const json_t *row, char *text, size_t size)
{
	const char *grade = json_string_value(json_object_get(row, "grade"));

	for (char *at = text; *at; at++)
		if (*at >= 'a' && *at <= 'z')
			*at = (char)(*at - 'a' + 'A');
	if (grade && !strcmp(grade, "suspected") && strlen(text) + 1 < size)
		strcat(text, "?");
}

static enum line_attr cell_text(const struct column *column, const json_t *row, bool in_utc,
				char *buf, size_t size)
{
	if (!report_text(row, column->path, buf, size))
		return LINE_DIM;
	if (column->kind == COL_VERDICT)
		cell_verdict(row, buf, size);
	if (column->kind == COL_TIME)
		cell_time_of_day(in_utc, buf, size);
	if (column->kind == COL_OP && row_is_derived(row) && strlen(buf) + 1 < size)
		strcat(buf, "*");
	return column->kind == COL_STATE && !strcmp(buf, "died") ? LINE_BAD : LINE_PLAIN;
}

#define HISTORY_SHOWN 16		/* values shown: the newest */
#define HISTORY_HALF 0.5		/* the share from which on a block is full */

/* The lowest block is nothing, and anything more is seen. */
static enum line_attr cell_history(const struct column *column, const json_t *array,
				   double largest, char *buf, size_t size)
{
	double full = column->kind == COL_SHARES ? HISTORY_HALF : largest;
	size_t n = json_array_size(array), used = 0;

	for (size_t i = n > HISTORY_SHOWN ? n - HISTORY_SHOWN : 0; i < n; i++) {
		const json_t *one = json_array_get(array, i);
		double part = full > 0 ? json_number_value(one) / full : 0;
		int height = part <= 0 ? 1 : part >= 1 ? 8 : 1 + (int)ceil(part * 7);

		used += cell_copy(buf + used, size - used,
				  json_is_number(one) ? text_block(height) : "-");
	}
	return LINE_PLAIN;
}

enum line_attr report_cell(const struct column *column, const json_t *row,
			   const struct report_style *style, char *buf, size_t size)
{
	static const struct report_style usual;
	const struct kind *kind = &kinds[column->kind];
	double value;

	if (!style)
		style = &usual;
	if (!kind->show)
		return cell_text(column, row, style->utc, buf, size);
	if (!report_value(column, row, style->now_ns, &value)) {
		/* A number of which only a bound is known is a text: "<1s". */
		cell_copy(buf, size, json_string_value(report_get(row, column->path)) ?: "-");
		return LINE_DIM;
	}
	if (report_is_history(column))
		return cell_history(column, report_get(row, column->path), value, buf, size);
	if (style->coarse && column->kind == COL_STALL && value < 1e9)
		snprintf(buf, size, "<1s");
	else if (style->units == REPORT_RAW)
		snprintf(buf, size, "%.15g", value);
	else
		kind->show(value, style->units, buf, size);
	return kind->bad > 0 && value >= kind->bad ? LINE_BAD : LINE_PLAIN;
}

void report_title(const struct column *column, const struct report_style *style, char *buf,
		  size_t size)
{
	const struct kind *kind = &kinds[column->kind];
	const char *header = column->header;
	size_t len = strlen(header), unit = strlen(kind->unit);

	if (style->units != REPORT_RAW) {
		snprintf(buf, size, "%s", header);
		return;
	}
	if (unit && len > unit && !strcmp(header + len - unit, kind->unit))
		len -= unit;
	snprintf(buf, size, "%.*s%s", (int)len, header, kind->raw_unit);
}
