/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/prose.h"

#include <stdlib.h>
#include <string.h>

#include "util/text.h"

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
	char *copy = strdup(text), *left = copy, *word;
	int indent = first;

	if (!copy)
		exit(EXIT_FAILURE);
	while ((word = strsep(&left, " "))) {
		bool starts = line->columns == indent;

		if (!starts && line->columns + 1 + text_width(word) > frame->columns) {
			line = new_line(frame, attr, rest);
			indent = rest;
			starts = true;
		}
		if (!starts)
			line_put(line, attr, " ");
		line_put(line, attr, word);
	}
	free(copy);
}
