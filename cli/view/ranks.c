/* SPDX-License-Identifier: Apache-2.0 */
/* The columns of the daemon's rows of ranks, and the words that people read in them. */
#include "cli/view/ranks.h"

#include <string.h>

#include "cli/base/member.h"
#include "util/list.h"

const struct column rank_columns[] = {
#include "schema/rank_columns.h"
};
const size_t rank_column_count = ARRAY_LEN(rank_columns);

const struct column tree_columns[] = {
#include "schema/tree_columns.h"
};
const size_t tree_column_count = ARRAY_LEN(tree_columns);

const struct column ranks_badness = { NULL, NULL, COL_NUMBER, "badness", 0, 0, 0 };

/* Copy a value under another name, where it is known. */
static void row_name(json_t *row, const char *name, const char *key)
{
	json_t *value = json_object_get(row, key);

	if (value && !json_is_null(value))
		json_object_set(row, name, value);
}

void ranks_dress(json_t *row)
{
	if (!member_is(row, "state", "live"))
		row_name(row, "ended", "state");
	if (!json_is_string(json_object_get(row, "user")))
		row_name(row, "user", "uid");
	row_name(row, "found", "finding");
	row_name(row, "found", "verdict");
}
