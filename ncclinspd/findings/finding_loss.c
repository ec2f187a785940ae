/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Processes of which records are lost: their counters since the slice before this one began,
 * which judge/ compares.  What was overwritten before the daemon came is nobody's fault, hence
 * no warning.
 */
#include <string.h>

#include "judge/loss.h"
#include "ncclinspd/findings/diagnose.h"
#include "reader/base/job.h"
#include "reader/time/timeline.h"
#include "rows/rows.h"
#include "util/list.h"

#define SECOND_NS	UINT64_C(1000000000)
#define SLICE_NS	(15 * SECOND_NS)
#define HOLD_NS		(3 * SECOND_NS)
#define YOUNG_NS	(5 * SECOND_NS)	/* age of a process all of whose losses we have seen */

struct loss_watch {
	uint64_t process_id;
	uint64_t since_ns;	/* start of the losses; 0: nothing is lost */
	struct loss_row before, now;	/* when the slice before, and when this one began */
};

struct losses {
	LIST(struct loss_watch) watch;	/* one for each process, as they appeared */
};

/* ---- counting --------------------------------------------------------------- */

static struct loss_row loss_take(const struct process *p, uint64_t waited_ns, uint64_t now_ns)
{
	return (struct loss_row){
		.at_ns = now_ns, .records = p->records, .before = p->loss.before,
		.waited_ns = waited_ns,
#define X(NAME, name) .lost[LOSS_##NAME] = p->loss.name,
		LOSS_CAUSES(X)
#undef X
	};
}

/* Losses of a process before we came to it are no news, except what we missed of it. */
static struct loss_row first_of(const struct process *p, uint64_t waited_ns, uint64_t now_ns)
{
	struct loss_row first = loss_take(p, waited_ns, now_ns);

	if (timeline_mono(&p->clock, p->first_ticks) + YOUNG_NS > now_ns)
		return (struct loss_row){ .at_ns = now_ns, .waited_ns = waited_ns };
	first.before = 0;
	return first;
}

/* NULL: no memory, the next look may have some. */
static struct loss_watch *watch_of(struct losses *l, const struct process *p, size_t hint,
				   uint64_t waited_ns, uint64_t now_ns)
{
	struct loss_watch *w;

	if (hint < l->watch.n && l->watch.at[hint].process_id == p->id)
		return &l->watch.at[hint];
	for (size_t i = 0; i < l->watch.n; i++)
		if (l->watch.at[i].process_id == p->id)
			return &l->watch.at[i];
	w = list_append(&l->watch);
	if (!w)
		return NULL;
	*w = (struct loss_watch){ .process_id = p->id };
	w->before = w->now = first_of(p, waited_ns, now_ns);
	return w;
}

static void watch_slide(struct loss_watch *w, const struct loss_row *now)
{
	if (now->at_ns - w->now.at_ns < SLICE_NS)
		return;
	w->before = w->now;
	w->now = *now;
}

/* ---- the finding -------------------------------------------------------------- */

static void loss_put_lost(const struct rows_writer *w, struct json *j, const void *row)
{
	const struct loss_growth *l = &((const struct loss_case *)row)->growth;

	json_begin(j, '{');
#define X(NAME, name)	json_member_u64(j, #name, l->lost[LOSS_##NAME]);
	LOSS_CAUSES(X)
#undef X
	json_member_u64(j, "before", l->before);
	json_end(j, '}');
}

#include "schema/loss_evidence.h"

static void loss_report(struct diagnose *dg, const struct process *p, const struct loss_watch *w,
			const struct loss_growth *l, bool before, uint64_t now_ns)
{
	struct finding f = { .kind = FINDING_LOSS, .peer = UNKNOWN_I32, .uid = p->uid,
			     .process_id = p->id,
			     .severity = before ? FINDING_INFO : FINDING_WARNING,
			     .since_ns = before ? p->first_seen_ns : w->since_ns };
	const struct comm *comm = job_largest_comm(p);
	struct loss_case c = {
		.who = diagnose_whom(dg, p, comm), .comm_name = f.comm_name, .before = before,
		.growth = *l,
	};

	if (comm) {
		f.has_comm_id = true;
		f.comm_id = comm->id;
		memcpy(f.comm_name, comm->name, sizeof(f.comm_name));
		f.nranks = comm->rank != UNKNOWN_I32;
		f.ranks[0] = comm->rank;
	}
	c.who.command = p->command;
	loss_say(&c, f.text, sizeof(f.text));
	finding_set_evidence(&f, loss_evidence_fields, &c);
	diagnose_report(dg, &finding_loss, 2 * p->id + before, &f, now_ns);
}

/* ---- the detector -------------------------------------------------------------- */

static void loss_judge(struct diagnose *dg, const struct process *p, struct loss_watch *w,
		       uint64_t waited_ns, uint64_t now_ns)
{
	const struct loss_row now = loss_take(p, waited_ns, now_ns);
	const struct loss_growth l = loss_compare(&w->before, &now);

	if (!l.all && !l.full)
		w->since_ns = 0;
	else if (!w->since_ns)
		w->since_ns = now_ns;
	if (loss_begins(&l))
		loss_report(dg, p, w, &l, false, now_ns);
	else if (loss_goes_on(&l))
		diagnose_renew(dg, &finding_loss, 2 * p->id, now_ns);
	if (l.before)
		loss_report(dg, p, w, &l, true, now_ns);
	watch_slide(w, &now);
}

static void loss_look(struct diagnose *dg, void *state, uint64_t now_ns)
{
	const struct diagnose_source *source = diagnose_source(dg);
	struct process *const *list;
	size_t n = source->processes(source->arg, &list);
	uint64_t waited_ns = n && source->waited_ns ? source->waited_ns(source->arg) : UNKNOWN_U64;

	for (size_t i = 0; i < n; i++) {
		struct loss_watch *w = watch_of(state, list[i], i, waited_ns, now_ns);

		if (w)
			loss_judge(dg, list[i], w, waited_ns, now_ns);
	}
}

static void loss_on_forgotten(struct diagnose *dg, void *state, const struct process *p)
{
	struct losses *l = state;
	uint32_t i = 0;

	while (i < l->watch.n && l->watch.at[i].process_id != p->id)
		i++;
	if (i < l->watch.n)
		list_remove(&l->watch, i);
}

static void loss_deinit(void *state)
{
	struct losses *l = state;

	list_deinit(&l->watch);
}

const struct detector finding_loss = {
	.name = "loss",
	.state_bytes = sizeof(struct losses),
	.hold_ns = HOLD_NS,
	.deinit = loss_deinit,
	.forgotten = loss_on_forgotten,
	.look = loss_look,
};
