/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_TOP_KEYS_H
#define CLI_TOP_KEYS_H

/* The meaning of each key of the live view: one table acts, helps and fills the footer. */

#include "cli/top/place.h"

/* Keys are characters, bytes of UTF-8, or one of these; 0 is none. */
enum key {
	KEYS_ENTER = '\r',
	KEYS_ESCAPE = 0x1b,
	KEYS_UP = 0x1000,
	KEYS_DOWN,
	KEYS_PAGE_UP,
	KEYS_PAGE_DOWN,
	KEYS_HOME,
	KEYS_END,
	KEYS_NEXT,
	KEYS_PREVIOUS,
	KEYS_ERASE,
	KEYS_HELP,
	KEYS_MENU,
	KEYS_SEARCH,
	KEYS_FILTER,
	KEYS_TREE,
	KEYS_SORT,
	KEYS_QUIT,
	KEYS_NONE,	/* draws, and does nothing else */
	KEYS_WHEEL_UP,
	KEYS_WHEEL_DOWN,
	KEYS_CLICK = 1 << 24,	/* a click, with line and column of the screen: KEYS_CLICK_AT() */
};

#define KEYS_CLICK_AT(x, y) (KEYS_CLICK | ((y) & 0xfff) << 12 | ((x) & 0xfff))

/* Acts on a key; one that means nothing here is ignored. */
void keys_press(struct place *place, const struct view *view, int key);

/* The help: a line for each key; and the keys' names in one line. */
void keys_put_help(struct frame *frame, const struct place *place);
void keys_put_footer(struct frame *frame, const struct place *place);

#endif
