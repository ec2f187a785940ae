/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fills rows: as things happen, and once a second by a look at everything.
 *
 * An operation finds its rows by a cache of one entry per hash; what is not there is found by
 * its labels.  At a look, gauges are made anew, and what only grows is added by how much it has
 * grown, since who keeps it may forget it.  Most communicators do nothing, and there may be a
 * thousand in each process, so where their rows are is noted: it holds until a row goes, which
 * also is what gives room to those that had none.
 */
#include "ncclinspd/metrics/metrics.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "judge/late.h"
#include "ncclinspd/compare/ranks_compare.h"
#include "ncclinspd/compare/straggler.h"
#include "ncclinspd/findings/diagnose.h"
#include "ncclinspd/levels/steer.h"
#include "ncclinspd/metrics/inspector_series.h"
#include "ncclinspd/metrics/metrics_rows.h"
#include "ncclinspd/otlp/otlp.h"
#include "ncclinspd/sums/links.h"
#include "reader/base/job.h"
#include "reader/join/inflight.h"
#include "reader/join/ops.h"
#include "reader/join/reconstruct.h"
#include "util/cleanup.h"
#include "util/list.h"

#define PROCESSES	1024	/* the most processes that are looked at */
#define COMMS		8192	/* the most communicators of these */
#define OPS	3	/* functions of a communicator whose rows are noted */
#define ROOM	16	/* communicators for which it is made at a time */

struct metrics_comm {
	uint64_t generation;	/* the stage's when they were looked for; 0: never */
	int32_t rank;		/* the rank, which API v1 to v3 learn later than the rest */
	uint32_t role, member;	/* rows, or POOL_NONE */
	uint32_t within;	/* row of kind INSIDE; POOL_NONE: none is wanted either */
	uint32_t nops;
	uint32_t op[OPS];	/* rows, in the order of its progress */
};

/* The values last seen of a process, for what grows by differences. */
struct metrics_seen {
	struct keyed_head head;
	uint64_t process_id;
	uint32_t member;	/* its row, or POOL_NONE */
	struct diagnose_step step;
	uint64_t generation;	/* the member is known at this one; 0: never looked for */
	double records;
	double dropped[METRICS_REASON_END];
	double callback_s[NCI_THREAD_CLASSES];
	struct metrics_comm *comms;	/* the rows of its communicators */
	uint32_t ncomms;		/* rows in comms[] */
};

/* The same of one communicator of a process. */
struct metrics_waited_key {
	uint64_t process_id;
	uint64_t comm_index;
};

struct metrics_waited {
	struct keyed_head head;
	struct metrics_waited_key key;
	struct straggler_sums sums;
};

#define SECOND_NS	UINT64_C(1000000000)
#define ITERATION_TURNS	8	/* seconds between two looks at a process */
#define METRICS_CACHE	4096

/* The rows that an operation belongs to. */
struct metrics_cached {
	uint64_t process_id;
	name_t func, algo, proto;
	uint64_t size_class;
	uint32_t comm_index;
	uint32_t source;
	int32_t rank;
	bool inside;		/* it tells ranks apart */
	uint32_t op, time, member, within;	/* rows, or POOL_NONE */
	uint64_t generation;	/* the stage's when they were looked for; 0: empty */
};

struct metrics {
	struct metrics_config config;
	struct metrics_source source;
	struct metrics_rows rows;
	uint32_t left_out;		/* series that found no room at the last look */
	struct keyed seen;		/* rows by process */
	struct keyed waited;		/* rows by process and communicator */
	struct metrics_cached *cache;	/* METRICS_CACHE of them */
	struct inspector_series *inspector;	/* NULL: nobody wants them */
	uint64_t look_ns;		/* time of the look that is under way */
	uint32_t findings[FINDING_GRADE_END][FINDING_KIND_END];	/* active */
};

/* ---- operations ------------------------------------------------------------------------- */

/* The list is in the order of ids. */
static const struct process *metrics_process(const struct metrics *m, uint64_t id)
{
	struct process *const *list;
	size_t low = 0, high = m->source.processes(m->source.arg, &list);

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (list[middle]->id == id)
			return list[middle];
		if (list[middle]->id < id)
			low = middle + 1;
		else
			high = middle;
	}
	return NULL;
}

/*
 * The row of a process: known from the last look, for what comes by the hundred thousand;
 * else found by its labels.  POOL_NONE: it is gone, or there is no room.
 */
