/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_COMMON_PROSE_H
#define CLI_COMMON_PROSE_H

/*
 * Sentences in a frame: broken between words, so that nothing is cut.  On a page that is
 * printed, a word that is wider than it stands whole, as a path that is to be copied.
 */

#include "cli/common/cli.h"
#include "cli/table/frame.h"

#define PROSE_TERM   14	/* columns of a term before its meaning */
#define PROSE_WIDEST 100	/* longer lines are hard to read */

/* A page as wide as the terminal, `most` columns at most; printed and freed at its end. */
void prose_begin(struct frame *page, const struct cli *cli, int most);
void prose_end(struct frame *page, const struct cli *cli);

/*
 * Puts as many lines as the text takes, the first one indented by `first` blanks, the others
 * by `rest`.
 */
void prose_put(struct frame *frame, enum line_attr attr, int first, int rest, const char *text);

/* Puts a term and, beside it from column `indent` on, what it means; nothing without a meaning. */
void prose_put_term(struct frame *frame, int indent, const char *term, const char *meaning);

#endif
