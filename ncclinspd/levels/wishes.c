/* SPDX-License-Identifier: Apache-2.0 */
/*
 * People wish for nodes, jobs, communicators and processes, over each other: which wish
 * holds, and which one replaces which, is decided here alone.
 */
#include "ncclinspd/levels/wishes.h"

#include <errno.h>
#include <string.h>

#include "ncclinspd/base/jobs.h"
#include "reader/base/accounts.h"
#include "reader/base/job.h"

const char *wish_kind_name(enum wish_kind kind)
{
	static const char *const names[] = { WISH_KINDS(NAME_TEXT) };

	return names[kind];
}

static bool level_is_sound(uint32_t level)
{
	return level <= NCI_LEVEL_TRACE || level == WISH_KEEP;
}

static bool sample_is_sound(uint32_t sample)
{
	return sample == NCI_SAMPLE_BUDGET || sample == NCI_SAMPLE_ALL || sample == WISH_KEEP;
}

bool wish_is_sound(const struct wish *w)
{
	return w->kind < WISH_KIND_END && level_is_sound(w->level) &&
	       sample_is_sound(w->sample) && w->everybody <= 1 &&
	       (w->level != WISH_KEEP || w->sample != WISH_KEEP) &&
	       memchr(w->job, '\0', sizeof(w->job)) && (w->kind == WISH_JOB) == !!*w->job;
}

static bool process_is_of_job(const struct process *p, const char *job)
{
	const char *id = job_id(p);

	return id && !strcmp(id, job);
}

bool wish_covers(const struct wish *w, const struct process *p)
{
	if (!w->everybody && w->uid != p->uid)
		return false;
	switch ((enum wish_kind)w->kind) {
	case WISH_NODE:
		return true;
	case WISH_JOB:
		return process_is_of_job(p, w->job);
	case WISH_COMM:
		return jobs_has_open(p, w->id);
	case WISH_PROCESS:
		return p->instance == w->id;
	case WISH_KIND_END:
		break;
	}
	return false;
}

/* ---- keeping them ---------------------------------------------------------- */

static bool wish_same_target(const struct wish *a, const struct wish *b)
{
	if (a->kind != b->kind)
		return false;
	return a->kind == WISH_JOB ? !strcmp(a->job, b->job) : a->id == b->id;
}

/*
 * One user's word leaves that of others as it is, whatever it is about: instances and ids of
 * communicators are no secrets, and anybody may have one.
 */
static bool wish_may_undo(const struct wish *old, const struct wish *by)
{
	return old->serial && wish_same_target(old, by) &&
	       (by->everybody || (!old->everybody && old->uid == by->uid));
}

void wishes_drop(struct wishes *ws, const struct wish *like)
{
	for (uint32_t i = 0; i < WISHES; i++)
		if (wish_may_undo(&ws->at[i], like))
			ws->at[i].serial = 0;
}

/* All that the old one says, the new one says too, and for as long. */
static bool wish_is_replaced(const struct wish *old, const struct wish *by)
{
	return wish_may_undo(old, by) && (old->until_ns || !by->until_ns) &&
	       (old->level == WISH_KEEP || by->level != WISH_KEEP) &&
	       (old->sample == WISH_KEEP || by->sample != WISH_KEEP);
}

static bool wishes_have_room(const struct wishes *ws, const struct wish *wish)
{
	uid_t account = accounts_of(ws->accounts, wish->uid);
	uint32_t unused = 0, freed = 0, users = 0, own = 0;

	for (uint32_t i = 0; i < WISHES; i++) {
		const struct wish *w = &ws->at[i];
		bool users_own = w->serial && !w->everybody;

		unused += !w->serial;
		freed += wish_is_replaced(w, wish);
		users += users_own;
		own += users_own && accounts_of(ws->accounts, w->uid) == account;
	}
	return unused + freed && (wish->everybody || freed ||
				  (own < WISHES_OF_USER && users < WISHES / 2));
}

int wishes_put(struct wishes *ws, const struct wish *wish, uint64_t now_ns)
{
	struct wish *to = NULL;

	if (!wishes_have_room(ws, wish))
		return -ENOSPC;
	for (uint32_t i = 0; i < WISHES; i++) {
		if (wish_is_replaced(&ws->at[i], wish))
			ws->at[i].serial = 0;
		if (!to && !ws->at[i].serial)
			to = &ws->at[i];
	}
	*to = *wish;
	to->serial = ++ws->serial;
	to->since_ns = to->seen_ns = now_ns;
	return 0;
}

/* A process that ended takes its wish along, unless one with that instance lives. */
static bool wish_is_over(struct wish *w, struct process *const *list, size_t n, uint64_t now_ns)
{
	bool lives = false, ended = false;

	if (w->until_ns && now_ns >= w->until_ns)
		return true;
	if (w->kind == WISH_NODE)
		return false;
	for (size_t i = 0; i < n; i++) {
		if (!wish_covers(w, list[i]))
			continue;
		lives |= list[i]->state == PROCESS_LIVE;
		ended |= list[i]->state != PROCESS_LIVE && w->kind == WISH_PROCESS;
	}
	if (lives)
		w->seen_ns = now_ns;
	return !lives && (ended || now_ns - w->seen_ns > WISH_IDLE_NS);
}

bool wishes_tidy(struct wishes *ws, struct process *const *list, size_t n, uint64_t now_ns)
{
	bool changed = false;

	for (uint32_t i = 0; i < WISHES; i++) {
		struct wish *w = &ws->at[i];

		if (!w->serial || !wish_is_over(w, list, n, now_ns))
			continue;
		w->serial = 0;
		changed = true;
	}
	return changed;
}

uint64_t wishes_next_end(const struct wishes *ws, uint64_t now_ns)
{
	uint64_t next = UINT64_MAX;

	for (uint32_t i = 0; i < WISHES; i++) {
		const struct wish *w = &ws->at[i];

		if (w->serial && w->until_ns > now_ns && w->until_ns < next)
			next = w->until_ns;
	}
	return next;
}

/* ---- asking ------------------------------------------------------------------ */

bool wishes_have_level(const struct wishes *ws, const struct process *p, uint64_t now_ns)
{
	for (uint32_t i = 0; i < WISHES; i++) {
		const struct wish *w = &ws->at[i];

		if (w->serial && w->level != WISH_KEEP && wish_covers(w, p) &&
		    !(w->until_ns && now_ns >= w->until_ns))
			return true;
	}
	return false;
}
