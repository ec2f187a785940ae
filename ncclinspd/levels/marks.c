/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Phases that people name outlive the processes and the daemon: a job's is given to those
 * that come later, a process's is found again.
 */
#include "ncclinspd/levels/marks.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ncclinspd/levels/kept.h"
#include "reader/base/accounts.h"
#include "reader/base/boot.h"
#include "reader/base/names.h"
#include "util/list.h"

#define ROWS	(MARKS_JOBS + MARKS_PROCESSES)

struct marks {
	struct names *names;
	const struct accounts *accounts;
	char path[KEPT_PATH];
	uint8_t boot_id[16];
	uint64_t serial;
	struct {
		struct mark mark;	/* .serial 0: not in use */
		uint64_t seen_ns;	/* when it last covered a process that lives */
	} job[MARKS_JOBS];
	struct mark restored[MARKS_PROCESSES];	/* processes that have not appeared again */
	uint32_t nrestored;
	uint64_t restored_ns;
	struct mark rows[ROWS];		/* scratch: the file's */
	struct kept_state kept;
};

static const struct kept_kind kind = {
	.magic = UINT64_C(0x0a736b72616d636e),	/* "ncmarks\n", little-endian */
	.version = 1, .most = ROWS, .row_bytes = sizeof(struct mark), .what = "marks",
};

static struct wish mark_target(const struct mark *mark)
{
	struct wish w = { .kind = WISH_JOB, .uid = mark->uid, .everybody = mark->everybody };

	memcpy(w.job, mark->job, sizeof(w.job));
	return w;
}

static bool mark_covers(const struct mark *mark, const struct process *p)
{
	const struct wish w = mark_target(mark);

	return mark->serial && wish_covers(&w, p);
}

/* ---- what is said -------------------------------------------------------------------- */

/* One user's word about a job leaves that about all of it as it is. */
static bool mark_may_undo(const struct mark *old, const struct wish *by)
{
	return old->serial && (by->everybody || (!old->everybody && old->uid == by->uid)) &&
	       (by->kind == WISH_NODE || (by->kind == WISH_JOB && !strcmp(old->job, by->job)));
}

static bool marks_have_room(const struct marks *m, const struct wish *whom)
{
	uid_t account = accounts_of(m->accounts, whom->uid);
	uint32_t unused = 0, freed = 0, users = 0, own = 0;

	for (uint32_t i = 0; i < MARKS_JOBS; i++) {
		const struct mark *mark = &m->job[i].mark;
		bool users_own = mark->serial && !mark->everybody;

		unused += !mark->serial;
		freed += mark_may_undo(mark, whom);
		users += users_own;
		own += users_own && accounts_of(m->accounts, mark->uid) == account;
	}
	return unused + freed && (whom->everybody || freed ||
				  (own < MARKS_JOBS_OF_USER && users < MARKS_JOBS / 2));
}

static void mark_add_job(struct marks *m, const struct wish *whom, const char *phase,
			 uint64_t now_ns)
{
	uint32_t i = 0;

	while (m->job[i].mark.serial)
		i++;
	m->job[i].mark = (struct mark){
		.kind = WISH_JOB, .uid = whom->uid, .everybody = whom->everybody,
		.serial = ++m->serial, .since_ns = now_ns,
	};
	m->job[i].seen_ns = now_ns;
	memcpy(m->job[i].mark.job, whom->job, sizeof(m->job[i].mark.job));
	strncpy(m->job[i].mark.phase, phase, sizeof(m->job[i].mark.phase) - 1);
}

int marks_put(struct marks *m, const struct wish *whom, const char *phase, uint64_t now_ns)
{
	bool adds = whom->kind == WISH_JOB && phase;

	if (adds && !marks_have_room(m, whom))
		return -ENOSPC;
	for (uint32_t i = 0; i < MARKS_JOBS; i++)
		if (mark_may_undo(&m->job[i].mark, whom))
			m->job[i].mark.serial = 0;
	if (adds)
		mark_add_job(m, whom, phase, now_ns);
	return 0;
}

const struct mark *marks_next(const struct marks *m, size_t *i)
{
	while (*i < MARKS_JOBS) {
		const struct mark *mark = &m->job[(*i)++].mark;

		if (mark->serial)
			return mark;
	}
	return NULL;
}

/* ---- who it is said of ------------------------------------------------------------------ */

/* NULL for ""; and where there are too many names: rather none than another's. */
static name_t mark_name(struct marks *m, uid_t uid, const char *text)
{
	uid_t account = accounts_of(m->accounts, uid);
	name_t name = *text ? names_intern(m->names, account, text, strlen(text)) : NULL;

	return name && !strcmp(name, text) ? name : NULL;
}

static void mark_restore(struct marks *m, struct process *p)
{
	for (uint32_t i = 0; i < m->nrestored; i++) {
		const struct mark *mark = &m->restored[i];

		if (mark->id != p->instance || mark->uid != p->uid)
			continue;
		p->phase = (struct phase){ .name = mark_name(m, p->uid, mark->phase),
					   .before = mark_name(m, p->uid, mark->before),
					   .since_ns = mark->since_ns };
		m->restored[i] = m->restored[--m->nrestored];
		return;
	}
}

