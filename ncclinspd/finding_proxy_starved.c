/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Progress threads that get no CPU.  NCCL's progress thread polls kernels and network
 * transfers in turn: a kernel that has begun long before it is seen there, by the GPU's
 * own stamp, means that nobody moved its transfers either.  A slow link cannot do that,
 * nor a rank that comes late: it is the thread itself that was away.
 *
 * Only operations that go over a network and whose kernels are watched count.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ncclinspd/diagnose.h"
#include "ncclinspd/jobs.h"
#include "ncclinspd/pool.h"
#include "util/json.h"
#include "util/phrase.h"

#define SECOND_NS	UINT64_C(1000000000)
#define SLICE_NS	(20 * SECOND_NS)	/* what counts: this slice and the one before */
#define HOLD_NS		(20 * SECOND_NS)
#define AWAY_NS		UINT64_C(1000000)	/* polls are microseconds apart */
#define PROCESSES	1024	/* as many as are read at most */
#define LEAST_SEEN	20	/* operations, to say something about a share of them */
#define LEAST_AWAY	0.05	/* of them: what is rarer is a hiccup */

/* Part of wall time that it costs: to begin and to go on. */
static const double begin_share = 0.02, go_on_share = 0.01;

struct slice {
	uint64_t number;	/* now / SLICE_NS */
	uint64_t begin_ns;	/* of the first operation */
	uint64_t ops;		/* over a network */
	uint64_t seen;		/* of these, with a known kernel start */
	uint64_t away;		/* of these, too late */
	uint64_t away_ns, longest_ns;
};

/* Whose operation it was. */
struct owner {
	pid_t pid;
	uid_t uid;
	int32_t rank;
	bool has_comm_id;
	uint64_t comm_id;
	name_t comm_name;
};

struct process_sums {
	struct pool_link link;	/* all, least recently used first */
	uint64_t process_id;
	uint64_t since_ns;	/* of the first that was too late, and still counts */
	struct owner last;	/* of the last that was too late */
	struct slice slice[2];
};

struct starved {
	struct pool pool;
	struct index index;	/* by process_id */
	struct pool_list lru;
};

/* ---- counting --------------------------------------------------------------- */

static struct process_sums *find(const struct starved *st, uint64_t process_id)
{
	uint32_t item = index_find(&st->index, process_id);

	return item == POOL_NONE ? NULL : pool_at(&st->pool, item);
}

static void drop(struct starved *st, uint32_t item)
{
	const struct process_sums *p = pool_at(&st->pool, item);

	index_remove(&st->index, p->process_id);
	pool_list_remove(&st->pool, &st->lru, item);
	pool_put(&st->pool, item);
}

static struct process_sums *find_or_make(struct starved *st, uint64_t process_id)
{
	uint32_t item = index_find(&st->index, process_id);
	struct process_sums *p;

	if (item != POOL_NONE) {
		pool_list_remove(&st->pool, &st->lru, item);
		pool_list_append(&st->pool, &st->lru, item);
		return pool_at(&st->pool, item);
	}
	if (st->pool.used == st->pool.capacity)
		drop(st, st->lru.first);
	item = pool_take(&st->pool);
	p = pool_at(&st->pool, item);
	p->process_id = process_id;
	pool_list_append(&st->pool, &st->lru, item);
	index_set(&st->index, process_id, item);
	return p;
}

static struct slice *current_slice(struct process_sums *p, uint64_t now_ns)
{
	uint64_t number = now_ns / SLICE_NS;
	struct slice *slice = &p->slice[number % 2];

	if (slice->number != number)
		*slice = (struct slice){ .number = number, .begin_ns = now_ns };
	return slice;
}

/* What ran in one kernel counts once; a captured one is launched when nobody knows. */
static bool counts(const struct op *op)
{
	return op->proxy_ops && !op->parts && !(op->has_graph && op->graph) &&
	       (!op_is_fused(op) || op->batch_head);
}

static void on_op(struct diagnose *dg, void *state, const struct op *op, uint64_t now_ns)
{
	struct process_sums *p;
	struct slice *slice;

	(void)dg;
	if (!counts(op))
		return;
	p = find_or_make(state, op->process_id);
	slice = current_slice(p, now_ns);
	slice->ops++;
	if (op->unseen_ns == UNKNOWN_U64)
		return;
	slice->seen++;
	if (op->unseen_ns < AWAY_NS)
		return;
	slice->away++;
	slice->away_ns += op->unseen_ns;
	if (op->unseen_ns > slice->longest_ns)
		slice->longest_ns = op->unseen_ns;
	if (!p->since_ns)
		p->since_ns = op->gpu_start_mono_ns;
	p->last = (struct owner){ op->pid, op->uid, op->rank, op->has_comm_id, op->comm_id,
				  op->comm_name };
}

