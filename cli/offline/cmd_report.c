/* SPDX-License-Identifier: Apache-2.0 */
/* ncclinsp report: what is wrong, as the snapshots of many nodes tell together. */
#include <string.h>

#include "cli/base/member.h"
#include "cli/common/listing.h"
#include "cli/offline/joint.h"
#include "cli/offline/nodes.h"

static const struct column columns[] = {
#include "schema/report_columns.h"
};

/* The worst first. */
static const struct column by_weight = { NULL, NULL, COL_NUMBER, "weight", 0, 0, 0 };

static int report_fetch(struct cli *cli, void *arg, json_t **root)
{
	struct joint *joint = arg;

	(void)cli;
	*root = json_pack("{s:i, s:i, s:o}", "nodes", (int)joint->shots.nodes.n,
			  "files", (int)joint->shots.files, "verdicts", joint_verdicts(joint));
	return 0;
}

static int report_code(const struct listing *listing, const json_t *answer, const json_t *rows)
{
	json_t *row;
	size_t i;

	(void)listing;
	(void)answer;
	json_array_foreach((json_t *)rows, i, row)
		if (strcmp(member_text(row, "severity", ""), "info") &&
		    strcmp(member_text(row, "grade", ""), "suspected"))
			return CLI_FINDING;
	return CLI_DONE;
}

static int report_run(struct cli *cli, struct joint *joint)
{
	const struct listing listing = {
		.array = "verdicts", .columns = columns, .sort = &by_weight,
		.count = sizeof(columns) / sizeof(columns[0]), .fetch = report_fetch,
		.arg = joint, .code = report_code, .labelled = true,
	};
	const struct shots *s = &joint->shots;
	int r;

	if (!s->files)
		return shots_tell_none(s, "");
	r = listing_run(cli, &listing, NULL);
	if (cli->format == CLI_TABLE || cli->format == CLI_WIDE)
		printf("%zu node%s, %zu file%s, %zu refused\n", (size_t)s->nodes.n,
		       (size_t)s->nodes.n == 1 ? "" : "s", s->files,
		       s->files == 1 ? "" : "s", s->refused);
	return r;
}

int cmd_report(struct cli *cli)
{
	struct joint joint;
	int r;

	if (!cli->npaths && !cli->nodes)
		return cli_reject("report needs files or directories, as "
				  "/var/lib/ncclinsp/snapshots, or --host");
	joint_init(&joint);
	if (cli->nodes)
		nodes_ask(cli->nodes, &joint);
	shots_add(&joint.shots, (const char *const *)cli->paths, (size_t)cli->npaths);
	r = report_run(cli, &joint);
	joint_deinit(&joint);
	return r;
}
