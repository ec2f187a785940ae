/* SPDX-License-Identifier: Apache-2.0 */
/* ncclinsp report: what is wrong, as the snapshots of many nodes tell together. */
#include <string.h>
#include <unistd.h>

#include "cli/base/member.h"
#include "cli/common/label.h"
#include "cli/common/listing.h"
#include "cli/common/prose.h"
#include "cli/offline/flight.h"
#include "cli/offline/joint.h"
#include "cli/offline/nodes.h"
#include "cli/offline/offline.h"
#include "cli/page/page.h"

static const struct column columns[] = {
#include "schema/report_columns.h"
};

/* The worst first. */
static const struct column by_weight = { NULL, NULL, COL_NUMBER, "weight", 0, 0, 0 };

struct report_of {
	struct joint *joint;
	json_t *verdicts;	/* once they are asked for */
};

static int report_fetch(struct cli *cli, void *arg, json_t **root)
{
	struct report_of *of = arg;
	const struct shots *s = &of->joint->shots;

	of->verdicts = joint_verdicts(of->joint);
	report_sort(of->verdicts, &by_weight, false);
	*root = json_pack("{s:i, s:i, s:O}", "nodes", (int)s->nodes.n, "files", (int)s->files,
			  "verdicts", of->verdicts);
	return 0;
}

/* The verdicts beside which something was seen, each with that. */
static void report_put_gathered(struct cli *cli, const json_t *verdicts)
{
	char comm[160], title[320];
	struct frame frame;

	prose_begin(&frame, cli, PROSE_WIDEST);
	json_each(row, verdicts) {
		if (!json_array_size(json_object_get(row, "gathered")))
			continue;
		if (!report_text(row, "comm_name|comm_id", comm, sizeof(comm)))
			*comm = '\0';
		snprintf(title, sizeof(title), "%s%s%s", member_text(row, "verdict", ""),
			 *comm ? " on " : "", comm);
		frame_add(&frame);
		prose_put(&frame, LINE_PLAIN, 0, 4, title);
		json_each(line, json_object_get(row, "gathered"))
			prose_put(&frame, LINE_PLAIN, 4, 6, json_string_value(line) ?: "");
	}
	prose_end(&frame, cli);
}

static int report_code(const struct listing *listing, const json_t *answer, const json_t *rows)
{
	json_each(row, rows)
		if (!member_is(row, "severity", "info") && !member_is(row, "grade", "suspected"))
			return CLI_FINDING;
	return CLI_DONE;
}

static int report_run(struct cli *cli, struct joint *joint)
{
	struct report_of of = { joint, NULL };
	const struct listing listing = {
		.array = "verdicts", LISTING_COLUMNS(columns), .sort = &by_weight,
		.fetch = report_fetch, .arg = &of, .code = report_code, .labelled = true,
	};
	const struct shots *s = &joint->shots;
	int r;

	if (!s->files)
		return shots_tell_none(s, "");
	r = listing_run(cli, &listing, NULL);
	if (cli->format == CLI_TABLE || cli->format == CLI_WIDE) {
		printf("%zu node%s, %zu file%s, %zu refused\n", (size_t)s->nodes.n,
		       (size_t)s->nodes.n == 1 ? "" : "s", s->files,
		       s->files == 1 ? "" : "s", s->refused);
		report_put_gathered(cli, of.verdicts);
	}
	json_decref(of.verdicts);
	return r;
}

/* ---- the page ------------------------------------------------------------------------- */

/* The rows of one answer, with labels of communicators; the caller's. */
static json_t *report_rows(struct offline *o, const char *target, const char *key,
			   const json_t *names)
{
	json_auto_t *answer = offline_answer(o, target);
	json_t *rows = json_incref(json_object_get(answer, key));

	if (names)
		label_rows(rows, names);
	return rows;
}

static const char *report_newest(const struct shots *s)
{
	const char *newest = "";

	for (uint32_t i = 0; i < s->nodes.n; i++)
		if (strcmp(s->nodes.at[i]->written_at, newest) > 0)
			newest = s->nodes.at[i]->written_at;
	return newest;
}

