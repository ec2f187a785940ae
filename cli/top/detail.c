/* SPDX-License-Identifier: Apache-2.0 */
/* The details of a row, as lines: every member, with numbers also as people read them. */
#include "cli/top/detail.h"

#include <stdio.h>
#include <string.h>

#include "cli/common/prose.h"
#include "util/text.h"

#define NAME  96
#define VALUE 512
#define LABEL 28	/* columns of a name, unless it is longer */

static bool name_ends_in(const char *name, const char *end)
{
	size_t len = strlen(name), tail = strlen(end);

	return len >= tail && !strcmp(name + len - tail, end);
}

/* The number as it is, and as people read it. */
static void detail_show_number(const char *name, const json_t *value, char text[VALUE])
{
	double n = json_number_value(value);
	char human[TEXT_MAX] = "";

	if (json_is_integer(value) && n >= 0 && name_ends_in(name, "_ns") &&
	    !name_ends_in(name, "mono_ns"))
		text_duration(human, sizeof(human), (uint64_t)json_integer_value(value));
	else if (json_is_integer(value) && n >= 1024 && name_ends_in(name, "bytes"))
		text_bytes(human, sizeof(human), (uint64_t)json_integer_value(value));
	if (json_is_integer(value))
		snprintf(text, VALUE, "%" JSON_INTEGER_FORMAT, json_integer_value(value));
	else
		snprintf(text, VALUE, "%.9g", n);
	if (*human)
		snprintf(text + strlen(text), VALUE - strlen(text), "  (%s)", human);
}

static void detail_show(const char *name, const json_t *value, char text[VALUE])
{
	char *dump;

	if (json_is_number(value)) {
		detail_show_number(name, value, text);
	} else if (json_is_string(value)) {
		snprintf(text, VALUE, "%s", json_string_value(value));
	} else if (!value || json_is_null(value)) {
		snprintf(text, VALUE, "-");
	} else {
		dump = json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY);
		snprintf(text, VALUE, "%s", dump ?: "-");
		free(dump);
	}
}

static void detail_put_member(struct frame *frame, const char *name, const json_t *value)
{
	struct line *line = frame_add(frame);
	char text[VALUE];

	detail_show(name, value, text);
	line_cell(line, LINE_BOLD, name, LABEL > text_width(name) ? LABEL : text_width(name),
		  false);
	line_printf(line, value && !json_is_null(value) ? LINE_PLAIN : LINE_DIM, "  %s", text);
}

static void detail_put_members(struct frame *frame, const char *prefix, const json_t *object)
{
	const char *key;
	json_t *value;

	json_object_foreach((json_t *)object, key, value) {
		char name[NAME];

		snprintf(name, sizeof(name), "%s%s%s", prefix, *prefix ? "." : "", key);
		if (!*prefix && !strcmp(key, "text"))
			continue;
		if (json_is_object(value) && json_object_size(value))
			detail_put_members(frame, name, value);
		else
			detail_put_member(frame, name, value);
	}
}

void detail_put(struct frame *frame, const json_t *row)
{
	const char *text = json_string_value(json_object_get(row, "text"));

	if (text) {
		prose_put(frame, LINE_PLAIN, 0, 0, text);
		frame_add(frame);
	}
	detail_put_members(frame, "", row);
}
