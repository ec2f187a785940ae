/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_TOP_SCREEN_H
#define CLI_TOP_SCREEN_H

/*
 * The terminal.  Only here is curses known, and whatever ends the program while
 * the screen is open, a signal or a crash included, gives the terminal back.
 */

#include "cli/table/frame.h"

/* 0; -ENOTTY: no terminal, or a dumb one; -ENOENT: one that terminfo does not know. */
int screen_open(const struct line_style *style);
void screen_close(void);

/* The size now; follows the window. */
void screen_size(int *columns, int *lines);

/* Whether clicks and the wheel come as keys.  If so, marking text takes Shift. */
void screen_mouse(bool on);

/* Show the frame: only what differs goes to the terminal. */
void screen_draw(const struct frame *frame);

/*
 * Wait for a key, at most `timeout_ms`.  Returns a byte or an enum key; 0 when none
 * came or the size changed.
 */
int screen_key(int timeout_ms);

/* The signal that asked the program to end; 0: none. */
int screen_signal(void);

#endif