static uint32_t metrics_member(struct metrics *m, uint64_t process_id, uint64_t now_ns)
{
	const struct metrics_seen *seen = keyed_find(&m->seen, &process_id);
	const struct process *p;
	struct metrics_labels l;

	if (seen && seen->generation == m->rows.generation)
		return seen->member;
	p = metrics_process(m, process_id);
	if (!p)
		return POOL_NONE;
	metrics_member_labels(&l, p);
	return metrics_row(&m->rows, &l, now_ns);
}

/* A power of two from 1 KiB to 16 GiB, UINT64_MAX above; 0: not known. */
static uint64_t metrics_size_class(uint64_t bytes)
{
	uint64_t class = UINT64_C(1) << 10;

	if (bytes == UNKNOWN_U64)
		return 0;
	while (class < bytes && class < UINT64_C(1) << 34)
		class <<= 1;
	return bytes <= class ? class : UINT64_MAX;
}

/* Not timed, or only together with others: it is in no histogram. */
static bool op_is_timed(const struct op *op)
{
	return op->source != TIMING_NONE && op->exec_ns != UNKNOWN_U64 && !op_is_fused(op);
}

/*
 * Does the time inside its operations tell its ranks apart?  In the fleet profile this is for
 * communicators of several nodes: of one node's the daemon itself judges.
 */
static bool comm_tells_inside(const struct metrics *m, const struct comm *comm)
{
	return comm->has_id && comm->nranks > 1 && !(m->rows.fleet && comm->nnodes == 1);
}

static void cached_find_rows(struct metrics *m, struct metrics_cached *c, const struct op *op,
			     uint64_t now_ns)
{
	const struct process *p = metrics_process(m, op->process_id);
	const struct comm *comm = p ? process_comm(p, (uint16_t)op->comm_index) : NULL;
	struct metrics_labels l;

	c->op = c->time = c->member = c->within = POOL_NONE;
	if (!p || !comm)
		return;
	if (!m->rows.fleet) {		/* there it is made at a look, in the order of ranks */
		metrics_comm_labels(&l, METRICS_OP, p, comm);
		l.op = op->func;
		l.rank = op->rank;
		c->op = metrics_row(&m->rows, &l, now_ns);
	}
	c->member = metrics_member(m, p->id, now_ns);
	if (c->inside && comm_tells_inside(m, comm)) {
		metrics_comm_labels(&l, METRICS_INSIDE, p, comm);
		c->within = m->rows.fleet ? metrics_row_known(&m->rows, &l) :
					    metrics_row(&m->rows, &l, now_ns);
	}
	if (c->source == TIMING_NONE)
		return;
	metrics_comm_labels(&l, METRICS_TIME, p, comm);
	l.op = op->func;
	l.size_class = c->size_class;
	l.algo = c->algo;
	l.proto = c->proto;
	l.source = c->source;
	c->time = metrics_row(&m->rows, &l, now_ns);
}

static bool cached_is_same(const struct metrics_cached *a, const struct metrics_cached *b)
{
	return a->process_id == b->process_id && a->func == b->func && a->algo == b->algo &&
	       a->proto == b->proto && a->inside == b->inside &&
	       a->size_class == b->size_class && a->comm_index == b->comm_index &&
	       a->source == b->source && a->rank == b->rank && a->generation == b->generation;
}

/* Looking for rows may take some away, also those just found: then once more. */
static const struct metrics_cached *cached_rows(struct metrics *m, const struct op *op,
						uint64_t now_ns)
{
	struct metrics_cached want = {
		.process_id = op->process_id, .func = op->func,
			.size_class = metrics_size_class(op->bytes),
		.comm_index = op->comm_index, .rank = op->rank, .generation = m->rows.generation,
		.source = op_is_timed(op) ? op->source : TIMING_NONE,
		.algo = op->algo, .proto = op->proto, .inside = ranks_are_told_apart_by(op),
	};
	const uint64_t words[] = { want.process_id, (uintptr_t)want.func, want.size_class,
				   (uint64_t)want.comm_index << 32 | want.source,
				   (uintptr_t)want.algo, (uintptr_t)want.proto };
	struct metrics_cached *c = &m->cache[index_hash(m->config.seed, words, sizeof(words)) %
					     METRICS_CACHE];

	if (cached_is_same(c, &want))
		return c;
	do {
		want.generation = m->rows.generation;
		cached_find_rows(m, &want, op, now_ns);
	} while (want.generation != m->rows.generation);
	*c = want;
	return c;
}

