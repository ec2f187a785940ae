/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_TOP_ASK_H
#define CLI_TOP_ASK_H

/*
 * The live view's questions to its user, by menus and prompts, and what the answers do. Each
 * ask_* opens one; its keys go to ask_press_menu() or ask_press_prompt().
 */

#include "cli/top/place.h"

enum ask_text { ASK_FILTER, ASK_SEARCH, ASK_DELAY, ASK_CONFIRM, ASK_FOCUS };

/* ---- actions of the table of keys, in its form: what they do not use, they ignore ---- */

void ask_sort(struct place *place, const struct view *view, int unused);
void ask_pick(struct place *place, const struct view *view, int pick);	/* enum place_pick */
void ask_level(struct place *place, const struct view *view, int unused);

/* Whether what is tagged, or else under the cursor, is to be traced, into which file. */
void ask_trace(struct place *place, const struct view *view, int unused);

/* A line of text: ASK_FILTER, ASK_SEARCH or ASK_DELAY. */
void ask_text(struct place *place, const struct view *view, int what);

/* Moves to the next row (step 1) or the one before (-1) that shows what was searched for. */
void ask_search_next(struct place *place, const struct view *view, int step);

/* ---- the rest ------------------------------------------------------------------------ */

/* Asks which of the actions to take; takes the items over. */
void ask_action(struct place *place, json_t *items);

/* Returns the index of the action that was chosen; -1: none was. */
int ask_press_menu(struct place *place, int key);
void ask_press_prompt(struct place *place, const struct view *view, int key);

#endif
