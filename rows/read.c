/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Programs that judge many nodes need some members of each row, and rows are most of what a
 * snapshot is: what no table names is skipped.
 */
#include "rows/read.h"

#include <stdlib.h>

static void field_clear(const struct read_field *f, void *at)
{
	switch (f->kind) {
	case READ_U64:
	case READ_HEX:
		*(uint64_t *)at = UNKNOWN_U64;
		break;
	case READ_I32:
		*(int32_t *)at = UNKNOWN_I32;
		break;
	case READ_BOOL:
		*(bool *)at = false;
		break;
	case READ_TEXT:
		*(const char **)at = NULL;
		break;
	case READ_JSON:
		*(struct scan_text *)at = (struct scan_text){ NULL, 0 };
		break;
	case READ_MAP:
	case READ_LIST:
		memset(at, 0, sizeof(struct read_numbers));
		break;
	case READ_OBJECT:
		break;
	}
}

static void row_clear(const struct read_table *table, void *row)
{
	for (const struct read_field *f = table->fields; f->name; f++) {
		void *at = (char *)row + f->offset;

		if (f->kind == READ_OBJECT)
			row_clear(f->of, at);
		else
			field_clear(f, at);
	}
}

/* ---- values ------------------------------------------------------------------------------ */

static uint64_t number_bounded(int64_t number)
{
	return (uint64_t)number < READ_MOST ? (uint64_t)number : READ_MOST;
}

/* A whole number from 0; UNKNOWN_U64: it is something else. */
static uint64_t read_number(struct scan *s)
{
	bool whole = false;
	int64_t number;

	if (scan_type(s) != SCAN_NUMBER)
		scan_skip(s);
	else if (scan_number(s, &whole, &number) && whole && number >= 0)
		return number_bounded(number);
	return UNKNOWN_U64;
}

static int32_t read_i32(struct scan *s)
{
	uint64_t number = read_number(s);

	return number <= INT32_MAX ? (int32_t)number : UNKNOWN_I32;
}

static bool read_bool(struct scan *s)
{
	bool value = false;

	if (scan_type(s) == SCAN_BOOL)
		scan_bool(s, &value);
	else
		scan_skip(s);
	return value;
}

static const char *read_text(struct reader_of_rows *r)
{
	struct scan_text text;

	if (scan_type(&r->scan) != SCAN_TEXT)
		scan_skip(&r->scan);
	else if (scan_text(&r->scan, &text))
		return r->text(r->arg, text.at, text.bytes);
	return NULL;
}

static uint64_t text_hex(const struct scan_text *text)
{
	static const char digits[] = "0123456789abcdef";
	uint64_t value = 0;

	if (text->bytes < 3 || text->bytes > 18 || memcmp(text->at, "0x", 2))
		return UNKNOWN_U64;
	for (size_t i = 2; i < text->bytes; i++) {
		const char *digit = memchr(digits, text->at[i] | 0x20, sizeof(digits) - 1);

		if (!digit)
			return UNKNOWN_U64;
		value = value << 4 | (uint64_t)(digit - digits);
	}
	return value;
}

static uint64_t read_hex(struct scan *s)
{
	struct scan_text text;

	if (scan_type(s) != SCAN_TEXT)
		scan_skip(s);
	else if (scan_text(s, &text))
		return text_hex(&text);
	return UNKNOWN_U64;
}

static void read_json(struct scan *s, struct scan_text *text)
{
	const char *from = (scan_type(s), s->at);

	if (scan_skip(s))
		*text = (struct scan_text){ from, (size_t)(s->at - from) };
}

/* ---- lists -------------------------------------------------------------------- */

/* The layout is that of any LIST(). */
struct read_list {
	void *at;
	uint32_t n, room;
};

static void list_read_deinit(const struct read_table *of, struct read_list *list)
{
	for (uint32_t i = 0; i < list->n; i++)
		read_row_deinit(of, (char *)list->at + i * of->bytes);
	list_deinit(list);
}

/* Room that is not needed goes back: rows of many nodes stay. */
static void list_read_trim(struct read_list *list, size_t bytes)
{
	void *at = list->n ? realloc(list->at, list->n * bytes) : NULL;

	if (!at)
		return;
	list->at = at;
	list->room = list->n;
}