static void cached_add_lately(struct metrics *m, struct metrics_row *row, int which, double gbs,
			      uint64_t now_ns)
{
	struct metrics_lately *lately = pool_at(&m->rows.lately, row->lately);
	uint32_t at = lately->of[which].n % METRICS_LATELY;

	if (gbs <= 0)
		return;
	lately->of[which].at_ns[at] = now_ns;
	lately->of[which].rate[at] = gbs * 1e9;
	lately->of[which].n++;
}

static void cached_add_time(struct metrics *m, struct metrics_row *row, const struct op *op,
			    uint64_t now_ns)
{
	uint64_t bound_ns = METRICS_FIRST_BOUND_NS;
	int i = 0;

	for (; i < METRICS_BOUNDS && op->exec_ns > bound_ns; i++)
		bound_ns *= 2;
	row->v[TIME_BUCKET + i]++;
	row->v[TIME_SUM] += (double)op->exec_ns * 1e-9;
	row->used_ns = now_ns;
	cached_add_lately(m, row, 0, op->busbw_gbs, now_ns);
	cached_add_lately(m, row, 1, op->busbw_waitfree_gbs, now_ns);
}

static void inspector_see(struct metrics *m, const struct op *op, uint64_t now_ns)
{
	const struct process *p = m->inspector ? metrics_process(m, op->process_id) : NULL;

	if (p)
		inspector_series_op(m->inspector, p, op, now_ns);
}

void metrics_op(struct metrics *m, const struct op *op, uint64_t now_ns)
{
	const struct metrics_cached *c = cached_rows(m, op, now_ns);
	struct metrics_row *row = metrics_row_at(&m->rows, c->op);

	inspector_see(m, op, now_ns);
	if (row) {
		row->v[OP_OPS]++;
		row->v[OP_BYTES] += op->bytes == UNKNOWN_U64 ? 0 : (double)op->bytes;
		row->used_ns = now_ns;
	}
	row = metrics_row_at(&m->rows, c->time);
	if (row)
		cached_add_time(m, row, op, now_ns);
	row = metrics_row_at(&m->rows, c->within);
	if (row) {
		row->v[INSIDE_OPS]++;
		row->v[INSIDE_TIME] += (double)op_inside_ns(op) * 1e-9;
		row->used_ns = now_ns;
	}
	row = metrics_row_at(&m->rows, c->member);
	if (row && op_is_fused(op))
		row->v[MEMBER_DROPPED + METRICS_REASON_FUSED]++;
}

/* The row of a link's peer; NULL: nobody wants to know, or it is not known, or has no room. */
static struct metrics_row *metrics_peer_row(struct metrics *m, const struct links_who *who,
					    uint64_t now_ns)
{
	const struct process *p = metrics_process(m, who->process_id);
	const struct comm *comm = p ? process_comm(p, (uint16_t)who->comm_index) : NULL;
	struct metrics_labels l;

	if (!m->config.peers || !comm || who->peer == UNKNOWN_I32)
		return NULL;
	metrics_comm_labels(&l, METRICS_PEER, p, comm);
	l.peer = who->peer;
	l.receives = !who->send;
	return metrics_row_at(&m->rows, metrics_row(&m->rows, &l, now_ns));
}

/* Take all channels together: the sum of their rates, and the least of their latencies. */
static bool metrics_see_link(const struct links_row *link, void *arg)
{
	struct metrics *m = arg;
	struct metrics_row *row = metrics_peer_row(m, &link->who, m->look_ns);
	struct fit_line line;

	if (!row || row->labels.uid == METRICS_NOBODY)
		return true;
	if (link->rate_gbs >= 0)
		row->v[PEER_RATE] = (isnan(row->v[PEER_RATE]) ? 0 : row->v[PEER_RATE]) +
				    link->rate_gbs * 1e9;
	if (link->who.send && links_line(link, &line) == FIT_FOUND &&
	    !(row->v[PEER_LATENCY] <= line.latency_ns * 1e-9))
		row->v[PEER_LATENCY] = line.latency_ns * 1e-9;
	return true;
}

static double value_or_nan(uint64_t value)
{
	return value == UNKNOWN_U64 ? 0 : (double)value;
}

