/* SPDX-License-Identifier: Apache-2.0 */
/* ncclinsp peers: what went over the network, by link or by queue pair, the worst first. */
#include <string.h>

#include "cli/view/columns.h"
#include "schema/fields.h"
#include "util/list.h"

static const struct column queues_columns[] = {
#include "schema/queues_columns.h"
};

int cmd_peers(struct cli *cli)
{
	const struct listing links = {
		.array = "peers",
		.asked = PEERS_FIELDS,
		.columns = peers_columns,
		.count = peers_column_count,
		.nothing = "no transfer over a network has been seen",
		.dress = peers_dress,
	}, queues = {
		.array = "queues",
		.asked = QUEUES_FIELDS,
		.columns = queues_columns,
		.count = ARRAY_LEN(queues_columns),
		.nothing = cli->from.count ?
			   "these snapshots have no work request of their last minute" :
			   "no work request has been seen: level trace is needed, and an NCCL "
			   "built with NET_PROFILER=1",
	};
	/* Snapshots have the last minute of queues. */
	bool minute = cli->by_queue && cli->from.count;
	char target[128];
	int used = snprintf(target, sizeof(target), "/v1/%s?window=%s%s",
			    cli->by_queue ? "queues" : "peers",
			    cli->window ?: minute ? "60s" : "all",
			    cli->by_queue ? "" :
			    cli->by_channel ? "&channels=each" : "&channels=together");

	if (cli->by_queue && cli->by_channel)
		return cli_reject("--by-queue and --by-channel: choose one; each queue pair has "
				  "its channel beside it");
	if (minute && cli->window && strcmp(cli->window, "60s"))
		return cli_reject("--window: snapshots have queue pairs of their last minute only "
				  "(60s)");
	if (cli->peer != CLI_ANY)
		used += snprintf(target + used, sizeof(target) - (size_t)used, "&peer=%lld",
				 (long long)cli->peer);
	if (cli->direction)
		snprintf(target + used, sizeof(target) - (size_t)used, "&direction=%s",
			 cli->direction);
	return listing_run(cli, cli->by_queue ? &queues : &links, target);
}
