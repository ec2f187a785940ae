/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Operations that take longer than they used to: each kind (communicator, function,
 * bytes, algorithm, protocol) against its own baseline, which outlives jobs and daemons and
 * is a job's by its name and shape.
 * What of that is told, judge/ decides.
 *
 * A sample is the logarithm of the lower quartile of a window's times, of the time that
 * the last rank to come spent inside where ranks were compared: a rank that waits for
 * another says nothing about the transfer.
 */
#include <math.h>
#include <stdio.h>

#include "judge/cusum.h"
#include "judge/regression.h"
#include "ncclinspd/base/jobs.h"
#include "ncclinspd/findings/baseline.h"
#include "ncclinspd/findings/diagnose.h"
#include "ncclinspd/sums/aggregate.h"
#include "reader/base/accounts.h"
#include "reader/base/job.h"
#include "reader/join/ops.h"
#include "tables/keyed.h"
#include "tables/stat.h"
#include "rows/rows.h"
#include "util/list.h"

#define SECOND_NS	UINT64_C(1000000000)
#define WINDOW_NS	(10 * SECOND_NS)
#define HOLD_NS		(3 * WINDOW_NS)
#define WEEK_WINDOWS	60480.0	/* no false alarm of any series is wanted for so long */
#define DAY_WINDOWS	8640	/* then what is slower is the new way of things */
#define SAVE_WINDOWS	60
#define SERIES		512
#define VALUES		32	/* samples of a window, drawn by chance if there are more */
#define LEAST_VALUES	4

struct series_key {
	uint64_t kind;
	uint64_t uid;		/* owner of its processes: a user can choose a kind's key */
};

struct regression_series {
	struct keyed_head head;
	struct series_key key;
	uint64_t lasting;	/* key of its baseline: the same in the next job */
	uint64_t comm;		/* equal: of one communicator of this user's */
	uint64_t used_ns;
	struct op op;		/* the first of this window */
	bool from_before;	/* its baseline is of an earlier job */
	uint32_t slow_windows;
	uint64_t onset_ns;	/* start of the first of the windows that are slow by now */
	uint64_t since_ns;	/* start of the change behind the alarm */
	uint32_t ops;		/* operations in this window ... */
	uint64_t from_ns;	/* begin of the window, the end of the one before; 0: the first */
	uint64_t all_ops;
	double values[VALUES];	/* ns */
	struct cusum cusum;
};

struct regressions {
	struct baselines *baselines;
	uint64_t window;
	uint64_t chance;
	struct keyed series;
};

/* ---- samples ---------------------------------------------------------------- */

/* Names are compared by pointer. */
static uint64_t kind_of(const struct op *op)
{
	const uint64_t words[] = {
		op->has_comm_id ? op->comm_id : op->process_id, op->uid, (uint64_t)op->nranks,
		op->bytes, (uintptr_t)op->comm_name, (uintptr_t)op->func, (uintptr_t)op->algo,
		(uintptr_t)op->proto, op->source, op->local_ranks > 1,
	};

	return index_hash(0, words, sizeof(words));
}

static uint64_t mix_name(uint64_t key, const char *name)
{
	for (const char *c = name ? name : ""; *c; c++)
		key = index_mix(key, (unsigned char)*c);
	return index_mix(key, 0);
}

/* The job by its name, and its shape: of another one, other times are usual. */
static uint64_t job_key(const struct process *p, const struct op *op)
{
	const struct comm *comm = process_comm(p, (uint16_t)op->comm_index);
	uint64_t key = mix_name(index_mix(0, comm ? (uint64_t)comm->nnodes : 0), job_name(p));

	return mix_name(key, job_world_size(p));
}

/* The key of what is the same in the next job: no pointers, no ids. */
static uint64_t lasting_key(const struct diagnose *dg, const struct op *op)
{
	struct process *const *list;
	size_t n = diagnose_source(dg)->processes(diagnose_source(dg)->arg, &list);
	const struct process *p = jobs_process(list, n, op->process_id);
	uint64_t key = index_mix(index_mix((uint64_t)op->uid, (uint64_t)op->nranks), op->bytes);

	key = index_mix(key, p ? job_key(p, op) : 0);
	key = mix_name(mix_name(key, op->comm_name), op->func);
	key = mix_name(mix_name(key, op->algo), op->proto);
	return index_mix(index_mix(key, op->source), op->local_ranks > 1) | 1;
}

static uint64_t op_comm(const struct op *op)
{
	return index_mix(index_mix(op->has_comm_id ? op->comm_id : op->process_id,
				   (uint64_t)op->nranks), op->uid);
}

/* UNKNOWN_U64: it says nothing, or another rank's row says the same. */
static uint64_t time_of(const struct op *op)
{
	bool compared = op->local_ranks > 1;

	if (compared && op->rank != op->arrival[op->local_ranks - 1])
		return UNKNOWN_U64;
	if (op->is_p2p || op->parts || op_is_fused(op) || (op->has_graph && op->graph) ||
	    !op->func || !op->algo || op->bytes == UNKNOWN_U64 || !op->bytes ||
	    (op->source != TIMING_KERNEL_GPU && op->source != TIMING_KERNEL_CPU))
		return UNKNOWN_U64;
	return compared ? op->waitfree_ns : op->exec_ns;
}

