/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The parameter `fields`: names of a row's members, as they stand in the tables that
 * write it.  They are looked up once; what is kept of them is a bit each.
 */
#include <stdio.h>
#include <string.h>

#include "ncclinspd/serve/serve_query.h"

#define NAME_BYTES	80
#define PARTS		2	/* names that one field may have: x_at and x_mono_ns */

/* The names of a field, as they are in the answer; returns how many there are. */
static unsigned fields_name(const struct field_table *t, const struct field *f,
			    char names[PARTS][NAME_BYTES])
{
	const char *inside = t->inside ? t->inside : "", *dot = t->inside ? "." : "";

	if (f->kind != FIELD_TIME) {
		snprintf(names[0], NAME_BYTES, "%s%s%s", inside, dot, f->name);
		return 1;
	}
	snprintf(names[0], NAME_BYTES, "%s%s%s_at", inside, dot, f->name);
	snprintf(names[1], NAME_BYTES, "%s%s%s_mono_ns", inside, dot, f->name);
	return 2;
}

static bool field_is_name(const char *name, const char *text, size_t bytes)
{
	return strlen(name) == bytes && !strncmp(name, text, bytes);
}

static void chosen_set(struct chosen *c, unsigned n)
{
	c->bits[n / 64] |= UINT64_C(1) << n % 64;
}

/* A member's own members are chosen one by one, or all together by its name. */
static bool chosen_set_one(const struct field_table *tables, const char *text, size_t bytes,
			   struct chosen *c)
{
	char names[PARTS][NAME_BYTES];
	bool found = false;
	unsigned n = 0;

	for (const struct field_table *t = tables; t->fields; t++) {
		bool all = t->inside && field_is_name(t->inside, text, bytes);

		for (const struct field *f = t->fields; f->name; f++) {
			unsigned parts = fields_name(t, f, names);

			for (unsigned i = 0; i < parts && n < ROWS_NAMES; i++, n++) {
				if (!all && !field_is_name(names[i], text, bytes))
					continue;
				chosen_set(c, n);
				found = true;
			}
		}
	}
	return found;
}

static void fields_list_names(const struct field_table *tables, char *out, size_t bytes)
{
	char names[PARTS][NAME_BYTES];
	size_t used = 0;

	for (const struct field_table *t = tables; t->fields; t++)
		for (const struct field *f = t->fields; f->name; f++) {
			unsigned parts = fields_name(t, f, names);

			for (unsigned i = 0; i < parts && used < bytes; i++)
				used += (size_t)snprintf(out + used, bytes - used, "%s%s",
							 used ? ", " : "", names[i]);
		}
}

bool fields_choose(const struct field_table *tables, const char *list, struct chosen *c,
		   char why[SERVE_WHY_BYTES])
{
	char known[SERVE_WHY_BYTES - 128];

	*c = (struct chosen){ .some = true };
	for (;;) {
		size_t bytes = strcspn(list, ",");

		if (!chosen_set_one(tables, list, bytes, c)) {
			fields_list_names(tables, known, sizeof(known));
			snprintf(why, SERVE_WHY_BYTES,
				 "unknown field '%.*s' in 'fields'; known: %s",
				 bytes < 64 ? (int)bytes : 64, list, known);
			return false;
		}
		list += bytes;
		if (!*list++)
			return true;
	}
}
