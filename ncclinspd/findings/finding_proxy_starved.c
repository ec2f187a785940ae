/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Progress threads that get no CPU.  NCCL's progress thread polls kernels and network
 * transfers in turn: a kernel that has begun long before it is seen there, by the GPU's
 * own stamp, means that nobody moved its transfers either.  A slow link cannot do that,
 * nor a rank that comes late: it is the thread itself that was away.
 *
 * Only operations that go over a network and whose kernels are watched count.
 *
 * The kernel tells, if it may be asked (cpuwait.h), whether such a thread could have run
 * and got no CPU, or slept.  Where too few kernels are watched, a thread that waits for a
 * CPU for long is told by that alone, as info: what it costs is not known.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ncclinspd/base/jobs.h"
#include "ncclinspd/findings/cpuwait.h"
#include "ncclinspd/findings/diagnose.h"
#include "ncclinspd/findings/proxy_starved_text.h"
#include "tables/keyed.h"

#define SECOND_NS	UINT64_C(1000000000)
#define SLICE_NS	(20 * SECOND_NS)	/* this slice and the one before count */
#define HOLD_NS		(20 * SECOND_NS)
#define AWAY_NS		UINT64_C(1000000)	/* polls are microseconds apart */
#define PROCESSES	1024	/* the most that are read at a time */
#define LEAST_NS	(5 * SECOND_NS)	/* the cost of a start is no pattern */
#define LEAST_SEEN	20	/* operations, to say something about a share of them */
#define UNWATCHED	200	/* operations, fewer than LEAST_SEEN of which were seen */
#define LEAST_LATE	0.05	/* share of operations seen: a rarer delay is a hiccup */
#define LEAST_TIMES	5	/* absences: a single one that makes many late is a hiccup */

/* Part of wall time that it costs: to begin and to go on. */
static const double begin_share = 0.02, go_on_share = 0.01;

/* Part of its time that a thread waits for a CPU, where that is all that is known. */
static const double begin_wait = 0.1, go_on_wait = 0.05;

struct process_sums {
	struct keyed_head head;
	uint64_t process_id;	/* the key */
	uint64_t since_ns;	/* start of the first that was too late, and still counts */
	uint64_t back_ns;	/* the end of its last absence */
	struct starved_owner newest;	/* owner of the newest operation, late or not */
	struct starved_owner last;	/* owner of the last that was too late */
	struct starved_slice slice[2];
};

/* ---- counting --------------------------------------------------------------- */

static struct starved_slice *starved_current_slice(struct process_sums *p, uint64_t now_ns)
{
	uint64_t number = now_ns / SLICE_NS;
	struct starved_slice *slice = &p->slice[number % 2];

	if (slice->number != number)
		*slice = (struct starved_slice){ .number = number, .begin_ns = now_ns };
	return slice;
}

static struct starved_owner op_owner(const struct op *op)
{
	return (struct starved_owner){ op->pid, op->uid, op->rank, op->has_comm_id, op->comm_id,
			       op->comm_name };
}

/* Operations of one kernel count once; a captured one is launched at an unknown time. */
static bool op_counts_waits(const struct op *op)
{
	return op->proxy_ops && !op->parts && !(op->has_graph && op->graph) &&
	       (!op_is_fused(op) || op->batch_head);
}

/* Operations that began in one absence, on any communicator, are late by the same time. */
static void add_absence(struct process_sums *p, struct starved_slice *slice, const struct op *op)
{
	uint64_t from = op->gpu_start_mono_ns, to = from + op->unseen_ns;

	if (op->unseen_ns > slice->longest_ns)
		slice->longest_ns = op->unseen_ns;
	slice->times += from >= p->back_ns;
	if (from < p->back_ns)
		from = p->back_ns;
	if (to <= from)
		return;
	slice->away_ns += to - from;
	p->back_ns = to;
}

static void starved_on_op(struct diagnose *dg, void *state, const struct op *op, uint64_t now_ns)
{
	struct process_sums *p;
	struct starved_slice *slice;
	bool made;

	(void)dg;
	p = op_counts_waits(op) ? keyed_use(state, &op->process_id, 0, &made) : NULL;
	if (!p)
		return;
	slice = starved_current_slice(p, now_ns);
	slice->ops++;
	p->newest = op_owner(op);
	if (op->unseen_ns == UNKNOWN_U64)
		return;
	slice->seen++;
	if (op->unseen_ns < AWAY_NS)
		return;
	slice->late++;
	add_absence(p, slice, op);
	if (!p->since_ns)
		p->since_ns = op->gpu_start_mono_ns;
	p->last = op_owner(op);
}

