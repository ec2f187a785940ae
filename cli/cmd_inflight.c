/* SPDX-License-Identifier: Apache-2.0 */
/* ncclinsp inflight: what has begun and not ended, the oldest first. */
#include <inttypes.h>

#include "cli/view/columns.h"
#include "schema/fields.h"

int cmd_inflight(struct cli *cli)
{
	static const struct column oldest = { "age_ns", NULL, COL_AGE, "age_ns", 0, 0, 0 };
	const struct listing listing = {
		.array = "inflight",
		.asked = INFLIGHT_FIELDS,
		.columns = inflight_columns,
		.count = inflight_column_count,
		.sort = &oldest,
		.nothing = "nothing is in flight",
		.dress = inflight_dress,
	};
	char target[64];

	snprintf(target, sizeof(target), "/v1/inflight?older_than_ns=%" PRIu64, cli->older_ns);
	return listing_run(cli, &listing, target);
}
