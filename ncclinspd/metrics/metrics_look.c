/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Once a second: what stands somewhere and is to be read.  Gauges are made anew each time;
 * what only grows is added by how much it has grown, since who keeps it may forget it.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "ncclinspd/levels/steer.h"
#include "ncclinspd/metrics/metrics_impl.h"
#include "ncclinspd/sums/links.h"
#include "reader/base/job.h"
#include "reader/join/reconstruct.h"

/* The growth since `before`, which is `now` then; what is less than before has begun anew. */
static double counter_grown(double *before, double now)
{
	double by = now >= *before ? now - *before : now;

	*before = now;
	return by;
}

/* ---- processes --------------------------------------------------------------------- */

static struct metrics_seen *seen_of(struct metrics *m, const struct process *p)
{
	bool made;

	return keyed_use(&m->seen, &p->id, 0, &made);
}

static void see_losses(struct metrics_row *row, struct metrics_seen *seen,
		       const struct process *p)
{
	const double now[METRICS_REASON_END] = {
		[METRICS_REASON_RING_FULL] = (double)p->loss.overrun,
		[METRICS_REASON_SLOT_EXHAUSTED] = (double)(p->loss.pool + p->loss.lane),
		[METRICS_REASON_BEFORE] = (double)p->loss.before,
		[METRICS_REASON_REJECTED] = (double)(p->loss.rejected + p->loss.unknown),
		[METRICS_REASON_UNMATCHED] = (double)p->loss.evicted,
	};
	double refused = 0;

	for (int i = 0; i < STAMP_FAULT_END; i++)
		refused += (double)p->stamps_refused[i];
	for (int i = 0; i < METRICS_REASON_END; i++)
		row->v[MEMBER_DROPPED + i] += counter_grown(&seen->dropped[i],
			i == METRICS_REASON_BAD_CLOCK ? refused : now[i]);
	row->v[MEMBER_RECORDS] += counter_grown(&seen->records, (double)p->records);
}

static void see_cost(struct metrics_row *row, struct metrics_seen *seen, const struct cost *cost)
{
	const struct overhead *o = &cost->overhead;
	struct overhead_figures figures;
	double share;

	if (!o->n)
		return;
	for (int i = 0; i < NCI_THREAD_CLASSES; i++)
		row->v[MEMBER_CALLBACK + i] += counter_grown(&seen->callback_s[i],
			o->sample[(o->n - 1) % OVERHEAD_SAMPLES].timed_ns[i] * 1e-9 *
			NCI_TIMED_ONE_IN);
	overhead_figures(o, OVERHEAD_SAMPLES - 1, &figures);
	share = overhead_share(&figures);
	if (share >= 0)
		row->v[MEMBER_OVERHEAD] = share;
}

/* "": not known, and no label. */
static void facts_put_info(struct metrics_row *row, int i, const char *text)
{
	snprintf(row->info[i], sizeof(row->info[i]), "%s", text ? text : "");
}

static void see_facts(const struct metrics *m, struct metrics_row *row, const struct process *p)
{
	row->v[MEMBER_INFO] = 1;
	if (p->api_version) {
		row->v[MEMBER_LEVEL] = p->level;
		snprintf(row->info[0], sizeof(row->info[0]), "%u", p->api_version);
	}
	facts_put_info(row, 1, p->plugin_version);
	facts_put_info(row, 2, job_scheduler(p));
	facts_put_info(row, 3, job_namespace(p));
	facts_put_info(row, 4, job_pod(p));
	facts_put_info(row, 5, p->container);
	facts_put_info(row, 6, p->command);
	if (p->steering.known && m->source.steer)
		row->v[MEMBER_BUDGET] = steer_budget_ppm(m->source.steer) * 1e-6;
}

static void process_see_counters(struct metrics *m, const struct process *p, uint64_t now_ns)
{
	const struct cost *cost = m->source.steer ? steer_cost(m->source.steer, p) : NULL;
	struct metrics_seen *seen = seen_of(m, p);
	uint32_t item;
	struct metrics_labels l;
	struct metrics_row *row;

	metrics_member_labels(&l, p);
	item = metrics_row(m, &l, now_ns);
	row = metrics_row_at(m, item);
	if (!row || !seen)
		return;
	seen->member = item;
	seen->generation = m->generation;
	see_losses(row, seen, p);
	if (cost)
		see_cost(row, seen, cost);
	if (p->state == PROCESS_LIVE && l.uid == row->labels.uid)
		see_facts(m, row, p);
}

static void see_job(struct metrics *m, const struct process *p, uint64_t now_ns)
{
	struct metrics_labels l;
	struct metrics_row *row;

	metrics_job_labels(&l, p);
	row = metrics_row_at(m, metrics_row(m, &l, now_ns));
	if (row)
		row->v[JOB_LIVE] = (isnan(row->v[JOB_LIVE]) ? 0 : row->v[JOB_LIVE]) +
				   (p->state == PROCESS_LIVE);
}