void metrics_moved(struct metrics *m, const struct links_row *link, uint64_t now_ns)
{
	struct metrics_row *row = metrics_row_at(&m->rows, metrics_member(m, link->who.process_id,
								   now_ns));
	int receive = !link->who.send;
	struct metrics_row *peer;

	if (!row)
		return;
	row->v[MEMBER_MOVED + receive] += value_or_nan(link->sums.bytes);
	for (int i = 0; i < LINKS_STATES; i++)
		row->v[MEMBER_STEP + LINKS_STATES * receive + i] +=
			value_or_nan(link->sums.state_ns[i]) * 1e-9;
	peer = metrics_peer_row(m, &link->who, now_ns);
	if (peer)
		peer->v[PEER_BYTES] += value_or_nan(link->sums.bytes);
}

/* ---- what ranks wait for each other ----------------------------------------------------- */

/* A row at a look; what has none of its own is left out. */
static struct metrics_row *row_use(struct metrics *m, enum metrics_kind kind, uint32_t item,
				   uint64_t now_ns)
{
	struct metrics_row *row = metrics_row_at(&m->rows, item);

	if (!row || row->labels.uid == METRICS_NOBODY)
		m->left_out += m->rows.cost[kind];
	if (row)
		row->used_ns = now_ns;
	return row;
}

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
	if (m->rows.fleet && now.ops < LATE_KNOWN)
		return;
	w = keyed_use(&m->waited, &key, 0, &made);
	if (!w || !memcmp(&w->sums, &now, sizeof(now)))
		return;
	metrics_comm_labels(&l, METRICS_WAITING, p, comm);
	row = row_use(m, METRICS_WAITING, metrics_row(&m->rows, &l, now_ns), now_ns);
	if (!row)
		return;
	row->v[WAITING_WAIT] += counter_more(w->sums.wait_ns, now.wait_ns) * 1e-9;
	row->v[WAITING_BLAME] += counter_more(w->sums.blame_ns, now.blame_ns) * 1e-9;
	row->v[WAITING_JUDGED] += counter_more(w->sums.judged, now.judged);
	row->v[WAITING_LAST] += counter_more(w->sums.last, now.last);
	w->sums = now;
}

static void metrics_forget_comms(struct metrics *m, const struct process *p)
{
	for (uint32_t i = 0; i < p->ncomms; i++) {
		const struct metrics_waited_key key = { p->id, i };
		struct metrics_waited *w = keyed_find(&m->waited, &key);

		if (w)
			keyed_drop(&m->waited, w);
	}
}

/* ---- rows of a communicator ------------------------------------------------------------- */

static uint32_t comm_find_row(struct metrics *m, enum metrics_kind kind, const struct process *p,
			      const struct comm *comm, name_t op, uint64_t now_ns)
{
	struct metrics_labels l;

	metrics_comm_labels(&l, kind, p, comm);
	l.op = op;
	return metrics_row(&m->rows, &l, now_ns);
}

/* "": not known, and no label. */
static void row_put_fact(struct metrics_row *row, int i, const char *text)
{
	snprintf(row->info[i], sizeof(row->info[i]), "%s", text ? text : "");
}

static void row_put_number(struct metrics_row *row, int i, int32_t number)
{
	row->info[i][0] = '\0';
	if (number != UNKNOWN_I32)
		snprintf(row->info[i], sizeof(row->info[i]), "%d", number);
}

static void comm_put_info(struct metrics *m, uint32_t item, const struct process *p,
			  const struct comm *comm)
{
	struct metrics_row *row = metrics_row_at(&m->rows, item);

	if (!row)
		return;
	row_put_fact(row, 0, comm->name);
	row_put_number(row, 1, comm->has_id ? comm->nranks : UNKNOWN_I32);
	row_put_number(row, 2, comm->has_id ? comm->nnodes : UNKNOWN_I32);
	row_put_number(row, 3, job_world_rank(p, comm));
	row_put_number(row, 4, p->pid);
	row_put_fact(row, 5, comm->has_gpu ? comm->pci_bus_id : NULL);
	row_put_number(row, 6, comm->has_gpu ? comm->gpu_index : UNKNOWN_I32);
}

