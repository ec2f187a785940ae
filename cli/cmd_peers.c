/* SPDX-License-Identifier: Apache-2.0 */
/* ncclinsp peers: what went over the network, link by link, the worst first. */
#include "cli/common/listing.h"

const struct column peers_columns[] = {
	{ "window_ns", NULL, COL_INTEGER, "window_ns", 0, 0, 0 },
	{ "comm_id", NULL, COL_TEXT, "comm_id", 0, 0, 0 },
	{ "comm_name", NULL, COL_TEXT, "comm_name", 0, 0, 0 },
	{ NULL, "COMM", COL_TEXT, "comm_label|comm_name|comm_id", 0, 20, 0 },
	{ "rank", "RANK", COL_INTEGER, "rank", 0, 0, REPORT_KEY },
	{ "pid", NULL, COL_INTEGER, "pid", 0, 0, REPORT_KEY },
	{ "proxy_pid", NULL, COL_INTEGER, "proxy_pid", 0, 0, REPORT_KEY },
	{ "direction", "DIR", COL_TEXT, "direction", 4, 0, 0 },
	{ "peer", "PEER", COL_INTEGER, "peer", 0, 0, REPORT_KEY },
	{ "channel", "CH", COL_INTEGER, "channel", 0, 0, REPORT_KEY },
	{ "ops", NULL, COL_INTEGER, "ops", 0, 0, 0 },
	{ "steps", "STEPS", COL_INTEGER, "steps", 6, 0, 5 },
	{ "bytes", "BYTES", COL_BYTES, "bytes", 6, 0, 4 },
	{ "rate_gbs", "RATE(GB/s)", COL_NUMBER, "rate_gbs", 0, 0, 0 },
	{ "trend", "TREND", COL_NUMBER, "trend", 0, 0, 4 | REPORT_IF_KNOWN },
	{ "latency_ns", "LAT(us)", COL_MICROS, "fit.latency_ns", 0, 0, 3 },
	{ "fit_rate_gbs", "FIT(GB/s)", COL_NUMBER, "fit.rate_gbs", 0, 0, 6 },
	{ "mean_gpu_wait_ns", "GPU(us)", COL_MICROS, "mean.gpu_wait_ns", 0, 0, 2 },
	{ "mean_peer_wait_ns", "PEER(us)", COL_MICROS, "mean.peer_wait_ns", 0, 0, 2 },
	{ "mean_net_ns", "NET(us)", COL_MICROS, "mean.net_ns", 0, 0, 2 },
	{ "mean_data_wait_ns", "DATA(us)", COL_MICROS, "mean.data_wait_ns", 0, 0, 2 },
	{ "mean_flush_ns", NULL, COL_MICROS, "mean.flush_ns", 0, 0, 0 },
	{ "excess_ns", "EXCESS", COL_AGE, "excess_ns", 6, 0, 1 },
	{ "bound", "BOUND", COL_TEXT, "bound", 5, 0, 0 },
	{ "host", "HOST", COL_TEXT, "host", 0, 24, REPORT_IF_KNOWN },
};
const size_t peers_column_count = sizeof(peers_columns) / sizeof(peers_columns[0]);

void peers_dress(json_t *row)
{
	json_int_t steps = json_integer_value(json_object_get(row, "timed_steps"));
	json_t *mean = json_object(), *sum;
	const char *key;

	json_object_foreach(json_object_get(row, "time"), key, sum)
		if (json_is_integer(sum) && steps)
			json_object_set_new(mean, key,
					    json_integer(json_integer_value(sum) / steps));
	json_object_set_new(row, "mean", mean);
}

int cmd_peers(struct cli *cli)
{
	static const struct listing listing = {
		.array = "peers",
		.members = "window_ns,comm_id,comm_name,nranks,rank,pid,proxy_pid,direction,peer,"
			   "channel,ops,steps,timed_steps,bytes,rate_gbs,trend,fit,time,excess_ns,"
			   "bound",
		LISTING_COLUMNS(peers_columns),
		.nothing = "no transfer over a network has been seen",
		.dress = peers_dress,
	};
	char target[128];
	int used = snprintf(target, sizeof(target), "/v1/peers?window=%s",
			    cli->window ? cli->window : "all");

	if (cli->peer != CLI_ANY)
		used += snprintf(target + used, sizeof(target) - (size_t)used, "&peer=%lld",
				 (long long)cli->peer);
	if (cli->direction)
		snprintf(target + used, sizeof(target) - (size_t)used, "&direction=%s",
			 cli->direction);
	return listing_run(cli, &listing, target);
}
