/* SPDX-License-Identifier: Apache-2.0 */
/* ncclinsp tail: one line per operation as it ends, and per process that comes or goes. */
#include <errno.h>
#include <string.h>

#include "cli/label.h"
#include "cli/listing.h"

const struct column run_columns[] = {
	{ NULL, "POSTED", COL_TIME, "enqueued_at", 12, 12, 0 },
	{ "enqueued_at", NULL, COL_TEXT, "enqueued_at", 0, 0, 0 },
	{ "pid", "PID", COL_INTEGER, "pid", 7, 0, 4 },
	{ "comm_id", NULL, COL_TEXT, "comm_id", 0, 0, 0 },
	{ "comm_name", NULL, COL_TEXT, "comm_name", 0, 0, 0 },
	{ NULL, "COMM", COL_TEXT, "comm_label|comm_id", 16, 20, 0 },
	{ "rank", "RANK", COL_INTEGER, "rank", 0, 0, 0 },
	{ "func", NULL, COL_TEXT, "func", 0, 0, 0 },
	{ NULL, "OP", COL_OP, "func", 14, 14, 0 },
	{ "derived", NULL, COL_TEXT, "derived", 0, 0, 0 },
	{ "parts", NULL, COL_INTEGER, "parts", 0, 0, 0 },
	{ "seq", "SEQ", COL_INTEGER, "seq", 6, 0, 1 },
	{ "peer", NULL, COL_INTEGER, "peer", 0, 0, 0 },
	{ "bytes", "SIZE", COL_BYTES, "bytes", 7, 0, 0 },
	{ "algo", NULL, COL_TEXT, "algo", 0, 0, 0 },
	{ "proto", NULL, COL_TEXT, "proto", 0, 0, 0 },
	{ NULL, "ALGO/PROTO", COL_TEXT, "algo/proto", 12, 16, 3 },
	{ "enqueue_ns", NULL, COL_MICROS, "enqueue_ns", 0, 0, 0 },
	{ "exec_ns", NULL, COL_MICROS, "exec_ns", 0, 0, 0 },
	{ "exec_error_ns", NULL, COL_MICROS, "exec_error_ns", 0, 0, 0 },
	{ NULL, "TIME(us)", COL_MICROS, "batch.exec_ns|exec_ns", 9, 0, 0 },
	{ "busbw_gbs", NULL, COL_NUMBER, "busbw_gbs", 0, 0, 0 },
	{ NULL, "BUSBW(GB/s)", COL_NUMBER, "batch.busbw_gbs|busbw_gbs", 0, 0, 1 },
	{ "fused", "FUSED", COL_INTEGER, "fused", 0, 0, 5 },
	{ "late_ns", NULL, COL_MICROS, "late_ns", 0, 0, 0 },
	{ "sampled", NULL, COL_TEXT, "sampled", 0, 0, 0 },
	{ "stamps_refused", NULL, COL_INTEGER, "stamps_refused", 0, 0, 0 },
	{ "complete", NULL, COL_TEXT, "complete", 0, 0, 0 },
	{ "timing_source", "SRC", COL_TEXT, "timing_source", 11, 11, 2 },
};
const size_t run_column_count = sizeof(run_columns) / sizeof(run_columns[0]);

struct tail {
	struct cli *cli;
	struct report report;
	json_t *known;	/* communicators, as labels are made of them */
	int64_t left;	/* lines; CLI_ANY: no end */
};

static void label(const struct tail *tail, json_t *op)
{
	json_t *rows = json_pack("[O]", op);

	label_learn(tail->known, op);
	label_rows(rows, tail->known);
	json_decref(rows);
}

static void print_op(const struct tail *tail, json_t *op, const char *text)
{
	struct line line;

	if (tail->cli->format == CLI_JSON) {
		puts(text);
	} else if (tail->cli->format == CLI_CSV) {
		report_csv_row(&tail->report, op, stdout);
	} else {
		label(tail, op);
		line_start(&line, tail->cli->columns);
		report_row(&tail->report, op, &line);
		line_print(&line, &tail->cli->style, stdout);
	}
}

/* What is not an operation is a remark between the rows, and none of CSV's. */
static void print_remark(const struct tail *tail, const char *kind, const json_t *event,
			 const char *text)
{
	struct line line;

	if (tail->cli->format == CLI_JSON)
		puts(text);
	if (tail->cli->format != CLI_TABLE)
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

static int on_line(void *arg, const char *text, size_t len)
{
	struct tail *tail = arg;
	json_t *event = json_loadb(text, len, 0, NULL);
	const char *kind = json_string_value(json_object_get(event, "kind"));
	bool shown = kind && !strcmp(kind, "collective") && listing_wants(tail->cli, event);

	if (shown)
		print_op(tail, event, text);
	else if (kind && strcmp(kind, "collective"))
		print_remark(tail, kind, event, text);
	json_decref(event);
	if (fflush(stdout))
		return 1;
	if (shown && tail->left != CLI_ANY && !--tail->left)
		return 1;
	return 0;
}

int cmd_tail(struct cli *cli)
{
	struct tail tail = { .cli = cli, .left = cli->samples, .known = listing_comms(cli) };
	struct line line;
	int r;

	report_init(&tail.report, run_columns, run_column_count, 0);
	report_fit(&tail.report, NULL, cli->columns);
	if (cli->header && cli->format == CLI_CSV)
		report_csv_header(&tail.report, stdout);
	if (cli->header && cli->format == CLI_TABLE) {
		line_start(&line, cli->columns);
		report_header(&tail.report, &line, -1);
		line_print(&line, &cli->style, stdout);
	}
	fflush(stdout);

	r = client_stream(cli->client, "/v1/stream?kinds=collective,process", on_line, &tail);
	json_decref(tail.known);
	if (r < 0)
		return cli_fail(cli, r);
	if (r > 0)
		return CLI_DONE;
	fprintf(stderr, "ncclinsp: the daemon ended the stream\n");
	return CLI_NO_DAEMON;
}