/* Rows that are looked for are in use: none of these goes to make room for the next. */
static void comm_find_rows(struct metrics *m, struct metrics_comm *c, const struct process *p,
			   const struct comm *comm, uint64_t now_ns)
{
	*c = (struct metrics_comm){ .rank = comm->rank, .within = POOL_NONE };
	c->role = comm_find_row(m, METRICS_ROLE, p, comm, NULL, now_ns);
	c->member = comm_find_row(m, METRICS_RANK, p, comm, NULL, now_ns);
	comm_put_info(m, c->member, p, comm);
	c->generation = m->rows.generation;
}

static struct metrics_row *comm_op_row(struct metrics *m, struct metrics_comm *c,
				       const struct process *p, const struct comm *comm,
				       const struct comm_progress *progress, uint32_t i,
				       uint64_t now_ns)
{
	name_t func = progress->last_seq[i].func;
	uint32_t item, *place;

	if (i < c->nops && c->generation == m->rows.generation)
		return row_use(m, METRICS_OP, c->op[i], now_ns);
	item = comm_find_row(m, METRICS_OP, p, comm, func, now_ns);
	place = i == c->nops ? array_add(c->op, &c->nops) : NULL;
	if (place)
		*place = item;
	return row_use(m, METRICS_OP, item, now_ns);
}

/* So many operations were posted that the time inside them will tell something. */
static bool progress_tells_inside(const struct comm_progress *progress)
{
	const struct op_facts *facts;

	for (uint32_t i = 0; i < progress->nfuncs; i++) {
		facts = ops_facts(progress->last_seq[i].func);
		if (facts && facts->joint && progress->last_seq[i].seq >= LATE_KNOWN)
			return true;
	}
	return false;
}

/* Its row is there with 0 before the first was timed. */
static void see_inside(struct metrics *m, struct metrics_comm *c, const struct process *p,
		       const struct comm *comm, uint64_t now_ns)
{
	if (c->within == POOL_NONE || c->generation != m->rows.generation)
		c->within = comm_find_row(m, METRICS_INSIDE, p, comm, NULL, now_ns);
	row_use(m, METRICS_INSIDE, c->within, now_ns);
}

/* ---- what is in flight in it ------------------------------------------------------------ */

static void add_gauge(double *gauge, double value)
{
	*gauge = (isnan(*gauge) ? 0 : *gauge) + value;
}

/* Places in info[] of what ncclinsp_inflight_oldest_seconds tells. */
enum { OLDEST_OP = 7, OLDEST_STATE, OLDEST_PEER, OLDEST_SEQ };

static void oldest_put_none(struct metrics_row *row)
{
	row->v[RANK_OLDEST] = 0;
	for (int i = OLDEST_OP; i < METRICS_INFOS; i++)
		row_put_fact(row, i, NULL);
}

static void see_progress(struct metrics *m, struct metrics_comm *c, const struct process *p,
			 const struct comm *comm, const struct comm_progress *progress,
			 uint64_t now_ns)
{
	struct metrics_row *row = row_use(m, METRICS_RANK, c->member, now_ns), *op;
	bool inside = comm_tells_inside(m, comm) && progress_tells_inside(progress);

	if (!row) {
		m->left_out += progress->nfuncs * m->rows.cost[METRICS_OP] +
			       inside * m->rows.cost[METRICS_INSIDE];
		return;
	}
	row->v[RANK_INFO] = 1;
	add_gauge(&row->v[RANK_INFLIGHT], 0);
	if (isnan(row->v[RANK_OLDEST]))
		oldest_put_none(row);
	for (uint32_t i = 0; i < progress->nfuncs; i++) {
		op = comm_op_row(m, c, p, comm, progress, i, now_ns);
		if (op && op->labels.uid == p->uid)	/* a number says nothing of several */
			op->v[OP_SEQUENCE] = (double)progress->last_seq[i].seq;
	}
	if (inside)
		see_inside(m, c, p, comm, now_ns);
}

