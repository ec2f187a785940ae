/* SPDX-License-Identifier: Apache-2.0 */
/* ncclinsp ps: the processes that use NCCL, or lately did. */
#include "cli/listing.h"

static const struct column columns[] = {
	{ "pid", "PID", COL_INTEGER, "pid", 7, 0, 0 },
	{ "uid", NULL, COL_INTEGER, "uid", 0, 0, 0 },
	{ "user", "USER", COL_TEXT, "user|uid", 4, 16, 6 },
	{ "state", "STATE", COL_STATE, "state", 6, 0, 0 },
	{ "job", "JOB", COL_TEXT, "job.id", 0, 20, 5 },
	{ "rank", "RANK", COL_INTEGER, "job.rank", 0, 0, 0 },
	{ "level", "LEVEL", COL_TEXT, "level", 6, 0, 2 },
	{ "level_reason", NULL, COL_TEXT, "level_reason", 0, 0, 0 },
	{ "api_version", "API", COL_TEXT, "api_version", 0, 0, 4 },
	{ "comms", "COMMS", COL_INTEGER, "comms", 0, 0, 1 },
	{ "records", "RECORDS", COL_INTEGER, "records", 9, 0, 0 },
	{ "lost", "LOST", COL_SUM, "lost", 0, 0, 0 },
	{ "first_seen_at", NULL, COL_TEXT, "first_seen_at", 0, 0, 0 },
	{ "last_record_at", NULL, COL_TEXT, "last_record_at", 0, 0, 0 },
	{ NULL, "AGE", COL_SINCE, "first_seen_mono_ns", 6, 0, 3 },
	{ "command", "COMMAND", COL_TEXT, "command", 0, 0, 0 },
};

int cmd_ps(struct cli *cli)
{
	static const struct listing listing = {
		.array = "processes",
		.columns = columns,
		.count = sizeof(columns) / sizeof(columns[0]),
		.nothing = "no process uses NCCL with this plugin; start the job with "
			   "NCCL_PROFILER_PLUGIN=insp (see ncclinsp(1))",
	};

	return listing_run(cli, &listing, "/v1/processes");
}
