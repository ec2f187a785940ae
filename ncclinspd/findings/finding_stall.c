/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Operations that do not end, and jobs that do nothing.  What hangs in one
 * communicator often hangs because of another; findings are about the cause, so
 * that a cause is one finding, whatever waits for it.
 */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "ncclinspd/compare/ranks_compare.h"
#include "ncclinspd/findings/around.h"
#include "ncclinspd/findings/ras.h"
#include "ncclinspd/findings/stall.h"
#include "reader/base/job.h"
#include "reader/base/pool.h"
#include "tables/keyed.h"

#define SECOND_NS	UINT64_C(1000000000)
#define HOLD_NS		(3 * SECOND_NS)
#define MOVED_NS	(5 * SECOND_NS)	/* an operation that moved so lately is slow, not stuck */
#define SUSPECTED_NS	(5 * SECOND_NS)	/* time until it is suspected, or its limit if less */
#define ABSENCES	1024
#define ABSENCE_LEAST_NS (5 * SECOND_NS)	/* one that is shorter is none */
#define WATCHED_NS	(SECOND_NS * 3 / 10)	/* time in flight until it is looked at closely */
#define XID_BEFORE_NS	(5 * SECOND_NS)
#define ABSENCE_TIMES	3		/* the longest so far, for one to be critical ... */
#define ABSENCE_CRITICAL_NS (60 * SECOND_NS)	/* the least time until it is critical */

/* An operation in flight for long: does anything of it still move? */
struct stall_watch {
	struct keyed_head head;
	uint64_t key;		/* key of its group */
	uint64_t op;		/* op_identity() of the operation */
	uint64_t moved_ns;	/* 0: not since it is watched */
	uint64_t signature;
	uint64_t absent_ns;	/* when a rank had last not come to it; 0: all had */
	enum verdict verdict;	/* the verdict at the last look */
};

/*
 * The age of an operation when a rank was last seen missing in it is how long that rank
 * stayed away, once the communicator is in another operation.
 */
struct stall_absence {
	struct keyed_head head;
	uint64_t comm;
	uint64_t op;		/* the newest in which a rank was missing ... */
	uint64_t age_ns;	/* the time that it is missing */
	uint64_t longest_ns;	/* the longest absence before it */
};

struct stalls {
	struct limits *limits;
	struct paces paces;
	struct keyed absences;	/* by communicator */
	struct keyed watches;	/* as many as there may be groups */
	struct ras *ras;	/* NULL: NCCL's RAS is not asked */
};

static void stall_on_ops(struct diagnose *dg, void *state, const struct op *const *ops, uint32_t n,
			 uint64_t now_ns)
{
	struct stalls *st = state;

	for (uint32_t i = 0; i < n; i++) {
		const struct op *before = i ? ops[i - 1] : NULL;
		bool alike = before && ranks_do_the_same(before, ops[i]);

		if (ops[i]->parts)
			continue;	/* its parts come on their own */
		limits_add(st->limits, ops[i], alike);
		paces_add(&st->paces, ops[i], alike);
	}
}

static void stall_on_forgotten(struct diagnose *dg, void *state, const struct process *p)
{
	struct stalls *st = state;

	paces_forget(&st->paces, p->id);
}

/* The longest of the group's processes; 0: none has one. */
static uint64_t group_period(struct stalls *st, const struct hang *v,
			     const struct hang_group *g)
{
	uint64_t longest = 0;

	for (uint32_t i = g->first; i < g->first + g->n; i++) {
		uint64_t ns = paces_period(&st->paces, v->ranks.at[i].process, false);

		if (ns > longest)
			longest = ns;
	}
	return longest;
}

/* ---- limits --------------------------------------------------------------- */

/* The age from which it is suspected: operations of its kind do not take so long. */
static uint64_t limit_suspected_from(const struct limit *limit)
{
	uint64_t from_ns = SUSPECTED_NS;

	if (limit->p99_ns != UNKNOWN_U64 && limit->p99_ns > from_ns)
		from_ns = limit->p99_ns;
	return from_ns < limit->ns ? from_ns : limit->ns;
}

