/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Progress threads that get no CPU: operations are summed up by process and over two slices of
 * time, and judge/ is asked about the sums.
 *
 * Only operations that go over a network and whose kernels are watched count.  Whether a thread
 * could have run, the kernel tells (cpuwait.h).
 */
#include <stdio.h>
#include <stdlib.h>

#include "judge/starved.h"
#include "ncclinspd/base/jobs.h"
#include "ncclinspd/findings/around.h"
#include "ncclinspd/findings/cpuwait.h"
#include "ncclinspd/findings/diagnose.h"
#include "ncclinspd/findings/resources.h"
#include "reader/base/job.h"
#include "tables/keyed.h"

#define SECOND_NS	UINT64_C(1000000000)
#define SLICE_NS	(20 * SECOND_NS)	/* this slice and the one before count */
#define HOLD_NS		(20 * SECOND_NS)
#define PROCESSES	1024	/* the most that are read at a time */

struct starved_slice {
	uint64_t number;	/* number of this piece of time */
	uint64_t begin_ns;	/* time of the first operation */
	struct starved_sum sum;
};

/* The rank that an operation belongs to. */
struct starved_owner {
	uid_t uid;
	int32_t rank;
	bool has_comm_id;
	uint64_t comm_id;
	name_t comm_name;
};

struct process_sums {
	struct keyed_head head;
	uint64_t process_id;	/* the key */
	uint64_t since_ns;	/* start of the first that was too late, and still counts */
	uint64_t back_ns;	/* the end of its last absence */
	struct starved_owner newest;	/* owner of the newest operation, late or not */
	struct starved_owner last;	/* owner of the last that was too late */
	struct starved_slice slice[2];
};

/* Its first member is what others than the look take it for. */
struct starved_state {
	struct keyed sums;
	size_t next;		/* the process after that whose resources had the last look */
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
	return (struct starved_owner){ op->uid, op->rank, op->has_comm_id, op->comm_id,
				       op->comm_name };
}

/* Operations of one kernel count once; a captured one is launched at an unknown time. */
static bool op_counts_waits(const struct op *op)
{
	return op->proxy_ops && !op->parts && !(op->has_graph && op->graph) &&
	       (!op_is_fused(op) || op->batch_head);
}

static void starved_add_op(struct keyed *processes, const struct op *op, uint64_t now_ns)
{
	bool made;
	struct process_sums *p = keyed_use(processes, &op->process_id, 0, &made);

	if (!p)
		return;
	p->newest = op_owner(op);
	if (!starved_add(&starved_current_slice(p, now_ns)->sum, &p->back_ns,
			 op->gpu_start_mono_ns, op->unseen_ns))
		return;
	if (!p->since_ns)
		p->since_ns = op->gpu_start_mono_ns;
	p->last = p->newest;
}

static void starved_on_ops(struct diagnose *dg, void *state, const struct op *const *ops,
			   uint32_t n, uint64_t now_ns)
{
	for (uint32_t i = 0; i < n; i++)
		if (op_counts_waits(ops[i]))
			starved_add_op(state, ops[i], now_ns);
}

static void starved_on_forgotten(struct diagnose *dg, void *state, const struct process *process)
{
	struct process_sums *p = keyed_find(state, &process->id);

	if (p)
		keyed_drop(state, p);
}

/* Sum of both slices; *window_ns: the time since they began. */
static struct starved_sum starved_add_up(const struct process_sums *p, uint64_t now_ns,
					 uint64_t *window_ns)
{
	uint64_t number = now_ns / SLICE_NS, begin_ns = now_ns;
	struct starved_sum sum = { 0 };

	for (int i = 0; i < 2; i++) {
		const struct starved_slice *s = &p->slice[i];

		if (!s->sum.ops || s->number + 1 < number)
			continue;
		if (s->begin_ns < begin_ns)
			begin_ns = s->begin_ns;
		sum.ops += s->sum.ops;
		sum.seen += s->sum.seen;
		sum.late += s->sum.late;
		sum.times += s->sum.times;
		sum.away_ns += s->sum.away_ns;
		if (s->sum.longest_ns > sum.longest_ns)
			sum.longest_ns = s->sum.longest_ns;
	}
	*window_ns = now_ns - begin_ns;
	return sum;
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
	struct starved_sum sum;
	uint64_t window_ns;

	if (!p)
		return 0;
	sum = starved_add_up(p, now_ns, &window_ns);
	return starved_share(&sum, window_ns);
}

double proxy_cpu_share(const struct process *process, uint64_t now_ns)
{
	struct cpuwait_sums sums;

	return cpu_share_of(process->cpuwait, now_ns, &sums);
}

/* ---- the finding --------------------------------------------------------------- */

/* All processes of this node; row[i] is of list[i]. */
struct starved_context {
	struct diagnose *dg;
	struct keyed *sums;
	uint64_t now_ns;
	struct process *const *list;
	struct starved_row *row;
	size_t n;
	struct starved_count count;
};

#include "schema/proxy_starved_evidence.h"

/* Add the others by their rank in the communicator that is named, if they are in it. */
static void starved_add_others(const struct starved_context *s, const struct starved_row *worst,
			       struct finding *f)
{
	for (size_t i = 0; i < s->n; i++) {
		const struct starved_row *row = &s->row[i];
		const struct comm *comm;

		if (row->grade != worst->grade || row->job != worst->job || row == worst)
			continue;
		comm = jobs_comm(s->list[i], f->comm_id, UNKNOWN_I32);
		if (comm)
			finding_add_rank(f, comm->rank);
	}
}

