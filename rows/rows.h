/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ROWS_ROWS_H
#define ROWS_ROWS_H

/*
 * Rows of the API as JSON.  A row is a struct, and a table of fields says how it is written;
 * schema/generate.awk makes the tables for the daemon and for `ncclinsp --segment`.
 */

#include <stdbool.h>
#include <stddef.h>

#include "reader/base/model.h"
#include "reader/join/reconstruct.h"
#include "util/json.h"

/* The program that writes rows; the daemon's is the beginning of its struct serve. */
struct rows_writer {
	uint64_t real_offset_ns;	/* CLOCK_REALTIME - CLOCK_MONOTONIC */
	/* Called between the rows of a long table: what must not wait for all.  NULL: nothing. */
	void (*meanwhile)(const struct rows_writer *w);
};

enum field_kind {
	FIELD_U64,	/* UNKNOWN_U64: null */
	FIELD_U64_0,	/* 0: null */
	FIELD_U32,
	FIELD_U32_0,	/* 0: null */
	FIELD_I32,	/* UNKNOWN_I32: null */
	FIELD_BOOL,
	FIELD_NAME,	/* name_t, NULL: null */
	FIELD_TEXT,	/* char[], "": null */
	FIELD_HEX,	/* uint64_t */
	FIELD_HEX_0,	/* 0: null */
	FIELD_RATE,	/* double, below 0: null */
	FIELD_TIME,	/* CLOCK_MONOTONIC ns, 0: null; gives <name>_at and <name>_mono_ns */
	FIELD_PUT,	/* written by the function */
	FIELD_NULL,	/* always null: a program without a daemon cannot know it */
};

typedef void field_put_fn(const struct rows_writer *w, struct json *j, const void *row);
typedef uint64_t field_time_fn(const struct rows_writer *w, const void *row);

/* A member of a row.  All of them are made from schema/. */
struct field {
	const char *name;
	enum field_kind kind;
	size_t offset;
	field_put_fn *put;
	field_time_fn *time;	/* a FIELD_TIME's; NULL: it is at `offset` */
};

/* The offset of a member, which must have that type. */
#define FIELD_AT(row, member, type) (offsetof(row, member) + 0 * sizeof(char[ \
	__builtin_types_compatible_p(__typeof__(((row *)0)->member), type) ? 1 : -1]))

/* All fields up to the one without a name, as members of the open object, or as an object. */
void rows_put(const struct rows_writer *w, struct json *j, const struct field *fields,
	      const void *row);
void rows_put_object(const struct rows_writer *w, struct json *j, const struct field *fields,
		     const void *row);

/* One value, or null for the one that says unknown. */
void rows_put_u64(struct json *j, uint64_t value);
void rows_put_i32(struct json *j, int32_t value);
void rows_put_rate(struct json *j, double value);

#define ROWS_NAMES	128

/*
 * The members of a row that a client wants: a bit each, numbered through all tables
 * that the row is made of.  A time has two.
 */
struct chosen {
	bool some;		/* false: all */
	uint64_t bits[ROWS_NAMES / 64];
};

static inline bool chosen_wants(const struct chosen *c, unsigned n)
{
	return !c->some || c->bits[n / 64] >> n % 64 & 1;
}

/* Is one of [first, end) wanted? */
static inline bool chosen_wants_any(const struct chosen *c, unsigned first, unsigned end)
{
	while (first < end && !chosen_wants(c, first))
		first++;
	return first < end;
}

/*
 * Write the wanted names of a table.  Its first name has the number `n`; returns the number
 * of the next table's first.
 */
unsigned rows_put_chosen(const struct rows_writer *w, struct json *j, const struct field *fields,
			 const void *row, const struct chosen *c, unsigned n);

/* The number of names in a table. */
unsigned rows_count(const struct field *fields);

/* One of the tables of a row; the last has no fields. */
struct field_table {
	const char *inside;	/* the member whose own members these are; NULL: the row */
	const struct field *fields;
};

/*
 * Write a row of several tables: the first and the last whole, and of those between them the
 * ones whose bit is in `keys`.
 */
void rows_put_keyed(const struct rows_writer *w, struct json *j, const struct field_table *tables,
		    uint32_t keys, const void *row, const struct chosen *c);

/* The two members of a time: name "ended" gives "ended_at" and "ended_mono_ns". */
void rows_put_time(const struct rows_writer *w, struct json *j, const char *name,
		   uint64_t mono_ns);

/* A GPU's uuid, 16 bytes, as the driver writes it. */
void rows_put_uuid(struct json *j, const uint8_t *uuid);

/* Counts by reason, as an object: `refused` has STAMP_FAULT_END places. */
void rows_put_refused(struct json *j, const uint64_t *refused);

/* NCCL's settings in the environment of a process, as an object. */
void rows_put_variables(struct json *j, const struct process *p);

/* The newest number of each function, as an object. */
void rows_put_last_seq(struct json *j, const struct comm_progress *progress);

#endif
