/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_PROSE_H
#define CLI_PROSE_H

/* Sentences in a frame: broken between words, so that nothing is cut. */

#include "cli/top/frame.h"

/*
 * As many lines as the text takes, the first one indented by `first` blanks, the others
 * by `rest`.
 */
void prose_put(struct frame *frame, enum line_attr attr, int first, int rest, const char *text);

#endif