/* Has this group's operation been in flight for so long that it is to be watched? */
static bool stall_is_due(struct stalls *st, struct stall *s)
{
	const struct hang_group *g = &s->c.hang->groups.at[s->c.group];
	uint64_t period_ns;
	struct op op;

	if (!g->has_op || !g->op.enqueued_ns ||
	    s->c.hang->now_ns < g->op.enqueued_ns + WATCHED_NS)
		return false;
	s->c.age_ns = s->c.hang->now_ns - g->op.enqueued_ns;
	period_ns = group_period(st, s->c.hang, g);
	if (g->unwatched) {
		limits_of_unwatched(st->limits, period_ns, &s->limit);
	} else {
		stuck_op(s->c.hang, g, &op);
		limits_of(st->limits, &op, period_ns, &s->limit);
	}
	return true;
}

uint64_t stall_limit_ns(const struct diagnose *dg, const struct op *op)
{
	struct stalls *st = diagnose_state(dg, &finding_stall);
	struct limit limit;

	limits_of(st->limits, op, paces_period(&st->paces, op->process_id, false), &limit);
	return limit.ns;
}

struct period_quartiles stall_steps_since(const struct diagnose *dg, uint64_t process_id,
					  uint64_t from_ns)
{
	struct stalls *st = diagnose_state(dg, &finding_stall);

	return paces_period_since(&st->paces, process_id, from_ns);
}

bool stall_step(const struct diagnose *dg, uint64_t process_id, uint64_t now_ns,
		struct period_step *out)
{
	struct stalls *st = diagnose_state(dg, &finding_stall);

	return paces_step(&st->paces, process_id, now_ns, out);
}

/* A moment's rounding is no more than all of it. */
static double step_part(const struct period_step *step, double ns)
{
	return ns < (double)step->step_ns ? ns / (double)step->step_ns : 1;
}

struct diagnose_step diagnose_step(const struct diagnose *dg, uint64_t process_id,
				   uint64_t now_ns)
{
	struct diagnose_step out = { .nccl = -1, .exposed = -1 };
	struct period_step step;

	if (!stall_step(dg, process_id, now_ns, &step) || !step.step_ns)
		return out;
	out.step_ns = step.step_ns;
	if (step.inside_ns >= 0)
		out.nccl = step_part(&step, step.inside_ns);
	if (step.moving_ns >= 0)
		out.exposed = step_part(&step, fmax(0, step.inside_ns - step.moving_ns));
	return out;
}

uint64_t stall_unwatched_limit_ns(const struct diagnose *dg, uint64_t process_id)
{
	struct stalls *st = diagnose_state(dg, &finding_stall);
	struct limit limit;

	limits_of_unwatched(st->limits, paces_period(&st->paces, process_id, false), &limit);
	return limit.ns;
}

/* ---- movement ------------------------------------------------------------- */

/* Everything that changes when something of the operation comes forward. */
static uint64_t group_sign(const struct hang *v, const struct hang_group *g)
{
	uint64_t signature = 1;

	for (uint32_t i = g->first; i < g->first + g->n; i++) {
		const struct hang_rank *r = &v->ranks.at[i];

		signature = index_mix(signature, r->op != NULL);
		if (!r->op)
			continue;
		signature = index_mix(signature, (uint64_t)r->op->kernel_started);
		signature = index_mix(signature, (uint64_t)r->op->kernel_stopped);
		signature = index_mix(signature, r->op->proxy_steps);
		for (size_t k = 0; k < r->nrows; k++) {
			const struct hang_row *row = &r->rows[k];

			if (!hang_is_of(row, r))
				continue;
			signature = index_mix(signature, row->token);
			signature = index_mix(signature, (uint64_t)row->step);
			signature = index_mix(signature, (uintptr_t)row->state);
		}
	}
	return signature;
}

/*
 * The same at each look.  The time of its posting is not: it is worked out anew from ticks
 * at each look, and moves by some ns whenever their rate is measured.
 */
static uint64_t op_identity(const struct hang_group *g)
{
	const struct hang_row *op = &g->op;

	if (g->by_calls)
		return index_mix((uintptr_t)op->func, g->call);
	if (op->seq != UNKNOWN_U64)
		return index_mix((uintptr_t)op->func, op->seq);
	return index_mix(op->key, op->token);
}

/* NULL: seen for the first time, so that nothing can be said yet; or no memory. */
static struct stall_watch *stall_watch_group(struct stalls *st, const struct stall *s)
{
	const struct hang_group *g = &s->c.hang->groups.at[s->c.group];
	uint64_t key = stall_key(s->c.hang, s->c.group), signature = group_sign(s->c.hang, g);
	uint64_t now_ns = s->c.hang->now_ns, op = op_identity(g);
	bool made;
	struct stall_watch *w = keyed_use(&st->watches, &key, 0, &made);

