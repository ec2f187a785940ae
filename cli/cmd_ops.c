/* SPDX-License-Identifier: Apache-2.0 */
/* ncclinsp ops: how often and how fast each operation ran, the costliest first. */
#include <string.h>
#include <strings.h>

#include "cli/view/columns.h"
#include "schema/fields.h"

static bool text_is_rank(const char *text, const char *end)
{
	return !strncasecmp(text, "rank", 4) && strchr(end, text[4]);
}

/* Ranks are asked for, in whichever way: else all of a communicator are one row. */
static bool wants_ranks(const struct cli *cli)
{
	const char *sort = cli->sort, *field = cli->fields;

	if (cli->by_rank || cli->rank != CLI_ANY || cli->pid != CLI_ANY || cli->gpu)
		return true;
	for (size_t i = 0; i < cli->filters.count; i++)
		if (text_is_rank(cli->filters.text[i], " =!<>~"))
			return true;
	for (; field && *field; field += strcspn(field, ","), field += *field == ',')
		if (text_is_rank(field, ","))
			return true;
	return sort && text_is_rank(sort + strspn(sort, "+-"), "");
}

int cmd_ops(struct cli *cli)
{
	const struct listing listing = {
		.array = "rows",
		.asked = OPS_FIELDS,
		.columns = ops_columns,
		.count = ops_column_count,
		.nothing = "no operation has finished yet",
		.joint = true,
	};
	char target[128];

	snprintf(target, sizeof(target),
		 "/v1/summary?window=%s&by=comm,func,size,algo,proto,phase,tag%s",
		 cli->window ? cli->window : "all",
		 wants_ranks(cli) ? ",rank" : "");
	return listing_run(cli, &listing, target);
}
