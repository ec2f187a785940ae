/* SPDX-License-Identifier: Apache-2.0 */
/* Ranks that make the others wait: what the statistics of straggler.c say, in words. */
#include <inttypes.h>
#include <string.h>

#include "ncclinspd/compare/straggler.h"
#include "ncclinspd/findings/diagnose.h"
#include "util/json.h"
#include "util/phrase.h"
#include "util/words.h"

#define SECOND_NS	UINT64_C(1000000000)
#define CASES		64	/* cases that are reported at once */

struct scene {
	struct diagnose *dg;
	const struct straggler_case *c;
	const struct process *process;
	const struct comm *comm;
	uint64_t now_ns;
};

/* ---- words ---------------------------------------------------------------- */

static double percent(uint64_t part, uint64_t whole)
{
	return whole ? 100.0 * (double)part / (double)whole : 0;
}

static void add_comm(struct phrase *text, const struct comm *comm)
{
	if (comm->name[0])
		phrase_add(text, "%s", comm->name);
	else
		phrase_add(text, "communicator 0x%016" PRIx64, comm->id);
}

static void add_cost(struct phrase *text, const struct straggler_case *c)
{
	phrase_add(text, "which costs ");
	phrase_add_duration(text, c->blame_ns);
	phrase_add(text, " in ");
	phrase_add_duration(text, c->wall_ns);
	phrase_add(text, " (%.1f %%)", percent(c->blame_ns, c->wall_ns));
}

/* "rank 3 of dp (pid 4711, GPU 0000:3b:00.0)" */
static void add_rank(struct phrase *text, const struct scene *s)
{
	phrase_add(text, "rank %" PRId32 " of ", s->c->who.rank);
	add_comm(text, s->comm);
	phrase_add(text, " (pid %d", (int)s->c->who.pid);
	if (s->comm->has_gpu && s->comm->pci_bus_id[0])
		phrase_add(text, ", GPU %s", s->comm->pci_bus_id);
	phrase_add(text, ")");
}

static void add_scope(struct phrase *text, const struct straggler_case *c)
{
	if ((int32_t)c->local < c->nranks)
		phrase_add(text, " of the %" PRIu32 " of %" PRId32 " ranks that are on this node",
			   c->local, c->nranks);
}

static void add_moved(struct phrase *text, const struct straggler_case *c)
{
	if (!c->moved_ns)
		return;
	phrase_add(text, " Of this, ");
	phrase_add_duration(text, c->moved_ns);
	phrase_add(text, " were lost in other communicators, to ranks that had waited for it.");
}

static void add_process(struct phrase *text, const struct scene *s)
{
	phrase_add(text, " See that GPU's clock and temperature (nvidia-smi -q -d PERFORMANCE), "
		   "its CPU and its input pipeline (py-spy dump -p %d).", (int)s->c->who.pid);
}

static void say_steady(struct phrase *text, const struct scene *s)
{
	const struct straggler_case *c = s->c;

	add_rank(text, s);
	phrase_add(text, " comes last");
	add_scope(text, c);
	phrase_add(text, " in %.0f %% of %s, ", percent(c->last, c->ops), c->func);
	phrase_add_duration(text, c->late_ns);
	phrase_add(text, " after the first, ");
	add_cost(text, c);
	phrase_add(text, ". Last in %" PRIu64 " of %" PRIu64 " operations in which somebody was "
		   "late (of %" PRIu64 " in all).", c->last, c->judged, c->ops);
	add_moved(text, c);
	add_process(text, s);
}

static void say_intermittent(struct phrase *text, const struct scene *s)
{
	const struct straggler_case *c = s->c;

	add_rank(text, s);
	phrase_add(text, " comes very late");
	add_scope(text, c);
	phrase_add(text, " to %.1f %% of %s, ", percent(c->last, c->ops), c->func);
	add_cost(text, c);
	phrase_add(text, ". Last in %" PRIu64 " of %" PRIu64 " operations in which somebody was "
		   "much later than the rest (of %" PRIu64 " in all), by ",
		   c->last, c->judged, c->ops);
	phrase_add_duration(text, c->late_ns);
	phrase_add(text, " each time.");
	add_moved(text, c);
	phrase_add(text, " Something stops it now and then: garbage collection, input, "
		   "another process, clock throttling.");
	add_process(text, s);
}

static void say_elsewhere(struct phrase *text, const struct scene *s)
{
	const struct straggler_case *c = s->c;

	phrase_add(text, "the ranks of ");
	add_comm(text, s->comm);
	phrase_add(text, " on this node (%" PRIu32 " of %" PRId32 ") wait for one elsewhere in "
		   "%.0f %% of %s, ", c->local, c->nranks, percent(c->last, c->judged), c->func);
	add_cost(text, c);
	phrase_add(text, ". They are not the late ones: ncclinsp report of a snapshot of each "
		   "node names who is (on that node remote_wait_ns in /v1/comms is near zero).");
}

