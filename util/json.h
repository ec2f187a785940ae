/* SPDX-License-Identifier: Apache-2.0 */
#ifndef UTIL_JSON_H
#define UTIL_JSON_H

/*
 * Writes JSON into a buffer that grows.  Commas come by themselves:
 *
 *     json_begin(j, '{');
 *     json_member_u64(j, "pid", 17);
 *     json_begin_member(j, "ranks", '[');
 *     json_end(j, ']');
 *     json_end(j, '}');
 *
 * What comes out is one line of valid UTF-8 whatever goes in.  Integers are
 * written with all their digits; 64-bit ids go as hex strings, because most
 * readers keep numbers as doubles.  Running out of memory (or of `max`) is
 * remembered: later calls do nothing and json_error() tells.
 *
 * (Values are json_put_*: the plain names are taken by jansson, which tests and
 * daemon use for reading.)
 *
 * Balanced begin and end, and a key before each value of an object, are up to
 * the caller.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct json {
	char *text;		/* not terminated; owned */
	size_t bytes;
	size_t room;
	size_t max;
	int error;
};

/* Nothing is allocated until something is written; `max` bounds the text, in bytes. */
void json_init(struct json *j, size_t max);
void json_deinit(struct json *j);

/* Forget the text and the error, keep the buffer. */
void json_clear(struct json *j);

/* Hand over the text, to be freed by the caller; `j` is as after json_init(). */
char *json_steal(struct json *j, size_t *bytes);

/* 0; -ENOMEM; -E2BIG: more than max; or what json_fail() said. */
int json_error(const struct json *j);

/* The caller could not get hold of what belongs here: `error` is a negative errno. */
void json_fail(struct json *j, int error);

void json_begin(struct json *j, char bracket);	/* '{' or '[' */
void json_end(struct json *j, char bracket);	/* '}' or ']' */
void json_key(struct json *j, const char *key);	/* escaped as a string is */

void json_put_null(struct json *j);
void json_put_bool(struct json *j, bool value);
void json_put_u64(struct json *j, uint64_t value);
void json_put_i64(struct json *j, int64_t value);
void json_put_double(struct json *j, double value);	/* reads back equal; NaN, inf: null */
void json_put_rounded(struct json *j, double value);	/* to nine digits: what was measured */
void json_put_string(struct json *j, const char *s);	/* NULL: null; bad UTF-8: U+FFFD */
void json_put_hex64(struct json *j, uint64_t value);	/* "0x", then 16 digits, as a string */
void json_put_time(struct json *j, uint64_t real_ns);	/* RFC 3339, UTC, nine decimals */

/* A key and its value. */
#define JSON_MEMBER(name, type) \
static inline void json_member_##name(struct json *j, const char *key, type value) \
{ \
	json_key(j, key); \
	json_put_##name(j, value); \
}
JSON_MEMBER(bool, bool)
JSON_MEMBER(u64, uint64_t)
JSON_MEMBER(i64, int64_t)
JSON_MEMBER(string, const char *)
JSON_MEMBER(hex64, uint64_t)
#undef JSON_MEMBER

static inline void json_begin_member(struct json *j, const char *key, char bracket)
{
	json_key(j, key);
	json_begin(j, bracket);
}

/* `text` is JSON already: one whole value, written by this module or checked. */
void json_put_raw(struct json *j, const char *text, size_t bytes);

/* Bytes as they are, also of a text that is no JSON: no comma comes before them. */
void json_append(struct json *j, const char *text, size_t bytes);

/* End of a line, where one text holds several objects. */
void json_newline(struct json *j);

#endif
