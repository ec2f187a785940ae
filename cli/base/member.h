/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_BASE_MEMBER_H
#define CLI_BASE_MEMBER_H

/*
 * Members of an object that the daemon or a file gave, as C has them; `none`: it is not that.  And
 * the items of an array.
 */

#include <jansson.h>

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "util/unknown.h"

/* The text as a value; null where it is NULL or empty. */
static inline json_t *json_text(const char *text)
{
	return text && *text ? json_string(text) : json_null();
}

/* A loop over the items of an array, with break and continue; over none where it is no array. */
#define json_each(item, array)								\
	for (size_t item##_at = 0, item##_left = 0;					\
	     !item##_left && item##_at < json_array_size(array); item##_at++)		\
		for (json_t *item = (item##_left = 1, json_array_get(array, item##_at)); \
		     item##_left; item##_left = 0)

static inline const char *member_text(const json_t *object, const char *key, const char *none)
{
	return json_string_value(json_object_get(object, key)) ?: none;
}

static inline bool member_is(const json_t *object, const char *key, const char *text)
{
	const char *has = member_text(object, key, NULL);

	return has && !strcmp(has, text);
}

static inline bool member_true(const json_t *object, const char *key)
{
	return json_is_true(json_object_get(object, key));
}

/* A whole number from 0. */
static inline uint64_t member_number(const json_t *object, const char *key, uint64_t none)
{
	const json_t *value = json_object_get(object, key);
	json_int_t number = json_integer_value(value);

	return json_is_integer(value) && number >= 0 ? (uint64_t)number : none;
}

/* UNKNOWN_I32: it is none from 0 to INT32_MAX. */
static inline int32_t member_i32(const json_t *object, const char *key)
{
	uint64_t number = member_number(object, key, UINT64_MAX);

	return number <= INT32_MAX ? (int32_t)number : UNKNOWN_I32;
}

static inline bool members_are_same(const json_t *a, const json_t *b, const char *const *keys)
{
	for (; *keys; keys++) {
		const json_t *one = json_object_get(a, *keys), *other = json_object_get(b, *keys);

		if (one != other && !json_equal(one, other))
			return false;
	}
	return true;
}

/* Are all these members the same in both?  One that both lack is. */
#define members_same(a, b, ...) \
	members_are_same((a), (b), (const char *const []){ __VA_ARGS__, NULL })

/* "0x" and hex digits; 0: it is not. */
static inline uint64_t member_hex(const json_t *object, const char *key)
{
	const char *text = member_text(object, key, "");

	return strncmp(text, "0x", 2) ? 0 : strtoull(text + 2, NULL, 16);
}

#endif
