/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_TOP_HEAD_H
#define CLI_TOP_HEAD_H

/* The top of the live view: what is wrong, then the node in figures. */

#include "cli/top/place.h"

void head_put(struct frame *frame, const struct view *view, const struct place *place);

/* The words of the head, each with its meaning. */
void head_put_help(struct frame *frame);

#endif
