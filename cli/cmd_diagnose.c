/* SPDX-License-Identifier: Apache-2.0 */
/* ncclinsp diagnose: what is wrong, what says so, what to do next. */
#include <stdio.h>

#include "cli/cli.h"
#include "cli/findings.h"
#include "cli/prose.h"
#include "cli/report.h"
#include "util/text.h"

#define WIDEST		100	/* longer lines are hard to read */
#define LINES		1024
#define TITLE		256

static const struct column columns[] = {
	{ "id", NULL, COL_INTEGER, "id", 0, 0, 0 },
	{ "kind", NULL, COL_TEXT, "kind", 0, 0, 0 },
	{ "verdict", NULL, COL_TEXT, "verdict", 0, 0, 0 },
	{ "severity", NULL, COL_TEXT, "severity", 0, 0, 0 },
	{ "comm_id", NULL, COL_TEXT, "comm_id", 0, 0, 0 },
	{ "comm_name", NULL, COL_TEXT, "comm_name", 0, 0, 0 },
	{ "peer", NULL, COL_INTEGER, "peer", 0, 0, 0 },
	{ "since_at", NULL, COL_TEXT, "since_at", 0, 0, 0 },
	{ "until_at", NULL, COL_TEXT, "until_at", 0, 0, 0 },
	{ "text", NULL, COL_TEXT, "text", 0, 0, 0 },
};

static const char *text_of(const json_t *row, const char *key)
{
	return json_string_value(json_object_get(row, key)) ?: "";
}

static enum line_attr attr_of(const json_t *row)
{
	if (!json_is_true(json_object_get(row, "active")))
		return LINE_DIM;
	return finding_is(row, "severity", "critical") ? LINE_BAD : LINE_WARN;
}

/* "CRITICAL desync NOT_JOINED on dp, for 43s" */
static void make_title(const json_t *row, char title[TITLE])
{
	bool active = json_is_true(json_object_get(row, "active"));
	const char *verdict = text_of(row, "verdict"), *comm = text_of(row, "comm_name");
	char age[TEXT_MAX];

	text_duration(age, sizeof(age), finding_age_ns(row, cli_now_ns()));
	if (!*comm)
		comm = text_of(row, "comm_id");
	snprintf(title, TITLE, "%s: %s%s%s%s%s, %s %s", text_of(row, "severity"),
		 text_of(row, "kind"), *verdict ? " " : "", verdict, *comm ? " on " : "", comm,
		 active ? "for" : "over, it took", age);
}

static void put_finding(struct frame *frame, const json_t *row)
{
	char title[TITLE];

	if (frame->count)
		frame_add(frame);
	make_title(row, title);
	prose_put(frame, attr_of(row), 0, 4, title);
	prose_put(frame, LINE_PLAIN, 4, 4, text_of(row, "text"));
}

/* Silence must not be taken for health where nothing is seen. */
static void put_health(struct frame *frame, const json_t *processes)
{
	char text[160];
	json_t *row;
	size_t i;
	int live = 0;

	json_array_foreach((json_t *)processes, i, row)
		live += finding_is(row, "state", "live");
	if (live)
		snprintf(text, sizeof(text), "no finding about %d live process%s", live,
			 live == 1 ? "" : "es");
	else
		snprintf(text, sizeof(text), "no finding; no live process uses NCCL");
	prose_put(frame, live ? LINE_GOOD : LINE_PLAIN, 0, 0, text);
}

static void print_text(const struct cli *cli, const json_t *rows, const json_t *processes)
{
	struct frame frame;
	json_t *row;
	size_t i;

	frame_init(&frame, cli->columns < WIDEST ? cli->columns : WIDEST, LINES);
	json_array_foreach((json_t *)rows, i, row)
		put_finding(&frame, row);
	if (!json_array_size(rows))
		put_health(&frame, processes);
	for (int k = 0; k < frame.count; k++)
		line_print(&frame.lines[k], &cli->style, stdout);
	frame_deinit(&frame);
}

static void print_csv(const struct cli *cli, const json_t *rows)
{
	struct report report;
	json_t *row;
	size_t i;

	report_init(&report, columns, sizeof(columns) / sizeof(columns[0]), 0);
	if (cli->header)
		report_csv_header(&report, stdout);
	json_array_foreach((json_t *)rows, i, row)
		report_csv_row(&report, row, stdout);
}

static int print(struct cli *cli, const json_t *rows)
{
	json_t *processes = NULL;
	int r;

	if (cli->format == CLI_CSV) {
		print_csv(cli, rows);
		return 0;
	}
	r = client_get(cli->client, "/v1/processes", &processes);
	if (!r)
		print_text(cli, rows, json_object_get(processes, "processes"));
	json_decref(processes);
	return r;
}

int cmd_diagnose(struct cli *cli)
{
	const json_t *rows;
	json_t *answer;
	size_t bytes;
	int r, code;

	r = client_get(cli->client, cli->all ? "/v1/findings" : "/v1/findings?active=true", &answer);
	if (r)
		return cli_fail(cli, r);
	rows = json_object_get(answer, "findings");
	code = findings_count(rows, "critical") + findings_count(rows, "warning") ?
	       CLI_FINDING : CLI_DONE;
	if (cli->format == CLI_JSON)
		puts(client_body(cli->client, &bytes));
	else
		r = print(cli, rows);
	json_decref(answer);
	return r ? cli_fail(cli, r) : code;
}
