/* SPDX-License-Identifier: Apache-2.0 */
/* The lines of a frame: one array, allocated once for the most lines that fit. */
#include "cli/table/frame.h"

#include <stdlib.h>

#include "cli/base/must.h"

void frame_init(struct frame *frame, int columns, int lines)
{
	frame->columns = columns < LINE_BYTES / 4 ? columns : LINE_BYTES / 4;
	frame->capacity = lines;
	frame->count = 0;
	frame->page = false;
	frame->lines = must(calloc((size_t)lines + 1, sizeof(*frame->lines)));
}

void frame_deinit(struct frame *frame)
{
	free(frame->lines);
	frame->lines = NULL;
}

struct line *frame_add(struct frame *frame)
{
	struct line *line = &frame->lines[frame->count];

	if (frame->count < frame->capacity)
		frame->count++;
	line_start(line, frame->columns);
	return line;
}

int frame_room(const struct frame *frame)
{
	return frame->capacity - frame->count;
}

void frame_append(struct frame *frame, const struct frame *other, int most)
{
	for (int i = 0; i < other->count && i < most; i++)
		*frame_add(frame) = other->lines[i];
}
