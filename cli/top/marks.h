/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_TOP_MARKS_H
#define CLI_TOP_MARKS_H

/* The marks of the live view's user: rows that are tagged, branches that are folded. */

#include "cli/top/place.h"

/* Tag the row under the cursor, or take its tag away, and go on to the next row. */
void marks_tag(struct place *place);
void marks_untag_all(struct place *place);

bool marks_is_tagged(const struct place *place, enum view_table table, const json_t *row);
/*
 * Columns before each row that tell, in every terminal, where the cursor is and, as soon
 * as there are any, the tags.  Text for a file has neither.
 */
int marks_width(const struct place *place);

size_t marks_tagged(const struct place *place);

/*
 * MARKS_ALL folds all communicators, or opens all where anything is folded.  A rank
 * cannot be folded: its communicator is, and gets the cursor.
 */
enum marks_fold { MARKS_SHUT, MARKS_OPEN, MARKS_ALL };

void marks_fold(struct place *place, const struct view *view, enum marks_fold how);

/*
 * The tree without what is folded, each branch with a sign that tells; a new array, of
 * which some rows are the old ones.
 */
json_t *marks_fold_tree(const struct place *place, const json_t *tree);

#endif