/* Facts about it, and 0 where nothing is wrong. */
static void see_open_comm(struct metrics *m, struct metrics_comm *c, const struct process *p,
			  const struct comm *comm, uint32_t index, uint64_t now_ns)
{
	struct comm_progress progress;
	struct metrics_row *row;

	reconstruct_progress(p, index, &progress);
	if (!progress.last_op_ns && metrics_rows_are_scarce(&m->rows, now_ns))
		return;
	if (c->generation != m->rows.generation || c->rank != comm->rank)
		comm_find_rows(m, c, p, comm, now_ns);
	row = row_use(m, METRICS_ROLE, c->role, now_ns);
	if (row) {
		add_gauge(&row->v[ROLE_STALL], 0);
		add_gauge(&row->v[ROLE_DESYNC], 0);
	}
	see_progress(m, c, p, comm, &progress, now_ns);
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

/* The communicators of a process, at a look.  `seen` may be NULL. */
static void metrics_see_comms(struct metrics *m, struct metrics_seen *seen,
			      const struct process *p, uint64_t now_ns)
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

/* The row of kind RANK of one of them, by that look or else by its labels; or NULL. */
static struct metrics_row *metrics_comm_row(struct metrics *m, const struct metrics_seen *seen,
					    const struct process *p, uint32_t index,
					    uint64_t now_ns)
{
	const struct comm *comm = process_comm(p, (uint16_t)index);

	if (seen && index < seen->ncomms && seen->comms[index].generation == m->rows.generation)
		return metrics_row_at(&m->rows, seen->comms[index].member);
	if (!comm)
		return NULL;
	return metrics_row_at(&m->rows, comm_find_row(m, METRICS_RANK, p, comm, NULL, now_ns));
}

static void metrics_seen_deinit(struct metrics_seen *seen)
{
	free(seen->comms);
	seen->comms = NULL;
	seen->ncomms = 0;
}

/* The growth since `before`, which is `now` then; what is less than before has begun anew. */
static double counter_grown(double *before, double now)
{
	double by = now >= *before ? now - *before : now;

	*before = now;
	return by;
}

/* ---- processes -------------------------------------------------------------------------- */

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

static void see_facts(const struct metrics *m, struct metrics_row *row, const struct process *p)
{
	row->v[MEMBER_INFO] = 1;
	if (p->api_version) {
		row->v[MEMBER_LEVEL] = p->level;
		snprintf(row->info[0], sizeof(row->info[0]), "%u", p->api_version);
	}
	row_put_fact(row, 1, p->plugin_version);
	row_put_fact(row, 2, job_scheduler(p));
	row_put_fact(row, 3, job_namespace(p));
	row_put_fact(row, 4, job_pod(p));
	row_put_fact(row, 5, p->container);
	row_put_fact(row, 6, p->command);
	row_put_number(row, 7, p->pid);
	if (p->steering.known && m->source.steer)
		row->v[MEMBER_BUDGET] = steer_budget_ppm(m->source.steer) * 1e-6;
}

static void row_put_known(struct metrics_row *row, int value, double x)
{
	if (x >= 0)
		row->v[value] = x;
}

/* A period takes some 100 us to be found: processes take turns. */
static void see_iteration(const struct metrics *m, struct metrics_row *row,
			  struct metrics_seen *seen, const struct process *p, uint64_t now_ns)
{
	if (m->source.diagnose && (now_ns / SECOND_NS + p->id) % ITERATION_TURNS == 0)
		seen->step = diagnose_step(m->source.diagnose, p->id, now_ns);
	if (!seen->step.step_ns)
		return;
	row->v[MEMBER_ITERATION] = (double)seen->step.step_ns * 1e-9;
	row_put_known(row, MEMBER_NCCL, seen->step.nccl);
	row_put_known(row, MEMBER_EXPOSED, seen->step.exposed);
}

/* An ended process keeps no row in use, nor has one made anew. */
static uint32_t process_row(struct metrics *m, const struct process *p,
			    const struct metrics_labels *l, uint64_t now_ns)
{
	return p->state == PROCESS_LIVE ? metrics_row(&m->rows, l, now_ns) :
					  metrics_row_known(&m->rows, l);
}

static void process_see_counters(struct metrics *m, const struct process *p, uint64_t now_ns)
{
	const struct cost *cost = m->source.steer ? steer_cost(m->source.steer, p) : NULL;
	struct metrics_seen *seen = seen_of(m, p);
	uint32_t item;
	struct metrics_labels l;
	struct metrics_row *row;

	metrics_member_labels(&l, p);
	item = process_row(m, p, &l, now_ns);
	row = p->state == PROCESS_LIVE ? row_use(m, METRICS_MEMBER, item, now_ns) :
					 metrics_row_at(&m->rows, item);
	if (!row || !seen)
		return;
	seen->member = item;
	seen->generation = m->rows.generation;
	see_losses(row, seen, p);
	if (cost)
		see_cost(row, seen, cost);
	if (p->state != PROCESS_LIVE || l.uid != row->labels.uid)
		return;
	see_facts(m, row, p);
	see_iteration(m, row, seen, p, now_ns);
}

static void see_job(struct metrics *m, const struct process *p, uint64_t now_ns)
{
	struct metrics_labels l;
	struct metrics_row *row;

	metrics_job_labels(&l, p);
	row = metrics_row_at(&m->rows, process_row(m, p, &l, now_ns));
	if (row)
		row->v[JOB_LIVE] = (isnan(row->v[JOB_LIVE]) ? 0 : row->v[JOB_LIVE]) +
				   (p->state == PROCESS_LIVE);
}

/* ---- ages of what is in flight ---------------------------------------------------------- */

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

#define TOLD_S	10	/* an operation this old is told of by its name: it stays the same one */

static void oldest_put_facts(struct metrics_row *row, const struct op *op, double age_s)
{
	bool told = age_s >= TOLD_S;

	row_put_fact(row, OLDEST_OP, told ? op->func : NULL);
	row_put_fact(row, OLDEST_STATE, told ? inflight_op_state(inflight_state_of(op)) : NULL);
	row_put_number(row, OLDEST_PEER, told ? op->peer : UNKNOWN_I32);
	row_put_fact(row, OLDEST_SEQ, NULL);
	if (told && op->seq != UNKNOWN_U64)
		snprintf(row->info[OLDEST_SEQ], sizeof(row->info[OLDEST_SEQ]), "%" PRIu64,
			 op->seq);
}

static bool see_age(const struct op *op, void *arg)
{
	struct ages *a = arg;
	struct metrics_row *row;
	double age_s;

	if (op->api_only || op->complete)
		return true;		/* it is a call, or only settles */
	row = row_of_open(a, op->comm_index);
	if (row)
		row->v[RANK_INFLIGHT]++;	/* NaN: its communicator is left */
	if (!op->enqueued_ns || op->enqueued_ns > a->now_ns)
		return true;
	age_s = (double)(a->now_ns - op->enqueued_ns) * 1e-9;
	if (row && row->v[RANK_OLDEST] < age_s) {
		row->v[RANK_OLDEST] = age_s;
		oldest_put_facts(row, op, age_s);
	}
	return true;
}

/* ---- findings and links ----------------------------------------------------------------- */

static void see_active(struct metrics *m, const struct finding *f)
{
	struct metrics_labels l;
	struct metrics_row *row;

	metrics_finding_labels(&l, f);
	row = row_use(m, METRICS_FINDING, metrics_row(&m->rows, &l, m->look_ns), m->look_ns);
	if (row)
		add_gauge(&row->v[FINDING_ACTIVE], 1);
}

static bool see_finding(const struct finding *f, void *arg)
{
	struct metrics *m = arg;
	struct metrics_row *row;
	char comm[40];

	if (f->life.until_ns)
		return true;
	m->findings[f->grade][f->kind]++;
	see_active(m, f);
	if (f->grade != FINDING_FOUND ||
	    (f->kind != FINDING_STALL && f->kind != FINDING_DESYNC))
		return true;
	metrics_comm_text(comm, f->comm_name, f->has_comm_id, f->comm_id);
	for (row = m->rows.kind[METRICS_ROLE].first; row;
	     row = pool_list_next(&m->rows.kind[METRICS_ROLE], row))
		if (row->labels.uid == f->uid && !strcmp(row->labels.comm, comm))
			row->v[f->kind == FINDING_STALL ? ROLE_STALL : ROLE_DESYNC] = 1;
	return true;
}

static void see_links(struct metrics *m, uint64_t now_ns)
{
	const struct links_query query = { .windows = 1u << LINKS_60S, .all_users = true };

	if (m->config.peers && m->source.links)
		links_visit(m->source.links, &query, now_ns, metrics_see_link, m);
}

/* ---- all of it -------------------------------------------------------------------------- */

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

	m->look_ns = now_ns;
	m->left_out = 0;
	metrics_rows_expire(&m->rows, now_ns);
	metrics_rows_reset(&m->rows);
	memset(m->findings, 0, sizeof(m->findings));
	for (size_t i = 0; i < n; i++)
		metrics_see_process(m, list[i], now_ns);
	m->rows.looked_ns = now_ns;
	see_links(m, now_ns);
	if (m->source.diagnose)
		diagnose_visit(m->source.diagnose, see_finding, m);
}

