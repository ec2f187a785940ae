/* SPDX-License-Identifier: Apache-2.0 */
/* Rows for programs: CSV, JSON and Prometheus' text, from the columns of the table. */
#include <string.h>

#include "cli/base/must.h"
#include "cli/table/report.h"

/* ---- CSV ------------------------------------------------------------------ */

/* A spreadsheet works out what begins as a formula does, whoever gave the name. */
static void csv_put_field(const char *text, bool is_number, FILE *out)
{
	const char *guard = *text && strchr("=+-@\t\r", *text) && !is_number ? "'" : "";

	if (!strpbrk(text, ",\"\r\n")) {
		fprintf(out, "%s%s", guard, text);
		return;
	}
	fprintf(out, "\"%s", guard);
	for (; *text; text++)
		fprintf(out, *text == '"' ? "\"\"" : "%c", *text);
	fputc('"', out);
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
	fputc('\n', out);
}

/* Worked out here, rather than taken from the answer. */
static bool column_is_computed(const struct column *column)
{
	return column->kind == COL_SUM || column->kind == COL_SINCE;
}

static void csv_put_value(const struct report *report, const struct column *column,
			  const json_t *row, FILE *out)
{
	char text[REPORT_CELL], *list;
	double value;

	if (column_is_computed(column)) {
		if (report_value(column, row, report->style.now_ns, &value))
			fprintf(out, "%.0f", value);
	} else if (report_is_history(column)) {
		list = json_dumps(report_get(row, column->path),
				  JSON_COMPACT | JSON_REAL_PRECISION(15));
		csv_put_field(list ?: "", false, out);
		free(list);
	} else if (report_text(row, column->path, text, sizeof(text))) {
		csv_put_field(text, json_is_number(report_get(row, column->path)), out);
	}
}

void report_csv_row(const struct report *report, const json_t *row, FILE *out)
{
	const char *comma = "";

	for (size_t i = 0; i < report->count; i++) {
		if (!report->columns[i].name)
			continue;
		fputs(comma, out);
		csv_put_value(report, &report->columns[i], row, out);
		comma = ",";
	}
	fputc('\n', out);
}

/* ---- JSON ----------------------------------------------------------------- */

static json_t *column_json(const struct report *report, const struct column *column,
			   const json_t *row)
{
	char text[REPORT_CELL];
	double value;

	if (column_is_computed(column))
		return report_value(column, row, report->style.now_ns, &value)
			       ? json_integer((json_int_t)value)
			       : json_null();
	if (strchr(column->path, '/'))
		return report_text(row, column->path, text, sizeof(text)) ? json_string(text)
									   : json_null();
	return json_incref((json_t *)report_get(row, column->path)) ?: json_null();
}

json_t *report_object(const struct report *report, const json_t *row)
{
	json_t *object = json_object();

	for (size_t i = 0; i < report->count; i++)
		if (report->columns[i].name)
			json_object_set_new(object, report->columns[i].name,
					    column_json(report, &report->columns[i], row));
	return object;
}

void report_answer(const char *object, FILE *out)
{
	const char *members = strchr(object, '{') + 1;
	size_t len = strlen(members);

	fprintf(out, "{\"schema\":%d%s%s", REPORT_SCHEMA, *members == '}' ? "" : ",", members);
	if (members[len - 1] != '\n')
		fputc('\n', out);
}

void report_json(const json_t *object, bool answer, FILE *out)
{
	char *text = must(json_dumps(object, JSON_COMPACT | JSON_ENSURE_ASCII |
					     JSON_REAL_PRECISION(15)));

	if (answer)
		report_answer(text, out);
	else
		fprintf(out, "%s\n", text);
	free(text);
}

/* ---- Prometheus ----------------------------------------------------------- */

static bool column_is_label(const struct column *column)
{
	return column->name && column->kind != COL_TIME &&
	       (report_is_text(column) || column->drop & REPORT_KEY);
}

static bool column_is_metric(const struct column *column)
{
	return column->name && !column_is_label(column) && column->kind != COL_TIME &&
	       !report_is_history(column);
}

/* The field's unit -> that of Prometheus' conventions. */
static const struct unit {
	const char *of_field;
	const char *of_metric;
	double scale;
} units[] = {
	{ "_ns", "_seconds", 1e-9 },
	{ "_gbs", "_bytes_per_second", 1e9 },
	{ "_fraction", "_ratio", 1 },
	{ "", "", 1 },
};

static const struct unit *metric_unit(const char *name, size_t *stem)
{
	size_t len = strlen(name);

	for (const struct unit *unit = units;; unit++) {
		size_t n = strlen(unit->of_field);

		if (n > len || strcmp(name + len - n, unit->of_field))
			continue;
		*stem = len - n;
		return unit;
	}
}

/* A character that a label's name may not have becomes "_". */
static void metric_put_name(const char *name, size_t len, FILE *out)
{
	for (size_t i = 0; i < len; i++)
		fputc(strchr("/.-", name[i]) ? '_' : name[i], out);
}

static void metric_put_label(const char *text, FILE *out)
{
	for (; *text; text++) {
		if (*text == '\n')
			fputs("\\n", out);
		else if (*text == '\\' || *text == '"')
			fprintf(out, "\\%c", *text);
		else
			fputc(*text, out);
	}
}

static void metric_put_labels(const struct report *report, const json_t *row, FILE *out)
{
	const char *before = "{";

	for (size_t i = 0; i < report->count; i++) {
		const struct column *column = &report->columns[i];
		char text[REPORT_CELL];

		if (!column_is_label(column) || !report_text(row, column->path, text, sizeof(text)))
			continue;
		fputs(before, out);
		metric_put_name(column->name, strlen(column->name), out);
		fputs("=\"", out);
		metric_put_label(text, out);
		fputc('"', out);
		before = ",";
	}
	if (*before == ',')
		fputc('}', out);
}

static void metric_put(const struct report *report, const struct column *column,
		       const char *command, const json_t *rows, FILE *out)
{
	size_t stem;
	const struct unit *unit = metric_unit(column->name, &stem);
	char metric[128];
	double value;

	snprintf(metric, sizeof(metric), "ncclinsp_%s_%.*s%s", command, (int)stem, column->name,
		 unit->of_metric);
	fprintf(out, "# HELP %s %s of ncclinsp %s\n# TYPE %s gauge\n", metric, column->name,
		command, metric);
	for (size_t i = 0; i < json_array_size(rows); i++) {
		const json_t *row = json_array_get(rows, i);

		if (!report_value(column, row, report->style.now_ns, &value))
			continue;
		fputs(metric, out);
		metric_put_labels(report, row, out);
		fprintf(out, " %.15g\n", value * unit->scale);
	}
}

void report_prom(const struct report *report, const char *command, const json_t *rows, FILE *out)
{
	for (size_t i = 0; i < report->count; i++)
		if (column_is_metric(&report->columns[i]))
			metric_put(report, &report->columns[i], command, rows, out);
}
