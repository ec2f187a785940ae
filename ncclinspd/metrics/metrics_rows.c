/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Room for rows.  What counts against the limit are series, so that it is what somebody
 * who pays by series has asked for.  A part is kept free, in which there is a row of each
 * kind for all that found no room.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "ncclinspd/metrics/metrics_impl.h"
#include "reader/base/job.h"

#define SECOND_NS	UINT64_C(1000000000)
#define WANTED_NS	(600 * SECOND_NS)	/* unused for so long: goes where room is wanted */
#define KEEP_NS		(3600 * SECOND_NS)	/* ... goes */
#define NODE_SERIES	32	/* series of the node itself */

uint32_t metrics_reserved(void)
{
	uint32_t sum = NODE_SERIES;

	for (int kind = 0; kind < METRICS_KIND_END; kind++)
		sum += metrics_cost((enum metrics_kind)kind);
	return sum;
}

/* The series of a user's account, so far; nobody's are in none. */
static uint32_t *user_series(struct metrics *m, uid_t uid)
{
	return accounts_count(&m->of_account, accounts_of(m->config.accounts, uid));
}

static void row_drop(struct metrics *m, struct metrics_row *row)
{
	uint32_t kind = row->labels.kind;

	if (kind == METRICS_TIME)
		pool_put(&m->lately, row->lately);
	pool_list_remove(&m->rows.pool, &m->kind[kind], keyed_number(row));
	m->stats.series -= metrics_cost((enum metrics_kind)kind);
	if (row->labels.uid != METRICS_NOBODY)
		*user_series(m, row->labels.uid) -= metrics_cost((enum metrics_kind)kind);
	m->generation++;
	keyed_drop(&m->rows, row);
}

static bool row_is_old(const struct metrics_row *row, uint64_t now_ns, uint64_t age_ns)
{
	return row->labels.uid != METRICS_NOBODY && row->used_ns + age_ns < now_ns;
}

/* A row whose job lives, or did a moment ago, may only be idle. */
static bool row_has_job(const struct metrics *m, const struct metrics_row *row, uint64_t now_ns)
{
	const struct metrics_row *job;
	struct metrics_labels l;

	memset(&l, 0, sizeof(l));
	l.kind = METRICS_JOB;
	l.uid = row->labels.uid;
	l.rank = UNKNOWN_I32;
	memcpy(l.job, row->labels.job, sizeof(l.job));
	job = keyed_find(&m->rows, &l);
	return job && !row_is_old(job, now_ns, WANTED_NS);
}

/* All that was unused for `age_ns`; with `idle`, also of jobs that live. */
static void drop_old(struct metrics *m, uint64_t now_ns, uint64_t age_ns, bool idle)
{
	for (int kind = 0; kind < METRICS_KIND_END; kind++) {
		uint32_t next, item = m->kind[kind].first;

		for (; item != POOL_NONE; item = next) {
			struct metrics_row *row = metrics_row_at(m, item);

			next = pool_list_next(&m->rows.pool, &m->kind[kind], item);
			if (row_is_old(row, now_ns, age_ns) &&
			    (idle || !row_has_job(m, row, now_ns)))
				row_drop(m, row);
		}
	}
}

void metrics_expire(struct metrics *m, uint64_t now_ns)
{
	drop_old(m, now_ns, KEEP_NS, false);
}

/* Series left for a row that somebody can name. */
static bool rows_have_room(const struct metrics *m, uint32_t series)
{
	return m->stats.series + series + m->reserved <= m->stats.limit;
}

/* The series that each user may have where there is not enough for all, this one among them. */
static uint32_t fair_share(struct metrics *m, uid_t uid)
{
	uint32_t users = uid != METRICS_NOBODY && !*user_series(m, uid);

	for (uint32_t i = 0; i < ACCOUNTS_TALLY; i++)
		users += !!m->of_account.of[i];
	return (m->stats.limit - m->reserved) / (users ? users : 1);
}

/*
 * Users with more than a fair share lose some of it to one with less, until a tenth is free:
 * detail first, the oldest rows of it, but for those that are at work now.  For a while they
 * get no more.
 */
static void share_out(struct metrics *m, uid_t uid, uint64_t now_ns)
{
	uint32_t fair = fair_share(m, uid), next;

	if (*user_series(m, uid) >= fair)
		return;
	m->shared_until_ns = now_ns + WANTED_NS;
	for (int kind = METRICS_KIND_END; kind-- > 0;)
		for (uint32_t item = m->kind[kind].first; item != POOL_NONE; item = next) {
			struct metrics_row *row = metrics_row_at(m, item);

			next = pool_list_next(&m->rows.pool, &m->kind[kind], item);
			if (row_is_old(row, now_ns, 0) && *user_series(m, row->labels.uid) > fair &&
			    !rows_have_room(m, m->stats.limit / 10))
				row_drop(m, row);
		}
}

static bool user_may_grow(struct metrics *m, uint32_t series, uid_t uid, uint64_t now_ns)
{
	return rows_have_room(m, series) && (now_ns >= m->shared_until_ns ||
					     *user_series(m, uid) + series <= fair_share(m, uid));
}