void metrics_ended(struct metrics *m, const struct process *p, uint64_t now_ns)
{
	struct metrics_labels l;
	struct metrics_row *row;

	metrics_member_labels(&l, p);
	metrics_row(&m->rows, &l, now_ns);	/* it may have been in no look */
	process_see_counters(m, p, now_ns);
	metrics_job_labels(&l, p);
	row = metrics_row_at(&m->rows, metrics_row(&m->rows, &l, now_ns));
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

/* ---- the node itself -------------------------------------------------------------------- */

static double node_cpu_s(void)
{
	struct rusage u;

	if (getrusage(RUSAGE_SELF, &u) < 0)
		return NAN;
	return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
	       (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) * 1e-6;
}

static void node_see_otlp(const struct metrics *m, struct metrics_row *row)
{
	for (int i = 0; i < OTLP_SIGNAL_END; i++) {
		bool wanted = otlp_wants(m->source.otlp, (enum otlp_signal)i);
		struct otlp_stats stats = { 0 };

		if (wanted)
			otlp_read_stats(m->source.otlp, (enum otlp_signal)i, &stats);
		row->v[NODE_PUSHED + i] = wanted ? (double)stats.sent : NAN;
		row->v[NODE_UNPUSHED + i] = wanted ? (double)stats.dropped : NAN;
	}
}

static void node_row_fill(const struct metrics *m, struct metrics_row *row)
{
	row->labels.kind = METRICS_NODE;
	snprintf(row->info[0], sizeof(row->info[0]), "%s", NCCLINSP_VERSION);
	row->v[NODE_INFO] = 1;
	row->v[NODE_CPU] = node_cpu_s();
	row->v[NODE_USED] = m->rows.series;
	row->v[NODE_LIMIT] = m->rows.limit;
	row->v[NODE_LEFT_OUT] = m->left_out;
	row->v[NODE_REFUSED] = (double)m->rows.refused;
	for (int kind = 0; kind < FINDING_KIND_END; kind++) {
		row->v[NODE_FOUND + kind] = m->findings[FINDING_FOUND][kind];
		row->v[NODE_SUSPECTED + kind] = m->findings[FINDING_SUSPECTED][kind];
	}
	node_see_otlp(m, row);
}

void metrics_write(const struct metrics *m, struct exposition *e, bool all, uid_t uid,
		   uint64_t now_ns)
{
	struct metrics_row node = { 0 };

	node_row_fill(m, &node);
	metrics_rows_write(&m->rows, e, &node, all, uid, now_ns);
	if (m->inspector)
		inspector_series_write(m->inspector, e, all, uid, now_ns);
	exposition_end(e);
}

/* ---- making ----------------------------------------------------------------------------- */

#define TABLE(type, key_member, n)							\
	&KEYED_CONFIG(type, key_member, n, .seed = m->config.seed, .refuses = true)

static int metrics_init_tables(struct metrics *m)
{
	int err = metrics_rows_init(&m->rows, &m->config);

	err = err ? err : keyed_init(&m->seen, TABLE(struct metrics_seen, process_id, PROCESSES));
	return err ? err : keyed_init(&m->waited, TABLE(struct metrics_waited, key, COMMS));
}

CLEANUP_DEFINE(metrics_free, struct metrics)

int metrics_new(struct metrics **mp, const struct metrics_config *config,
		const struct metrics_source *source)
{
	CLEANUP(metrics_freep) struct metrics *m = calloc(1, sizeof(*m));
	int r;

	if (!m)
		return -ENOMEM;
	m->config = *config;
	m->source = *source;
	m->cache = calloc(METRICS_CACHE, sizeof(*m->cache));
	r = m->cache ? metrics_init_tables(m) : -ENOMEM;
	if (!r && config->inspector)
		r = inspector_series_new(&m->inspector, m->rows.host, config->accounts,
					 config->seed);
	if (r < 0)
		return r;
	*mp = DISOWN(m);
	return 0;
}

static void metrics_free_seen(struct metrics *m)
{
	for (struct metrics_seen *seen = NULL; (seen = keyed_next(&m->seen, seen));)
		metrics_seen_deinit(seen);
}

void metrics_free(struct metrics *m)
{
	if (!m)
		return;
	metrics_free_seen(m);
	free(m->cache);
	inspector_series_free(m->inspector);
	keyed_deinit(&m->waited);
	keyed_deinit(&m->seen);
	metrics_rows_deinit(&m->rows);
	free(m);
}
