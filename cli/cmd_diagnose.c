/* SPDX-License-Identifier: Apache-2.0 */
/* ncclinsp diagnose: what is wrong, what says so, what to do next. */
#include <stdio.h>
#include <strings.h>

#include "cli/common/listing.h"
#include "cli/common/prose.h"
#include "cli/view/findings.h"
#include "cli/view/verdict.h"
#include "util/list.h"
#include "util/text.h"

#define TITLE 256
#define LABEL 160	/* bytes of a communicator's label */

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

/* "critical: desync NOT_JOINED on dp:1214 of job 4711, for 43s" */
static void make_title(const json_t *row, char title[TITLE])
{
	bool active = json_is_true(json_object_get(row, "active"));
	const char *verdict = text_of(row, "verdict"), *job = text_of(row, "job");
	char age[TEXT_MAX], comm[LABEL];

	text_duration(age, sizeof(age), finding_age_ns(row, cli_now_ns()));
	if (!report_text(row, "comm_label|comm_name|comm_id", comm, sizeof(comm)))
		*comm = '\0';
	snprintf(title, TITLE, "%s: %s%s%s%s%s%s%s, %s %s", text_of(row, "severity"),
		 text_of(row, "kind"), *verdict ? " " : "", verdict, *comm ? " on " : "", comm,
		 *job ? " of job " : "", job, active ? "for" : "over, it took", age);
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

/* Lateness that is seen already, and has not lasted long enough to be a finding. */
static void put_late(struct frame *frame, json_t *comms)
{
	const struct view view = { .all_comms = comms };
	int before = frame->count;

	verdicts_put_late(frame, &view);
	if (frame->count > before)
		prose_put(frame, LINE_PLAIN, 2, 2, "so far: a straggler is judged over minutes, "
			  "and is a finding when it lasts; see ncclinsp ranks");
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

static void print_text(const struct cli *cli, const json_t *rows, const json_t *processes,
		       json_t *comms)
{
	char filters[256], text[320];
	struct frame frame;
	json_t *row;
	size_t i;

	prose_begin(&frame, cli, PROSE_WIDEST);
	json_array_foreach((json_t *)rows, i, row)
		put_finding(&frame, row);
	if (!json_array_size(rows) && listing_filters(cli)) {
		listing_tell_filters(cli, filters, sizeof(filters));
		snprintf(text, sizeof(text), "no finding matches %s", filters);
		prose_put(&frame, LINE_PLAIN, 0, 0, text);
	} else if (!json_array_size(rows)) {
		put_health(&frame, processes);
		put_late(&frame, comms);
	}
	prose_end(&frame, cli);
}

static int page(struct cli *cli, const json_t *rows, bool first)
{
	json_t *processes = NULL, *comms = NULL;
	int r = client_get(cli->client, "/v1/processes?fields=state", &processes);

	(void)first;
	if (!r)
		r = client_get(cli->client, "/v1/comms", &comms);
	if (!r)
		print_text(cli, rows, json_object_get(processes, "processes"),
			   json_object_get(comms, "comms"));
	json_decref(processes);
	json_decref(comms);
	return r;
}

static int code(const json_t *rows)
{
	return findings_count(rows, "critical") + findings_count(rows, "warning") ? CLI_FINDING
										  : CLI_DONE;
}

static json_t *reshape(const json_t *rows)
{
	return findings_shape(rows, cli_now_ns());
}

/* A job that is not here must not be taken for one that is well. */
static int known_job(struct cli *cli, const char *job)
{
	json_t *answer = NULL, *row;
	bool found = false;
	size_t i;
	int r = client_get(cli->client, "/v1/processes?fields=job", &answer);

	if (r)
		return cli_fail(cli, r);
	json_array_foreach(json_object_get(answer, "processes"), i, row)
		found |= !strcasecmp(json_string_value(report_get(row, "job.id")) ?: "", job);
	json_decref(answer);
	if (found)
		return CLI_DONE;
	fprintf(stderr, "ncclinsp: no process of job '%s' here, or none of yours; "
		"ncclinsp ps lists them\n", job);
	return CLI_NOTHING;
}

int cmd_diagnose(struct cli *cli)
{
	const struct listing listing = {
		.array = "findings",
		.columns = finding_columns,
		.count = finding_column_count,
		.sort = &finding_weight,
		.reshape = reshape,
		.page = page,
		.code = code,
		.joint = true,
	};
	const char *job = cli->job, **place;
	char filter[FINDINGS_SENTENCE];
	int result;

	if (cli->job) {
		place = array_add(cli->filters.text, &cli->filters.count);
		if (!place)
			return cli_reject("--job and %d filters are more than there may be",
					  CLI_LIST);
		snprintf(filter, sizeof(filter), "job=%s", cli->job);
		*place = filter;
		cli->job = NULL;	/* its processes may be forgotten: a finding knows itself */
	}
	result = listing_run(cli, &listing, cli->all ? "/v1/findings" : "/v1/findings?active=true");
	return job && result == CLI_DONE ? known_job(cli, job) : result;
}
