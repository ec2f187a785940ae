/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ROWS_READ_H
#define ROWS_READ_H

/*
 * Rows of the API out of JSON, into structs: the other direction of rows.h.  The structs and their
 * tables are made of schema/ (reads.h): a member that no field has does not build.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "util/list.h"
#include "util/scan.h"
#include "util/unknown.h"

#define READ_MOST (UINT64_C(1) << 60)	/* 36 years in ns: larger numbers become this one */

enum read_kind {
	READ_U64,	/* a whole number from 0; UNKNOWN_U64: it is none */
	READ_I32,	/* the same to INT32_MAX; UNKNOWN_I32 */
	READ_BOOL,
	READ_TEXT,	/* NULL: it is none */
	READ_HEX,	/* an id as text; UNKNOWN_U64 */
	READ_MAP,	/* numbers by any names: struct read_numbers */
	READ_OBJECT,	/* a struct of its own */
	READ_LIST,	/* a LIST() of these */
	READ_JSON,	/* the text of the value: struct scan_text; behind another kind: both */
};

struct read_field {
	const char *name;
	uint16_t name_bytes;
	enum read_kind kind;
	size_t offset;
	const struct read_table *of;	/* the objects in it */
};

/* A struct, and what is read into it; the last field has no name. */
struct read_table {
	size_t bytes;
	const struct read_field *fields;
};

struct read_number {
	const char *name;
	uint64_t number;
};

struct read_numbers {
	LIST(struct read_number);
};

/* The one that reads: `text` returns a text that is equal, and lives as long as the rows. */
struct reader_of_rows {
	struct scan scan;
	const char *(*text)(void *arg, const char *text, size_t bytes);
	void *arg;
};

#include "schema/reads.h"

/* Read an object into *row, which need not be initialised.  False: scan.error tells. */
bool read_row(struct reader_of_rows *r, const struct read_table *table, void *row);

/* Frees its lists. */
void read_row_deinit(const struct read_table *table, void *row);

#endif
