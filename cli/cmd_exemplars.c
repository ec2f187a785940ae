/* SPDX-License-Identifier: Apache-2.0 */
/* ncclinsp exemplars: operations that were slower than ever; with an id, that file. */
#include <string.h>

#include "cli/common/listing.h"

static const struct column columns[] = {
	{ "id", "ID", COL_TEXT, "id", 0, 0, 0 },
	{ "at_at", "AT", COL_TIME, "at_at", 0, 0, 4 },
	{ "reason", NULL, COL_TEXT, "reason", 0, 0, 0 },
	{ "comm_id", NULL, COL_TEXT, "comm_id", 0, 0, 0 },
	{ "comm_name", NULL, COL_TEXT, "comm_name", 0, 0, 0 },
	{ NULL, "COMM", COL_TEXT, "comm_label|comm_name|comm_id", 0, 20, 0 },
	{ "rank", "RANK", COL_INTEGER, "rank", 0, 0, REPORT_KEY },
	{ "pid", NULL, COL_INTEGER, "pid", 0, 0, REPORT_KEY },
	{ "uid", NULL, COL_INTEGER, "uid", 0, 0, REPORT_KEY },
	{ "func", "OP", COL_TEXT, "func", 9, 20, 0 },
	{ "seq", "SEQ", COL_INTEGER, "seq", 0, 0, REPORT_KEY },
	{ "bytes", "BYTES", COL_BYTES, "bytes", 6, 0, 3 },
	{ "exec_ns", "TOOK(us)", COL_MICROS, "exec_ns", 0, 0, 0 },
	{ "threshold_ns", "LIMIT(us)", COL_MICROS, "threshold_ns", 0, 0, 0 },
	{ "p50_ns", "P50(us)", COL_MICROS, "p50_ns", 0, 0, 2 },
	{ "p999_ns", NULL, COL_MICROS, "p999_ns", 0, 0, 0 },
	{ "ops", NULL, COL_INTEGER, "ops", 0, 0, 0 },
	{ "merged", "OTHERS", COL_INTEGER, "merged", 0, 0, 1 },
	{ "size_bytes", "FILE", COL_BYTES, "size_bytes", 0, 0, 5 },
};

static bool is_listed(const json_t *root, const char *id)
{
	json_t *row;
	size_t i;

	json_array_foreach(json_object_get(root, "exemplars"), i, row)
		if (!strcmp(json_string_value(json_object_get(row, "id")) ?: "", id))
			return true;
	return false;
}

/* Only what the list names is asked for: so it fits into a URL as it is. */
static int print_file(struct cli *cli, const char *id)
{
	char target[128];
	json_t *root;
	bool listed;
	int r;

	r = client_get(cli->client, "/v1/exemplars", &root);
	if (r)
		return cli_fail(cli, r);
	listed = is_listed(root, id);
	json_decref(root);
	if (!listed) {
		fprintf(stderr, "ncclinsp: no exemplar '%s'; ncclinsp exemplars lists them all\n",
			id);
		return CLI_NOTHING;
	}
	snprintf(target, sizeof(target), "/v1/exemplars/%s", id);
	r = client_get(cli->client, target, &root);
	if (r)
		return cli_fail(cli, r);
	json_decref(root);
	client_print_body(cli->client);
	return CLI_DONE;
}

int cmd_exemplars(struct cli *cli)
{
	static const struct listing listing = {
		.array = "exemplars",
		LISTING_COLUMNS(columns),
		.nothing = "no operation was slower than ever",
	};

	if (cli->argument)
		return print_file(cli, cli->argument);
	return listing_run(cli, &listing, "/v1/exemplars");
}
