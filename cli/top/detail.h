/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_TOP_DETAIL_H
#define CLI_TOP_DETAIL_H

/* All that is known of one row, member by member. */

#include <jansson.h>

#include "cli/table/frame.h"

/* Puts the text at "text" first, as prose.  At most the frame's capacity. */
void detail_put(struct frame *frame, const json_t *row);

#endif