static void say_slower(struct phrase *text, const struct scene *s)
{
	const struct straggler_case *c = s->c;

	phrase_add(text, "%s on ", c->func);
	add_comm(text, s->comm);
	phrase_add(text, " takes ");
	phrase_add_duration(text, c->late_ns);
	phrase_add(text, " longer than it used to, in %.0f %% of operations, ",
		   percent(c->last, c->judged));
	add_cost(text, c);
	if ((int32_t)c->local < c->nranks)
		phrase_add(text, ". The ranks here wait alike, so from this node a slower network "
			   "cannot be told from a rank elsewhere that is late each time: if some "
			   "node's remote_wait_ns in /v1/comms does not grow, it is there, else "
			   "the network.");
	else
		phrase_add(text, ". All its ranks are here and also the last one takes so long: "
			   "the transfer itself is slower. See ncclinsp peers, and what else uses "
			   "the links.");
}

/* ---- kinds ---------------------------------------------------------------- */

static const struct {
	enum finding_severity severity;
	void (*say)(struct phrase *text, const struct scene *s);
} verdicts[VERDICT_END] = {
	[VERDICT_STEADY] = { FINDING_WARNING, say_steady },
	[VERDICT_INTERMITTENT] = { FINDING_WARNING, say_intermittent },
	[VERDICT_ELSEWHERE] = { FINDING_INFO, say_elsewhere },
	[VERDICT_SLOWER] = { FINDING_INFO, say_slower },
};

static bool is_of_a_rank(const struct straggler_case *c)
{
	return c->verdict == VERDICT_STEADY || c->verdict == VERDICT_INTERMITTENT;
}

static void put_u64(struct json *j, const char *key, uint64_t value)
{
	json_key(j, key);
	json_put_u64(j, value);
}

static void set_evidence(struct finding *f, const struct scene *s)
{
	const struct straggler_case *c = s->c;
	struct json j;

	json_init(&j, sizeof(f->evidence));
	json_begin(&j, '{');
	json_key(&j, "func");
	json_put_string(&j, c->func);
	json_key(&j, "pid");
	if (is_of_a_rank(c))
		json_put_i64(&j, c->who.pid);
	else
		json_put_null(&j);
	json_key(&j, "nranks");
	json_put_i64(&j, c->nranks);
	put_u64(&j, "local_ranks", c->local);
	put_u64(&j, "window_ns", c->wall_ns);
	put_u64(&j, "ops", c->ops);
	put_u64(&j, "judged", c->judged);
	put_u64(&j, "last", c->last);
	put_u64(&j, "late_ns", c->late_ns);
	put_u64(&j, "blame_ns", c->blame_ns);
	put_u64(&j, "moved_ns", c->moved_ns);
	json_key(&j, "score");
	if (c->score > 0)
		json_put_rounded(&j, c->score);
	else
		json_put_null(&j);
	json_end(&j, '}');
	finding_set_evidence(f, &j);
	json_deinit(&j);
}

static bool find_who(struct scene *s)
{
	const struct diagnose_source *source = diagnose_source(s->dg);
	struct process *const *list;
	size_t n = source->processes(source->arg, &list);

	for (size_t i = 0; i < n; i++) {
		if (list[i]->id != s->c->who.process_id)
			continue;
		s->process = list[i];
		s->comm = process_comm(list[i], (uint16_t)s->c->who.comm_index);
		return s->comm && list[i]->state == PROCESS_LIVE;
	}
	return false;
}

/* A process or communicator that has ended is not reported any more. */
static void report(struct scene *s)
{
	const struct straggler_case *c = s->c;
	struct finding f = { .kind = FINDING_STRAGGLER, .peer = UNKNOWN_I32 };
	struct phrase text;

	if (!find_who(s))
		return;
	f.severity = verdicts[c->verdict].severity;
	f.verdict = words_verdict(c->verdict)->name;
	f.uid = s->process->uid;
	f.has_comm_id = s->comm->has_id;
	f.comm_id = s->comm->id;
	memcpy(f.comm_name, s->comm->name, sizeof(f.comm_name));
	f.since_ns = c->since_ns;
	if (is_of_a_rank(c))
		finding_add_rank(&f, c->who.rank);
	phrase_start(&text, f.text, sizeof(f.text));
	verdicts[c->verdict].say(&text, s);
	set_evidence(&f, s);
	diagnose_report(s->dg, &finding_straggler, c->key, &f, s->now_ns);
}

/* ---- the detector ---------------------------------------------------------- */

struct cases {
	struct straggler_case at[CASES];
	uint32_t n;
};

/* A late rank is late wherever it comes: one finding, from where it costs most. */
static void collect(const struct straggler_case *c, void *arg)
{
	struct cases *cases = arg;
	uint32_t i = 0;

	while (i < cases->n && (cases->at[i].key != c->key ||
				is_of_a_rank(&cases->at[i]) != is_of_a_rank(c)))
		i++;
	if (i == CASES || (i < cases->n && cases->at[i].blame_ns >= c->blame_ns))
		return;
	cases->at[i] = *c;
	cases->n += i == cases->n;
}

static void look(struct diagnose *dg, void *state, uint64_t now_ns)
{
	struct scene s = { .dg = dg, .now_ns = now_ns };
	struct cases cases;

	(void)state;
	cases.n = 0;
	if (diagnose_source(dg)->straggler)
		straggler_visit(diagnose_source(dg)->straggler, collect, &cases);
	for (uint32_t i = 0; i < cases.n; i++) {
		s.c = &cases.at[i];
		report(&s);
	}
}

const struct detector finding_straggler = {
	.name = "straggler",
	.hold_ns = 3 * SECOND_NS,
	.look = look,
};
