/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Once a second: the communicators of a process.  Most of them do nothing, and there may
 * be a thousand in each process, so where their rows are is noted: it holds until a row
 * goes, which also is what gives room to those that had none.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ncclinspd/metrics/metrics_impl.h"
#include "reader/join/reconstruct.h"
#include "util/list.h"

#define OPS	3	/* functions of a communicator whose rows are noted */
#define ROOM	16	/* communicators for which it is made at a time */

struct metrics_comm {
	uint64_t generation;	/* the stage's when they were looked for; 0: never */
	int32_t rank;		/* the rank, which API v1 to v3 learn later than the rest */
	uint32_t role, comm, member;	/* rows, or POOL_NONE */
	uint32_t nops;
	uint32_t op[OPS];	/* rows, in the order of its progress */
};

/* ---- what ranks wait for each other ---------------------------------------------------- */

/* The growth since; what is less than before has begun anew. */
static double counter_more(uint64_t before, uint64_t now)
{
	return (double)(now >= before ? now - before : now);
}

/* A sum that has not grown does not keep the row of a communicator that was closed. */
static void see_waiting(struct metrics *m, const struct process *p, const struct comm *comm,
			uint32_t index, uint64_t now_ns)
{
	const struct metrics_waited_key key = { p->id, index };
	struct metrics_labels l;
	struct metrics_waited *w;
	struct metrics_row *row;
	struct straggler_sums now;
	bool made;

	if (!m->source.straggler || !straggler_of(m->source.straggler, p->id, index, &now))
		return;
	w = keyed_use(&m->waited, &key, 0, &made);
	if (!w || !memcmp(&w->sums, &now, sizeof(now)))
		return;
	metrics_comm_labels(&l, METRICS_RANK, p, comm);
	row = metrics_row_at(m, metrics_row(m, &l, now_ns));
	if (!row)
		return;
	row->v[RANK_WAIT] += counter_more(w->sums.wait_ns, now.wait_ns) * 1e-9;
	row->v[RANK_BLAME] += counter_more(w->sums.blame_ns, now.blame_ns) * 1e-9;
	row->v[RANK_JUDGED] += counter_more(w->sums.judged, now.judged);
	row->v[RANK_LAST] += counter_more(w->sums.last, now.last);
	w->sums = now;
}

void metrics_forget_comms(struct metrics *m, const struct process *p)
{
	for (uint32_t i = 0; i < p->ncomms; i++) {
		const struct metrics_waited_key key = { p->id, i };
		struct metrics_waited *w = keyed_find(&m->waited, &key);

		if (w)
			keyed_drop(&m->waited, w);
	}
}

/* ---- rows ------------------------------------------------------------------------------ */

static uint32_t comm_find_row(struct metrics *m, enum metrics_kind kind, const struct process *p,
			      const struct comm *comm, name_t op, uint64_t now_ns)
{
	struct metrics_labels l;

	metrics_comm_labels(&l, kind, p, comm);
	l.op = op;
	return metrics_row(m, &l, now_ns);
}

static void comm_put_info(struct metrics *m, uint32_t item, const struct comm *comm)
{
	struct metrics_row *row = metrics_row_at(m, item);

	if (!row)
		return;
	snprintf(row->info[0], sizeof(row->info[0]), "0x%016llx", (unsigned long long)comm->id);
	snprintf(row->info[1], sizeof(row->info[1]), "%s", comm->name);
	snprintf(row->info[2], sizeof(row->info[2]), "%d", comm->nranks);
	snprintf(row->info[3], sizeof(row->info[3]), "%d", comm->nnodes);
}

/* Rows that are looked for are in use: none of these goes to make room for the next. */
static void comm_find_rows(struct metrics *m, struct metrics_comm *c, const struct process *p,
			   const struct comm *comm, uint64_t now_ns)
{
	*c = (struct metrics_comm){ .rank = comm->rank, .comm = POOL_NONE };
	c->role = comm_find_row(m, METRICS_ROLE, p, comm, NULL, now_ns);
	c->member = comm_find_row(m, METRICS_RANK, p, comm, NULL, now_ns);
	if (comm->has_id)
		c->comm = comm_find_row(m, METRICS_COMM, p, comm, NULL, now_ns);
	comm_put_info(m, c->comm, comm);
	c->generation = m->generation;
}

static struct metrics_row *row_use(struct metrics *m, uint32_t item, uint64_t now_ns)
{
	struct metrics_row *row = metrics_row_at(m, item);

	if (row)
		row->used_ns = now_ns;
	return row;
}