static const char *starved_gpu(const struct process *p)
{
	const struct comm *comm = job_largest_comm(p);

	return comm && comm->has_gpu ? comm->pci_bus_id : "";
}

static void starved_report(const struct starved_context *s, const struct starved_row *worst)
{
	const struct process *process = s->list[worst - s->row];
	const struct process_sums *p = keyed_find(s->sums, &process->id);
	bool away = worst->grade == STARVED_AWAY;
	const struct starved_owner *owner = away ? &p->last : &p->newest;
	const struct comm *comm = owner->has_comm_id ?
		jobs_comm(process, owner->comm_id, owner->rank) : NULL;
	struct starved_case c = { .row = worst, .count = s->count,
				  .who = diagnose_whom(s->dg, process, comm) };
	struct finding f = {
		.kind = FINDING_PROXY_STARVED,
		.severity = away ? FINDING_WARNING : FINDING_INFO,
		.uid = owner->uid,
		.process_id = process->id,
		.has_comm_id = owner->has_comm_id,
		.comm_id = owner->comm_id,
		.ranks = { owner->rank },
		.nranks = 1,
		.peer = UNKNOWN_I32,
		.since_ns = away ? p->since_ns : s->now_ns - worst->window_ns,
	};
	struct resources resources;
	struct cpuwait_sums cpu;

	c.who.rank = owner->rank;
	cpuwait_tell(process->cpuwait, s->now_ns, &cpu);
	c.tid = cpu.tid;
	c.taker = cpu.taker.pid;
	c.taker_command = cpu.taker.command;
	c.taker_share = cpuwait_taker_share(&cpu);
	if (resources_tell(process->resources, cpu.tid, starved_gpu(process), s->now_ns,
			   &resources))
		c.resources = &resources;
	if (f.has_comm_id)
		starved_add_others(s, worst, &f);
	if (owner->comm_name)
		snprintf(f.comm_name, sizeof(f.comm_name), "%s", owner->comm_name);
	starved_say(&c, f.text, sizeof(f.text));
	finding_set_evidence(&f, proxy_starved_evidence_fields, &c);
	diagnose_report(s->dg, &finding_proxy_starved, s->list[worst->job]->id, &f, s->now_ns);
}

/* ---- the detector -------------------------------------------------------------- */

/* More processes than may be looked at at once have their turns. */
static void starved_look_at_resources(const struct starved_context *s, size_t *next)
{
	uint32_t looks = RESOURCES_LOOKS;
	size_t first = *next;

	for (size_t i = 0; i < s->n && looks; i++) {
		size_t at = (first + i) % s->n;
		struct cpuwait_sums cpu;

		if (!starved_is_in_question(&s->row[at]))
			continue;
		cpu_share_of(s->list[at]->cpuwait, s->now_ns, &cpu);
		resources_look(s->list[at]->resources, cpu.tid, s->now_ns, &looks);
		*next = looks ? first : at + 1;
	}
}

static void starved_make_rows(struct starved_context *s)
{
	for (size_t i = 0; i < s->n; i++) {
		struct process_sums *p = keyed_find(s->sums, &s->list[i]->id);
		struct starved_row *row = &s->row[i];
		struct resources resources;
		struct cpuwait_sums cpu;

		if (!p || s->list[i]->state != PROCESS_LIVE)
			continue;
		row->sum = starved_add_up(p, s->now_ns, &row->window_ns);
		if (!row->sum.late)
			p->since_ns = 0;
		row->cpu_share = cpu_share_of(s->list[i]->cpuwait, s->now_ns, &cpu);
		row->throttled = resources_tell(s->list[i]->resources, cpu.tid, "", s->now_ns,
						&resources) ? resources.throttled : -1;
	}
}

static void look_at_jobs(struct starved_context *s)
{
	uint32_t *job = malloc(s->n * sizeof(*job));
	bool known = job && jobs_group(s->list, s->n, s->now_ns, job) == 0;

	for (size_t i = 0; known && i < s->n; i++)
		s->row[i].job = job[i];
	for (uint32_t i = 0; known && i < s->n; i++) {
		const struct starved_row *worst = job[i] == i ? starved_worst(s->row, s->n, i) :
								NULL;

		if (worst && starved_begins(worst->grade))
			starved_report(s, worst);
		else if (worst && worst->grade != STARVED_NOT)
			diagnose_renew(s->dg, &finding_proxy_starved, s->list[i]->id, s->now_ns);
	}
	free(job);
}

static void starved_look(struct diagnose *dg, void *state, uint64_t now_ns)
{
	const struct diagnose_source *source = diagnose_source(dg);
	struct starved_state *st = state;
	struct starved_context s = { .dg = dg, .sums = &st->sums, .now_ns = now_ns };

	s.n = source->processes(source->arg, &s.list);
	s.row = calloc(s.n + 1, sizeof(*s.row));
	if (s.row) {
		starved_make_rows(&s);
		starved_look_at_resources(&s, &st->next);
		if (starved_rate(s.row, s.n, &s.count))
			look_at_jobs(&s);
	}
	free(s.row);
}

static int starved_init(struct diagnose *dg, void *state)
{
	return keyed_init(state, &KEYED_CONFIG(struct process_sums, process_id, PROCESSES));
}

static void starved_deinit(void *state)
{
	keyed_deinit(state);
}

const struct detector finding_proxy_starved = {
	.name = "proxy_starved",
	.state_bytes = sizeof(struct starved_state),
	.hold_ns = HOLD_NS,
	.of_living = true,
	.init = starved_init,
	.deinit = starved_deinit,
	.ops = starved_on_ops,
	.forgotten = starved_on_forgotten,
	.look = starved_look,
};