static void starved_on_forgotten(struct diagnose *dg, void *state, const struct process *process)
{
	struct process_sums *p = keyed_find(state, &process->id);

	(void)dg;
	if (p)
		keyed_drop(state, p);
}

/* Both slices; `begin_ns` is when they began. */
static struct starved_slice starved_add_up(const struct process_sums *p, uint64_t now_ns)
{
	uint64_t number = now_ns / SLICE_NS;
	struct starved_slice sum = { .begin_ns = now_ns };

	for (int i = 0; i < 2; i++) {
		const struct starved_slice *s = &p->slice[i];

		if (!s->ops || s->number + 1 < number)
			continue;
		if (s->begin_ns < sum.begin_ns)
			sum.begin_ns = s->begin_ns;
		sum.ops += s->ops;
		sum.seen += s->seen;
		sum.late += s->late;
		sum.times += s->times;
		sum.away_ns += s->away_ns;
		if (s->longest_ns > sum.longest_ns)
			sum.longest_ns = s->longest_ns;
	}
	return sum;
}

/*
 * Part of wall time; operations not watched are taken to be like the rest, as far as there
 * was time for that: one absence may hold many of them.
 */
static double starved_share(const struct starved_slice *sum, uint64_t now_ns)
{
	double all = (double)sum->away_ns * (double)sum->ops / (double)(sum->seen + !sum->seen);

	return now_ns > sum->begin_ns ? fmin(1, all / (double)(now_ns - sum->begin_ns)) : 0;
}

/* < 0: nobody knows. */
static double cpu_share_of(const struct cpuwait *c, uint64_t now_ns, struct cpuwait_sums *sums)
{
	if (!cpuwait_tell(c, now_ns, sums))
		return -1;
	return (double)sums->wait_ns / (double)sums->watched_ns;
}

double proxy_starved_share(const struct diagnose *dg, uint64_t process_id, uint64_t now_ns)
{
	const struct process_sums *p = keyed_find(diagnose_state(dg, &finding_proxy_starved),
						  &process_id);
	struct starved_slice sum;

	if (!p)
		return 0;
	sum = starved_add_up(p, now_ns);
	return starved_share(&sum, now_ns);
}

/* ---- saying it ---------------------------------------------------------------- */

/* One process of the list. */
struct starved_part {
	struct process_sums *sums;	/* NULL: it has no network */
	struct starved_slice sum;
	struct cpuwait_sums cpu;
	double cpu_share;	/* part of a thread's time waiting for a CPU; < 0: not known */
	enum starved_grade grade;
	uint32_t job;		/* jobs_group() */
};

/* All of this node, one job of which is told about. */
struct starved_context {
	struct diagnose *dg;
	uint64_t now_ns;
	struct process *const *list;
	struct starved_part *part;
	size_t n;
	uint32_t all, starved;	/* processes of this node that have a network */
	uint32_t job;
	const struct starved_part *worst;
};

static const struct starved_owner *owner_told(const struct starved_part *part)
{
	return part->grade == STARVED_AWAY ? &part->sums->last : &part->sums->newest;
}

/* Add the others by their rank in the communicator that is named, if they are in it. */
static void starved_add_others(const struct starved_context *s, struct finding *f)
{
	for (size_t i = 0; i < s->n; i++) {
		const struct starved_part *part = &s->part[i];
		const struct comm *comm;

		if (part->grade != s->worst->grade || part->job != s->job || part == s->worst)
			continue;
		comm = jobs_comm(s->list[i], f->comm_id, UNKNOWN_I32);
		if (comm)
			finding_add_rank(f, comm->rank);
	}
}

static void starved_report(const struct starved_context *s)
{
	const struct starved_owner *last = owner_told(s->worst);
	const struct proxy_starved_told told = {
		.grade = s->worst->grade,
		.owner = last,
		.sum = &s->worst->sum,
		.share = starved_share(&s->worst->sum, s->now_ns),
		.cpu_share = s->worst->cpu_share,
		.tid = s->worst->cpu.tid,
		.all = s->all,
		.starved = s->starved,
		.window_ns = s->now_ns - s->worst->sum.begin_ns,
	};
	struct finding f = {
		.kind = FINDING_PROXY_STARVED,
		.severity = s->worst->grade == STARVED_AWAY ? FINDING_WARNING : FINDING_INFO,
		.uid = last->uid,
		.has_comm_id = last->has_comm_id,
		.comm_id = last->comm_id,
		.ranks = { last->rank },
		.nranks = 1,
		.peer = UNKNOWN_I32,
		.since_ns = s->worst->grade == STARVED_AWAY ? s->worst->sums->since_ns :
							 s->worst->sum.begin_ns,
	};

	if (f.has_comm_id)
		starved_add_others(s, &f);
	if (last->comm_name)
		snprintf(f.comm_name, sizeof(f.comm_name), "%s", last->comm_name);
	proxy_starved_describe(&told, &f);
	diagnose_report(s->dg, &finding_proxy_starved, s->list[s->job]->id, &f, s->now_ns);
}

