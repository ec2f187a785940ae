/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_TOP_WISH_H
#define CLI_TOP_WISH_H

/*
 * What the user of the live view wants the daemon to do: a change of level, put
 * together by menus and sent by PUT, or a snapshot.
 */

#include <jansson.h>
#include <stdbool.h>

#define WISH_TEXT 128

struct wish {
	json_t *bodies;		/* per target: what the requests about it begin with, an array */
	json_t *chosen;		/* one of these; or NULL */
	json_t *due;		/* confirmed, to be sent and then forgotten; or NULL */
	bool snapshot;		/* one is wanted: to be asked for, and then forgotten */
	char whom[WISH_TEXT];
	char question[2 * WISH_TEXT];
	char told[2 * WISH_TEXT];	/* what came of the last one; "": nothing to tell */
};

void wish_deinit(struct wish *wish);

/*
 * Whom it can be about: the node, the rows that are `tagged` (by key), and what the row
 * is of; both may be NULL.  A menu's items.
 */
json_t *wish_targets(struct wish *wish, const json_t *row, const json_t *tagged);
void wish_take_target(struct wish *wish, int index, const char *name);

/* What there is to wish; with the choice, wish->question asks for a confirmation. */
json_t *wish_levels(void);
void wish_take_level(struct wish *wish, int index);

/* Trace for a while: what is tagged, else the least that the row is of, else the node. */
void wish_trace(struct wish *wish, const json_t *row, const json_t *tagged);

/* Yes: it becomes due. */
void wish_confirm(struct wish *wish);

#endif
