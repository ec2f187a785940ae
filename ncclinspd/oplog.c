/* SPDX-License-Identifier: Apache-2.0 */
#include "ncclinspd/oplog.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define KINDS	4096	/* counters; kinds that share one only look busier */

struct entry {
	struct op op;
	uint64_t serial;
};

/* Apart from the operation: who leaves is decided without a look at it. */
struct mark {
	uint32_t kind;
	uint32_t nth;		/* of its kind, from 1; 0: no operation here */
};

struct ring {
	struct entry *at;
	uint32_t capacity;
	uint64_t newest;	/* entries ever put */
};

struct oplog {
	struct ring all, reserve;
	struct mark *marks;	/* of `all` */
	uint32_t rare;
	uint32_t of_kind[KINDS];	/* added so far, modulo 2^32 */
};

static bool ring_init(struct ring *ring, uint32_t capacity)
{
	ring->capacity = capacity;
	ring->at = calloc(capacity, sizeof(*ring->at));
	return ring->at;
}

/* The n-th that was put, from 1, or NULL: gone or not yet there. */
static struct entry *ring_at(const struct ring *ring, uint64_t n)
{
	if (!n || n > ring->newest || ring->newest - n >= ring->capacity)
		return NULL;
	return &ring->at[n % ring->capacity];
}

/* Where the next one goes; the oldest is still in it when the ring is full. */
static struct entry *ring_next(struct ring *ring)
{
	return &ring->at[++ring->newest % ring->capacity];
}

static uint32_t kind_of(const struct op *op)
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
	log->marks = calloc(capacity, sizeof(*log->marks));
	if (!log->marks || !ring_init(&log->all, capacity) ||
	    !ring_init(&log->reserve, capacity / OPLOG_RESERVE + 1)) {
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

uint64_t oplog_add(struct oplog *log, const struct op *op)
{
	struct entry *to = ring_next(&log->all);
	struct mark *mark = &log->marks[to - log->all.at];
	uint32_t kind = kind_of(op);

	if (mark->nth && log->of_kind[mark->kind] - mark->nth < log->rare)
		*ring_next(&log->reserve) = *to;
	to->op = *op;
	to->serial = log->all.newest;
	*mark = (struct mark){ kind, ++log->of_kind[kind] };
	return to->serial;
}

const struct op *oplog_at(const struct oplog *log, uint64_t serial)
{
	const struct entry *entry = ring_at(&log->all, serial);

	return entry ? &entry->op : NULL;
}

static bool same_text(const char *a, const char *b)
{
	return a && b && !strcmp(a, b);
}

static bool matches_comm(const struct oplog_filter *filter, const struct op *op)
{
	if (!filter->comm_name)
		return true;
	if (filter->has_comm_id && op->has_comm_id && op->comm_id == filter->comm_id)
		return true;
	return same_text(filter->comm_name, op->comm_name);
}

static bool matches(const struct oplog_filter *filter, const struct op *op)
{
	if (!filter->all_users && filter->uid != op->uid)
		return false;
	if (filter->pid && filter->pid != op->pid)
		return false;
	if (filter->rank != UNKNOWN_I32 && filter->rank != op->rank)
		return false;
	if (filter->func && !same_text(filter->func, op->func))
		return false;
	if (op->enqueued_ns < filter->since_mono_ns && op->done_ns < filter->since_mono_ns)
		return false;
	return matches_comm(filter, op);
}

uint32_t oplog_visit(const struct oplog *log, const struct oplog_filter *filter,
		     oplog_fn *visit, void *arg)
{
	const struct ring *const rings[] = { &log->all, &log->reserve };
	const struct entry *entry;
	uint32_t visited = 0;

	for (int i = 0; i < 2; i++)
		for (uint64_t n = rings[i]->newest; (entry = ring_at(rings[i], n)); n--) {
			if (!matches(filter, &entry->op))
				continue;
			visited++;
			if (!visit(&entry->op, entry->serial, arg) || visited == filter->limit)
				return visited;
		}
	return visited;
}