static void begin_series(const struct diagnose *dg, struct regressions *rg,
			 struct regression_series *s, const struct op *op)
{
	const struct baseline *known;

	s->lasting = lasting_key(dg, op);
	s->comm = op_comm(op);
	known = baselines_find(rg->baselines, s->lasting, op->uid);
	s->from_before = known;
	if (known)
		cusum_start(&s->cusum, known->mean, known->sigma, known->samples ?: CUSUM_LEARN);
}

/* The series of this kind of operation; NULL: no memory. */
static struct regression_series *series_of(const struct diagnose *dg, struct regressions *rg,
					   const struct op *op)
{
	uid_t account = accounts_of(diagnose_settings(dg)->accounts, op->uid);
	const struct series_key key = { kind_of(op), op->uid };
	bool made;
	struct regression_series *s = keyed_use(&rg->series, &key, account, &made);

	if (s && made)
		begin_series(dg, rg, s, op);
	return s;
}

static __attribute__((noinline))
void regressions_add(const struct diagnose *dg, struct regressions *rg, const struct op *op,
		     uint64_t ns, uint64_t now_ns)
{
	struct regression_series *s = series_of(dg, rg, op);
	uint64_t place;

	if (!s)
		return;
	s->used_ns = now_ns;
	s->all_ops++;
	place = s->ops++;
	if (!place)
		s->op = *op;
	if (place >= VALUES) {
		rg->chance = index_mix(rg->chance, place);
		place = rg->chance % s->ops;
	}
	if (place < VALUES)
		s->values[place] = (double)ns;
}

static void regression_on_ops(struct diagnose *dg, void *state, const struct op *const *ops,
			      uint32_t n, uint64_t now_ns)
{
	for (uint32_t i = 0; i < n; i++) {
		uint64_t ns = time_of(ops[i]);

		if (ns != UNKNOWN_U64 && ns)
			regressions_add(dg, state, ops[i], ns, now_ns);
	}
}

/* ---- windows ----------------------------------------------------------------- */

static void series_keep(struct regressions *rg, const struct regression_series *s)
{
	const struct baseline b = {
		.key = s->lasting, .mean = s->cusum.mean, .sigma = s->cusum.sigma,
		.uid = (uint32_t)s->key.uid, .samples = s->cusum.learned,
	};

	baselines_put(rg->baselines, &b);
}

/* A series that has become faster, or been slower for a day, is normal from now on. */
static void series_accept(struct regressions *rg, struct regression_series *s)
{
	bool learned = fabs(s->cusum.mean - s->cusum.before) > 0;

	if (!learned || (s->cusum.alarm > 0 && s->slow_windows < DAY_WINDOWS))
		return;
	cusum_start(&s->cusum, s->cusum.mean, s->cusum.sigma, CUSUM_STEADY);
	series_keep(rg, s);
}

/* A window of few operations, as bursts leave them in a small job, goes on. */
static void close_window(struct regressions *rg, struct regression_series *s, double h,
			 uint64_t now_ns)
{
	uint64_t from_ns = s->from_ns ?: now_ns - WINDOW_NS;
	uint32_t n = s->ops < VALUES ? s->ops : VALUES;
	uint32_t learned = s->cusum.learned;
	int before = s->cusum.alarm, alarm;

	if (n < LEAST_VALUES)
		return;
	s->ops = 0;
	s->from_ns = now_ns;
	stat_sort(s->values, n);
	alarm = cusum_add(&s->cusum, log(s->values[n / 4]), h);
	if (s->cusum.learned > learned)		/* a short job's, too, is better than none */
		series_keep(rg, s);
	if (cusum_onset(&s->cusum, 1) <= 1)
		s->onset_ns = from_ns;
	s->slow_windows = alarm > 0 ? s->slow_windows + 1 : 0;
	if (alarm > 0 && before <= 0)
		s->since_ns = s->onset_ns;
	if (alarm)
		series_accept(rg, s);
}

/* Enough windows, and operations a moment ago. */
static bool series_is_rated(const struct regression_series *s, uint64_t now_ns)
{
	return cusum_is_known(&s->cusum) && now_ns - s->used_ns < 2 * WINDOW_NS;
}

static void close_windows(struct regressions *rg, uint64_t now_ns)
{
	struct regression_series *s = NULL;
	uint32_t rated = 1;
	double h;

	while ((s = keyed_next(&rg->series, s)))
		rated += series_is_rated(s, now_ns);
	h = cusum_limit(WEEK_WINDOWS * rated);
	while ((s = keyed_next(&rg->series, s)))
		close_window(rg, s, h, now_ns);
}

static double series_usual(const struct regression_series *s)
{
	return exp(s->cusum.alarm ? s->cusum.before : s->cusum.mean);
}

/* ---- what is usual ------------------------------------------------------------------ */

#define BY_KIND	(AGGREGATE_BY_COMM | AGGREGATE_BY_FUNC | AGGREGATE_BY_SIZE | AGGREGATE_BY_ALGO | \
		 AGGREGATE_BY_PROTO)

