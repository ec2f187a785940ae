/* SPDX-License-Identifier: Apache-2.0 */
/* /v1/level: what is wanted of which process, and what is in force. */
#include "ncclinspd/serve/serve_impl.h"

#include <stddef.h>

#include "ncclinspd/levels/control.h"
#include "ncclinspd/levels/kernels.h"
#include "ncclinspd/levels/steer.h"
#include "reader/base/job.h"
#include "reader/time/timeline.h"

/* ---- words ------------------------------------------------------------------ */

static const char *word(const char *const *words, size_t n, uint32_t value)
{
	return value < n ? words[value] : NULL;
}

#define WORD(words, value) word(words, sizeof(words) / sizeof((words)[0]), value)

static const char *level_word(uint32_t level)
{
	return level <= NCI_LEVEL_MASK ? process_levels[level] : NULL;
}

static const char *sample_word(uint32_t sample)
{
	static const char *const words[] = {
		[NCI_SAMPLE_BUDGET] = "budget",
		[NCI_SAMPLE_ALL] = "all",
	};

	return WORD(words, sample);
}

static const char *why_word(uint32_t cause)
{
	static const char *const words[] = {
		[NCI_CAUSE_PERSON] = "person",
		[NCI_CAUSE_FINDING] = "detail",
		[NCI_CAUSE_BUDGET] = "thrift",
		[NCI_CAUSE_TRACE] = "trace",
	};

	return WORD(words, cause);
}

static const char *source_word(uint32_t source)
{
	static const char *const words[] = {
		[NCI_SOURCE_DEFAULT] = "default",
		[NCI_SOURCE_ENVIRONMENT] = "environment",
		[NCI_SOURCE_CONTROL] = "control",
		[NCI_SOURCE_OUTSIDE] = "outside",
	};

	return WORD(words, source);
}

/* ---- one process -------------------------------------------------------------- */

static void put_text(struct json *j, const char *key, const char *text)
{
	json_key(j, key);
	json_put_string(j, text);
}

void serve_put_wanted(const struct serve *s, struct json *j, const void *row)
{
	const struct process *p = row;
	struct level_wanted w;

	if (!s->source.steer || p->state != PROCESS_LIVE) {
		json_put_null(j);
		return;
	}
	levels_wanted(steer_levels(s->source.steer), p, s->now_ns, &w);
	json_begin(j, '{');
	put_text(j, "level", level_word(w.level));
	put_text(j, "sampling", sample_word(w.sample));
	put_text(j, "why", why_word(w.why));
	rows_put_time(s, j, "since", w.since_ns);
	rows_put_time(s, j, "until", w.until_ns);
	json_end(j, '}');
}

static uint64_t since_ns(const struct process *p)
{
	return p->steering.since_ticks ? timeline_mono(&p->clock, p->steering.since_ticks) : 0;
}

/* The state of a process: until it has looked at the control file, another may be wanted. */
static void put_steering(const struct serve *s, struct json *j, const struct process *p)
{
	const struct steering *st = &p->steering;
	char mode[KERNELS_MODE_BYTES];

	put_text(j, "source", source_word(st->source));
	put_text(j, "why", why_word(st->cause));
	put_text(j, "kernels", kernels_word(kernels_state(p)));
	put_text(j, "kernels_mode", kernels_mode(st->mode, st->mode_s, mode));
	rows_put_time(s, j, "kernels_from", st->settles_ns > s->now_ns ? st->settles_ns : 0);
	json_key(j, "sequence");
	json_put_u64(j, st->sequence);
	rows_put_time(s, j, "since", since_ns(p));
	rows_put_time(s, j, "until", st->until_ns);
	json_key(j, "switches");
	json_put_u64(j, st->stores);
	json_key(j, "control_refused");
	json_put_u64(j, st->control_refused);
}

void serve_put_steering(const struct serve *s, struct json *j, const void *row)
{
	const struct process *p = row;

	if (!p->steering.known) {
		json_put_null(j);
		return;
	}
	json_begin(j, '{');
	put_steering(s, j, p);
	json_end(j, '}');
}

