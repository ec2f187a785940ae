/* SPDX-License-Identifier: Apache-2.0 */
/* The top of the live view: the verdicts as far as there is room, then the lines of figures. */
#include "cli/top/head.h"

#include <stdio.h>

#include "cli/base/member.h"
#include "cli/common/prose.h"
#include "cli/top/marks.h"
#include "cli/view/verdict.h"
#include "util/list.h"
#include "util/phrase.h"
#include "util/text.h"

#define TALL	     16		/* lines from which the second line of figures is shown */
#define VERDICT_PART 5		/* one part in so many of the screen, at most, is what is wrong */
#define VERDICTS     64
#define KEY_FROM     60		/* columns from which it is told which key has the rest */

/* ---- what is wrong ------------------------------------------------------------ */

/* The last line there is room for, when there is more. */
static void head_cut_off(struct line *line, bool found)
{
	const char *more = found && line->limit >= KEY_FROM ? " ... (key 5)" : " ...";

	line_shorten(line, line->limit - text_width(more));
	line_put(line, LINE_DIM, more);
}

static void head_put_verdicts(struct frame *frame, const struct view *view,
			      const struct place *place)
{
	int most = place->interactive ? frame->capacity / VERDICT_PART : VERDICTS;
	struct frame all;

	frame_init(&all, frame->columns, VERDICTS);
	verdicts_put(&all, view);
	most = most > 1 ? most : 1;
	if (all.count > most)
		head_cut_off(&all.lines[most - 1], json_array_size(view->findings));
	frame_append(frame, &all, most);
	frame_deinit(&all);
}

static void head_put_down(struct frame *frame, const struct view *view)
{
	char age[TEXT_MAX], text[sizeof(view->error) + 2];

	snprintf(text, sizeof(text), "! %s", view->error[0] ? view->error : "not asked yet");
	prose_put(frame, LINE_BAD, 0, 2, text);
	if (!view->known)
		return;
	text_duration(age, sizeof(age), view->tried_ns - view->now_ns);
	line_printf(frame_add(frame), LINE_WARN, "  trying again; what follows is %s old", age);
}

/* ---- the node ----------------------------------------------------------------- */

/* Puts what is said only where there is room for it. */
static bool head_put_if_fits(struct line *line, enum line_attr attr, const char *label,
			     const char *text)
{
	bool fits = line->columns + 3 + text_width(label) + text_width(text) <= line->limit;

	if (fits)
		line_printf(line, attr, "%s%s %s", line->columns ? "  " : "", label, text);
	return fits;
}

static void head_put_known(struct line *line, const char *label, const char *text)
{
	if (text)
		head_put_if_fits(line, LINE_PLAIN, label, text);
}

static const char *head_status_text(const struct view *view, const char *path)
{
	return json_string_value(report_get(view->status, path));
}

static void head_put_count(struct line *line, const char *label, double n)
{
	char text[TEXT_MAX];

	text_count(text, sizeof(text), n);
	head_put_known(line, label, text);
}

static void head_put_lost(struct line *line, double lost)
{
	char text[TEXT_MAX];

	text_count(text, sizeof(text), lost);
	line_printf(line, lost > 0 ? LINE_BAD : LINE_PLAIN, "  lost %s%s", text,
		    lost > 0 ? "!" : "");
}

/* The plugin's own cost; a dash until the daemon tells. */
static void head_put_overhead(struct line *line, const struct view *view)
{
	const json_t *share = report_get(view->status, "overhead.share");

	if (json_is_number(share))
		line_printf(line, LINE_PLAIN, "  overhead %.2f%%", 100 * json_number_value(share));
	else
		line_put(line, LINE_PLAIN, "  overhead -");
}

static void head_put_tempo(struct line *line, const struct place *place)
{
	char text[TEXT_MAX];

	text_duration(text, sizeof(text), place->delay_ns);
	if (place->interactive && !place->paused)
		head_put_if_fits(line, LINE_DIM, "every", text);
}

static void head_put_flag(struct line *line, const char *flag)
{
	line_put(line, LINE_PLAIN, "  ");
	line_put(line, LINE_WARN, flag);
}

/* Flags that keys have set: at the line's beginning, where a narrow screen has them too. */
static void head_put_flags(struct line *line, const struct place *place)
{
	char tagged[TEXT_MAX];

	if (place->paused)
		head_put_flag(line, "[paused]");
	if (place->mouse)
		head_put_flag(line, "[mouse]");
	if (place->follow)
		head_put_flag(line, "[follow]");
	snprintf(tagged, sizeof(tagged), "[%zu tagged]", marks_tagged(place));
	if (marks_tagged(place))
		head_put_flag(line, tagged);
	if (place->focus.timed)
		head_put_flag(line, "[all timed]");
}