	if (w && (made || w->op != op)) {
		w->op = op;
		w->moved_ns = w->absent_ns = 0;
		w->signature = signature;
		w->verdict = s->c.verdict.verdict;
		return NULL;
	}
	if (w && w->signature != signature) {
		w->moved_ns = now_ns;
		w->signature = signature;
	}
	return w;
}

/* ---- what hangs ----------------------------------------------------------- */

/* A circle is one finding, from wherever one comes to it. */
static uint64_t cause_key(const struct stall *s)
{
	uint64_t key = stall_key(s->c.hang, s->c.verdict.comm);

	for (uint32_t i = 0; i < s->c.verdict.ncircle; i++)
		if (stall_key(s->c.hang, s->c.verdict.circle[i]) < key)
			key = stall_key(s->c.hang, s->c.verdict.circle[i]);
	return key;
}

/* The longest absence before that operation, in which a rank is missing for `age_ns` by now. */
static uint64_t absence_longest(struct stalls *st, uid_t account, uint64_t comm, uint64_t op,
				uint64_t age_ns)
{
	struct stall_absence *e = keyed_find(&st->absences, &comm);
	bool made;

	if (age_ns >= ABSENCE_LEAST_NS)
		e = keyed_use(&st->absences, &comm, account, &made);
	if (!e)
		return 0;
	if (e->op != op && e->age_ns > e->longest_ns)
		e->longest_ns = e->age_ns;
	if (age_ns >= ABSENCE_LEAST_NS) {
		e->op = op;
		e->age_ns = age_ns;
	}
	return e->longest_ns;
}

/*
 * A rank that is alive may be busy with a checkpoint, which the communicator's longest absence
 * so far tells something about.
 */
static void stall_measure_absence(const struct diagnose *dg, struct stalls *st, struct stall *s)
{
	const struct diagnose_times *times = &diagnose_settings(dg)->times;
	const struct hang_group *g = &s->c.hang->groups.at[s->c.verdict.comm];
	uid_t account = stuck_process(&s->c.hang->ranks.at[g->first])->account;
	uint64_t longest_ns = absence_longest(st, account,
					      stall_key(s->c.hang, s->c.verdict.comm),
					      op_identity(g),
					      s->c.hang->now_ns - g->op.enqueued_ns);
	uint64_t likely_ns = longest_ns + longest_ns / 2, least_ns = ABSENCE_CRITICAL_NS;

	s->c.critical_ns = times->not_joined_critical_ns;
	if (!longest_ns)
		return;
	if (s->c.critical_ns < least_ns)
		least_ns = s->c.critical_ns;
	s->c.critical_ns = ABSENCE_TIMES * longest_ns;
	if (s->c.critical_ns < least_ns)
		s->c.critical_ns = least_ns;
	limit_raise(&s->limit, likely_ns < times->stall_max_ns ? likely_ns : times->stall_max_ns,
		    LIMIT_ABSENCE);
}

/* ---- what RAS tells -------------------------------------------------------- */

/* A later operation of the same ranks is another question. */
static uint64_t stall_question_key(const struct stall *s)
{
	const struct hang_group *g = &s->c.hang->groups.at[s->c.verdict.comm];

	return index_mix(stall_key(s->c.hang, s->c.verdict.comm), op_identity(g)) | 1;
}

static void stall_hear(struct stalls *st, struct stall *s)
{
	s->far = st->ras && hang_lies_afar(&s->c);
	if (!s->far)
		return;
	s->c.afar = ras_told(st->ras, stall_question_key(s));
	hang_hear(&s->c);
}

/* The ranks here that are in it; each process of the job was given the same address. */
static void stall_ask(struct stalls *st, const struct stall *s)
{
	const struct hang *h = s->c.hang;
	const struct hang_group *g = &h->groups.at[s->c.verdict.comm];
	const struct hang_comm *comm = &h->comms[s->c.verdict.comm];
	const struct hang_rank *first = &h->ranks.at[g->first];
	const struct process *p = stuck_process(first);
	struct ras_question q = {
		.comm_id = first->id, .nranks = first->nranks, .uid = p->uid,
		.account = p->account, .port = ras_port(job_ras_address(p)),
	};

	if (!s->far || !first->has_id)
		return;
	snprintf(q.func, sizeof(q.func), "%s", g->op.func ?: "");
	for (uint32_t i = 0; i < comm->n && q.nown < ARRAY_LEN(q.own); i++) {
		const struct hang_rank *r = hang_rank_of(&s->c, comm->ranks[i].rank);

		if (r && comm->ranks[i].posted && !comm->ranks[i].ended)
			*array_must_add(q.own, &q.nown) = (struct afar_own){ r->rank, r->pid };
	}
	ras_ask(st->ras, stall_question_key(s), &q, h->now_ns);
}