static void put_process(const struct serve *s, struct json *j, const struct process *p)
{
	json_begin(j, '{');
	json_key(j, "pid");
	json_put_i64(j, p->pid);
	json_key(j, "instance");
	json_put_hex64(j, p->instance);
	json_key(j, "container");
	serve_put_container(s, j, p);
	put_text(j, "command", *p->command ? p->command : NULL);
	put_text(j, "job", job_id(p));
	put_text(j, "level", process_level(p));
	put_text(j, "level_reason", kernels_reason(p));
	put_text(j, "sampling", process_sampling(p));
	json_key(j, "steerable");
	json_put_bool(j, true);
	json_key(j, "steering");
	serve_put_steering(s, j, p);
	json_key(j, "wanted");
	serve_put_wanted(s, j, p);
	json_end(j, '}');
}

static bool shown(const struct process *p, const struct wish *of)
{
	return p->state == PROCESS_LIVE && (!of || wish_covers(of, p));
}

/* All live ones, or those that a wish is about. */
static void put_processes(struct request *r, struct json *j, const struct wish *of)
{
	struct process *p;

	json_key(j, "processes");
	json_begin(j, '[');
	for (size_t i = 0; (p = serve_next_process(r->serve, &r->viewer, &i));)
		if (shown(p, of))
			put_process(r->serve, j, p);
	json_end(j, ']');
}

/* ---- the wishes --------------------------------------------------------------- */

void serve_put_wish(const struct serve *s, struct json *j, const struct wish *w)
{
	target_put(j, w);
	put_text(j, "level", level_word(w->level));
	put_text(j, "sampling", sample_word(w->sample));
	json_key(j, "uid");
	json_put_u64(j, w->uid);
	rows_put_time(s, j, "since", w->since_ns);
	rows_put_time(s, j, "until", w->until_ns);
}

/* Nobody learns of another user's; what is wanted of everybody's concerns him too. */
static void put_wishes(const struct request *r, struct json *j)
{
	const struct wishes *ws = levels_wishes(steer_levels(r->serve->source.steer));

	json_key(j, "wishes");
	json_begin(j, '[');
	for (uint32_t i = 0; i < WISHES; i++) {
		const struct wish *w = &ws->at[i];

		if (!w->serial || !(w->everybody || viewer_sees(&r->viewer, w->uid)))
			continue;
		json_begin(j, '{');
		serve_put_wish(r->serve, j, w);
		json_end(j, '}');
	}
	json_end(j, ']');
}

static const struct field stats_fields[] = {
#define F(name, kind) { #name, kind, offsetof(struct levels_stats, name), NULL }
	F(entries, FIELD_U32),
	F(left_out, FIELD_U32),
	F(raised, FIELD_U64),
	F(withheld, FIELD_U64),
	F(lowered, FIELD_U64),
	F(forgotten, FIELD_U64),
#undef F
	{ NULL, 0, 0, NULL },
};

void serve_control(const struct serve *s, struct json *j)
{
	const struct control *c = s->source.steer ? steer_control(s->source.steer) : NULL;

	json_key(j, "control");
	if (!c) {
		json_put_null(j);
		return;
	}
	json_begin(j, '{');
	put_text(j, "path", c->path);
	put_text(j, "error", control_error_text(c));
	json_key(j, "sequence");
	json_put_u64(j, c->image.sequence);
	rows_put_time(s, j, "written", c->writes ? c->image.written_mono_ns : 0);
	rows_put(s, j, stats_fields, levels_stats(steer_levels(s->source.steer)));
	json_end(j, '}');
}

void serve_level(struct request *r, struct json *j)
{
	const struct serve *s = r->serve;

	if (s->source.steer)
		put_wishes(r, j);
	put_processes(r, j, NULL);
	serve_control(s, j);
}

void serve_put_outcome(struct request *r, struct json *j, const struct wish *w)
{
	serve_put_wish(r->serve, j, w);
	put_processes(r, j, w);
	serve_control(r->serve, j);
}
