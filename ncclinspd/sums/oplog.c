/* SPDX-License-Identifier: Apache-2.0 */
/* Rings of copies: a visitor that comes in pieces still finds what has left meanwhile. */
#include "ncclinspd/sums/oplog.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "tables/keyed.h"

#define KINDS	4096	/* counters; kinds that share one only look busier */

struct reserved {
	struct keyed_head head;
	uint64_t serial;
	struct op op;
};

/* Apart from the operation: who leaves is decided without a look at it. */
struct oplog_mark {
	uint32_t kind;
	uint32_t nth;		/* number in its kind, from 1 */
};

struct oplog {
	struct op *ops;		/* a ring: a serial's place is its remainder */
	struct oplog_mark *marks;	/* marks of `ops` */
	uint32_t kept;
	uint32_t room;		/* operations, with those that only a visitor still sees */
	uint64_t newest;	/* serial */
	struct keyed reserve;
	uint32_t rare;
	uint32_t of_kind[KINDS];	/* added so far, modulo 2^32 */
};

/* The operation with that serial, for whom `newest` is the newest; NULL: gone or not yet there. */
static struct op *oplog_find(const struct oplog *log, uint64_t serial, uint64_t newest)
{
	if (!serial || serial > newest || newest - serial >= log->kept ||
	    log->newest - serial >= log->room)
		return NULL;
	return &log->ops[serial % log->room];
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
	log->kept = capacity;
	log->room = capacity + capacity / OPLOG_GRACE + 1;
	log->ops = calloc(log->room, sizeof(*log->ops));
	log->marks = calloc(log->room, sizeof(*log->marks));
	if (!log->ops || !log->marks ||
	    keyed_init(&log->reserve, &KEYED_CONFIG(struct reserved, serial,
						    capacity / OPLOG_RESERVE + 1)) < 0) {
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
	free(log->ops);
	free(log->marks);
	keyed_deinit(&log->reserve);
	free(log);
}

/* The oldest leaves: to the reserve, if few of its kind came after it. */
static void oplog_let_go(struct oplog *log)
{
	uint64_t serial = log->newest - log->kept + 1;
	const struct op *oldest = oplog_find(log, serial, log->newest);
	const struct oplog_mark *mark = oldest ? &log->marks[oldest - log->ops] : NULL;
	struct reserved *to;
	bool made;

	if (!mark || log->of_kind[mark->kind] - mark->nth >= log->rare)
		return;
	to = keyed_use(&log->reserve, &serial, oldest->account, &made);
	if (to)
		to->op = *oldest;
}

uint64_t oplog_add(struct oplog *log, const struct op *op)
{
	uint32_t kind = oplog_kind(op);
	uint64_t place;

	oplog_let_go(log);
	place = ++log->newest % log->room;
	log->ops[place] = *op;
	log->marks[place] = (struct oplog_mark){ kind, ++log->of_kind[kind] };
	return log->newest;
}

uint64_t oplog_newest(const struct oplog *log)
{
	return log->newest;
}

uint64_t oplog_since_ns(const struct oplog *log)
{
	return log->newest <= log->kept ? 0 :
	       oplog_at(log, log->newest - log->kept + 1)->done_ns;
}

const struct op *oplog_at(const struct oplog *log, uint64_t serial)
{
	return oplog_find(log, serial, log->newest);
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

void oplog_begin(struct oplog_visit *visit, const struct oplog *log,
		 const struct oplog_filter *filter)
{
	*visit = (struct oplog_visit){
		.filter = filter, .newest = log->newest, .next = log->newest,
	};
}

/* One that has left the reserve meanwhile was the oldest of its account. */
static const struct op *visit_reserve(struct oplog_visit *v, const struct oplog *log)
{
	const struct keyed *reserve = &log->reserve;
	const struct reserved *at = v->serial ? keyed_find(reserve, &v->serial) : NULL;

	at = at ? at->head.link.prev : NULL;
	for (; !at && v->list < ACCOUNTS_TALLY; v->list++)
		at = reserve->of[v->list].last;
	if (!at)
		return NULL;
	v->serial = at->serial;
	return &at->op;
}

const struct op *oplog_next(struct oplog_visit *visit, const struct oplog *log,
			    uint32_t *budget)
{
	while (*budget) {
		const struct op *op = oplog_find(log, visit->next, visit->newest);
		bool in_log = op;

		if (in_log)
			visit->next--;
		else
			op = visit_reserve(visit, log);
		if (!op)
			return NULL;
		--*budget;
		/* Whatever came to the reserve since it began was in the log then. */
		if ((in_log || visit->serial + log->kept <= visit->newest) &&
		    filter_matches(visit->filter, op))
			return op;
	}
	return NULL;
}
