/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_TOP_WISH_H
#define CLI_TOP_WISH_H

/*
 * The wish of the live view's user: a change of level, put together by menus and sent by PUT,
 * a trace, or a snapshot.
 */

#include <jansson.h>
#include <stdbool.h>

#include "cli/table/frame.h"
#include "cli/top/capture.h"

#define WISH_TEXT 128

struct top_wish {
	json_t *bodies;		/* per target: what the requests about it begin with, an array */
	json_t *chosen;		/* one of these; or NULL */
	json_t *due;		/* confirmed, to be sent and then forgotten; or NULL */
	char file[CAPTURE_PATH];	/* a trace of it is to be written there; "": none is */
	bool snapshot;		/* one is wanted: to be asked for, and then forgotten */
	int level;		/* the wished one's place in wish_levels() */
	char whom[WISH_TEXT];
	char question[2 * WISH_TEXT + CAPTURE_PATH];
	char told[CAPTURE_TEXT];	/* outcome of the last one; "": nothing to tell */
};

void wish_deinit(struct top_wish *wish);

/*
 * The targets it can be about: the node, the rows that are `tagged` (by key), and what the row
 * is of; both may be NULL.  A menu's items.
 */
json_t *wish_targets(struct top_wish *wish, const json_t *row, const json_t *tagged);
void wish_take_target(struct top_wish *wish, int index, const char *name);

/* The levels to wish for; with the choice, wish->question asks for a confirmation. */
json_t *wish_levels(void);
void wish_take_level(struct top_wish *wish, int index);

/*
 * A trace, into that file, of what is tagged, else of the least that the row is of, else
 * of the node: wish->question asks.
 */
void wish_trace(struct top_wish *wish, const json_t *row, const json_t *tagged, const char *file);

/*
 * The facts before a yes: the processes that it concerns, by rows of ranks, what is recorded, what
 * that costs, and when it ends; and the same of timing all operations of one process.
 */
void wish_put_facts(struct frame *frame, const struct top_wish *wish, const json_t *ranks);
void wish_put_focus_facts(struct frame *frame, json_int_t pid, const json_t *ranks);

/* Yes: it becomes due. */
void wish_confirm(struct top_wish *wish);

#endif