static void head_put_node(struct frame *frame, const struct view *view, const struct place *place)
{
	struct line *line = frame_add(frame);

	line_printf(line, LINE_BOLD, "%s", head_status_text(view, "host") ?: "-");
	if (place->interactive)
		head_put_flags(line, place);
	head_put_count(line, "jobs", (double)json_array_size(view->rows[VIEW_JOBS]));
	head_put_count(line, "GPUs", view->gpus);
	head_put_count(line, "records/s", view->records_per_s);
	head_put_lost(line, view->lost);
	head_put_overhead(line, view);
	line_printf(line, LINE_PLAIN, "  level %s", head_status_text(view, "level") ?: "-");
	head_put_tempo(line, place);
}

static void step_add_part(struct phrase *text, const char *label, const json_t *part)
{
	if (json_is_number(part))
		phrase_add(text, "  %s %.1f%%", label, 100 * json_number_value(part));
	else
		phrase_add(text, "  %s -", label);
}

/*
 * A job's iteration, where one is known, and how much of it is NCCL's, or waiting.  False: there
 * is no room for it.
 */
static bool head_put_step(struct line *line, const json_t *job, bool named)
{
	const json_t *ns = json_object_get(job, "iteration_ns");
	const char *name = json_string_value(json_object_get(job, "job"));
	char label[TEXT_MAX], parts[3 * TEXT_MAX];
	struct phrase text;

	if (!json_is_integer(ns))
		return true;
	phrase_start(&text, parts, sizeof(parts));
	phrase_add_duration(&text, (uint64_t)json_integer_value(ns));
	step_add_part(&text, "NCCL", json_object_get(job, "nccl"));
	step_add_part(&text, "exposed wait", json_object_get(job, "exposed"));
	snprintf(label, sizeof(label), "%s%sstep", named && name ? name : "",
		 named && name ? " " : "");
	return head_put_if_fits(line, LINE_PLAIN, label, parts);
}

/* The step of the job that is looked at, else of each, the worst first, while there is room. */
static void head_put_steps(struct line *line, const json_t *jobs, const struct place *place)
{
	const json_t *only = place_job(place);
	size_t n = json_array_size(jobs);
	bool fits = true;

	json_each(job, jobs)
		if (fits && (!only || json_equal(json_object_get(job, "job"), (json_t *)only)))
			fits = head_put_step(line, job, n > 1);
	if (!fits && n > 1 && !only)
		head_put_if_fits(line, LINE_DIM, "...", "(key 6)");
}

static void head_put_more(struct frame *frame, const struct view *view, const struct place *place)
{
	const json_t *uptime = report_get(view->status, "uptime_ns");
	struct line *line = frame_add(frame);
	char text[TEXT_MAX];

	line_printf(line, LINE_PLAIN, "processes %d", view->live);
	if (view->died)
		line_printf(line, LINE_BAD, "  %d died", view->died);
	if (view->exited)
		line_printf(line, LINE_DIM, "  %d ended", view->exited);
	head_put_steps(line, view->rows[VIEW_JOBS], place);
	head_put_count(line, "communicators", view->comms);
	head_put_count(line, "ops/s", view->ops_per_s);
	head_put_known(line, "ncclinspd", head_status_text(view, "version"));
	if (json_is_integer(uptime)) {
		text_duration(text, sizeof(text), (uint64_t)json_integer_value(uptime));
		head_put_known(line, "up", text);
	}
}

void head_put(struct frame *frame, const struct view *view, const struct place *place)
{
	if (!view->up)
		head_put_down(frame, view);
	if (!view->known)
		return;
	head_put_verdicts(frame, view, place);
	head_put_node(frame, view, place);
	if (frame->capacity >= TALL)
		head_put_more(frame, view, place);
}

static const struct column head_columns[] = {
#include "schema/head_columns.h"
};

static const char *const head_meanings[] = {
#include "schema/head_meanings.h"
};

void head_put_help(struct frame *frame)
{
	for (size_t i = 0; i < ARRAY_LEN(head_columns); i++)
		prose_put_term(frame, PROSE_TERM, head_columns[i].header, head_meanings[i]);
}
