/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_REPORT_H
#define CLI_REPORT_H

/*
 * Rows of JSON, described by columns, printed as a table, as CSV, or as lines
 * of the live view.  The columns are the only description of a table there is.
 */

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "cli/line.h"

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
	COL_TIME,	/* RFC 3339, shown as the local time of day */
	COL_STALL,	/* as COL_AGE; ten seconds and more is bad */
	COL_KINDS
};

/*
 * Paths: "a.b" descends, "a|b" takes the first that is known, "a/b" joins two
 * texts with a slash.  A missing or null value is shown as "-".
 */
struct column {
	const char *name;	/* CSV field; NULL: table only */
	const char *header;	/* with the unit; NULL: CSV only */
	enum column_kind kind;
	const char *path;
	uint8_t least;		/* terminal columns at least */
	uint8_t most;		/* at most; 0: as many as it takes */
	uint8_t drop;		/* the highest goes first on a narrow terminal; 0: never */
};

/*
 * Added to drop: shown only when a row knows it, or when a row says anything but
 * the usual: 0 for an integer or a loss, 1 for another fraction.
 */
#define REPORT_IF_KNOWN	  64
#define REPORT_IF_UNUSUAL 128

#define REPORT_COLUMNS 48

/* A table being laid out: which columns are shown, how wide. */
struct report {
	const struct column *columns;
	size_t count;		/* <= REPORT_COLUMNS */
	uint64_t now_ns;	/* CLOCK_MONOTONIC, for COL_SINCE */
	int width[REPORT_COLUMNS];	/* 0: not shown */
};

void report_init(struct report *report, const struct column *columns, size_t count,
		 uint64_t now_ns);

/* Widen to what the rows need (NULL: their least), then drop columns to fit `limit`. */
void report_fit(struct report *report, const json_t *rows, int limit);

/* The header; `sort` is the column it is sorted by, or -1. */
void report_header(const struct report *report, struct line *line, int sort);
void report_row(const struct report *report, const json_t *row, struct line *line);

void report_csv_header(const struct report *report, FILE *out);
void report_csv_row(const struct report *report, const json_t *row, FILE *out);

/* One cell as the table shows it. */
enum line_attr report_cell(const struct column *column, const json_t *row, uint64_t now_ns,
			   char *buf, size_t size);

/* The number behind a cell; false when it is not known or no number. */
bool report_value(const struct column *column, const json_t *row, double *value);

/* Order the rows by a column, the largest (or last in the alphabet) first, unknown last. */
void report_sort(json_t *rows, const struct column *column, bool ascending);

/* The value at a path, borrowed; NULL when missing or null. */
const json_t *report_get(const json_t *row, const char *path);

#endif
