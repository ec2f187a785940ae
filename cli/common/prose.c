/* SPDX-License-Identifier: Apache-2.0 */
/* Prose on a terminal: text is broken between words, at the width of the screen or page. */
#include "cli/common/prose.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/base/must.h"
#include "util/text.h"

#define LINES 1024

void prose_begin(struct frame *page, const struct cli *cli, int most)
{
	frame_init(page, cli->columns < most ? cli->columns : most, LINES);
	page->page = true;
}

void prose_end(struct frame *page, const struct cli *cli)
{
	for (int i = 0; i < page->count; i++)
		line_print(&page->lines[i], &cli->style, stdout);
	frame_deinit(page);
}

static struct line *new_line(struct frame *frame, enum line_attr attr, int indent)
{
	struct line *line = frame_add(frame);

	for (int i = 0; i < indent; i++)
		line_put(line, attr, " ");
	return line;
}

void prose_put(struct frame *frame, enum line_attr attr, int first, int rest, const char *text)
{
	struct line *line = new_line(frame, attr, first);
	char *copy = must(strdup(text)), *left = copy, *word;
	int indent = first;

	while ((word = strsep(&left, " "))) {
		bool starts = line->columns == indent;

		if (!starts && line->columns + 1 + text_width(word) > frame->columns) {
			line = new_line(frame, attr, rest);
			indent = rest;
			starts = true;
		}
		if (!starts)
			line_put(line, attr, " ");
		else if (frame->page && indent + text_width(word) > line->limit)
			line->limit = indent + text_width(word);
		line_put(line, attr, word);
		if (attr == LINE_WARN)
			attr = LINE_PLAIN;
	}
	free(copy);
}

void prose_put_term(struct frame *frame, int indent, const char *term, const char *meaning)
{
	char text[LINE_BYTES];

	if (!meaning)
		return;
	snprintf(text, sizeof(text), "%-*s %s", indent - 1, term, meaning);
	prose_put(frame, LINE_PLAIN, 0, indent, text);
}
