/* SPDX-License-Identifier: Apache-2.0 */
/* ncclinsp status: one page that says whether all is well. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "cli/base/member.h"
#include "cli/common/listing.h"
#include "cli/common/prose.h"
#include "cli/doctor/foreign.h"
#include "cli/left_out.h"
#include "cli/view/verdict.h"
#include "util/text.h"

#define LABEL 12
#define VERDICT_LINES 64

static const struct column columns[] = {
#include "schema/status_columns.h"
};

static void line_begin(struct line *line, const struct cli *cli, const char *label)
{
	line_start(line, cli->columns);
	line_cell(line, LINE_BOLD, label, LABEL, true);
	line_put(line, LINE_PLAIN, "  ");
}

__attribute__((format(printf, 4, 5)))
static void status_say(const struct cli *cli, const char *label, enum line_attr attr,
		       const char *format, ...)
{
	struct line line;
	char text[512];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	line_begin(&line, cli, label);
	line_put(&line, attr, text);
	line_print(&line, &cli->style, stdout);
}

static void status_say_lines(const struct cli *cli, const char *label, const struct frame *frame)
{
	struct line line;

	for (int i = 0; i < frame->count; i++) {
		line_begin(&line, cli, i ? "" : label);
		line_append(&line, &frame->lines[i]);
		line_print(&line, &cli->style, stdout);
	}
}

/* A value of /v1/status as the kind shows it; "-" when it is not known. */
static const char *status_shown(const struct view *view, enum column_kind kind, const char *path,
				char *buf)
{
	const struct column column = { NULL, NULL, kind, path, 0, 0, 0 };

	report_cell(&column, view->status, NULL, buf, TEXT_MAX);
	return buf;
}

static void status_say_daemon(const struct cli *cli, const struct view *view)
{
	char version[TEXT_MAX], uptime[TEXT_MAX], cpu[TEXT_MAX], memory[TEXT_MAX];

	status_say(cli, "ncclinspd", LINE_PLAIN, "%s, up %s, cpu %s, memory %s",
		   status_shown(view, COL_TEXT, "version", version),
		   status_shown(view, COL_AGE, "uptime_ns", uptime),
		   status_shown(view, COL_AGE, "cpu_ns", cpu),
		   status_shown(view, COL_BYTES, "rss_bytes", memory));
	status_say(cli, "host", LINE_PLAIN, "%s",
		   json_string_value(report_get(view->status, "host")) ?: "-");
	status_say(cli, "socket", LINE_PLAIN, "%s", client_socket(cli->client));
}

static void status_say_jobs(const struct cli *cli, const struct view *view)
{
	char gpus[TEXT_MAX] = "-";

	if (view->gpus >= 0)
		snprintf(gpus, sizeof(gpus), "%d", view->gpus);
	status_say(cli, "processes", view->died ? LINE_BAD : LINE_PLAIN,
		   "live %d, ended %d, died %d%s",
		   view->live, view->exited, view->died, view->died ? " (see ncclinsp ps)" : "");
	status_say(cli, "NCCL", LINE_PLAIN, "communicators %d, ranks %d, GPUs %s", view->comms,
		   view->ranks, gpus);
}

/* Prints what is recorded; "mixed" where processes do not agree. */
static void status_say_level(const struct cli *cli, const struct view *view)
{
	const char *level = json_string_value(report_get(view->status, "level"));
	const char *sampling = json_string_value(report_get(view->status, "sampling"));
	const char *error = json_string_value(report_get(view->status, "control.error"));
	const json_t *share = report_get(view->status, "overhead.share");
	char cost[48] = "";

	if (json_is_number(share))
		snprintf(cost, sizeof(cost), ", costs up to %.*f%% (ncclinsp overhead)",
			 json_number_value(share) < 0.1 ? 2 : 0, 100 * json_number_value(share));
	if (view->live)
		status_say(cli, "level", LINE_PLAIN, "%s%s%s%s", level ?: "mixed (ncclinsp level)",
			   sampling ? ", sampling " : "", sampling ?: "", cost);
	if (error)
		status_say(cli, "", LINE_BAD, "! levels cannot be changed: %s: %s",
			   json_string_value(report_get(view->status, "control.path")) ?: "-",
			   error);
}

