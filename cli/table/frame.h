/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_TABLE_FRAME_H
#define CLI_TABLE_FRAME_H

/* Lines under each other: what fits on a screen of some size, or a page of text. */

#include "cli/table/line.h"

struct frame {
	int columns;
	int capacity;
	int count;
	bool page;		/* printed, not drawn: what passes its edge does no harm */
	struct line *lines;	/* capacity + 1: the last takes what does not fit */
};

/* Exits when memory runs out. */
void frame_init(struct frame *frame, int columns, int lines);
void frame_deinit(struct frame *frame);

/* A new line to write on; one that nobody sees when the frame is full. */
struct line *frame_add(struct frame *frame);

/* Lines that are left. */
int frame_room(const struct frame *frame);

/* Append the lines of another frame, at most `most` of them. */
void frame_append(struct frame *frame, const struct frame *other, int most);

#endif