/* ---- what is in flight ------------------------------------------------------------------ */

struct ages {
	struct metrics *m;
	const struct metrics_seen *seen;	/* or NULL */
	const struct process *process;
	uint64_t now_ns;
	uint32_t comm_index;		/* the one before's, most often this one's too */
	struct metrics_row *row;	/* NULL: none yet */
};

static struct metrics_row *row_of_open(struct ages *a, uint32_t comm_index)
{
	if (!a->row || a->comm_index != comm_index)
		a->row = metrics_comm_row(a->m, a->seen, a->process, comm_index, a->now_ns);
	a->comm_index = comm_index;
	return a->row;
}

static bool see_age(const struct op *op, void *arg)
{
	struct ages *a = arg;
	struct metrics_row *row;
	double age_s;

	if (op->api_only || !op->enqueued_ns || op->enqueued_ns > a->now_ns)
		return true;
	row = row_of_open(a, op->comm_index);
	age_s = (double)(a->now_ns - op->enqueued_ns) * 1e-9;
	if (row && row->v[RANK_OLDEST] < age_s)
		row->v[RANK_OLDEST] = age_s;
	return true;
}

/* ---- findings -------------------------------------------------------------------------- */

static bool see_finding(const struct finding *f, void *arg)
{
	struct metrics *m = arg;
	char comm[40];
	uint32_t item;

	if (f->life.until_ns)
		return true;
	m->findings[f->grade][f->kind]++;
	if (f->grade != FINDING_FOUND ||
	    (f->kind != FINDING_STALL && f->kind != FINDING_DESYNC))
		return true;
	metrics_comm_text(comm, f->comm_name, f->has_comm_id, f->comm_id);
	for (item = m->kind[METRICS_ROLE].first; item != POOL_NONE;
	     item = pool_list_next(&m->rows.pool, &m->kind[METRICS_ROLE], item)) {
		struct metrics_row *row = metrics_row_at(m, item);

		if (row->labels.uid == f->uid && !strcmp(row->labels.comm, comm))
			row->v[f->kind == FINDING_STALL ? ROLE_STALL : ROLE_DESYNC] = 1;
	}
	return true;
}

static void see_links(struct metrics *m, uint64_t now_ns)
{
	const struct links_query query = { .windows = 1u << LINKS_60S, .all_users = true };

	m->look_ns = now_ns;
	if (m->config.peers && m->source.links)
		links_visit(m->source.links, &query, now_ns, metrics_see_link, m);
}

/* ---- all of it ------------------------------------------------------------------------- */

static void metrics_reset(struct metrics *m)
{
	for (int kind = 0; kind < METRICS_KIND_END; kind++)
		for (uint32_t item = m->kind[kind].first; item != POOL_NONE;
		     item = pool_list_next(&m->rows.pool, &m->kind[kind], item))
			metrics_reset_gauges(metrics_row_at(m, item));
	memset(m->findings, 0, sizeof(m->findings));
}

static void metrics_see_process(struct metrics *m, const struct process *p, uint64_t now_ns)
{
	struct metrics_seen *seen = seen_of(m, p);
	struct ages ages = { .m = m, .seen = seen, .process = p, .now_ns = now_ns };

	see_job(m, p, now_ns);
	process_see_counters(m, p, now_ns);
	metrics_see_comms(m, seen, p, now_ns);
	if (p->state == PROCESS_LIVE)
		reconstruct_open(m->source.reconstruct, p, see_age, &ages);
}

void metrics_look(struct metrics *m, uint64_t now_ns)
{
	struct process *const *list;
	size_t n = m->source.processes(m->source.arg, &list);

	metrics_expire(m, now_ns);
	metrics_reset(m);
	for (size_t i = 0; i < n; i++)
		metrics_see_process(m, list[i], now_ns);
	see_links(m, now_ns);
	if (m->source.diagnose)
		diagnose_visit(m->source.diagnose, see_finding, m);
}

void metrics_ended(struct metrics *m, const struct process *p, uint64_t now_ns)
{
	struct metrics_labels l;
	struct metrics_row *row;

	process_see_counters(m, p, now_ns);
	metrics_job_labels(&l, p);
	row = metrics_row_at(m, metrics_row(m, &l, now_ns));
	if (row)
		row->v[p->state == PROCESS_EXITED ? JOB_CLEAN : JOB_UNKNOWN]++;
}

void metrics_forgotten(struct metrics *m, const struct process *p)
{
	struct metrics_seen *seen = keyed_find(&m->seen, &p->id);

	if (seen) {
		metrics_seen_deinit(seen);
		keyed_drop(&m->seen, seen);
	}
	metrics_forget_comms(m, p);
}