static void status_say_records(const struct cli *cli, const struct view *view)
{
	char records[TEXT_MAX], bytes[TEXT_MAX], lost[TEXT_MAX], rejected[TEXT_MAX];
	char poll[TEXT_MAX], before[TEXT_MAX];

	status_say(cli, "records", LINE_PLAIN, "%s (%s), polled every %s",
		   status_shown(view, COL_INTEGER, "ingest.records", records),
		   status_shown(view, COL_BYTES, "ingest.bytes", bytes),
		   status_shown(view, COL_AGE, "ingest.poll_interval_ns", poll));
	status_say(cli, "losses", view->lost > 0 ? LINE_BAD : LINE_PLAIN,
		   "lost %s, rejected %s, overwritten before first read %s%s",
		   status_shown(view, COL_INTEGER, "ingest.lost", lost),
		   status_shown(view, COL_INTEGER, "ingest.rejected", rejected),
		   status_shown(view, COL_INTEGER, "ingest.before", before),
		   view->lost > 0 ? " (by cause: ncclinsp ps -o json)" : "");
}

/* Why operations have no time of the GPU; nothing where all of them may have one. */
static void status_say_refused(const struct cli *cli, const struct view *view)
{
	const json_t *n = report_get(view->status, "reconstruct.stamps_refused"), *count;
	json_t *reasons = json_object_get(json_object_get(view->status, "reconstruct"),
					  "stamps_refused_by");
	char text[256] = "";
	const char *reason;

	if (!json_integer_value(n))
		return;
	json_object_foreach(reasons, reason, count)
		if (json_integer_value(count))
			snprintf(text + strlen(text), sizeof(text) - strlen(text), ", %s %lld",
				 reason, (long long)json_integer_value(count));
	status_say(cli, "GPU times", LINE_PLAIN, "refused %lld stamps%s (see man ncclinsp-ops)",
		   (long long)json_integer_value(n), text);
}

/* Prints what is missing in all that is shown, because bounds were reached. */
static void status_say_left_out(const struct cli *cli, const struct view *view)
{
	const json_t *processes = view->kept.at[VIEW_ASK_PROCESSES].root;
	char text[LEFT_OUT_BYTES];
	const char *label = "skipped";
	size_t i = 0;

	while (left_out_next(view->status, processes, &i, text)) {
		status_say(cli, label, LINE_PLAIN, "%s", text);
		label = "";
	}
}

/* "gpu present" or "gpu absent: why", a line for each source. */
static void status_say_machine(const struct cli *cli, const struct view *view)
{
	const char *label = "machine";

	json_each(source, report_get(view->status, "machine")) {
		const char *why = member_text(source, "why", "");

		status_say(cli, label, LINE_PLAIN, "%s %s%s%s", member_text(source, "source", "-"),
			   member_text(source, "state", "-"), *why ? ": " : "", why);
		label = "";
	}
}

static void status_say_verdicts(const struct cli *cli, const struct view *view)
{
	struct frame frame;

	frame_init(&frame, cli->columns - LABEL - 2, VERDICT_LINES);
	verdicts_put(&frame, view);
	status_say_lines(cli, "now", &frame);
	frame_deinit(&frame);
}

/* Names processes whose plugin is not of this daemon's version: they are missing everywhere. */
static void status_say_foreign(const struct cli *cli, const struct view *view)
{
	struct frame frame;
	char text[512];

	if (!foreign_tell(view->kept.at[VIEW_ASK_PROCESSES].root, text, sizeof(text)))
		return;
	frame_init(&frame, cli->columns - LABEL - 2, VERDICT_LINES);
	prose_put(&frame, LINE_BAD, 0, 0, text);
	status_say_lines(cli, "format", &frame);
	frame_deinit(&frame);
}

static void status_print_page(const struct cli *cli, const struct view *view)
{
	status_say_verdicts(cli, view);
	status_say_foreign(cli, view);
	status_say_jobs(cli, view);
	status_say_level(cli, view);
	status_say_records(cli, view);
	status_say_left_out(cli, view);
	status_say_refused(cli, view);
	status_say_machine(cli, view);
	status_say_daemon(cli, view);
}

/* One page, from more answers than the one that the fields are of. */
static int status_page(struct cli *cli, const json_t *answer, const json_t *rows)
{
	struct view view = { 0 };
	const struct view_want want = { .window = "10s", .young = true, .brief = true };
	int r = view_fetch(&view, cli->client, &want, cli_now_ns());

	if (!r)
		status_print_page(cli, &view);
	view_deinit(&view);
	return r;
}

int cmd_status(struct cli *cli)
{
	static const struct listing listing = {
		LISTING_COLUMNS(columns),
		.page = status_page,
		.whole = true,
	};

	return listing_run(cli, &listing, "/v1/status");
}
