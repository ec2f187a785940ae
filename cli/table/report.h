/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_TABLE_REPORT_H
#define CLI_TABLE_REPORT_H

/*
 * Rows of JSON, described by columns, printed as a table, as lines of the live
 * view (report.c), or for programs (report_data.c).  The columns are the only
 * description of a table there is.
 */

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "cli/table/line.h"

enum column_kind {
	COL_TEXT,
	COL_OP,		/* a text; with an asterisk where "derived" is true or above 0 */
	COL_INTEGER,
	COL_BYTES,
	COL_MICROS,	/* ns, shown in microseconds */
	COL_AGE,	/* ns, shown as 2m10s */
	COL_SINCE,	/* a CLOCK_MONOTONIC time, shown as the time passed since */
	COL_NUMBER,
	COL_PERCENT,	/* a fraction */
	COL_LOSS,	/* a fraction; more than 0 is bad */
	COL_SUM,	/* an object of integers: their sum; more than 0 is bad */
	COL_STATE,	/* a text; "died" is bad */
	COL_VERDICT,	/* a text, in capitals, with `?` where the row's "grade" is suspected */
	COL_TIME,	/* RFC 3339, shown as the local time of day */
	COL_STALL,	/* like COL_AGE; ten seconds and more is bad */
	COL_SHARES,	/* an array of fractions over time, as blocks; half and more is full */
	COL_RATES,	/* an array of numbers over time, as blocks; the largest is full */
	COL_KINDS
};

/*
 * Paths: "a.b" descends, "a|b" takes the first that is known, "a/b" joins two
 * texts with a slash.  A missing or null value is shown as "-".
 */
struct column {
	const char *name;	/* the field's, for programs; NULL: table only */
	const char *header;	/* title with the unit; NULL: for programs only */
	enum column_kind kind;
	const char *path;
	uint8_t least;		/* terminal columns at least */
	uint8_t most;		/* columns at most; 0: as many as it takes */
	uint16_t drop;		/* the highest goes first on a narrow terminal; 0: never */
};

/* Added to drop: a number that says what the row is about, as texts do: no figure. */
#define REPORT_KEY 32

/*
 * Added to drop: shown only when a row knows it, or when a row says anything but
 * the usual: 0 for an integer or a loss, 1 for another fraction.
 */
#define REPORT_IF_KNOWN	  64
#define REPORT_IF_UNUSUAL 128

/*
 * Added to drop: dropped with those of 1, the last to go, where rows look alike without
 * it: where no column that is never dropped tells them apart.
 */
#define REPORT_APART 256

/* Added to drop: dropped with those of 1 where rows differ in it, such as in their job. */
#define REPORT_VARIES 512

#define REPORT_COLUMNS 48
#define REPORT_CELL    512	/* bytes that hold any cell */

enum report_units {
	REPORT_IEC,	/* bytes in powers of 1024 */
	REPORT_SI,	/* powers of 1000 */
	REPORT_RAW,	/* all in base units, with all digits */
};

/* The way cells are written for people. */
struct report_style {
	uint64_t now_ns;	/* CLOCK_MONOTONIC, for COL_SINCE */
	enum report_units units;
	bool varies;		/* rows may differ, beyond these, where REPORT_VARIES says so */
	bool coarse;		/* times in flight below a second are not told more closely */
	bool utc;		/* times of day: else those of the local zone */
};

/* A table being laid out: which columns are shown, how wide. */
struct report {
	const struct column *columns;
	size_t count;		/* <= REPORT_COLUMNS */
	struct report_style style;
	int width[REPORT_COLUMNS];	/* 0: not shown */
};

void report_init(struct report *report, const struct column *columns, size_t count,
		 const struct report_style *style);

/* Widen to what the rows need (NULL: their least), then drop columns to fit `limit`. */
void report_fit(struct report *report, const json_t *rows, int limit);

/* The column that has the terminal's column `x` of a line; -1: none. */
int report_column_at(const struct report *report, int x);

/* The header; `sort` is the column it is sorted by, or -1. */
void report_header(const struct report *report, struct line *line, int sort);
void report_row(const struct report *report, const json_t *row, struct line *line);

/* Order the rows by a column, the largest (or last in the alphabet) first, unknown last. */
void report_sort(json_t *rows, const struct column *column, bool ascending);

/* ---- for programs: fields that have a name, in base units, what is not known is empty --- */

void report_csv_header(const struct report *report, FILE *out);
void report_csv_row(const struct report *report, const json_t *row, FILE *out);

/* The row's fields as a flat object, the caller's; what is not known is null. */
json_t *report_object(const struct report *report, const json_t *row);

/*
 * The version of all that is printed as one JSON answer.  It grows when a field goes or means
 * something else; fields are added without.
 */
#define REPORT_SCHEMA 1

/* Text of a JSON object, on a line of its own, with "schema" as its first member. */
void report_answer(const char *object, FILE *out);

/* An object as such an answer, or as one of JSON lines, which have nothing but fields. */
void report_json(const json_t *object, bool answer, FILE *out);

/*
 * Prometheus' text format: figures are metrics ncclinsp_<command>_<field> in seconds,
 * bytes and bytes per second, texts and keys are labels, times are left out.
 */
void report_prom(const struct report *report, const char *command, const json_t *rows, FILE *out);

/* ---- one cell ------------------------------------------------------------------------ */

/* Writes a cell as the table shows it; `style` NULL: in the usual way, and no COL_SINCE. */
enum line_attr report_cell(const struct column *column, const json_t *row,
			   const struct report_style *style, char *buf, size_t size);

/* The title above a column, with the unit; the column must have a header. */
void report_title(const struct column *column, const struct report_style *style, char *buf,
		  size_t size);

/*
 * Texts of the path, joined by its slashes, "-" for one that is not known; false
 * when none is.
 */
bool report_text(const json_t *row, const char *path, char *buf, size_t size);

/*
 * The number behind a cell, in base units, of an array the largest; false when it is not known
 * or no number.
 */
bool report_value(const struct column *column, const json_t *row, uint64_t now_ns, double *value);

bool report_is_text(const struct column *column);

/* Several values over time in one cell. */
static inline bool report_is_history(const struct column *column)
{
	return column->kind == COL_SHARES || column->kind == COL_RATES;
}

/* A number that REPORT_IF_UNUSUAL does not show. */
bool report_is_usual(const struct column *column, double value);

/* The unit as the column's header names it, "(us)"; "" where there is none or each cell says it. */
const char *report_unit(const struct column *column);

/* The unit that people think in, in base units: 1000 for microseconds, 1e9 for ages. */
double report_scale(const struct column *column);

/* The value at a path, borrowed; NULL when missing or null. */
const json_t *report_get(const json_t *row, const char *path);

#endif
