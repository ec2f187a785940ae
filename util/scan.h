/* SPDX-License-Identifier: Apache-2.0 */
#ifndef UTIL_SCAN_H
#define UTIL_SCAN_H

/*
 * Reads JSON value by value, without a tree: the caller asks for what it expects, and skips the
 * rest.
 *
 *     struct scan_text key;
 *
 *     for (scan_open(s, '{'); scan_next(s, '}');)
 *             if (scan_key(s, &key) && key.bytes == 6 && !memcmp(key.at, "active", 6))
 *                     scan_bool(s, &active);
 *             else
 *                     scan_skip(s);
 *     scan_end(s);
 *
 * The first error is kept, with its place; after it all calls do nothing and return false.  What
 * is read is checked as jansson checks it, but for UTF-8 and for the size of fractions.  Of what is
 * skipped only brackets and the ends of strings are.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "util/list.h"

#define SCAN_DEPTH 2048

struct scan {
	const char *text, *at, *end;
	const char *error;	/* NULL: none so far */
	bool is_first;		/* a bracket was opened, and nothing behind it read */
	unsigned depth;
	LIST(char) unescaped;
};

/* Not terminated; good until the next call. */
struct scan_text {
	const char *at;
	size_t bytes;
};

enum scan_type {
	SCAN_NONE,	/* no value begins here */
	SCAN_NULL,
	SCAN_BOOL,
	SCAN_NUMBER,
	SCAN_TEXT,
	SCAN_ARRAY,
	SCAN_OBJECT,
};

/* `text` is the caller's, and has a zero behind its end. */
void scan_init(struct scan *s, const char *text, size_t bytes);
void scan_deinit(struct scan *s);

/* The type of the value that comes next. */
enum scan_type scan_type(struct scan *s);

/* Enter an object, '{', or an array, '['. */
bool scan_open(struct scan *s, char bracket);

/* Is there another item before the closing bracket?  If not, that is behind us. */
bool scan_next(struct scan *s, char bracket);

/* The name of an object's next member. */
bool scan_key(struct scan *s, struct scan_text *key);

/* A value of that type; anything else is an error. */
bool scan_text(struct scan *s, struct scan_text *text);
bool scan_bool(struct scan *s, bool *value);

/* A number; *integer is it where it is *whole, as written: without point and exponent. */
bool scan_number(struct scan *s, bool *whole, int64_t *integer);

/* Any value, with all that is in it; its bytes are those from what s->at was to what it is. */
bool scan_skip(struct scan *s);

/* Nothing but space is left. */
bool scan_end(struct scan *s);

#endif