static bool rows_make_room(struct metrics *m, uint32_t series, uid_t uid, uint64_t now_ns)
{
	if (user_may_grow(m, series, uid, now_ns))
		return true;
	if (now_ns >= m->evict_ns) {	/* not with every operation that is refused */
		m->evict_ns = now_ns + SECOND_NS;
		drop_old(m, now_ns, WANTED_NS, true);
		if (!rows_have_room(m, series))
			share_out(m, uid, now_ns);
	}
	return user_may_grow(m, series, uid, now_ns);
}

/*
 * Add a row: what its kind's table of series calls a gauge or an info is not known yet, and
 * counters are 0.  NULL: no room.
 */
static struct metrics_row *row_add(struct metrics *m, const struct metrics_labels *labels,
				   uint64_t now_ns)
{
	bool timed = labels->kind == METRICS_TIME, made;
	uint32_t lately = timed ? pool_take(&m->lately) : POOL_NONE;
	struct metrics_row *row = NULL;

	if (!timed || lately != POOL_NONE)
		row = keyed_use(&m->rows, labels, 0, &made);
	if (!row) {
		if (lately != POOL_NONE)
			pool_put(&m->lately, lately);
		return NULL;
	}
	row->used_ns = now_ns;
	row->lately = lately;
	metrics_reset_gauges(row);
	pool_list_append(&m->rows.pool, &m->kind[labels->kind], keyed_number(row));
	m->stats.series += metrics_cost((enum metrics_kind)labels->kind);
	if (labels->uid != METRICS_NOBODY)
		*user_series(m, labels->uid) += metrics_cost((enum metrics_kind)labels->kind);
	return row;
}

/*
 * All that found no room shares one row of that kind.  It is nobody's, so that only viewers
 * of everything see it.
 */
static struct metrics_row *row_other(struct metrics *m, enum metrics_kind kind, uint64_t now_ns)
{
	struct metrics_labels labels;
	struct metrics_row *row;

	m->stats.refused++;
	if (kind == METRICS_COMM || kind == METRICS_INSIDE)	/* means nothing of several */
		return NULL;
	memset(&labels, 0, sizeof(labels));
	labels.kind = kind;
	labels.uid = METRICS_NOBODY;
	labels.rank = UNKNOWN_I32;
	row = keyed_find(&m->rows, &labels);
	return row ? row : row_add(m, &labels, now_ns);
}

uint32_t metrics_row(struct metrics *m, const struct metrics_labels *labels, uint64_t now_ns)
{
	enum metrics_kind kind = (enum metrics_kind)labels->kind;
	struct metrics_row *row = keyed_find(&m->rows, labels);

	if (!row && rows_make_room(m, metrics_cost(kind), labels->uid, now_ns))
		row = row_add(m, labels, now_ns);
	if (row)
		row->used_ns = now_ns;
	else
		row = row_other(m, kind, now_ns);
	return row ? keyed_number(row) : POOL_NONE;
}

/* ---- labels ---------------------------------------------------------------------- */

void metrics_comm_text(char text[40], const char *name, bool has_id, uint64_t id)
{
	memset(text, 0, 40);
	if (name && *name)
		snprintf(text, 40, "%.*s", (int)strcspn(name, ":/|@# "), name);
	else if (has_id)
		snprintf(text, 40, "%012llx", (unsigned long long)(id & 0xffffffffffff));
}

static void common_labels(struct metrics_labels *l, enum metrics_kind kind,
			  const struct process *p)
{
	const char *job = job_id(p);

	memset(l, 0, sizeof(*l));
	l->kind = kind;
	l->uid = p->uid;
	l->rank = UNKNOWN_I32;
	if (job)
		strncpy(l->job, job, sizeof(l->job) - 1);
}

void metrics_job_labels(struct metrics_labels *l, const struct process *p)
{
	common_labels(l, METRICS_JOB, p);
}

/* Its rank in the communicator that is the job's own, and its first GPU. */
void metrics_member_labels(struct metrics_labels *l, const struct process *p)
{
	const struct comm *largest = diagnose_largest_comm(p);

	common_labels(l, METRICS_MEMBER, p);
	if (largest)
		l->rank = largest->rank;
	for (uint32_t i = 0; i < p->ncomms; i++)
		if (p->comms[i].ready && p->comms[i].has_gpu) {
			memcpy(l->gpu, p->comms[i].gpu_uuid, sizeof(l->gpu));
			break;
		}
}

void metrics_comm_labels(struct metrics_labels *l, enum metrics_kind kind,
			 const struct process *p, const struct comm *comm)
{
	common_labels(l, kind, p);
	metrics_comm_text(l->comm, comm->name, comm->has_id, comm->id);
	if (kind == METRICS_COMM || kind == METRICS_INSIDE)
		l->comm_id = comm->id;
	if (kind != METRICS_RANK && kind != METRICS_OP && kind != METRICS_INSIDE &&
	    kind != METRICS_PEER)
		return;
	l->rank = comm->rank;
	if (comm->has_gpu)
		memcpy(l->gpu, comm->gpu_uuid, sizeof(l->gpu));
}