/* ---- findings --------------------------------------------------------------- */

/* The verdict, and how certain it is; false: there is nothing to say yet. */
static bool stall_decide(const struct diagnose *dg, struct stalls *st, struct stall *s)
{
	const struct hang_input in = hang_input(s->c.hang);
	uint64_t now_ns = s->c.hang->now_ns;
	enum verdict before;
	struct stall_watch *w;
	bool moves;

	hang_decide(&in, s->c.group, &s->c.verdict);
	stall_hear(st, s);
	w = stall_watch_group(st, s);
	if (!w)
		return false;
	before = w->verdict;
	w->verdict = s->c.verdict.verdict;
	moves = w->moved_ns && now_ns - w->moved_ns < MOVED_NS;
	if (hang_is_absence(&s->c.verdict)) {
		w->absent_ns = now_ns;
		moves = false;		/* others may come one by one: that is no movement */
	} else if (w->absent_ns) {
		s->c.age_ns = now_ns - w->absent_ns;	/* before, it could not go on */
	}
	if (hang_is_proven(w->verdict) && w->verdict == before && w->moved_ns != now_ns)
		s->limit = (struct limit){ .reason = LIMIT_PROOF, .p99_ns = UNKNOWN_U64,
					   .p999_ns = UNKNOWN_U64 };
	else if (moves)
		s->c.verdict = (struct hang_verdict){ .verdict = VERDICT_SLOW, .comm = s->c.group,
						      .peer = UNKNOWN_I32 };
	else if (hang_may_be_busy(&s->c))
		stall_measure_absence(dg, st, s);
	s->grade = s->c.age_ns > s->limit.ns ? FINDING_FOUND : FINDING_SUSPECTED;
	return s->grade == FINDING_FOUND ||
	       (!moves && s->c.age_ns >= limit_suspected_from(&s->limit));
}

/* One death is one finding, which tells who waits.  False: nothing was said of that death. */
static bool stall_tell_died(struct diagnose *dg, const struct stall *s)
{
	char waiting[128];
	bool told = false;

	if (s->c.verdict.verdict != VERDICT_RANK_DEAD || s->grade != FINDING_FOUND)
		return false;
	hang_say_waiting(&s->c, waiting, sizeof(waiting));
	for (uint32_t i = 0; !told && i < s->c.verdict.nranks; i++) {
		const struct hang_rank *r = hang_rank_of(&s->c, s->c.verdict.ranks[i]);

		told = r && died_tell_waiting(dg, r->process, waiting, s->c.hang->now_ns);
	}
	return told;
}

/* An error of a GPU is told if it came since shortly before the operation. */
static void stall_find_xid(const struct diagnose *dg, struct stall *s)
{
	const struct hang_group *g = &s->c.hang->groups.at[s->c.verdict.comm];
	uint64_t from_ns = g->op.enqueued_ns > XID_BEFORE_NS ?
			   g->op.enqueued_ns - XID_BEFORE_NS : 0;

	for (uint32_t i = g->first; g->has_op && !s->c.xid.number && i < g->first + g->n; i++) {
		const struct hang_rank *r = &s->c.hang->ranks.at[i];

		if (r->pci_bus_id && around_find_xid(dg, r->pci_bus_id, from_ns, 0, &s->c.xid))
			s->c.xid_rank = r->rank;
	}
}

static void stall_report(struct diagnose *dg, struct stall *s)
{
	struct finding f = {
		.kind = hang_is_desync(&s->c) ? FINDING_DESYNC : FINDING_STALL,
		.grade = s->grade,
		.severity = hang_is_warning(&s->c) ? FINDING_WARNING : FINDING_CRITICAL,
		.since_ns = s->c.hang->groups.at[s->c.group].op.enqueued_ns,
		.peer = s->c.verdict.peer,
	};

	if (s->grade == FINDING_SUSPECTED)
		f.due_ns = s->c.hang->now_ns + s->limit.ns - s->c.age_ns;
	stall_about(&f, s->c.hang, s->c.verdict.comm);
	stall_find_xid(dg, s);
	if (s->c.verdict.verdict == VERDICT_LINK)
		around_find_nic(dg, s->c.hang->now_ns, &s->c.nic);
	stall_describe(s, &f);
	diagnose_report(dg, &finding_stall, cause_key(s), &f, s->c.hang->now_ns);
}