static void on_forgotten(struct diagnose *dg, void *state, const struct process *process)
{
	struct starved *st = state;
	uint32_t item = index_find(&st->index, process->id);

	(void)dg;
	if (item != POOL_NONE)
		drop(st, item);
}

/* Both slices; `begin_ns` is when they began. */
static struct slice add_up(const struct process_sums *p, uint64_t now_ns)
{
	uint64_t number = now_ns / SLICE_NS;
	struct slice sum = { .begin_ns = now_ns };

	for (int i = 0; i < 2; i++) {
		const struct slice *s = &p->slice[i];

		if (!s->ops || s->number + 1 < number)
			continue;
		if (s->begin_ns < sum.begin_ns)
			sum.begin_ns = s->begin_ns;
		sum.ops += s->ops;
		sum.seen += s->seen;
		sum.away += s->away;
		sum.away_ns += s->away_ns;
		if (s->longest_ns > sum.longest_ns)
			sum.longest_ns = s->longest_ns;
	}
	return sum;
}

/* Of wall time; what was not watched is taken to be like the rest. */
static double share_of(const struct slice *sum, uint64_t now_ns)
{
	double all = (double)sum->away_ns * (double)sum->ops / (double)(sum->seen + !sum->seen);

	return now_ns > sum->begin_ns ? all / (double)(now_ns - sum->begin_ns) : 0;
}

double proxy_starved_share(const struct diagnose *dg, uint64_t process_id, uint64_t now_ns)
{
	const struct process_sums *p = find(diagnose_state(dg, &finding_proxy_starved), process_id);
	struct slice sum;

	if (!p)
		return 0;
	sum = add_up(p, now_ns);
	return share_of(&sum, now_ns);
}

/* ---- saying it ---------------------------------------------------------------- */

/* One process of the list. */
struct part {
	struct process_sums *sums;	/* NULL: it has no network */
	struct slice sum;
	bool starved;
	bool still;		/* it would be, had it been before */
	uint32_t job;		/* jobs_group() */
};

/* All of this node, one job of which is told about. */
struct scene {
	struct diagnose *dg;
	uint64_t now_ns;
	struct process *const *list;
	struct part *part;
	size_t n;
	uint32_t all, starved;	/* processes of this node that have a network */
	uint32_t job;
	const struct part *worst;
};

static void say(const struct scene *s, double share, struct finding *f)
{
	const struct owner *last = &s->worst->sums->last;
	const struct slice *sum = &s->worst->sum;
	struct phrase text;

	phrase_start(&text, f->text, sizeof(f->text));
	phrase_add(&text, "the network thread of rank %" PRId32 " (pid %d) was away: of %" PRIu64
		   " kernels it saw %" PRIu64 " too late, up to ", last->rank, (int)last->pid,
		   sum->seen, sum->away);
	phrase_add_duration(&text, sum->longest_ns);
	phrase_add(&text, " after they had begun, %.0f %% of wall time; ", 100 * share);
	if (s->starved > 1)
		phrase_add(&text, "so were those of %" PRIu32 " of %" PRIu32 " processes on this node: "
			   "too few CPUs for all that runs here, or a cgroup limit", s->starved, s->all);
	else if (s->all > 1)
		phrase_add(&text, "that of no other of the %" PRIu32 " processes on this node was: see "
			   "what shares its CPUs (taskset -p, numactl), a cgroup limit", s->all);
	else
		phrase_add(&text, "see what shares its CPUs (taskset -p, numactl), a cgroup limit");
}

static void show(const struct scene *s, double share, struct finding *f)
{
	const struct slice *sum = &s->worst->sum;
	const struct { const char *name; uint64_t value; } numbers[] = {
		{ "ops", sum->ops }, { "seen", sum->seen }, { "late", sum->away },
		{ "late_ns", sum->away_ns }, { "longest_ns", sum->longest_ns },
		{ "processes", s->all }, { "starved", s->starved },
		{ "window_ns", s->now_ns - sum->begin_ns },
	};
	struct json j;

	json_init(&j, FINDING_EVIDENCE);
	json_begin(&j, '{');
	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
		json_key(&j, numbers[i].name);
		json_put_u64(&j, numbers[i].value);
	}
	json_key(&j, "share");
	json_put_rounded(&j, share);
	json_end(&j, '}');
	finding_set_evidence(f, &j);
	json_deinit(&j);
}