static struct metrics_row *comm_op_row(struct metrics *m, struct metrics_comm *c,
				       const struct process *p, const struct comm *comm,
				       const struct comm_progress *progress, uint32_t i,
				       uint64_t now_ns)
{
	name_t func = progress->last_seq[i].func;
	uint32_t item, *place;

	if (i < c->nops && c->generation == m->generation)
		return row_use(m, c->op[i], now_ns);
	item = comm_find_row(m, METRICS_OP, p, comm, func, now_ns);
	place = i == c->nops ? array_add(c->op, &c->nops) : NULL;
	if (place)
		*place = item;
	return metrics_row_at(m, item);
}

/* ---- what is in flight ------------------------------------------------------------------ */

static void add_gauge(double *gauge, double value)
{
	*gauge = (isnan(*gauge) ? 0 : *gauge) + value;
}

static void see_progress(struct metrics *m, struct metrics_comm *c, const struct process *p,
			 const struct comm *comm, uint32_t index, uint64_t now_ns)
{
	struct metrics_row *row = row_use(m, c->member, now_ns), *op;
	struct comm_progress progress;

	if (!row)
		return;
	if (!reconstruct_progress(p, index, &progress))
		progress.nfuncs = 0;
	add_gauge(&row->v[RANK_INFLIGHT], progress.in_flight);
	if (isnan(row->v[RANK_OLDEST]))
		row->v[RANK_OLDEST] = 0;
	for (uint32_t i = 0; i < progress.nfuncs; i++) {
		op = comm_op_row(m, c, p, comm, &progress, i, now_ns);
		if (op && op->labels.uid == p->uid)	/* a number says nothing of several */
			op->v[OP_SEQUENCE] = (double)progress.last_seq[i].seq;
	}
}

/* Facts about it, and 0 where nothing is wrong. */
static void see_open_comm(struct metrics *m, struct metrics_comm *c, const struct process *p,
			  const struct comm *comm, uint32_t index, uint64_t now_ns)
{
	struct metrics_row *row;

	if (c->generation != m->generation || c->rank != comm->rank)
		comm_find_rows(m, c, p, comm, now_ns);
	row = row_use(m, c->role, now_ns);
	if (row) {
		add_gauge(&row->v[ROLE_STALL], 0);
		add_gauge(&row->v[ROLE_DESYNC], 0);
	}
	row = row_use(m, c->comm, now_ns);
	if (row)
		row->v[COMM_INFO] = 1;
	see_progress(m, c, p, comm, index, now_ns);
}

/* NULL: no memory, so that they are looked for each time. */
static struct metrics_comm *seen_places(struct metrics_seen *seen, const struct process *p)
{
	uint32_t n = (p->ncomms + ROOM - 1) / ROOM * ROOM;
	struct metrics_comm *comms;

	if (!seen || seen->ncomms >= p->ncomms)
		return seen ? seen->comms : NULL;
	comms = realloc(seen->comms, n * sizeof(*comms));
	if (!comms)
		return NULL;
	memset(comms + seen->ncomms, 0, (n - seen->ncomms) * sizeof(*comms));
	seen->comms = comms;
	seen->ncomms = n;
	return comms;
}

void metrics_see_comms(struct metrics *m, struct metrics_seen *seen, const struct process *p,
		       uint64_t now_ns)
{
	struct metrics_comm *places = seen_places(seen, p);

	for (uint32_t i = 0; i < p->ncomms; i++) {
		const struct comm *comm = process_comm(p, (uint16_t)i);
		struct metrics_comm nowhere = { 0 };

		if (!comm)
			continue;
		see_waiting(m, p, comm, i, now_ns);
		if (p->state == PROCESS_LIVE && !comm->finalize_ticks)
			see_open_comm(m, places ? &places[i] : &nowhere, p, comm, i, now_ns);
	}
}

struct metrics_row *metrics_comm_row(struct metrics *m, const struct metrics_seen *seen,
				     const struct process *p, uint32_t index, uint64_t now_ns)
{
	const struct comm *comm = process_comm(p, (uint16_t)index);

	if (seen && index < seen->ncomms && seen->comms[index].generation == m->generation)
		return row_use(m, seen->comms[index].member, now_ns);
	return comm ?
		metrics_row_at(m, comm_find_row(m, METRICS_RANK, p, comm, NULL, now_ns)) : NULL;
}

void metrics_seen_deinit(struct metrics_seen *seen)
{
	free(seen->comms);
	seen->comms = NULL;
	seen->ncomms = 0;
}
