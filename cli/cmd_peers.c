/* SPDX-License-Identifier: Apache-2.0 */
/* ncclinsp peers: what went over the network, link by link, the worst first. */
#include "cli/view/columns.h"
#include "schema/fields.h"

int cmd_peers(struct cli *cli)
{
	const struct listing listing = {
		.array = "peers",
		.asked = PEERS_FIELDS,
		.columns = peers_columns,
		.count = peers_column_count,
		.nothing = "no transfer over a network has been seen",
		.dress = peers_dress,
	};
	char target[128];
	int used = snprintf(target, sizeof(target), "/v1/peers?window=%s&channels=%s",
			    cli->window ? cli->window : "all",
			    cli->by_channel ? "each" : "together");

	if (cli->peer != CLI_ANY)
		used += snprintf(target + used, sizeof(target) - (size_t)used, "&peer=%lld",
				 (long long)cli->peer);
	if (cli->direction)
		snprintf(target + used, sizeof(target) - (size_t)used, "&direction=%s",
			 cli->direction);
	return listing_run(cli, &listing, target);
}
