/* SPDX-License-Identifier: Apache-2.0 */
/* ncclinsp snapshot: have all that the daemon knows written now, and say where. */
#include "cli/common/cli.h"

int cmd_snapshot(struct cli *cli)
{
	json_auto_t *root = NULL;
	int r = client_post(cli->client, "/v1/snapshot", &root);

	if (r)
		return cli_fail(cli, r);
	puts(json_string_value(json_object_get(root, "path")) ?: "-");
	return CLI_DONE;
}
