/* SPDX-License-Identifier: Apache-2.0 */
#ifndef UTIL_PHRASE_H
#define UTIL_PHRASE_H

/* A sentence put together piece by piece in a buffer of fixed size; cut where it is full. */

#include <stddef.h>
#include <stdint.h>

struct phrase {
	char *at;
	size_t size;
	size_t used;
};

/* Begin an empty one in the caller's buffer, of at least one byte. */
void phrase_start(struct phrase *p, char *buffer, size_t size);

void phrase_add(struct phrase *p, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* Add a duration as text_duration() writes it: "2m10s". */
void phrase_add_duration(struct phrase *p, uint64_t ns);

/* Add numbers as "3", "0-3", "0-3,8": those that follow in order are drawn together. */
void phrase_add_list(struct phrase *p, const int32_t *numbers, size_t n);

#endif