/* Of the others, as the communicator that is named numbers them, and if they are in it. */
static void add_others(const struct scene *s, struct finding *f)
{
	for (size_t i = 0; i < s->n && f->nranks < FINDING_RANKS; i++) {
		const struct part *part = &s->part[i];
		const struct comm *comm;

		if (!part->starved || part->job != s->job || part == s->worst)
			continue;
		comm = jobs_comm(s->list[i], f->comm_id, UNKNOWN_I32);
		if (comm)
			f->ranks[f->nranks++] = comm->rank;
	}
}

static void report(const struct scene *s)
{
	const struct owner *last = &s->worst->sums->last;
	double share = share_of(&s->worst->sum, s->now_ns);
	struct finding f = {
		.kind = FINDING_PROXY_STARVED,
		.severity = FINDING_WARNING,
		.uid = last->uid,
		.has_comm_id = last->has_comm_id,
		.comm_id = last->comm_id,
		.ranks = { last->rank },
		.nranks = 1,
		.peer = UNKNOWN_I32,
		.since_ns = s->worst->sums->since_ns,
	};

	if (f.has_comm_id)
		add_others(s, &f);
	if (last->comm_name)
		snprintf(f.comm_name, sizeof(f.comm_name), "%s", last->comm_name);
	say(s, share, &f);
	show(s, share, &f);
	diagnose_report(s->dg, &finding_proxy_starved, s->list[s->job]->id, &f, s->now_ns);
}

/* ---- the detector -------------------------------------------------------------- */

static bool is_beyond(const struct slice *sum, double share, uint64_t now_ns)
{
	return sum->seen >= LEAST_SEEN && (double)sum->away >= LEAST_AWAY * (double)sum->seen &&
	       share_of(sum, now_ns) >= share;
}

/* True: there may be something to say. */
static bool weigh(struct scene *s, const struct starved *st)
{
	bool any = false;

	for (size_t i = 0; i < s->n; i++) {
		struct part *part = &s->part[i];

		part->sums = find(st, s->list[i]->id);
		if (!part->sums)
			continue;
		part->sum = add_up(part->sums, s->now_ns);
		if (!part->sum.away)
			part->sums->since_ns = 0;
		part->starved = is_beyond(&part->sum, begin_share, s->now_ns);
		part->still = is_beyond(&part->sum, go_on_share, s->now_ns);
		s->all += part->sum.seen > 0;
		s->starved += part->starved;
		any = any || part->still;
	}
	return any;
}

/* Several processes of a job are one finding. */
static void look_at_job(struct scene *s, uint32_t job)
{
	bool still = false;

	s->job = job;
	s->worst = NULL;
	for (size_t i = 0; i < s->n; i++) {
		const struct part *part = &s->part[i];

		if (part->job != job)
			continue;
		still = still || part->still;
		if (part->starved && (!s->worst || share_of(&part->sum, s->now_ns) >
						   share_of(&s->worst->sum, s->now_ns)))
			s->worst = part;
	}
	if (s->worst)
		report(s);
	else if (still)
		diagnose_renew(s->dg, &finding_proxy_starved, s->list[job]->id, s->now_ns);
}

static void look_at_jobs(struct scene *s)
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

static void look(struct diagnose *dg, void *state, uint64_t now_ns)
{
	const struct diagnose_source *source = diagnose_source(dg);
	struct scene s = { .dg = dg, .now_ns = now_ns };

	s.n = source->processes(source->arg, &s.list);
	s.part = calloc(s.n + 1, sizeof(*s.part));
	if (s.part && weigh(&s, state))
		look_at_jobs(&s);
	free(s.part);
}

static int init(struct diagnose *dg, void *state)
{
	struct starved *st = state;
	int r = pool_init(&st->pool, PROCESSES, sizeof(struct process_sums));

	(void)dg;
	pool_list_init(&st->lru, 0);
	return r ? r : index_init(&st->index, PROCESSES, 0);
}

static void deinit(void *state)
{
	struct starved *st = state;

	index_deinit(&st->index);
	pool_deinit(&st->pool);
}

const struct detector finding_proxy_starved = {
	.name = "proxy_starved",
	.state_bytes = sizeof(struct starved),
	.hold_ns = HOLD_NS,
	.init = init,
	.deinit = deinit,
	.op = on_op,
	.forgotten = on_forgotten,
	.look = look,
};
