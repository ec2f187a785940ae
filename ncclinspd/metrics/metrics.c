/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rows, and what is added to them as it happens.  An operation finds its rows by a cache
 * of one entry per hash; what is not there is found by its labels.
 */
#include "ncclinspd/metrics/metrics.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ncclinspd/compare/ranks_compare.h"
#include "ncclinspd/metrics/metrics_impl.h"
#include "ncclinspd/sums/links.h"
#include "util/cleanup.h"

#define PROCESSES	1024	/* the most processes that are looked at */
#define COMMS		8192	/* the most communicators of these */

/* ---- operations ------------------------------------------------------------------ */

/* The list is in the order of ids. */
const struct process *metrics_process(const struct metrics *m, uint64_t id)
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

static void cached_find_rows(struct metrics *m, struct metrics_cached *c, const struct op *op,
			     uint64_t now_ns)
{
	const struct process *p = metrics_process(m, op->process_id);
	const struct comm *comm = p ? process_comm(p, (uint16_t)op->comm_index) : NULL;
	struct metrics_labels l;

	c->op = c->time = c->member = c->within = POOL_NONE;
	if (!p || !comm)
		return;
	metrics_comm_labels(&l, METRICS_OP, p, comm);
	l.op = op->func;
	l.rank = op->rank;
	c->op = metrics_row(m, &l, now_ns);
	c->member = metrics_member(m, p->id, now_ns);
	if (c->inside) {
		metrics_comm_labels(&l, METRICS_INSIDE, p, comm);
		c->within = metrics_row(m, &l, now_ns);
	}
	if (c->source == TIMING_NONE)
		return;
	metrics_comm_labels(&l, METRICS_TIME, p, comm);
	l.op = op->func;
	l.size_class = c->size_class;
	l.algo = c->algo;
	l.proto = c->proto;
	l.source = c->source;
	c->time = metrics_row(m, &l, now_ns);
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
		.comm_index = op->comm_index, .rank = op->rank, .generation = m->generation,
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
		want.generation = m->generation;
		cached_find_rows(m, &want, op, now_ns);
	} while (want.generation != m->generation);
	*c = want;
	return c;
}

static void cached_add_lately(struct metrics *m, struct metrics_row *row, int which, double gbs,
			      uint64_t now_ns)
{
	struct metrics_lately *lately = pool_at(&m->lately, row->lately);
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

void metrics_op(struct metrics *m, const struct op *op, uint64_t now_ns)
{
	const struct metrics_cached *c = cached_rows(m, op, now_ns);
	struct metrics_row *row = metrics_row_at(m, c->op);

	if (row) {
		row->v[OP_OPS]++;
		row->v[OP_BYTES] += op->bytes == UNKNOWN_U64 ? 0 : (double)op->bytes;
		row->used_ns = now_ns;
	}
	row = metrics_row_at(m, c->time);
	if (row)
		cached_add_time(m, row, op, now_ns);
	row = metrics_row_at(m, c->within);
	if (row) {
		row->v[INSIDE_OPS]++;
		row->v[INSIDE_TIME] += (double)op_inside_ns(op) * 1e-9;
		row->used_ns = now_ns;
	}
	row = metrics_row_at(m, c->member);
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
	return metrics_row_at(m, metrics_row(m, &l, now_ns));
}

/* Take all channels together: the sum of their rates, and the least of their latencies. */
bool metrics_see_link(const struct links_row *link, void *arg)
{
	struct metrics *m = arg;
	struct metrics_row *row = metrics_peer_row(m, &link->who, m->look_ns);
	struct fit_line line;

	if (!row || row->labels.uid == METRICS_NOBODY)
		return true;
	if (link->rate_gbs >= 0)
		row->v[PEER_RATE] = (isnan(row->v[PEER_RATE]) ? 0 : row->v[PEER_RATE]) +
				    link->rate_gbs * 1e9;
	if (link->who.send && links_line(link, &line) &&
	    !(row->v[PEER_LATENCY] <= line.latency_ns * 1e-9))
		row->v[PEER_LATENCY] = line.latency_ns * 1e-9;
	return true;
}

static double value_or_nan(uint64_t value)
{
	return value == UNKNOWN_U64 ? 0 : (double)value;
}

/*
 * The row of a process: known from the last look, for what comes by the hundred thousand;
 * else found by its labels.
 */
uint32_t metrics_member(struct metrics *m, uint64_t process_id, uint64_t now_ns)
{
	const struct metrics_seen *seen = keyed_find(&m->seen, &process_id);
	const struct process *p;
	struct metrics_labels l;

	if (seen && seen->generation == m->generation)
		return seen->member;
	p = metrics_process(m, process_id);
	if (!p)
		return POOL_NONE;
	metrics_member_labels(&l, p);
	return metrics_row(m, &l, now_ns);
}

void metrics_moved(struct metrics *m, const struct links_row *link, uint64_t now_ns)
{
	struct metrics_row *row = metrics_row_at(m, metrics_member(m, link->who.process_id,
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

/* ---- making ------------------------------------------------------------------------ */

#define TABLE(type, key_member, n)							\
	&KEYED_CONFIG(type, key_member, n, .seed = m->config.seed, .when_full = KEYED_REFUSE)

static int init_tables(struct metrics *m)
{
	uint32_t rows = m->stats.limit, times = rows / metrics_cost(METRICS_TIME) + 1;
	int err = pool_init(&m->lately, times, sizeof(struct metrics_lately));

	err = err ? err : keyed_init(&m->rows, TABLE(struct metrics_row, labels, rows));
	err = err ? err : keyed_init(&m->seen, TABLE(struct metrics_seen, process_id, PROCESSES));
	err = err ? err : keyed_init(&m->waited, TABLE(struct metrics_waited, key, COMMS));
	for (int kind = 0; kind < METRICS_KIND_END; kind++)
		pool_list_init(&m->kind[kind], offsetof(struct metrics_row, link));
	return err;
}

static void metrics_freep(struct metrics **mp)
{
	metrics_free(*mp);
}

int metrics_new(struct metrics **mp, const struct metrics_config *config,
		const struct metrics_source *source)
{
	CLEANUP(metrics_freep) struct metrics *m = calloc(1, sizeof(*m));
	int r;

	if (!m)
		return -ENOMEM;
	m->config = *config;
	m->source = *source;
	m->generation = 1;
	m->reserved = metrics_reserved();
	m->stats.limit = config->series ? config->series : METRICS_SERIES_DEFAULT;
	snprintf(m->host, sizeof(m->host), "%s", config->host);
	m->cache = calloc(METRICS_CACHE, sizeof(*m->cache));
	r = m->cache ? init_tables(m) : -ENOMEM;
	if (r < 0)
		return r;
	*mp = m;
	m = NULL;
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
	keyed_deinit(&m->waited);
	keyed_deinit(&m->seen);
	keyed_deinit(&m->rows);
	pool_deinit(&m->lately);
	free(m);
}
