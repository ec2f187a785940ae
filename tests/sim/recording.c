/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/sim/recording.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "record/format.h"

struct recording_names {
	char **name;
	int n, room;
};

/* JSON begins with a brace. */
static bool recording_is_binary(FILE *f)
{
	int c = getc(f);

	ungetc(c, f);
	return c == RECORD_MAGIC[0];
}

int recording_load(struct recording **recp, const char *path, char *err, unsigned int err_size)
{
	FILE *f = fopen(path, "re");
	int e;

	if (!f) {
		e = -errno;
		snprintf(err, err_size, "%s: %s", path, strerror(-e));
		return e;
	}
	e = (recording_is_binary(f) ? recording_binary : recording_jsonl)(recp, f, path, err,
									  err_size);
	fclose(f);
	return e;
}

struct recording *recording_new(void)
{
	struct recording *rec = calloc(1, sizeof(*rec));

	if (!rec)
		return NULL;
	rec->names = calloc(1, sizeof(*rec->names));
	if (!rec->names) {
		free(rec);
		return NULL;
	}
	return rec;
}

void recording_free(struct recording *rec)
{
	if (!rec)
		return;
	for (int i = 0; i < rec->names->n; i++)
		free(rec->names->name[i]);
	free(rec->names->name);
	free(rec->names);
	free(rec->context);
	free(rec->event);
	free(rec->call);
	free(rec);
}

static bool recording_is_text(const char *name, const char *text, size_t bytes)
{
	return !strncmp(name, text, bytes) && !name[bytes];
}

const char *recording_intern(struct recording_names *names, const char *text, size_t bytes)
{
	bytes = strnlen(text, bytes);
	for (int i = 0; i < names->n; i++)
		if (recording_is_text(names->name[i], text, bytes))
			return names->name[i];
	if (names->n == names->room) {
		int room = names->room * 2 + 32;
		char **p = realloc(names->name, room * sizeof(*p));

		if (!p)
			return NULL;
		names->name = p;
		names->room = room;
	}
	names->name[names->n] = strndup(text, bytes);
	return names->name[names->n] ? names->name[names->n++] : NULL;
}
