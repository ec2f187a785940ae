/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/wish.h"

#include <stdio.h>
#include <string.h>

#include "cli/report.h"

#define ARRAY_LEN(a) (sizeof(a) / sizeof((a)[0]))

/* What a request can name, and where a row of any table has it. */
static const struct {
	const char *member;
	const char *path;
	const char *label;
	const char *name;	/* what people call it */
} targets[] = {
	{ "pid", "pid", "process", "pid" },
	{ "job", "job", "job", "job" },
	{ "comm_id", "comm_id", "communicator", "comm|comm_label|comm_name|comm_id" },
};

static const struct {
	const char *name;
	const char *level;	/* NULL: it stays */
	const char *sample;	/* NULL: it stays */
	int for_s;		/* 0: for good */
} levels[] = {
	{ "off", "off", NULL, 0 },
	{ "ops", "ops", NULL, 0 },
	{ "kernel", "kernel", NULL, 0 },
	{ "net", "net", NULL, 0 },
	{ "trace, for 10s", "trace", NULL, 10 },
	{ "every operation timed, for 60s", NULL, "all", 60 },
	{ "default: take back what was wished", "default", NULL, 0 },
};

void wish_deinit(struct wish *wish)
{
	json_decref(wish->bodies);
	json_decref(wish->body);
	json_decref(wish->due);
	memset(wish, 0, sizeof(*wish));
}

json_t *wish_targets(struct wish *wish, const json_t *row)
{
	json_t *items = json_array();

	wish_deinit(wish);
	wish->bodies = json_array();
	json_array_append_new(items, json_string("the node"));
	json_array_append_new(wish->bodies, json_object());
	for (size_t i = 0; row && i < ARRAY_LEN(targets); i++) {
		const json_t *value = report_get(row, targets[i].path);
		char name[WISH_TEXT], label[2 * WISH_TEXT];

		if (!value)
			continue;
		report_text(row, targets[i].name, name, sizeof(name));
		snprintf(label, sizeof(label), "%s %s", targets[i].label, name);
		json_array_append_new(items, json_string(label));
		json_array_append_new(wish->bodies, json_pack("{s:O}", targets[i].member, value));
	}
	return items;
}

void wish_take_target(struct wish *wish, int index, const char *name)
{
	json_decref(wish->body);
	wish->body = json_copy(json_array_get(wish->bodies, (size_t)index));
	snprintf(wish->whom, sizeof(wish->whom), "%s", name);
}

json_t *wish_levels(void)
{
	json_t *items = json_array();

	for (size_t i = 0; i < ARRAY_LEN(levels); i++)
		json_array_append_new(items, json_string(levels[i].name));
	return items;
}

void wish_take_level(struct wish *wish, int index)
{
	if (levels[index].level)
		json_object_set_new(wish->body, "level", json_string(levels[index].level));
	if (levels[index].sample)
		json_object_set_new(wish->body, "sample", json_string(levels[index].sample));
	if (levels[index].for_s)
		json_object_set_new(wish->body, "for_s", json_integer(levels[index].for_s));
	snprintf(wish->question, sizeof(wish->question), "Level of %s: %s.  Do it? (y/n)",
		 wish->whom, levels[index].name);
}

void wish_confirm(struct wish *wish)
{
	json_decref(wish->due);
	wish->due = wish->body;
	wish->body = NULL;
}