/* Only causes are told; what waits because of one lends it its limit, if that is over. */
static void stall_explain(struct stall *s, struct stall *stalls, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		struct stall *cause = &stalls[i];

		if (!hang_explains(&cause->c, &s->c))
			continue;
		s->explained = true;
		if (s->grade < cause->grade && cause->c.age_ns > s->limit.ns) {
			cause->grade = s->grade;
			cause->limit = s->limit;
		}
	}
}

/* A cause is told once, by the surest of those that wait because of it. */
static void stall_tell(struct diagnose *dg, struct stalls *st, struct stall *s, bool *told)
{
	if (told[s->c.verdict.comm])
		return;
	told[s->c.verdict.comm] = true;
	for (uint32_t i = 0; i < s->c.verdict.ncircle; i++)
		told[s->c.verdict.circle[i]] = true;
	stall_ask(st, s);
	if (!stall_tell_died(dg, s))
		stall_report(dg, s);
}

/* -ENOMEM: the next look may have more. */
static int look_at_operations(struct diagnose *dg, struct stalls *st, struct hang *v)
{
	struct stall *stalls = calloc(v->groups.n + 1, sizeof(*stalls));
	bool *told = calloc(v->groups.n + 1, sizeof(*told));
	uint32_t due = 0, n = 0;
	int r = stalls && told ? 0 : -ENOMEM;

	for (uint32_t i = 0; r == 0 && i < v->groups.n; i++) {
		stalls[due] = (struct stall){ .c = { .hang = v, .group = i } };
		due += stall_is_due(st, &stalls[due]);
	}
	if (due)
		r = stuck_look_closer(v, diagnose_source(dg));
	for (uint32_t i = 0; r == 0 && i < due; i++)
		if (stall_decide(dg, st, &stalls[i]))
			stalls[n++] = stalls[i];
	for (uint32_t i = 0; i < n; i++)
		stall_explain(&stalls[i], stalls, n);
	for (int grade = 0; r == 0 && grade < FINDING_GRADE_END; grade++)
		for (uint32_t i = 0; i < n; i++)
			if (stalls[i].grade == (enum finding_grade)grade && !stalls[i].explained)
				stall_tell(dg, st, &stalls[i], told);
	free(stalls);
	free(told);
	return r;
}

/* ---- the detector ---------------------------------------------------------- */

static void stall_look(struct diagnose *dg, void *state, uint64_t now_ns)
{
	const struct diagnose_times *times = &diagnose_settings(dg)->times;
	struct stalls *st = state;
	struct hang view;
	uint32_t left_out;

	if (stuck_init(&view, diagnose_source(dg), now_ns, &left_out) < 0)
		return;
	diagnose_leave_out(dg, left_out);
	limits_set(st->limits, times->stall_min_ns, times->stall_max_ns);
	if (look_at_operations(dg, st, &view) == 0)
		stall_look_for_quiet(dg, &st->paces, &view);
	hang_deinit(&view);
}

static int stall_init(struct diagnose *dg, void *state)
{
	const struct diagnose_times *times = &diagnose_settings(dg)->times;
	struct stalls *st = state;

	if (keyed_init(&st->absences, &KEYED_CONFIG(struct stall_absence, comm, ABSENCES)) < 0 ||
	    keyed_init(&st->watches, &KEYED_CONFIG(struct stall_watch, key, STUCK_RANKS)) < 0 ||
	    (diagnose_settings(dg)->ras && ras_new(&st->ras) < 0))
		return -ENOMEM;
	return limits_new(&st->limits, times->stall_min_ns, times->stall_max_ns);
}

static void stall_deinit(void *state)
{
	struct stalls *st = state;

	ras_free(st->ras);
	limits_free(st->limits);
	keyed_deinit(&st->watches);
	paces_deinit(&st->paces);
	keyed_deinit(&st->absences);
}

const struct detector finding_stall = {
	.name = "stall",
	.state_bytes = sizeof(struct stalls),
	.hold_ns = HOLD_NS,
	.init = stall_init,
	.deinit = stall_deinit,
	.ops = stall_on_ops,
	.forgotten = stall_on_forgotten,
	.look = stall_look,
};
