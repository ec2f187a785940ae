/* SPDX-License-Identifier: Apache-2.0 */
/* ncclinsp exemplars: operations that were slower than ever; with an id, that file. */

#include "cli/base/member.h"
#include "cli/common/listing.h"

static const struct column columns[] = {
#include "schema/exemplars_columns.h"
};

static bool exemplar_is_listed(const json_t *root, const char *id)
{
	json_each(row, json_object_get(root, "exemplars"))
		if (member_is(row, "id", id))
			return true;
	return false;
}

/* Only what the list names is asked for: so it fits into a URL as it is. */
static int exemplar_print(struct cli *cli, const char *id)
{
	char target[128];
	json_t *root;
	bool listed;
	int r;

	r = client_get(cli->client, "/v1/exemplars", &root);
	if (r)
		return cli_fail(cli, r);
	listed = exemplar_is_listed(root, id);
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
	fputs(client_body(cli->client), stdout);
	return CLI_DONE;
}

int cmd_exemplars(struct cli *cli)
{
	static const struct listing listing = {
		.array = "exemplars",
		LISTING_COLUMNS(columns),
		.nothing = "no operation took longer than ever before",
	};

	if (cli->argument)
		return exemplar_print(cli, cli->argument);
	return listing_run(cli, &listing, "/v1/exemplars");
}
