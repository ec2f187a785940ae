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
#include <string.h>

#include "ncclinspd/diagnose.h"
#include "util/json.h"
#include "util/phrase.h"

#define SECOND_NS	UINT64_C(1000000000)
#define SLICE_NS	(20 * SECOND_NS)	/* what counts: this slice and the one before */
#define HOLD_NS		(20 * SECOND_NS)
#define AWAY_NS		UINT64_C(1000000)	/* polls are microseconds apart */
#define PROCESSES	64
#define EVERYBODY	0	/* key of the finding about several processes */
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

struct process_sums {
	uint64_t process_id;	/* 0: unused */
	uint64_t used_ns;
	uint64_t since_ns;	/* of the first that was too late, and still counts */
	struct op last;		/* that was too late */
	struct slice slice[2];
};

struct starved {
	struct process_sums processes[PROCESSES];
	struct process_sums *recent;	/* most often the next one's */
};

/* ---- counting --------------------------------------------------------------- */

static struct process_sums *find(struct starved *st, uint64_t process_id)
{
	struct process_sums *oldest = &st->processes[0];

	if (st->recent && st->recent->process_id == process_id)
		return st->recent;
	for (size_t i = 0; i < PROCESSES; i++) {
		struct process_sums *p = &st->processes[i];

		if (p->process_id == process_id)
			return st->recent = p;
		if (p->used_ns < oldest->used_ns)
			oldest = p;
	}
	*oldest = (struct process_sums){ .process_id = process_id };
	return st->recent = oldest;
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
	p = find(state, op->process_id);
	p->used_ns = now_ns;
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
	p->last = *op;
}

static void on_forgotten(struct diagnose *dg, void *state, const struct process *process)
{
	struct process_sums *p = find(state, process->id);

	(void)dg;
	*p = (struct process_sums){ 0 };
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
	const struct starved *st = diagnose_state(dg, &finding_proxy_starved);
	struct slice sum;

	for (size_t i = 0; i < PROCESSES; i++) {
		if (st->processes[i].process_id != process_id)
			continue;
		sum = add_up(&st->processes[i], now_ns);
		return share_of(&sum, now_ns);
	}
	return 0;
}

/* ---- saying it ---------------------------------------------------------------- */

/* One of the processes that have a network, beside the others. */
struct scene {
	struct diagnose *dg;
	uint64_t now_ns;
	uint32_t all, starved;		/* processes of this node */
	const struct process_sums *worst;
	struct slice sum;		/* of the worst */
	int32_t ranks[FINDING_RANKS];	/* of all that are starved, the worst first */
	uint32_t nranks;
};

static void say(const struct scene *s, double share, struct finding *f)
{
	const struct op *last = &s->worst->last;
	struct phrase text;

	phrase_start(&text, f->text, sizeof(f->text));
	phrase_add(&text, "the network thread of rank %" PRId32 " (pid %d) was away: of %" PRIu64
		   " kernels it saw %" PRIu64 " too late, up to ", last->rank, (int)last->pid,
		   s->sum.seen, s->sum.away);
	phrase_add_duration(&text, s->sum.longest_ns);
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
	const struct { const char *name; uint64_t value; } numbers[] = {
		{ "ops", s->sum.ops }, { "seen", s->sum.seen }, { "late", s->sum.away },
		{ "late_ns", s->sum.away_ns }, { "longest_ns", s->sum.longest_ns },
		{ "processes", s->all }, { "starved", s->starved },
		{ "window_ns", s->now_ns - s->sum.begin_ns },
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

static void report(const struct scene *s, uint64_t key)
{
	const struct op *last = &s->worst->last;
	double share = share_of(&s->sum, s->now_ns);
	struct finding f = {
		.kind = FINDING_PROXY_STARVED,
		.severity = FINDING_WARNING,
		.uid = last->uid,
		.has_comm_id = last->has_comm_id,
		.comm_id = last->comm_id,
		.nranks = s->nranks,
		.peer = UNKNOWN_I32,
		.since_ns = s->worst->since_ns,
	};

	memcpy(f.ranks, s->ranks, sizeof(f.ranks));
	if (last->comm_name)
		snprintf(f.comm_name, sizeof(f.comm_name), "%s", last->comm_name);
	say(s, share, &f);
	show(s, share, &f);
	diagnose_report(s->dg, &finding_proxy_starved, key, &f, s->now_ns);
}

/* ---- the detector -------------------------------------------------------------- */

static bool is_beyond(const struct slice *sum, double share, uint64_t now_ns)
{
	return sum->seen >= LEAST_SEEN && (double)sum->away >= LEAST_AWAY * (double)sum->seen &&
	       share_of(sum, now_ns) >= share;
}

static void add_rank(struct scene *s, int32_t rank, bool worst)
{
	uint32_t last = s->nranks < FINDING_RANKS ? s->nranks++ : FINDING_RANKS - 1;

	s->ranks[last] = rank;
	if (!worst)
		return;
	s->ranks[last] = s->ranks[0];
	s->ranks[0] = rank;
}

static void weigh(struct scene *s, struct process_sums *p)
{
	struct slice sum = add_up(p, s->now_ns);
	bool worst;

	s->all += sum.seen > 0;
	if (!sum.away)
		p->since_ns = 0;
	if (!is_beyond(&sum, begin_share, s->now_ns)) {
		if (is_beyond(&sum, go_on_share, s->now_ns))
			diagnose_renew(s->dg, &finding_proxy_starved, p->process_id, s->now_ns);
		return;
	}
	worst = !s->worst || share_of(&sum, s->now_ns) > share_of(&s->sum, s->now_ns);
	add_rank(s, p->last.rank, worst);
	s->starved++;
	if (!worst)
		return;
	s->worst = p;
	s->sum = sum;
}

/* Several are one finding: what they have in common is their node. */
static void look(struct diagnose *dg, void *state, uint64_t now_ns)
{
	struct starved *st = state;
	struct scene s = { .dg = dg, .now_ns = now_ns };

	for (size_t i = 0; i < PROCESSES; i++)
		weigh(&s, &st->processes[i]);
	if (s.worst)
		report(&s, s.starved > 1 ? EVERYBODY : s.worst->process_id);
}

const struct detector finding_proxy_starved = {
	.name = "proxy_starved",
	.state_bytes = sizeof(struct starved),
	.hold_ns = HOLD_NS,
	.op = on_op,
	.forgotten = on_forgotten,
	.look = look,
};
