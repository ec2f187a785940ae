/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The bounds that are reported when reached: one row each, with its counter's path and its
 * words.
 */
#include "cli/left_out.h"

#include <stdio.h>

#include "cli/base/member.h"
#include "cli/table/report.h"

#define COUNT(rows) (sizeof(rows) / sizeof((rows)[0]))

/* docs/losses.md has a line for each. */
static const struct row {
	const char *path;
	const char *what;	/* the things that are counted there */
} of_daemon[] = {
	{ "unwatched.processes",
	  "processes: at most 1024 are read, 768 of one user, 256 of a container" },
	{ "unwatched.names", "names, shown as (other): at most 4096 are kept, half for one user" },
	{ "unwatched.files", "times a file: live processes have too many" },
	{ "reconstruct.comms_refused",
	  "communicators: at most 8192 are followed, half for a user, or fewer (memory)" },
	{ "memory.refused", "operations or communicators: no memory was left (memory-max)" },
	{ "memory.forgotten", "ended processes: they made room for others (memory-max)" },
	{ "aggregate.evicted",
	  "rows of sums over operations: the longest idle made room for new ones" },
	{ "aggregate.unbinned", "durations, from percentiles: a window had no room for them" },
	{ "links.evicted", "network links: the longest idle made room for new ones" },
	{ "queues.evicted", "figures of queue pairs: the longest idle made room for new ones" },
	{ "queues.unbinned", "times of work requests, from percentiles: there was no room" },
	{ "ranks.pushed_out", "operations, from comparing ranks: too many waited for others" },
	{ "ranks.unscanned", "operations, from comparing ranks: too many new communicators" },
	{ "exemplars.skipped", "slow operations, from exemplars: a user has four files a minute" },
	{ "containers.unseen",
	  "processes in containers: the daemon may not look there (man ncclinspd)" },
	{ "containers.left_out",
	  "times a container or process: at most 64 and 32768 are read" },
	{ "control.left_out", "level settings: the control file had no room" },
	{ "control.forgotten", "processes, from automatic levels: there are too many" },
}, of_processes[] = {
	{ "ignored.event", "events of a kind that the plugin does not know: NCCL is newer" },
	{ "ignored.context", "events of communicators whose start the plugin did not see" },
};

static long long left_out_number(const json_t *answer, const char *path)
{
	return json_integer_value(report_get(answer, path));
}

static long long left_out_sum(const json_t *processes, const char *path)
{
	long long n = 0;

	json_each(row, json_object_get(processes, "processes"))
		n += left_out_number(row, path);
	return n;
}

bool left_out_next(const json_t *status, const json_t *processes, size_t *i,
		   char text[LEFT_OUT_BYTES])
{
	while (*i < COUNT(of_daemon) + COUNT(of_processes)) {
		bool daemons = *i < COUNT(of_daemon);
		const struct row *row = daemons ? &of_daemon[*i] :
					&of_processes[*i - COUNT(of_daemon)];
		long long n = daemons ?
			left_out_number(status, row->path) : left_out_sum(processes, row->path);

		++*i;
		if (!n)
			continue;
		snprintf(text, LEFT_OUT_BYTES, "%lld %s", n, row->what);
		return true;
	}
	return false;
}
