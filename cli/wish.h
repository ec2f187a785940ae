/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_WISH_H
#define CLI_WISH_H

/* A change of level that the user of the live view puts together, to be sent by PUT. */

#include <jansson.h>

#define WISH_TEXT 128

struct wish {
	json_t *bodies;		/* what a request about each of the targets begins with */
	json_t *body;		/* of the one that was chosen; or NULL */
	json_t *due;		/* confirmed, to be sent and then forgotten; or NULL */
	char whom[WISH_TEXT];
	char question[2 * WISH_TEXT];
	char told[2 * WISH_TEXT];	/* what came of the last one; "": nothing to tell */
};

void wish_deinit(struct wish *wish);

/* Whom it can be about: the node, and what the row (may be NULL) is of.  A menu's items. */
json_t *wish_targets(struct wish *wish, const json_t *row);
void wish_take_target(struct wish *wish, int index, const char *name);

/* What there is to wish; with the choice, wish->question asks for a confirmation. */
json_t *wish_levels(void);
void wish_take_level(struct wish *wish, int index);

/* Yes: it becomes due. */
void wish_confirm(struct wish *wish);

#endif
