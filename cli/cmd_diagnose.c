/* SPDX-License-Identifier: Apache-2.0 */
/* ncclinsp diagnose: what is wrong, what says so, what to do next. */
#include <stdio.h>
#include <strings.h>

#include "cli/base/member.h"
#include "cli/common/listing.h"
#include "cli/common/prose.h"
#include "cli/view/findings.h"
#include "cli/view/verdict.h"
#include "util/list.h"
#include "util/text.h"

#define TITLE 320
#define LABEL 160	/* bytes of a communicator's label */

/* "suspected critical: stall LINK on dp:1214 of job 4711, for 7s, found in 3s if it goes on" */
static void paragraph_make_title(const json_t *row, char title[TITLE])
{
	bool active = member_true(row, "active");
	const char *verdict = member_text(row, "verdict", ""), *job = member_text(row, "job", "");
	const char *host = member_text(row, "host", "");
	char age[TEXT_MAX], when[2 * TEXT_MAX] = "", comm[LABEL], due[FINDINGS_DUE];

	text_duration(age, sizeof(age), finding_age_ns(row, cli_now_ns()));
	if (finding_has_age(row))
		snprintf(when, sizeof(when), ", %s %s", active ? "for" : "over, it took", age);
	if (!report_text(row, "comm_label|comm_name|comm_id", comm, sizeof(comm)))
		*comm = '\0';
	finding_due(row, cli_now_ns(), due);
	snprintf(title, TITLE, "%s%s: %s%s%s%s%s%s%s%s%.64s%s%s",
		 finding_standing(row) == FINDING_IS_SUSPECTED ? "suspected " : "",
		 member_text(row, "severity", ""), member_text(row, "kind", ""),
		 *verdict ? " " : "", verdict, *comm ? " on " : "", comm,
		 *job ? " of job " : "", job, *host ? ", " : "", host,
		 when, due);
}

static void paragraph_put(struct frame *frame, const json_t *row)
{
	bool active = member_true(row, "active");
	char title[TITLE];

	if (frame->count)
		frame_add(frame);
	paragraph_make_title(row, title);
	prose_put(frame, active ? verdict_attr(row) : LINE_DIM, 0, 4, title);
	prose_put(frame, LINE_PLAIN, 4, 4, member_text(row, "text", ""));
	json_each(line, json_object_get(row, "gathered"))
		prose_put(frame, LINE_PLAIN, 4, 6, json_string_value(line) ?: "");
}

static int diagnose_page(struct cli *cli, const json_t *answer, const json_t *rows)
{
	char filters[256], text[320];
	struct frame frame;

	prose_begin(&frame, cli, PROSE_WIDEST);
	json_each(row, rows)
		paragraph_put(&frame, row);
	if (!json_array_size(rows) && listing_filters(cli)) {
		listing_tell_filters(cli, filters, sizeof(filters));
		snprintf(text, sizeof(text), "no finding matches %s", filters);
		prose_put(&frame, LINE_PLAIN, 0, 0, text);
	} else if (!json_array_size(rows) && cli->all &&
		   !json_integer_value(report_get(answer, "watched.live"))) {
		prose_put(&frame, LINE_PLAIN, 0, 0, "no fault was found");
	} else if (!json_array_size(rows)) {
		verdicts_put_calm(&frame, answer, cli_now_ns());
	}
	prose_end(&frame, cli);
	return 0;
}

/* A job that is not here must not be taken for one that is well. */
static int diagnose_job(const json_t *answer, const char *job)
{
	json_each(id, report_get(answer, "watched.jobs"))
		if (!strcasecmp(json_string_value(id) ?: "", job))
			return CLI_DONE;
	fprintf(stderr, "ncclinsp: no process of job '%s' here, or none of yours; "
		"ncclinsp ps lists them\n", job);
	return CLI_NOTHING;
}

static int diagnose_code(const struct listing *listing, const json_t *answer, const json_t *rows)
{
	if (findings_count(rows, "critical") + findings_count(rows, "warning"))
		return CLI_FINDING;
	return listing->arg ? diagnose_job(answer, listing->arg) : CLI_DONE;
}

static json_t *rows_reshape(const json_t *rows)
{
	return findings_shape(rows, cli_now_ns());
}

int cmd_diagnose(struct cli *cli)
{
	struct listing listing = {
		.array = "findings",
		.columns = finding_columns,
		.count = finding_column_count,
		.sort = &finding_weight,
		.reshape = rows_reshape,
		.page = diagnose_page,
		.code = diagnose_code,
		.joint = true,
		.labelled = true,
	};
	char filter[FINDINGS_SENTENCE], job[FINDINGS_SENTENCE];
	const char **place;

	if (cli->job) {
		place = array_add(cli->filters.text, &cli->filters.count);
		if (!place)
			return cli_reject("--job and %d filters are too many",
					  CLI_LIST);
		snprintf(filter, sizeof(filter), "job=%s", cli->job);
		*place = filter;
		snprintf(job, sizeof(job), "%s", cli->job);
		listing.arg = job;
		cli->job = NULL;	/* its processes may be forgotten: a finding knows itself */
	}
	return listing_run(cli, &listing, cli->all ? "/v1/findings" : "/v1/findings?active=true");
}
