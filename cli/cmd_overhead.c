/* SPDX-License-Identifier: Apache-2.0 */
/* ncclinsp overhead: what watching costs, in each process and in the daemon. */
#include "cli/common/listing.h"

static const struct column columns[] = {
#include "schema/overhead_columns.h"
};

/* Shares of a thousandth matter here: they are shown with all the digits they have. */
static json_t *process_percents(const json_t *process)
{
	static const char *const paths[][2] = {
		{ "user", "callbacks.user.share" },
		{ "proxy", "callbacks.proxy.share" },
		{ "kernels", "kernels.share" },
		{ "budget", "kernels.budget" },
	};
	json_t *all = json_object();

	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
		const json_t *share = report_get(process, paths[i][1]);

		if (json_is_number(share))
			json_object_set_new(all, paths[i][0],
					    json_real(100 * json_number_value(share)));
	}
	return all;
}

static json_t *process_calls(const json_t *process)
{
	const json_t *user = report_get(process, "callbacks.user.per_s");
	const json_t *proxy = report_get(process, "callbacks.proxy.per_s");

	if (!json_is_number(user) || !json_is_number(proxy))
		return json_null();
	return json_real(json_number_value(user) + json_number_value(proxy));
}

static void overhead_dress(json_t *row)
{
	json_object_set_new(row, "percent", process_percents(row));
	json_object_set_new(row, "calls_per_s", process_calls(row));
}

static int print_daemon(struct cli *cli)
{
	const struct report_style style = cli_report_style(cli);
	const struct column rss = { NULL, NULL, COL_BYTES, "daemon.rss_bytes", 0, 0, 0 };
	char bytes[REPORT_CELL];
	json_auto_t *root = NULL;
	int r = client_get(cli->client, "/v1/overhead", &root);

	if (r)
		return cli_fail(cli, r);
	report_cell(&rss, root, &style, bytes, sizeof(bytes));
	printf("ncclinspd: %.2f%% of a core since it began, %s\n",
	       100 * json_number_value(report_get(root, "daemon.cpu_share")), bytes);
	return CLI_DONE;
}

int cmd_overhead(struct cli *cli)
{
	static const struct listing listing = {
		.array = "processes",
		LISTING_COLUMNS(columns),
		.sort = &columns[0],	/* the pid */
		.ascending = true,
		.nothing = "no process with a plugin that reports its cost",
		.dress = overhead_dress,
	};
	int code = listing_run(cli, &listing, "/v1/overhead"), more = CLI_DONE;

	if ((code == CLI_DONE || code == CLI_NOTHING) && cli->format == CLI_TABLE && !cli->fields)
		more = print_daemon(cli);
	return more == CLI_DONE ? code : more;
}
