/* SPDX-License-Identifier: Apache-2.0 */
/* ncclinsp peers: what went over the network, by link or by queue pair, the worst first. */
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
		.nothing = "no work request has been seen: level trace is needed, and an NCCL "
			   "built with NET_PROFILER=1",
	};
	/* Snapshots have the last minute of queues. */
	const char *window = cli->window ?: cli->by_queue && cli->from.count ? "60s" : "all";
	char target[128];
	int used = snprintf(target, sizeof(target), "/v1/%s?window=%s%s",
			    cli->by_queue ? "queues" : "peers", window,
			    cli->by_queue ? "" :
			    cli->by_channel ? "&channels=each" : "&channels=together");

	if (cli->peer != CLI_ANY)
		used += snprintf(target + used, sizeof(target) - (size_t)used, "&peer=%lld",
				 (long long)cli->peer);
	if (cli->direction)
		snprintf(target + used, sizeof(target) - (size_t)used, "&direction=%s",
			 cli->direction);
	return listing_run(cli, cli->by_queue ? &queues : &links, target);
}
