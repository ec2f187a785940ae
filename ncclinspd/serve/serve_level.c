/* SPDX-License-Identifier: Apache-2.0 */
/* /v1/level: what is wanted of which process, and what is in force. */
#include <stddef.h>

#include "ncclinspd/levels/kernels.h"
#include "ncclinspd/levels/steer.h"
#include "ncclinspd/serve/serve_parts.h"
#include "ncclinspd/serve/serve_target.h"
#include "reader/base/job.h"
#include "reader/time/timeline.h"
#include "util/list.h"

/* ---- words ------------------------------------------------------------------ */

static const char *word_of_level(uint32_t level)
{
	return level <= NCI_LEVEL_MASK ? process_levels[level] : NULL;
}

static const char *const samples[] = {
	[NCI_SAMPLE_BUDGET] = "budget", [NCI_SAMPLE_ALL] = "all",
};

static const char *const causes[] = {
	[NCI_CAUSE_PERSON] = "person", [NCI_CAUSE_FINDING] = "detail",
	[NCI_CAUSE_BUDGET] = "thrift", [NCI_CAUSE_TRACE] = "trace",
};

static const char *const sources[] = {
	[NCI_SOURCE_DEFAULT] = "default", [NCI_SOURCE_ENVIRONMENT] = "environment",
	[NCI_SOURCE_CONTROL] = "control", [NCI_SOURCE_OUTSIDE] = "outside",
};

/* NULL: the table has no such word. */
#define WORD(words, value) ((value) < ARRAY_LEN(words) ? (words)[value] : NULL)

/* ---- one process -------------------------------------------------------------- */

static uint64_t steering_since_ns(const struct process *p)
{
	return p->steering.since_ticks ? timeline_mono(&p->clock, p->steering.since_ticks) : 0;
}

static void put_kernels_mode(const struct rows_writer *w, struct json *j, const void *row)
{
	const struct process *p = row;
	char mode[KERNELS_MODE_BYTES];

	json_put_string(j, kernels_mode(p->steering.mode, p->steering.mode_s, mode));
}

#include "schema/level.h"

void serve_put_wanted(const struct rows_writer *w, struct json *j, const void *row)
{
	const struct serve *s = serve_of(w);
	const struct process *p = row;
	struct level_wanted wanted;

	if (!s->source.steer || p->state != PROCESS_LIVE) {
		json_put_null(j);
		return;
	}
	levels_wanted(steer_levels(s->source.steer), p, s->now_ns, &wanted);
	rows_put_object(w, j, wanted_fields, &wanted);
}

static bool wish_is_shown(const struct process *p, const struct wish *of)
{
	return p->state == PROCESS_LIVE && (!of || wish_covers(of, p));
}

/* All live ones, or those that a wish is about. */
static void level_put_processes(struct request *r, struct json *j, const struct wish *of)
{
	struct process *p;

	json_begin_member(j, "processes", '[');
	for (size_t i = 0; (p = serve_next_process(r->serve, &r->viewer, &i));)
		if (wish_is_shown(p, of))
			rows_put_object(&r->serve->writer, j, level_process_fields, p);
	json_end(j, ']');
}

/* ---- the wishes --------------------------------------------------------------- */

/* Nobody learns of another user's; what is wanted of everybody's concerns him too. */
static void level_put_wishes(const struct request *r, struct json *j)
{
	const struct wishes *ws = levels_wishes(steer_levels(r->serve->source.steer));

	json_begin_member(j, "wishes", '[');
	for (uint32_t i = 0; i < WISHES; i++) {
		const struct wish *w = &ws->at[i];

		if (!w->serial || !(w->everybody || viewer_sees(&r->viewer, w->uid)))
			continue;
		rows_put_object(&r->serve->writer, j, wish_fields, w);
	}
	json_end(j, ']');
}

/* The control file and what is done by itself, as a member of the open object. */
static void level_put_control(const struct serve *s, struct json *j)
{
	const struct control *c = s->source.steer ? steer_control(s->source.steer) : NULL;

	json_key(j, "control");
	if (c)
		rows_put_object(&s->writer, j, control_fields, c);
	else
		json_put_null(j);
}

void serve_level(struct request *r, struct json *j)
{
	const struct serve *s = r->serve;

	if (s->source.steer)
		level_put_wishes(r, j);
	level_put_processes(r, j, NULL);
	level_put_control(s, j);
}

void serve_put_outcome(struct request *r, struct json *j, const struct wish *w)
{
	rows_put(&r->serve->writer, j, wish_fields, w);
	level_put_processes(r, j, w);
	level_put_control(r->serve, j);
}
