/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The targets and levels that a user can wish for in the live view, and the requests made from
 * them.
 */
#include "cli/top/wish.h"

#include <stdio.h>
#include <string.h>

#include "cli/table/report.h"
#include "util/list.h"

/* The targets a request can name, the least first, and where a row of any table has each. */
static const struct {
	const char *member;
	const char *path;
	const char *label;
	const char *name;	/* people's name for it */
} targets[] = {
	{ "pid", "pid", "process", "pid" },
	{ "comm_id", "comm_id", "communicator", "comm_label|comm_name|comm_id" },
	{ "job", "job", "job", "job" },
};

static const struct {
	const char *name;
	const char *level;	/* NULL: it stays */
	const char *sample;	/* NULL: it stays */
	int for_s;		/* seconds; 0: for good */
} levels[] = {
	{ "off", "off", NULL, 0 },
	{ "ops", "ops", NULL, 0 },
	{ "kernel", "kernel", NULL, 0 },
	{ "net", "net", NULL, 0 },
	{ "trace, for 10s", "trace", NULL, 10 },
	{ "every operation timed, for 60s", NULL, "all", 60 },
	{ "default: take back what was wished", "default", NULL, 0 },
};

void wish_deinit(struct top_wish *wish)
{
	json_decref(wish->bodies);
	json_decref(wish->chosen);
	json_decref(wish->due);
	memset(wish, 0, sizeof(*wish));
}

static void add_target(struct top_wish *wish, json_t *items, const char *name, json_t *bodies)
{
	json_array_append_new(items, json_string(name));
	json_array_append_new(wish->bodies, bodies);
}

static void add_targets_of(struct top_wish *wish, json_t *items, const json_t *row)
{
	for (size_t i = 0; row && i < ARRAY_LEN(targets); i++) {
		const json_t *value = report_get(row, targets[i].path);
		char name[WISH_TEXT], label[2 * WISH_TEXT];

		if (!value)
			continue;
		report_text(row, targets[i].name, name, sizeof(name));
		snprintf(label, sizeof(label), "%s %s", targets[i].label, name);
		add_target(wish, items, label,
			   json_pack("[{s:O}]", targets[i].member, value));
	}
}

/* The least that each row is of, each once: two ranks may be one process. */
static json_t *bodies_of(const json_t *tagged)
{
	json_t *once = json_object(), *bodies = json_array(), *row;
	const char *key;

	json_object_foreach((json_t *)tagged, key, row) {
		for (size_t i = 0; i < ARRAY_LEN(targets); i++) {
			char text[2 * WISH_TEXT], name[WISH_TEXT];

			if (!report_get(row, targets[i].path))
				continue;
			report_text(row, targets[i].path, name, sizeof(name));
			snprintf(text, sizeof(text), "%s %s", targets[i].label, name);
			if (!json_object_get(once, text))
				json_array_append_new(bodies, json_pack(
					"{s:O}", targets[i].member,
					report_get(row, targets[i].path)));
			json_object_set_new(once, text, json_true());
			break;
		}
	}
	json_decref(once);
	return bodies;
}

static void add_tagged(struct top_wish *wish, json_t *items, const json_t *tagged)
{
	char label[WISH_TEXT];

	if (!json_object_size(tagged))
		return;
	snprintf(label, sizeof(label), "the %zu tagged", json_object_size(tagged));
	add_target(wish, items, label, bodies_of(tagged));
}

json_t *wish_targets(struct top_wish *wish, const json_t *row, const json_t *tagged)
{
	json_t *items = json_array();

	wish_deinit(wish);
	wish->bodies = json_array();
	add_target(wish, items, "the node", json_pack("[{}]"));
	add_tagged(wish, items, tagged);
	add_targets_of(wish, items, row);
	return items;
}

void wish_take_target(struct top_wish *wish, int index, const char *name)
{
	json_decref(wish->chosen);
	wish->chosen = json_deep_copy(json_array_get(wish->bodies, (size_t)index));
	snprintf(wish->whom, sizeof(wish->whom), "%s", name);
}

json_t *wish_levels(void)
{
	json_t *items = json_array();

	for (size_t i = 0; i < ARRAY_LEN(levels); i++)
		json_array_append_new(items, json_string(levels[i].name));
	return items;
}

void wish_take_level(struct top_wish *wish, int index)
{
	json_t *body;
	size_t i;

	json_array_foreach(wish->chosen, i, body) {
		if (levels[index].level)
			json_object_set_new(body, "level", json_string(levels[index].level));
		if (levels[index].sample)
			json_object_set_new(body, "sample", json_string(levels[index].sample));
		if (levels[index].for_s)
			json_object_set_new(body, "for_s", json_integer(levels[index].for_s));
	}
	snprintf(wish->question, sizeof(wish->question), "Level of %s: %s.  Do it? (y/n)",
		 wish->whom, levels[index].name);
}

/* The first target after the node is what is tagged, or the least that the row is of. */
void wish_trace(struct top_wish *wish, const json_t *row, const json_t *tagged, const char *file)
{
	json_t *items = wish_targets(wish, row, tagged);
	size_t index = json_array_size(items) > 1;

	wish_take_target(wish, (int)index, json_string_value(json_array_get(items, index)));
	json_decref(items);
	snprintf(wish->file, sizeof(wish->file), "%s", file);
	snprintf(wish->question, sizeof(wish->question), "Trace %s for %d s into %s? (y/n)",
		 wish->whom, CAPTURE_S, file);
}

void wish_confirm(struct top_wish *wish)
{
	json_decref(wish->due);
	wish->due = wish->chosen;
	wish->chosen = NULL;
}
