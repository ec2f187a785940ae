/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_SIM_FIELD_H
#define TESTS_SIM_FIELD_H

/* Members of a recorded line.  What is absent or of another type is 0, NULL or false. */

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static inline const json_t *field_details(const json_t *line)
{
	return json_object_get(line, "details");
}

static inline double field_number(const json_t *obj, const char *key)
{
	return json_number_value(json_object_get(obj, key));
}

static inline int64_t field_int(const json_t *obj, const char *key)
{
	return json_integer_value(json_object_get(obj, key));
}

static inline uint64_t field_address(const json_t *obj, const char *key)
{
	const char *s = json_string_value(json_object_get(obj, key));

	return s && !strncmp(s, "0x", 2) ? strtoull(s, NULL, 16) : 0;
}

static inline void *field_pointer(const json_t *obj, const char *key)
{
	return (void *)field_address(obj, key);
}

static inline bool field_is(const json_t *json, const char *key, const char *value)
{
	const char *s = json_string_value(json_object_get(json, key));

	return s && !strcmp(s, value);
}

#endif
