/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_TOP_ROWS_H
#define CLI_TOP_ROWS_H

/* The rows of a table that the user of the live view gets to see, and their order. */

#include "cli/table/filter.h"
#include "cli/top/place.h"

/*
 * Rows of a table that agree with the scope (NULL: all), the choices of user, GPU and
 * communicator, and the filter; sorted as the table is to be.  A new array.
 */
json_t *rows_select(const struct view *view, const struct place *place, enum view_table table,
		    const json_t *scope);

/*
 * The user's filter for a table.  Returns 0, or -EINVAL with what is wrong in `why`:
 * then the table shows all its rows.
 */
int rows_filter(const struct place *place, enum view_table table, struct filter *filter,
		char *why, size_t size);

/* The table that a row is of: in the tree, that depends on the row. */
enum view_table rows_table(enum view_table table, const json_t *row);

/* Has the row all that the scope (NULL: anything) says? */
bool rows_agree(const json_t *row, const json_t *scope);

/* The key that tells a row from all others of its table, as text. */
void rows_key(enum view_table table, const json_t *row, char key[PLACE_KEY]);

/* Does a row show one of the fixed strings "a|b", in whichever case? */
bool rows_show(enum view_table table, const json_t *row, uint64_t now_ns, const char *text);

/* The values to choose from: distinct ones over the ranks, sorted; a new array. */
json_t *rows_values(const struct view *view, enum place_pick pick);

#endif
