/* SPDX-License-Identifier: Apache-2.0 */
/* ncclinsp mark: what processes are at, as somebody says; with a name, say so. */
#include <stdio.h>
#include <string.h>

#include "cli/common/listing.h"
#include "cli/target.h"
#include "schema/fields.h"

#define TARGET "/v1/processes?fields=" MARK_FIELDS

static const struct column columns[] = {
#include "schema/mark_columns.h"
};

static int mark_show(struct cli *cli)
{
	const struct listing listing = {
		.array = "processes",
		LISTING_COLUMNS(columns),
		.sort = &columns[0],	/* the pid */
		.ascending = true,
		.nothing = "no process uses NCCL with this plugin",
		.fetch = cli->comm ? target_fetch : NULL,
		.arg = (void *)(uintptr_t)TARGET,
	};

	return listing_run(cli, &listing, TARGET);
}

static void mark_tell(struct cli *cli, const json_t *answer)
{
	const char *phase = json_string_value(json_object_get(answer, "phase"));
	size_t n = json_array_size(json_object_get(answer, "processes"));
	char target[192];

	target_text(target, sizeof(target), answer);
	printf("%s: ", target);
	if (cli->dry_run)
		fputs("would be ", stdout);
	printf("%s%s, %zu process%s%s%s\n", phase ? "in phase " : "in no phase", phase ?: "", n,
	       n == 1 ? "" : "es",
	       json_is_true(json_object_get(answer, "later")) ? ", and those that come later" : "",
	       cli->dry_run ? "; nothing was changed" : "");
}

/* One word is the phase, but a number or "node" alone: that asks. */
int cmd_mark(struct cli *cli)
{
	const char *target = cli->argument, *phase = cli->second;
	json_t *body;
	int code;

	if (target && !phase && strcmp(target, "node") &&
	    strspn(target, "0123456789") != strlen(target)) {
		phase = target;
		target = NULL;
	}
	code = target_take(cli, target, "phase alone");
	if (code)
		return code;
	if (!phase && cli->dry_run)
		return cli_reject("--dry-run goes with a phase");
	if (!phase)
		return mark_show(cli);
	body = strcmp(phase, "-") ? json_pack("{s:s}", "phase", phase)
				  : json_pack("{s:n}", "phase");
	if (!body)
		return cli_reject("the phase '%s' is not written in UTF-8", phase);
	return target_change(cli, "/v1/phase", body, mark_tell);
}