/* ---- the detector -------------------------------------------------------------- */

static bool starved_is_beyond(const struct starved_slice *sum, double share, uint64_t now_ns)
{
	return now_ns - sum->begin_ns >= LEAST_NS && sum->seen >= LEAST_SEEN &&
	       sum->times >= LEAST_TIMES &&
	       (double)sum->late >= LEAST_LATE * (double)sum->seen &&
	       starved_share(sum, now_ns) >= share;
}

static enum starved_grade grade_of(const struct starved_part *part, uint64_t now_ns)
{
	const struct starved_slice *sum = &part->sum;

	if (starved_is_beyond(sum, begin_share, now_ns))
		return STARVED_AWAY;
	if (starved_is_beyond(sum, go_on_share, now_ns))
		return STARVED_STILL_AWAY;
	if (sum->seen >= LEAST_SEEN || sum->ops < UNWATCHED || part->cpu_share < go_on_wait)
		return STARVED_NOT;
	return part->cpu_share >= begin_wait ? STARVED_WAITS : STARVED_STILL_WAITS;
}

/* True: there may be something to say. */
static bool starved_weigh(struct starved_context *s, const struct keyed *processes)
{
	bool any = false;

	for (size_t i = 0; i < s->n; i++) {
		struct starved_part *part = &s->part[i];

		part->sums = keyed_find(processes, &s->list[i]->id);
		if (!part->sums)
			continue;
		part->sum = starved_add_up(part->sums, s->now_ns);
		if (!part->sum.late)
			part->sums->since_ns = 0;
		part->cpu_share = cpu_share_of(s->list[i]->cpuwait, s->now_ns, &part->cpu);
		part->grade = grade_of(part, s->now_ns);
		s->all += part->sum.seen > 0;
		s->starved += part->grade == STARVED_AWAY;
		any = any || part->grade != STARVED_NOT;
	}
	return any;
}

static bool part_is_worse(const struct starved_context *s, const struct starved_part *a,
			  const struct starved_part *b)
{
	if (a->grade != b->grade)
		return a->grade > b->grade;
	if (a->grade != STARVED_AWAY)
		return a->cpu_share > b->cpu_share;
	return starved_share(&a->sum, s->now_ns) > starved_share(&b->sum, s->now_ns);
}

/* Several processes of a job are one finding. */
static void look_at_job(struct starved_context *s, uint32_t job)
{
	s->job = job;
	s->worst = NULL;
	for (size_t i = 0; i < s->n; i++) {
		const struct starved_part *part = &s->part[i];

		if (part->job == job && (!s->worst || part_is_worse(s, part, s->worst)))
			s->worst = part;
	}
	if (s->worst->grade == STARVED_AWAY || s->worst->grade == STARVED_WAITS)
		starved_report(s);
	else if (s->worst->grade != STARVED_NOT)
		diagnose_renew(s->dg, &finding_proxy_starved, s->list[job]->id, s->now_ns);
}

static void look_at_jobs(struct starved_context *s)
{
	uint32_t *job = malloc(s->n * sizeof(*job));

	if (job && jobs_group(s->list, s->n, s->now_ns, job) == 0) {
		for (size_t i = 0; i < s->n; i++)
			s->part[i].job = job[i];
		for (uint32_t i = 0; i < s->n; i++)
			if (job[i] == i)
				look_at_job(s, i);
	}
	free(job);
}

static void starved_look(struct diagnose *dg, void *state, uint64_t now_ns)
{
	const struct diagnose_source *source = diagnose_source(dg);
	struct starved_context s = { .dg = dg, .now_ns = now_ns };

	s.n = source->processes(source->arg, &s.list);
	s.part = calloc(s.n + 1, sizeof(*s.part));
	if (s.part && starved_weigh(&s, state))
		look_at_jobs(&s);
	free(s.part);
}

static int starved_init(struct diagnose *dg, void *state)
{
	(void)dg;
	return keyed_init(state, &KEYED_CONFIG(struct process_sums, process_id, PROCESSES));
}

static void starved_deinit(void *state)
{
	keyed_deinit(state);
}

const struct detector finding_proxy_starved = {
	.name = "proxy_starved",
	.state_bytes = sizeof(struct keyed),
	.hold_ns = HOLD_NS,
	.init = starved_init,
	.deinit = starved_deinit,
	.op = starved_on_op,
	.forgotten = starved_on_forgotten,
	.look = starved_look,
};
