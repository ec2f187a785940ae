/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_LAYOUT_H
#define CLI_LAYOUT_H

/*
 * The live view as lines: a pure function of what is known, where the user is,
 * and the size.  Nothing here knows a terminal.
 */

#include "cli/view.h"

/* Where the user is. */
struct layout_state {
	enum view_table table;
	int scroll;	/* first row shown */
	int page;	/* rows that the last frame had room for */
	int sort;	/* column; -1: the daemon's order, worst first */
	bool ascending;
	bool paused;
	bool help;
	bool quit;
	bool interactive;	/* false: one frame of text, no keys */
	uint64_t delay_ns;
};

struct frame {
	int columns;
	int capacity;
	int count;
	struct line *lines;	/* capacity + 1: the last takes what does not fit */
};

/* Exits when memory runs out. */
void frame_init(struct frame *frame, int columns, int lines);
void frame_deinit(struct frame *frame);

/* A new line to write on; one that nobody sees when the frame is full. */
struct line *frame_add(struct frame *frame);

/* Fill the frame.  Keeps state->scroll inside the table, sets state->page. */
void layout_frame(struct frame *frame, const struct view *view, struct layout_state *state);

/*
 * Keys, as characters or one of these; 0 is none.  What means nothing is ignored.
 */
enum layout_key {
	LAYOUT_UP = 0x1000,
	LAYOUT_DOWN,
	LAYOUT_PAGE_UP,
	LAYOUT_PAGE_DOWN,
	LAYOUT_HOME,
	LAYOUT_END,
	LAYOUT_NEXT,
	LAYOUT_PREVIOUS,
	LAYOUT_HELP,
	LAYOUT_QUIT,
};

void layout_key(struct layout_state *state, int key);

#endif
