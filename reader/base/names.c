/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A hash table of texts that only grows, with the texts in blocks that never
 * move: a name_t stays good.
 */
#include "reader/base/names.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define USERS	1024	/* users whose ids are equal modulo this share their half */

struct names {
	char **places;		/* open addressing, at most half full */
	uint32_t mask;
	uint32_t capacity;
	uint32_t count;
	uint32_t tags;		/* names among these that only tags have */
	uint64_t refused;
	uint32_t of_user[USERS];
	uint32_t tags_of_user[USERS];
};

static uint32_t names_hash(const char *text, size_t bytes)
{
	uint64_t h = UINT64_C(0xcbf29ce484222325);

	for (size_t i = 0; i < bytes; i++)
		h = (h ^ (uint8_t)text[i]) * UINT64_C(0x100000001b3);
	return (uint32_t)(h ^ h >> 32);
}

static char **names_find_place(const struct names *names, const char *text, size_t bytes)
{
	uint32_t i = names_hash(text, bytes) & names->mask;

	for (; names->places[i]; i = (i + 1) & names->mask) {
		const char *have = names->places[i];

		if (!strncmp(have, text, bytes) && !have[bytes])
			break;
	}
	return &names->places[i];
}

int names_new(struct names **namesp, uint32_t capacity)
{
	struct names *names = calloc(1, sizeof(*names));
	uint32_t places = 16;

	if (!names)
		return -ENOMEM;
	while (places / 2 < capacity && places < UINT32_C(1) << 30)
		places *= 2;
	names->places = calloc(places, sizeof(*names->places));
	if (!names->places) {
		free(names);
		return -ENOMEM;
	}
	names->mask = places - 1;
	names->capacity = capacity;
	*namesp = names;
	return 0;
}

void names_free(struct names *names)
{
	if (!names)
		return;
	for (uint32_t i = 0; i <= names->mask; i++)
		free(names->places[i]);
	free(names->places);
	free(names);
}

/* NULL: an empty text, or no room, of which `has_room` tells. */
static name_t names_find_or_add(struct names *names, bool has_room, uint32_t *of_user,
				const char *text, size_t bytes)
{
	char **place = names_find_place(names, text, bytes);

	if (*place)
		return *place;
	if (has_room && names->count < names->capacity)
		*place = strndup(text, bytes);
	if (!*place) {
		names->refused++;
		return NULL;
	}
	names->count++;
	++*of_user;
	return *place;
}

static size_t text_bytes(const char *text, size_t bytes)
{
	return strnlen(text, bytes < NAMES_MAX_BYTES ? bytes : NAMES_MAX_BYTES);
}

name_t names_intern(struct names *names, uid_t account, const char *text, size_t bytes)
{
	uint32_t *of_user = &names->of_user[account % USERS];

	bytes = text_bytes(text, bytes);
	if (!bytes)
		return NULL;
	return names_find_or_add(names, *of_user < names->capacity / 2, of_user, text, bytes) ?:
	       NAMES_OTHER;
}

name_t names_intern_tag(struct names *names, uid_t account, const char *text, size_t bytes)
{
	uint32_t *of_user = &names->tags_of_user[account % USERS], before = names->count;
	name_t name;

	bytes = text_bytes(text, bytes);
	if (!bytes)
		return NULL;
	name = names_find_or_add(names, names->tags < names->capacity / 4 &&
				 *of_user < names->capacity / 8, of_user, text, bytes);
	names->tags += names->count - before;
	return name;
}

uint32_t names_count(const struct names *names)
{
	return names->count;
}

uint64_t names_refused(const struct names *names)
{
	return names->refused;
}
