/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_TOP_LAYOUT_H
#define CLI_TOP_LAYOUT_H

/*
 * The live view as lines: a pure function of what is known, where the user is,
 * and the size.  Nothing here knows a terminal.
 */

#include "cli/top/place.h"

/*
 * Fill the frame.  Keeps the cursor inside the table and on the screen, and notes in
 * `place` what there was.
 */
void layout_frame(struct frame *frame, const struct view *view, struct place *place);

#endif
