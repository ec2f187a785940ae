/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An upgrade leaves plugins in running jobs that write the old format, or a daemon that
 * was not restarted: nothing else shows why such a job is not there.
 */
#include "cli/doctor/foreign.h"

#include <stdio.h>

#include "cli/table/report.h"

static json_int_t foreign_number(const json_t *row, const char *path)
{
	return json_integer_value(report_get(row, path));
}

bool foreign_tell(const json_t *processes, char *text, size_t size)
{
	const json_t *rows = json_object_get(processes, "foreign");
	const json_t *row = json_array_get(rows, 0);
	json_int_t reads = foreign_number(processes, "abi_major"),
		writes = foreign_number(row, "abi_major");
	size_t count = json_array_size(rows);
	char more[32] = "";

	if (!row)
		return false;
	if (count > 1)
		snprintf(more, sizeof(more), " and %zu more", count - 1);
	snprintf(text, size, "not watched: process %lld%s, whose plugin writes format %lld; the "
		 "daemon reads format %lld: %s", (long long)foreign_number(row, "pid"), more,
		 (long long)writes, (long long)reads,
		 writes > reads ? "the daemon is older: restart it (systemctl restart ncclinspd), "
				  "or upgrade it"
				: "the plugin is older, from before an upgrade; it stays until the "
				  "job is started again");
	return true;
}
