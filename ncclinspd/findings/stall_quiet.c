/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Jobs that used to post operations all the time, and have stopped doing so.  That is told at
 * once, as a note: it is suspected, and found when it has lasted for longer than any pause of
 * the job before.
 */
#include "ncclinspd/findings/stall.h"
#include "rows/rows.h"
#include "util/phrase.h"

#define QUIET_TIMES	12	/* times the least limit: most checkpoints are shorter */
#define QUIET_PERIODS	10
#define QUIET_LEAST_NS	UINT64_C(3000000000)
#define STOPPED_LEAST_NS UINT64_C(1500000000)
#define QUIET_PAUSES	2	/* times the longest pause that the job made before */
#define RESTS_NS	UINT64_C(1000000000)	/* all that it posted has been read */

/* Every process of the group is idle: since when, for how long, and how long it may be. */
struct quiet {
	uint64_t since_ns, age_ns;
	uint64_t limit_ns;
	uint64_t period_ns;
	uint64_t longest_ns;
	bool watched;	/* the end of what was last posted would have been seen */
	bool silenced;	/* the group may be silenced: see hang_may_be_silenced() */
};

static uint64_t longer(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

static bool process_is_idle(const struct hang *v, const struct process *p)
{
	const struct hang_own own = hang_own(v, p->id);

	for (uint32_t i = 0; i < own.n; i++)
		if (own.at[i]->has_oldest || v->groups.at[own.at[i]->group].has_op)
			return false;
	return p->state == PROCESS_LIVE && p->mask & NCI_EVENT_BIT(NCI_EV_COLL);
}

static uint64_t last_op_ns(const struct hang *v, const struct process *p)
{
	const struct hang_own own = hang_own(v, p->id);
	uint64_t last_ns = 0;

	for (uint32_t i = 0; i < own.n; i++)
		last_ns = longer(last_ns, own.at[i]->last_op_ns);
	return last_ns;
}

static bool find_quiet(struct paces *paces, const struct hang *v,
		       const struct hang_group *g, struct quiet *q)
{
	*q = (struct quiet){ .watched = true };
	for (uint32_t i = g->first; i < g->first + g->n; i++) {
		const struct process *p = stuck_process(&v->ranks.at[i]);
		uint64_t last_ns = last_op_ns(v, p);
		uint64_t period_ns = paces_period(paces, p->id, v->now_ns > last_ns + RESTS_NS);
		uint64_t pause_ns = paces_longest_pause(paces, p->id);

		if (!period_ns || !process_is_idle(v, p))
			return false;
		if (last_ns > q->since_ns)
			q->since_ns = last_ns;
		if (period_ns > q->period_ns)
			q->period_ns = period_ns;
		if (pause_ns > q->longest_ns)
			q->longest_ns = pause_ns;
		q->watched = q->watched && paces_watched(paces, p->id);
	}
	q->silenced = hang_may_be_silenced(v, g);
	q->age_ns = v->now_ns > q->since_ns ? v->now_ns - q->since_ns : 0;
	return true;
}

static uint64_t quiet_limit(const struct diagnose *dg, const struct quiet *q)
{
	const struct diagnose_times *times = &diagnose_settings(dg)->times;
	uint64_t limit_ns = QUIET_TIMES * times->stall_min_ns;

	if (!q->watched && limit_ns > times->stall_max_ns)
		limit_ns = times->stall_max_ns;		/* the last operation may hang */
	limit_ns = longer(limit_ns, QUIET_PERIODS * q->period_ns);
	return longer(limit_ns, QUIET_PAUSES * q->longest_ns);
}

static const struct word *quiet_word(const struct quiet *q)
{
	if (!q->watched)
		return words_verdict(VERDICT_UNKNOWN);
	return words_verdict(q->silenced ? VERDICT_SILENCED : VERDICT_OUTSIDE);
}

#include "schema/quiet_evidence.h"

static void say_quiet(struct phrase *text, const struct quiet *q)
{
	const char *begin = "the ranks on this node are not in NCCL: nothing is in flight, and no "
			    "operation was posted for ";

	if (!q->watched)
		begin = "no operation was posted on this node for ";
	else if (q->silenced)
		begin = "recording was switched off from outside (NCCL's RAS?), or the ranks on "
			"this node are not in NCCL: all fell silent within a second, what was "
			"watched has ended, and no operation was posted for ";
	phrase_add(text, "%s", begin);
	phrase_add_duration(text, q->age_ns);
	phrase_add(text, " (an iteration takes ");
	phrase_add_duration(text, q->period_ns);
	phrase_add(text, ", the longest pause before was ");
	phrase_add_duration(text, q->longest_ns);
	phrase_add(text, ").");
	if (!q->watched)
		phrase_add(text, " Whether the last ones have ended was not watched, so they may "
			   "hang, or the job may be outside NCCL%s; with NCCLINSP_KERNELS=always "
			   "every end is watched.", q->silenced ?
			   ", or recording was switched off from outside (NCCL's RAS)" : "");
	phrase_add(text, " %s", q->watched ? quiet_word(q)->action :
		   words_verdict(VERDICT_OUTSIDE)->action);
}

static void report_quiet(struct diagnose *dg, const struct hang *v, uint32_t group,
			 const struct quiet *q)
{
	const struct hang_group *g = &v->groups.at[group];
	bool found = q->age_ns > q->limit_ns;
	bool is_note = !found || (q->watched && q->silenced);
	struct finding f = { .kind = FINDING_STALL,
			     .grade = found ? FINDING_FOUND : FINDING_SUSPECTED,
			     .severity = is_note ? FINDING_INFO : FINDING_WARNING,
			     .due_ns = found ? 0 : q->since_ns + q->limit_ns,
			     .peer = UNKNOWN_I32, .since_ns = q->since_ns,
			     .verdict = quiet_word(q)->name };
	struct phrase text;

	stall_about(&f, v, group);
	for (uint32_t i = g->first; i < g->first + g->n; i++)
		finding_add_rank(&f, v->ranks.at[i].rank);
	phrase_start(&text, f.text, sizeof(f.text));
	say_quiet(&text, q);
	finding_set_evidence(&f, quiet_evidence_fields, q);
	diagnose_report(dg, &finding_stall, stall_key(v, group) - 1, &f, v->now_ns);
}

/* Is a process of it stopped, with none of them in an operation? */
static bool group_is_stopped(const struct hang *v, const struct hang_group *g)
{
	bool stopped = false;

	for (uint32_t i = g->first; i < g->first + g->n; i++) {
		if (!process_is_idle(v, stuck_process(&v->ranks.at[i])))
			return false;
		stopped = stopped || v->ranks.at[i].halt.stopped;
	}
	return stopped;
}

/* Nobody waits in NCCL for the processes that are stopped: there is nothing more to prove. */
static void report_stopped(struct diagnose *dg, const struct hang *v, uint32_t group,
			   uint64_t since_ns)
{
	const struct hang_group *g = &v->groups.at[group];
	struct stall s = { .c = { .hang = v, .group = group, .age_ns = v->now_ns - since_ns },
			   .limit = { .reason = LIMIT_PROOF, .p99_ns = UNKNOWN_U64,
				      .p999_ns = UNKNOWN_U64 } };
	struct hang_verdict *verdict = &s.c.verdict;
	struct finding f = { .kind = FINDING_STALL, .severity = FINDING_WARNING,
			     .peer = UNKNOWN_I32, .since_ns = since_ns };

	*verdict = (struct hang_verdict){ .verdict = VERDICT_STOPPED, .comm = group,
					  .peer = UNKNOWN_I32 };
	for (uint32_t i = g->first; i < g->first + g->n; i++) {
		int32_t *rank = v->ranks.at[i].halt.stopped ?
				array_add(verdict->ranks, &verdict->nranks) : NULL;

		if (rank)
			*rank = v->ranks.at[i].rank;
	}
	stall_about(&f, v, group);
	stall_describe(&s, &f);
	diagnose_report(dg, &finding_stall, stall_key(v, group) - 1, &f, v->now_ns);
}

/* Is this the first group, hence the largest, with each of its processes? */
static bool group_is_first(const struct hang *v, const struct hang_group *g)
{
	for (uint32_t i = g->first; i < g->first + g->n; i++)
		if (hang_own(v, v->ranks.at[i].process).at[0]->group != v->ranks.at[i].group)
			return false;
	return true;
}

void stall_look_for_quiet(struct diagnose *dg, struct paces *paces, const struct hang *v)
{
	for (uint32_t i = 0; i < v->groups.n; i++) {
		const struct hang_group *g = &v->groups.at[i];
		uint64_t last_ns = hang_quiet_since(v, g);
		struct quiet q;

		if (!last_ns || v->now_ns < last_ns + STOPPED_LEAST_NS || !group_is_first(v, g))
			continue;
		if (group_is_stopped(v, g))
			report_stopped(dg, v, i, last_ns);
		else if (find_quiet(paces, v, g, &q) &&
			 q.age_ns >= longer(QUIET_LEAST_NS, QUIET_PERIODS * q.period_ns)) {
			q.limit_ns = quiet_limit(dg, &q);
			report_quiet(dg, v, i, &q);
		}
	}
}
