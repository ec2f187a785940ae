/* SPDX-License-Identifier: Apache-2.0 */
/* The columns of the daemon's rows of ranks, and the words that people read in them. */
#include "cli/view/ranks.h"

#include <string.h>

#include "util/list.h"

/* Columns of the flat table and the tree, after those that tell whose row it is. */
#define WHO_COLUMNS									\
	{ "gpu", "GPU", COL_TEXT, "pci_bus_id", 0, 16, 5 },					\
	{ "gpu_uuid", NULL, COL_TEXT, "gpu_uuid", 0, 0, 0 },				\
	{ "pid", "PID", COL_INTEGER, "pid", 7, 0, 4 | REPORT_KEY },			\
	{ "user", "USER", COL_TEXT, "user", 0, 10, 8 }

#define FIGURE_COLUMNS									\
	{ "state", "STATE", COL_STATE, "ended", 0, 0, REPORT_IF_KNOWN },		\
	{ "ops_per_s", "OPS/s", COL_NUMBER, "ops_per_s", 5, 0, 6 },			\
	{ "busbw_waitfree_gbs", "WAITFREE(GB/s)", COL_NUMBER, "busbw_waitfree_gbs", 0, 0, 12 }, \
	{ "busbw_gbs", "BUSBW(GB/s)", COL_NUMBER, "busbw_gbs", 0, 0, 2 },		\
	{ "p50_ns", "P50(us)", COL_MICROS, "p50_ns", 8, 0, 14 },			\
	{ "p99_ns", "P99(us)", COL_MICROS, "p99_ns", 8, 0, 13 },			\
	{ "wait", "WAIT(%)", COL_PERCENT, "wait", 0, 0, 3 },				\
	{ "blame", "BLAME(%)", COL_PERCENT, "blame", 0, 0, 1 },				\
	{ "last", "LAST(%)", COL_PERCENT, "last", 0, 0, 7 },				\
	{ "late_ns", "LATE(us)", COL_MICROS, "late_ns", 8, 0, 9 },			\
	{ "idle", "IDLE(%)", COL_PERCENT, "idle", 0, 0, 11 },				\
	{ "in_flight", "INFL", COL_INTEGER, "in_flight", 0, 0, 0 },			\
	{ "oldest_ns", "OLDEST", COL_STALL, "oldest_ns", 6, 0, 0 },	\
	{ "verdict", "VERDICT", COL_VERDICT, "found", 7, 16, 0 }

const struct column rank_columns[] = {
	{ "rank", "RANK", COL_INTEGER, "rank", 0, 0, REPORT_KEY },
	WHO_COLUMNS,
	{ "job", "JOB", COL_TEXT, "job", 0, 16, 10 },
	{ NULL, "PHASE", COL_TEXT, "phase", 0, 16, 3 | REPORT_IF_KNOWN },
	{ NULL, "TAG", COL_TEXT, "tag", 0, 18, 3 | REPORT_IF_KNOWN },
	{ "comm_id", NULL, COL_TEXT, "comm_id", 0, 0, 0 },
	{ "comm_name", NULL, COL_TEXT, "comm_name", 0, 0, 0 },
	{ "nranks", NULL, COL_INTEGER, "nranks", 0, 0, REPORT_KEY },
	{ NULL, "COMM", COL_TEXT, "comm_label|comm_id", 4, 20, 0 },
	FIGURE_COLUMNS,
	{ "phase", NULL, COL_TEXT, "phase", 0, 0, 0 },
	{ "tag", NULL, COL_TEXT, "tag", 0, 0, 0 },
	{ "host", "HOST", COL_TEXT, "host", 0, 24, REPORT_IF_KNOWN },
};
const size_t rank_column_count = ARRAY_LEN(rank_columns);

const struct column tree_columns[] = {
	{ NULL, "JOB/COMM/RANK", COL_TEXT, "tree", 0, 32, 0 },
	WHO_COLUMNS,
	FIGURE_COLUMNS,
};
const size_t tree_column_count = ARRAY_LEN(tree_columns);

const struct column ranks_badness = { NULL, NULL, COL_NUMBER, "badness", 0, 0, 0 };

static const char *text_of(const json_t *row, const char *key)
{
	return json_string_value(json_object_get(row, key)) ?: "";
}

/* Copy a value under another name, where it is known. */
static void row_name(json_t *row, const char *name, const char *key)
{
	json_t *value = json_object_get(row, key);

	if (value && !json_is_null(value))
		json_object_set(row, name, value);
}

void ranks_dress(json_t *row)
{
	if (strcmp(text_of(row, "state"), "live"))
		row_name(row, "ended", "state");
	if (!json_is_string(json_object_get(row, "user")))
		row_name(row, "user", "uid");
	row_name(row, "found", "finding");
	row_name(row, "found", "verdict");
}