void marks_appeared(struct marks *m, struct process *p)
{
	const struct mark *newest = NULL;

	mark_restore(m, p);
	for (uint32_t i = 0; i < MARKS_JOBS; i++)
		if (mark_covers(&m->job[i].mark, p) &&
		    (!newest || m->job[i].mark.serial > newest->serial))
			newest = &m->job[i].mark;
	if (newest && newest->since_ns > p->phase.since_ns)	/* the newest word holds */
		phase_set(p, mark_name(m, newest->uid, newest->phase), newest->since_ns);
}

static bool mark_lives_on(const struct mark *mark, struct process *const *list, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (list[i]->state == PROCESS_LIVE && mark_covers(mark, list[i]))
			return true;
	return false;
}

void marks_look(struct marks *m, struct process *const *list, size_t n, uint64_t now_ns)
{
	bool changed = false;

	for (uint32_t i = 0; i < MARKS_JOBS; i++) {
		struct mark *mark = &m->job[i].mark;

		if (!mark->serial)
			continue;
		if (mark_lives_on(mark, list, n))
			m->job[i].seen_ns = now_ns;
		if (now_ns - m->job[i].seen_ns <= WISH_IDLE_NS)
			continue;
		mark->serial = 0;
		changed = true;
	}
	if (m->nrestored && now_ns - m->restored_ns > WISH_IDLE_NS) {
		m->nrestored = 0;
		changed = true;
	}
	if (changed)
		marks_save(m, list, n);
}

/* ---- the file --------------------------------------------------------------------------- */

static void mark_put_process(struct mark *row, const struct process *p)
{
	*row = (struct mark){ .kind = WISH_PROCESS, .uid = p->uid, .id = p->instance,
			      .since_ns = p->phase.since_ns };
	strncpy(row->phase, p->phase.name ?: "", sizeof(row->phase) - 1);
	strncpy(row->before, p->phase.before ?: "", sizeof(row->before) - 1);
}

static uint32_t marks_fill(struct marks *m, struct process *const *list, size_t n)
{
	uint32_t used = 0;

	for (uint32_t i = 0; i < MARKS_JOBS; i++)
		if (m->job[i].mark.serial)
			m->rows[used++] = m->job[i].mark;
	for (uint32_t i = 0; i < m->nrestored; i++)
		m->rows[used++] = m->restored[i];
	for (size_t i = 0; i < n && used < ROWS; i++)
		if (list[i]->state == PROCESS_LIVE && list[i]->phase.since_ns)
			mark_put_process(&m->rows[used++], list[i]);
	return used;
}

void marks_save(struct marks *m, struct process *const *list, size_t n)
{
	kept_save(&m->kept, m->path, &kind, m->boot_id, m->rows, marks_fill(m, list, n));
}

static bool text_is_terminated(const char *text, size_t room)
{
	return memchr(text, '\0', room);
}

static bool mark_is_sound(const struct mark *row)
{
	bool job = row->kind == WISH_JOB;

	if (!text_is_terminated(row->job, sizeof(row->job)) ||
	    !text_is_terminated(row->phase, sizeof(row->phase)) ||
	    !text_is_terminated(row->before, sizeof(row->before)) || row->everybody > 1)
		return false;
	if ((*row->phase || job) && !phase_is_sound(row->phase))
		return false;
	if (*row->before && !phase_is_sound(row->before))
		return false;
	return job ? *row->job && row->serial : row->kind == WISH_PROCESS && row->since_ns;
}

static int marks_take(struct marks *m, uint32_t count, uint64_t now_ns)
{
	uint32_t jobs = 0;

	for (uint32_t i = 0; i < count; i++)
		if (!mark_is_sound(&m->rows[i]))
			return -EPROTO;
	for (uint32_t i = 0; i < count; i++) {
		const struct mark *row = &m->rows[i];
		struct mark *place;

		place = row->kind == WISH_PROCESS ? array_add(m->restored, &m->nrestored) : NULL;
		if (place)
			*place = *row;
		if (row->kind != WISH_JOB || jobs == MARKS_JOBS)
			continue;
		m->job[jobs].mark = *row;
		m->job[jobs++].seen_ns = now_ns;
		if (row->serial > m->serial)
			m->serial = row->serial;
	}
	m->restored_ns = now_ns;
	return 0;
}

int marks_new(struct marks **mp, struct names *names, const struct accounts *accounts,
	      const char *control, uint64_t now_ns)
{
	struct marks *m = calloc(1, sizeof(*m));
	uint32_t count = 0;
	int r;

	if (!m)
		return -ENOMEM;
	m->names = names;
	m->accounts = accounts;
	snprintf(m->path, sizeof(m->path), "%s.marks", control);
	boot_id_read(m->boot_id);
	r = kept_read(m->path, &kind, m->boot_id, m->rows, &count);
	if (r == 0)
		r = marks_take(m, count, now_ns);
	kept_restored(&m->kept, m->path, &kind, r, m->rows, count);
	*mp = m;
	return 0;
}

void marks_free(struct marks *m)
{
	free(m);
}