static void read_map(struct reader_of_rows *r, struct read_numbers *map)
{
	struct scan *s = &r->scan;
	struct scan_text key;

	list_deinit(map);
	if (scan_type(s) != SCAN_OBJECT) {
		scan_skip(s);
		return;
	}
	for (scan_open(s, '{'); scan_next(s, '}') && scan_key(s, &key);) {
		const char *name = r->text(r->arg, key.at, key.bytes);
		struct read_number *to = list_append(map);

		if (!to) {
			s->error = "out of memory";
			return;
		}
		*to = (struct read_number){ name, read_number(s) };
	}
	list_read_trim((struct read_list *)map, sizeof(*map->at));
}

/* ---- objects ----------------------------------------------------------------------------- */

static void read_field(struct reader_of_rows *r, const struct read_field *f, void *at);

static bool field_is(const struct read_field *f, const struct scan_text *key)
{
	return f->name_bytes == key->bytes && !memcmp(f->name, key->at, key->bytes);
}

/* The field of that name, which often is `next`; NULL: nobody asks. */
static const struct read_field *table_find(const struct read_table *table,
					   const struct read_field *next,
					   const struct scan_text *key)
{
	if (next->name && field_is(next, key))
		return next;
	for (next = table->fields; next->name; next++)
		if (field_is(next, key))
			return next;
	return NULL;
}

/* Reads a value; returns the next field.  One may be wanted as text beside. */
static const struct read_field *read_value(struct reader_of_rows *r, const struct read_field *f,
					   void *row)
{
	const struct read_field *beside = f + 1;
	const char *from = r->scan.at;

	read_field(r, f, (char *)row + f->offset);
	if (beside->kind != READ_JSON || !beside->name || strcmp(beside->name, f->name))
		return beside;
	*(struct scan_text *)((char *)row + beside->offset) =
		(struct scan_text){ from, (size_t)(r->scan.at - from) };
	return beside + 1;
}

static bool read_members(struct reader_of_rows *r, const struct read_table *table, void *row)
{
	const struct read_field *next = table->fields, *f;
	struct scan *s = &r->scan;
	struct scan_text key;

	if (scan_type(s) != SCAN_OBJECT)
		return scan_skip(s);
	for (scan_open(s, '{'); scan_next(s, '}') && scan_key(s, &key);) {
		f = table_find(table, next, &key);
		if (f)
			next = read_value(r, f, row);
		else
			scan_skip(s);
	}
	return !s->error;
}

static void read_list(struct reader_of_rows *r, const struct read_table *of,
		      struct read_list *list)
{
	struct scan *s = &r->scan;

	list_read_deinit(of, list);
	if (scan_type(s) != SCAN_ARRAY) {
		scan_skip(s);
		return;
	}
	for (scan_open(s, '['); scan_next(s, ']');) {
		void *row = list_grow(&list->at, &list->n, &list->room, of->bytes);

		if (!row) {
			s->error = "out of memory";
			return;
		}
		read_row(r, of, row);
	}
	list_read_trim(list, of->bytes);
}

static void read_field(struct reader_of_rows *r, const struct read_field *f, void *at)
{
	switch (f->kind) {
	case READ_U64:
		*(uint64_t *)at = read_number(&r->scan);
		break;
	case READ_I32:
		*(int32_t *)at = read_i32(&r->scan);
		break;
	case READ_BOOL:
		*(bool *)at = read_bool(&r->scan);
		break;
	case READ_TEXT:
		*(const char **)at = read_text(r);
		break;
	case READ_HEX:
		*(uint64_t *)at = read_hex(&r->scan);
		break;
	case READ_MAP:
		read_map(r, at);
		break;
	case READ_OBJECT:
		read_row_deinit(f->of, at);
		read_row(r, f->of, at);
		break;
	case READ_LIST:
		read_list(r, f->of, at);
		break;
	case READ_JSON:
		read_json(&r->scan, at);
		break;
	}
}

bool read_row(struct reader_of_rows *r, const struct read_table *table, void *row)
{
	row_clear(table, row);
	return read_members(r, table, row);
}

void read_row_deinit(const struct read_table *table, void *row)
{
	for (const struct read_field *f = table->fields; f->name; f++) {
		void *at = (char *)row + f->offset;

		if (f->kind == READ_LIST)
			list_read_deinit(f->of, at);
		else if (f->kind == READ_OBJECT)
			read_row_deinit(f->of, at);
		else if (f->kind == READ_MAP)
			list_deinit((struct read_numbers *)at);
	}
}

#include "schema/read_tables.h"