/* Times of each node become those of its wall clock, where its file tells it. */
static void nodes_align(struct shots *s)
{
	for (uint32_t i = 0; i < s->nodes.n; i++) {
		struct shots_node *node = s->nodes.at[i];

		if (node->clock.mono_ns != UNKNOWN_U64 && node->clock.written_ns)
			node->moved_ns = (int64_t)(node->clock.written_ns - node->clock.mono_ns);
	}
}

static int page_put(struct offline *o, const json_t *verdicts)
{
	const struct shots *s = &offline_joint(o)->shots;
	json_auto_t *ranks = report_rows(o, "/v1/ranks", "ranks", NULL);
	json_auto_t *names = label_names(ranks), *status = offline_answer(o, "/v1/status");
	json_auto_t *processes = report_rows(o, "/v1/processes", "processes", NULL);
	json_auto_t *ops = report_rows(o, "/v1/summary?window=all", "rows", names);
	json_auto_t *peers = report_rows(o, "/v1/peers?window=all", "peers", names);
	json_auto_t *clocks = report_rows(o, "/v1/clocks", "clocks", names);
	json_auto_t *collectives = report_rows(o, "/v1/collectives", "collectives", names);
	const struct page page = {
		.out = stdout, .verdicts = verdicts, .status = status, .processes = processes,
		.ranks = ranks, .ops = ops, .peers = peers, .clocks = clocks,
		.collectives = collectives,
		.written = report_newest(s), .files = s->files, .refused = s->refused,
	};

	label_rows(ranks, names);
	return page_write(&page);
}

static int report_page(struct offline *o)
{
	struct joint *joint = offline_joint(o);
	json_auto_t *verdicts = NULL;
	int r;

	if (!joint->shots.files)
		return shots_tell_none(&joint->shots, "");
	verdicts = joint_verdicts(joint);
	report_sort(verdicts, &by_weight, false);
	nodes_align(&joint->shots);
	r = report_code(NULL, NULL, verdicts);
	if (page_put(o, verdicts)) {
		fputs("ncclinsp: the page cannot be written: see the disk's space\n", stderr);
		r = CLI_FAILED;
	}
	return r;
}

/* ---- the command ------------------------------------------------------------------------ */

/* This node's daemon, where dumps lie beside no file. */
static int report_ask(const struct cli *cli, struct joint *joint)
{
	json_t *root = NULL;
	int r = client_get(cli->client, "/v1/snapshot?window=10s", &root);

	json_decref(root);
	if (r)
		return cli_fail(cli, r);
	shots_add_answer(&joint->shots, "this node", client_body(cli->client), NULL);
	return CLI_DONE;
}

static int report_read(const struct cli *cli, struct joint *joint, struct flight *flight)
{
	joint->flight = flight;
	if (cli->nodes)
		nodes_ask(cli->nodes, joint);
	else if (!cli->npaths)
		return report_ask(cli, joint);
	shots_add(&joint->shots, (const char *const *)cli->paths, (size_t)cli->npaths);
	return CLI_DONE;
}

static int report_html(const struct cli *cli, struct flight *flight)
{
	struct offline *o;
	int r;

	if (isatty(STDOUT_FILENO))
		return cli_reject("--html writes a page to stdout: send it to a file, "
				  "as in > report.html");
	o = offline_new(NULL);
	r = report_read(cli, offline_joint(o), flight);
	if (!r)
		r = report_page(o);
	offline_free(o);
	return r;
}

static int report_table(struct cli *cli, struct flight *flight)
{
	struct joint joint;
	int r;

	joint_init(&joint);
	r = report_read(cli, &joint, flight);
	if (!r)
		r = report_run(cli, &joint);
	joint_deinit(&joint);
	return r;
}

int cmd_report(struct cli *cli)
{
	struct flight *flight = NULL;
	int r;

	if (!cli->npaths && !cli->nodes && !cli->flight)
		return cli_reject("report needs files or directories, such as "
				  "/var/lib/ncclinsp/snapshots, or --host");
	if (cli->flight && !(flight = flight_open(cli->flight)))
		return CLI_FAILED;
	r = cli->html ? report_html(cli, flight) : report_table(cli, flight);
	if (r == CLI_DONE || r == CLI_FINDING)
		flight_say_unused(flight);
	flight_free(flight);
	return r;
}
