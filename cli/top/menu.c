/* SPDX-License-Identifier: Apache-2.0 */
/* The menu of the live view: a cursor in a list that scrolls. */
#include "cli/top/menu.h"

#include <string.h>

void menu_open(struct menu *menu, const char *title, int what, json_t *items,
	       const char *current)
{
	json_t *item;
	size_t i;

	menu_close(menu);
	*menu = (struct menu){ .title = title, .items = items, .what = what };
	json_array_foreach(items, i, item)
		if (!strcmp(json_string_value(item), current))
			menu->cursor = (int)i;
}

void menu_close(struct menu *menu)
{
	json_decref(menu->items);
	menu->items = NULL;
	menu->title = NULL;
}

void menu_move(struct menu *menu, int step)
{
	int n = (int)json_array_size(menu->items);

	menu->cursor += step;
	if (menu->cursor >= n)
		menu->cursor = n - 1;
	if (menu->cursor < 0)
		menu->cursor = 0;
}

const char *menu_choice(const struct menu *menu)
{
	return json_string_value(json_array_get(menu->items, (size_t)menu->cursor));
}

void menu_put(struct frame *frame, struct menu *menu)
{
	int n = (int)json_array_size(menu->items), room;
	struct line *line = frame_add(frame);

	line_printf(line, LINE_BAR, " %s ", menu->title);
	room = frame_room(frame);
	if (menu->scroll > menu->cursor)
		menu->scroll = menu->cursor;
	if (menu->scroll <= menu->cursor - room)
		menu->scroll = menu->cursor - room + 1;
	for (int i = menu->scroll; i < n && frame_room(frame); i++) {
		bool here = i == menu->cursor;

		line = frame_add(frame);
		line_printf(line, here ? LINE_CURSOR : LINE_PLAIN, "%c%s", here ? '>' : ' ',
			    json_string_value(json_array_get(menu->items, (size_t)i)));
	}
}