static bool series_is_of(const struct regression_series *s, const struct aggregate_row *row)
{
	const struct op *op = &s->op;

	return op->func == row->func && op->source == row->source &&
	       op->has_comm_id == row->has_comm_id && op->comm_id == row->comm_id &&
	       op->comm_name == row->comm_name && op->algo == row->algo &&
	       op->proto == row->proto && op->bytes >= row->size_class &&
	       op->bytes - row->size_class < row->size_class && op->uid == row->uid &&
	       (op->has_comm_id || op->process_id == row->process_id);
}

bool diagnose_usual(const struct diagnose *dg, const struct aggregate_row *row,
		    struct diagnose_usual *out)
{
	const struct regressions *rg = diagnose_state(dg, &finding_regression);
	const struct regression_series *s = NULL, *most = NULL;

	if ((row->by & BY_KIND) != BY_KIND)
		return false;
	while ((s = keyed_next(&rg->series, s)))
		if (cusum_is_known(&s->cusum) && series_is_of(s, row) &&
		    (!most || s->all_ops > most->all_ops))
			most = s;
	if (!most)
		return false;
	out->ns = (uint64_t)series_usual(most);
	out->busbw_gbs = ops_bus_bytes(&most->op) / series_usual(most);
	return true;
}

/* ---- the finding ------------------------------------------------------------------- */

static struct regression_row series_row(const struct regression_series *s, uint64_t now_ns)
{
	return (struct regression_row){
		.comm = s->comm, .func = s->op.func, .algo = s->op.algo, .proto = s->op.proto,
		.comm_name = s->op.comm_name, .bytes = s->op.bytes,
		.rated = series_is_rated(s, now_ns), .alarm = s->cusum.alarm,
		.change = cusum_change(&s->cusum), .usual_ns = series_usual(s),
		.recent_ns = exp(s->cusum.recent), .sigma = s->cusum.sigma,
		.from_before = s->from_before,
		.since_ns = s->since_ns,
	};
}

static const char *const scope_names[] = {
	[REGRESSION_KIND] = "kind", [REGRESSION_COMMUNICATOR] = "communicator",
	[REGRESSION_NODE] = "node",
};

#include "schema/regression_evidence.h"

static void regression_report(struct diagnose *dg, const struct regression_case *c,
			      const struct regression_series *s, uint64_t now_ns)
{
	struct finding f = {
		.kind = FINDING_REGRESSION,
		.severity = FINDING_WARNING,
		.uid = s->op.uid,
		.process_id = s->op.has_comm_id ? 0 : s->op.process_id,
		.has_comm_id = s->op.has_comm_id,
		.comm_id = s->op.comm_id,
		.peer = UNKNOWN_I32,
		.since_ns = s->since_ns,
	};

	if (s->op.comm_name)
		snprintf(f.comm_name, sizeof(f.comm_name), "%s", s->op.comm_name);
	regression_say(c, now_ns, f.text, sizeof(f.text));
	finding_set_evidence(&f, regression_evidence_fields, c);
	diagnose_report(dg, &finding_regression,
			c->scope == REGRESSION_NODE ? s->op.uid : s->comm, &f, now_ns);
}

/* ---- the detector ------------------------------------------------------------------ */

static void regression_tell(struct diagnose *dg, const struct regressions *rg, uint64_t now_ns)
{
	LIST(struct regression_row) rows;
	const struct regression_series *s = NULL;
	struct regression_case c;

	if (list_init(&rows, SERIES) < 0)
		return;
	while ((s = keyed_next(&rg->series, s)))
		*list_must_add(&rows) = series_row(s, now_ns);
	for (uint32_t i = 0; (s = keyed_next(&rg->series, s)); i++)
		if (regression_judge(rows.at, rows.n, i, &c))
			regression_report(dg, &c, s, now_ns);
	list_deinit(&rows);
}

static void regression_look(struct diagnose *dg, void *state, uint64_t now_ns)
{
	struct regressions *rg = state;

	if (now_ns / WINDOW_NS == rg->window)
		return;
	rg->window = now_ns / WINDOW_NS;
	close_windows(rg, now_ns);
	regression_tell(dg, rg, now_ns);
	if (rg->window % SAVE_WINDOWS == 0)
		baselines_save(rg->baselines);
}

static int regression_init(struct diagnose *dg, void *state)
{
	const struct diagnose_config *settings = diagnose_settings(dg);
	struct regressions *rg = state;
	int r = keyed_init(&rg->series, &KEYED_CONFIG(struct regression_series, key, SERIES));

	return r ? r : baselines_new(&rg->baselines, settings->state_dir, settings->accounts);
}

static void regression_deinit(void *state)
{
	struct regressions *rg = state;

	keyed_deinit(&rg->series);
	baselines_free(rg->baselines);
}

const struct detector finding_regression = {
	.name = "regression",
	.state_bytes = sizeof(struct regressions),
	.hold_ns = HOLD_NS,
	.of_living = true,
	.init = regression_init,
	.deinit = regression_deinit,
	.ops = regression_on_ops,
	.look = regression_look,
};
