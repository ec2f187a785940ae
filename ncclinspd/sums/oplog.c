/* SPDX-License-Identifier: Apache-2.0 */
/* Rings of copies: a visitor that comes in pieces still finds what has left meanwhile. */
#include "ncclinspd/sums/oplog.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define KINDS	4096	/* counters; kinds that share one only look busier */

struct entry {
	struct op op;
	uint64_t serial;
};

/* Apart from the operation: who leaves is decided without a look at it. */
struct oplog_mark {
	uint32_t kind;
	uint32_t nth;		/* number in its kind, from 1 */
};

struct oplog_ring {
	struct entry *at;
	uint32_t kept;
	uint32_t room;		/* entries, with those that only a visitor still sees */
	uint64_t newest;	/* entries ever put */
};

struct oplog {
	struct oplog_ring all, reserve;
	struct oplog_mark *marks;	/* marks of `all` */
	uint32_t rare;
	uint32_t of_kind[KINDS];	/* added so far, modulo 2^32 */
};

static bool ring_init(struct oplog_ring *ring, uint32_t kept)
{
	ring->kept = kept;
	ring->room = kept + kept / OPLOG_GRACE + 1;
	ring->at = calloc(ring->room, sizeof(*ring->at));
	return ring->at;
}

/*
 * The n-th that was put, from 1, for whom `newest` is the newest; NULL: gone or
 * not yet there.
 */
static struct entry *ring_at(const struct oplog_ring *ring, uint64_t n, uint64_t newest)
{
	if (!n || n > newest || newest - n >= ring->kept || ring->newest - n >= ring->room)
		return NULL;
	return &ring->at[n % ring->room];
}

/* The place of the next one. */
static struct entry *ring_next(struct oplog_ring *ring)
{
	return &ring->at[++ring->newest % ring->room];
}

static uint32_t oplog_kind(const struct op *op)
{
	uint64_t h = op->process_id * UINT64_C(0x9e3779b97f4a7c15);

	h = (h ^ op->comm_index) * UINT64_C(0xff51afd7ed558ccd);
	h = (h ^ (uintptr_t)op->func) * UINT64_C(0xc4ceb9fe1a85ec53);
	return h >> 32 & (KINDS - 1);
}

int oplog_new(struct oplog **logp, uint32_t capacity)
{
	struct oplog *log = calloc(1, sizeof(*log));

	if (!log)
		return -ENOMEM;
	capacity = capacity ? capacity : OPLOG_DEFAULT;
	log->rare = (uint32_t)((uint64_t)capacity * OPLOG_RARE / OPLOG_DEFAULT);
	log->rare = log->rare < OPLOG_RARE ? log->rare : OPLOG_RARE;
	if (ring_init(&log->all, capacity) &&
	    ring_init(&log->reserve, capacity / OPLOG_RESERVE + 1))
		log->marks = calloc(log->all.room, sizeof(*log->marks));
	if (!log->marks) {
		oplog_free(log);
		return -ENOMEM;
	}
	*logp = log;
	return 0;
}

void oplog_free(struct oplog *log)
{
	if (!log)
		return;
	free(log->all.at);
	free(log->reserve.at);
	free(log->marks);
	free(log);
}

/* The oldest leaves: to the reserve, if few of its kind came after it. */
static void oplog_let_go(struct oplog *log)
{
	const struct entry *oldest = ring_at(&log->all, log->all.newest - log->all.kept + 1,
					     log->all.newest);
	const struct oplog_mark *mark = oldest ? &log->marks[oldest - log->all.at] : NULL;

	if (mark && log->of_kind[mark->kind] - mark->nth < log->rare)
		*ring_next(&log->reserve) = *oldest;
}

uint64_t oplog_add(struct oplog *log, const struct op *op)
{
	uint32_t kind = oplog_kind(op);
	struct entry *to;

	oplog_let_go(log);
	to = ring_next(&log->all);
	to->op = *op;
	to->serial = log->all.newest;
	log->marks[to - log->all.at] = (struct oplog_mark){ kind, ++log->of_kind[kind] };
	return to->serial;
}

uint64_t oplog_newest(const struct oplog *log)
{
	return log->all.newest;
}

uint64_t oplog_since_ns(const struct oplog *log)
{
	const struct oplog_ring *all = &log->all;

	return all->newest <= all->kept ? 0 :
	       ring_at(all, all->newest - all->kept + 1, all->newest)->op.done_ns;
}

const struct op *oplog_at(const struct oplog *log, uint64_t serial)
{
	const struct entry *entry = ring_at(&log->all, serial, log->all.newest);

	return entry ? &entry->op : NULL;
}

static bool texts_are_same(const char *a, const char *b)
{
	return a && b && !strcmp(a, b);
}

static bool filter_matches_comm(const struct oplog_filter *filter, const struct op *op)
{
	if (!filter->comm_name)
		return true;
	if (filter->has_comm_id && op->has_comm_id && op->comm_id == filter->comm_id)
		return true;
	return texts_are_same(filter->comm_name, op->comm_name);
}

static bool filter_matches_pid(const struct oplog_filter *filter, const struct op *op)
{
	for (uint32_t i = 0; i < filter->npids; i++)
		if (filter->pid[i] == op->pid)
			return true;
	return !filter->npids;
}

static bool filter_matches(const struct oplog_filter *filter, const struct op *op)
{
	if (!filter->all_users && filter->uid != op->uid)
		return false;
	if (filter->nranks != UNKNOWN_I32 && filter->nranks != op->nranks)
		return false;
	if (filter->rank != UNKNOWN_I32 && filter->rank != op->rank)
		return false;
	if (filter->func && !texts_are_same(filter->func, op->func))
		return false;
	if (op->enqueued_ns < filter->since_mono_ns && op->done_ns < filter->since_mono_ns)
		return false;
	return filter_matches_pid(filter, op) && filter_matches_comm(filter, op);
}

static const struct oplog_ring *oplog_ring_of(const struct oplog *log, uint32_t ring)
{
	return ring ? &log->reserve : &log->all;
}

void oplog_begin(struct oplog_visit *visit, const struct oplog *log,
		 const struct oplog_filter *filter)
{
	*visit = (struct oplog_visit){
		.filter = filter,
		.newest = { log->all.newest, log->reserve.newest },
		.next = log->all.newest,
	};
}

const struct op *oplog_next(struct oplog_visit *visit, const struct oplog *log,
			    uint32_t *budget)
{
	while (*budget && visit->ring < 2) {
		const struct entry *entry = ring_at(oplog_ring_of(log, visit->ring), visit->next,
						    visit->newest[visit->ring]);

		if (!entry) {
			if (++visit->ring < 2)
				visit->next = visit->newest[visit->ring];
			continue;
		}
		visit->next--;
		--*budget;
		if (filter_matches(visit->filter, &entry->op))
			return &entry->op;
	}
	return NULL;
}
