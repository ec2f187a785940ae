/* SPDX-License-Identifier: Apache-2.0 */
/* ncclinsp tail: one line per operation as it ends, and per process that comes or goes. */
#include <string.h>

#include "cli/base/intake.h"
#include "cli/common/label.h"
#include "cli/common/members.h"
#include "cli/view/columns.h"

struct tail {
	struct cli *cli;
	struct listing_query query;
	struct report report;
	json_t *names;	/* communicators, as labels are made of them */
	int64_t left;	/* lines; CLI_ANY: no end */
};

static void tail_label(const struct tail *tail, json_t *op)
{
	json_auto_t *rows = json_pack("[O]", op);

	label_learn(tail->names, op);
	label_rows(rows, tail->names);
	label_put_jobs(rows, tail->query.jobs);
}

/* An event other than an operation is a remark between the rows, for people and in JSON only. */
static void tail_print_remark(const struct tail *tail, const char *kind, const json_t *event,
			      const char *text)
{
	const struct cli *cli = tail->cli;
	struct line line;

	if (cli->format == CLI_JSON)
		report_answer(text, stdout);
	if (cli->format != CLI_TABLE && cli->format != CLI_WIDE)
		return;
	line_start(&line, tail->cli->columns);
	if (!strcmp(kind, "lost"))
		line_printf(&line, LINE_BAD, "# %lld lines lost: this reader was too slow",
			    (long long)json_integer_value(json_object_get(event, "n")));
	else if (!strcmp(kind, "process"))
		line_printf(&line, LINE_BOLD, "# process %lld (%s): %s",
			    (long long)json_integer_value(json_object_get(event, "pid")),
			    json_string_value(report_get(event, "command")) ?: "-",
			    json_string_value(report_get(event, "state")) ?: "-");
	else
		return;
	line_print(&line, &tail->cli->style, stdout);
}

static bool tail_on_operation(struct tail *tail, json_t *op, const char *text)
{
	tail_label(tail, op);
	if (!listing_wants(&tail->query, op))
		return false;
	if (tail->cli->format == CLI_JSON && !tail->cli->fields)
		report_answer(text, stdout);
	else
		listing_put(&tail->query, &tail->report, op);
	return true;
}

/* A process that comes tells its job before its operations do without one. */
static void tail_on_remark(struct tail *tail, const char *kind, const json_t *event,
			   const char *text)
{
	if (tail->query.jobs && !strcmp(kind, "process"))
		label_learn_job(tail->query.jobs, event,
				json_object_get(json_object_get(event, "job"), "id"));
	tail_print_remark(tail, kind, event, text);
}

static int tail_on_line(void *arg, const char *text, size_t len)
{
	struct tail *tail = arg;
	json_auto_t *event = intake_read(text, len, NULL);
	const char *kind = json_string_value(json_object_get(event, "kind"));
	bool shown = false;

	if (kind && !strcmp(kind, "collective"))
		shown = tail_on_operation(tail, event, text);
	else if (kind)
		tail_on_remark(tail, kind, event, text);
	if (fflush(stdout))
		return 1;
	if (shown && tail->left != CLI_ANY && !--tail->left)
		return 1;
	return 0;
}

static void tail_print_header(const struct tail *tail)
{
	const struct cli *cli = tail->cli;
	struct line line;

	if (!cli->header)
		return;
	if (cli->format == CLI_CSV)
		report_csv_header(&tail->report, stdout);
	if (cli->format == CLI_TABLE || cli->format == CLI_WIDE) {
		line_start(&line, cli->columns);
		report_header(&tail->report, &line, -1);
		line_print(&line, &cli->style, stdout);
	}
	fflush(stdout);
}

static int tail_follow(struct tail *tail)
{
	struct cli *cli = tail->cli;
	int r = 0;

	tail_print_header(tail);
	if (members_asked(cli))
		r = members_get(cli, &tail->query.members);
	if (!r)
		r = listing_jobs(cli, &tail->query.jobs);
	if (!r)
		r = client_stream(cli->client, "/v1/stream?kinds=collective,process", tail_on_line,
				  NULL, tail);
	if (r < 0)
		return cli_fail(cli, r);
	if (r > 0)
		return CLI_DONE;
	fprintf(stderr, "ncclinsp: the daemon ended the stream\n");
	return CLI_NO_DAEMON;
}

int cmd_tail(struct cli *cli)
{
	const struct listing listing = { .columns = run_columns, .count = run_column_count };
	struct tail tail = { .cli = cli, .left = cli->samples };
	const struct report_style style = cli_report_style(cli);
	int code;

	if (cli->format == CLI_PROM)
		return cli_reject("tail cannot print prom, which needs samples: use ops -o prom");
	if (listing_begin(&tail.query, cli, &listing, &code)) {
		tail.names = listing_comms(cli);
		report_init(&tail.report, tail.query.columns, tail.query.count, &style);
		report_fit(&tail.report, NULL,
			   cli->format == CLI_WIDE ? CLI_ANY_WIDTH : cli->columns);
		code = tail_follow(&tail);
	}
	json_decref(tail.names);
	listing_end(&tail.query);
	return code;
}
