/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_TOP_MENU_H
#define CLI_TOP_MENU_H

/* A list of words to choose one from, in place of the table. */

#include <jansson.h>

#include "cli/table/frame.h"

struct menu {
	const char *title;	/* NULL: it is closed */
	json_t *items;		/* strings */
	int cursor;
	int scroll;
	/* The choice's meaning. */
	int what;
};

/* Takes the items over; the cursor is put on the one that reads so, or on the first. */
void menu_open(struct menu *menu, const char *title, int what, json_t *items,
	       const char *current);
void menu_close(struct menu *menu);

void menu_move(struct menu *menu, int step);

/* The one under the cursor, borrowed; NULL: there is none. */
const char *menu_choice(const struct menu *menu);

/* Puts as many of its lines as there is room for. */
void menu_put(struct frame *frame, struct menu *menu);

#endif
