/* SPDX-License-Identifier: Apache-2.0 */
/* A small histogram for each kind of operation, two buckets per power of two. */
#include "ncclinspd/findings/limits.h"

#include <errno.h>
#include <stdlib.h>

#include "tables/histogram.h"
#include "tables/keyed.h"

#define PLACES		1024
#define PER_BIN		(HISTOGRAM_SUB / 2)	/* buckets of a histogram */
#define BINS		(HISTOGRAM_BUCKETS / PER_BIN)
#define LEAST_OPS	8	/* operations that make a history */
#define HALVE_AT	65536	/* old operations count less and less */
#define REFUSALS	3	/* after which what is too long is the new way of things */

#define OUTLIERS	2	/* the longest of any history say nothing */

#define HISTORY_TIMES	8
#define PERIOD_TIMES	3
#define NO_HISTORY_TIMES 6
#define FIRST_TIMES	12

/* The longest limit is no shorter than these, for jobs whose operations always take minutes. */
#define MEDIAN_TIMES	3
#define PERIODS_LEAST	2

struct limits_history {
	struct keyed_head head;
	uint64_t key;
	uint32_t total;
	uint32_t refused;	/* times in a row */
	uint32_t end;		/* bins from here on are 0 */
	uint32_t bins[BINS];
};

struct limits {
	uint64_t min_ns, max_ns;
	struct keyed histories;
	/* The history of the kind that came last: no other has been made since; NULL: none. */
	struct limits_history *last;
};

name_t limit_reason_name(enum limit_reason reason)
{
	static const name_t names[] = { LIMIT_REASONS(NAME_TEXT) };

	return names[reason];
}

/* ---- the table --------------------------------------------------------------- */

static uint64_t key_of_comm(const struct op *op)
{
	uint64_t id = op->has_comm_id ? op->comm_id : index_mix(op->process_id, op->comm_index);

	id = index_mix(index_mix(id, op->uid), (uint64_t)op->nranks);
	return index_mix(id, (uintptr_t)op->comm_name);
}

/* Its communicator, function, and size as a power of two. */
static uint64_t key_of_kind(const struct op *op, uint64_t comm_key)
{
	uint32_t size = op->bytes == UNKNOWN_U64 || !op->bytes ?
			0 : 64 - (uint32_t)__builtin_clzll(op->bytes);

	return index_mix(index_mix(comm_key, (uintptr_t)op->func), size);
}

/* ---- histograms ---------------------------------------------------------------- */

static void history_halve(struct limits_history *h)
{
	h->total = 0;
	for (uint32_t i = 0; i < BINS; i++) {
		h->bins[i] /= 2;
		h->total += h->bins[i];
	}
}

/* The least time that no more than `most` of them exceed. */
static uint64_t history_exceeded_by(const struct limits_history *h, uint32_t most)
{
	uint32_t above = 0;

	for (uint32_t i = h->end; i-- > 0;) {
		above += h->bins[i];
		if (above > most)
			return histogram_upper(i * PER_BIN + PER_BIN - 1);
	}
	return 0;
}

/* ---- limits -------------------------------------------------------------------- */

static uint64_t limit_longer(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

static void limit_cap(struct limit *limit, uint64_t max_ns)
{
	if (limit->ns <= max_ns)
		return;
	limit->ns = max_ns;
	limit->reason = LIMIT_MAXIMUM;
}

static struct limit limit_least(const struct limits *l)
{
	return (struct limit){ .ns = l->min_ns, .reason = LIMIT_MINIMUM, .p99_ns = UNKNOWN_U64,
			       .p999_ns = UNKNOWN_U64 };
}

/* `first`: nothing of its communicator was seen before.  `h` may be NULL. */
static void limit_make(const struct limits *l, const struct limits_history *h, bool first,
		       uint64_t period_ns, struct limit *out)
{
	uint64_t max_ns = limit_longer(l->max_ns, PERIODS_LEAST * period_ns);

	*out = limit_least(l);
	if (first)
		limit_raise(out, FIRST_TIMES * l->min_ns, LIMIT_FIRST);
	else if (!h || h->total < LEAST_OPS)
		limit_raise(out, NO_HISTORY_TIMES * l->min_ns, LIMIT_NO_HISTORY);
	if (h && h->total) {
		out->ops = h->total;
		out->p999_ns = history_exceeded_by(h, h->total / 1000);
		out->p99_ns = history_exceeded_by(h, OUTLIERS + h->total / 100);
		limit_raise(out, HISTORY_TIMES * out->p99_ns, LIMIT_HISTORY);
		max_ns = limit_longer(max_ns, MEDIAN_TIMES *
				      history_exceeded_by(h, OUTLIERS + h->total / 2));
	}
	limit_raise(out, PERIOD_TIMES * period_ns, LIMIT_PERIOD);
	limit_cap(out, max_ns);
}

void limits_of_unwatched(const struct limits *l, uint64_t period_ns, struct limit *out)
{
	*out = limit_least(l);
	if (period_ns)
		limit_raise(out, PERIOD_TIMES * period_ns, LIMIT_PERIOD);
	else
		limit_raise(out, NO_HISTORY_TIMES * l->min_ns, LIMIT_NO_HISTORY);
	limit_cap(out, limit_longer(l->max_ns, PERIODS_LEAST * period_ns));
}

static bool is_first(const struct op *op, bool new_comm)
{
	return new_comm && (op->seq == UNKNOWN_U64 || !op->seq);
}

void limits_of(struct limits *l, const struct op *op, uint64_t period_ns, struct limit *out)
{
	uint64_t comm_key = key_of_comm(op), key = key_of_kind(op, comm_key);
	struct limits_history *comm = keyed_find(&l->histories, &comm_key);
	struct limits_history *h = keyed_find(&l->histories, &key);

	if (comm)
		keyed_touch(&l->histories, comm);
	if (h)
		keyed_touch(&l->histories, h);
	limit_make(l, h, is_first(op, !comm), period_ns, out);
}

/* The history of its kind, NULL: none. */
static struct limits_history *limits_use(struct limits *l, const struct op *op, bool *new_comm)
{
	uint64_t comm_key = key_of_comm(op), key = key_of_kind(op, comm_key);
	bool made;

	if (l->last && l->last->key == key)
		return l->last;
	keyed_use(&l->histories, &comm_key, op->account, new_comm);
	l->last = keyed_use(&l->histories, &key, op->account, &made);
	return l->last;
}

void limits_add(struct limits *l, const struct op *op, bool alike)
{
	bool new_comm = false;
	struct limits_history *h;
	struct limit limit;
	uint64_t ns;
	uint32_t bin;

	if (op->predates || !op->complete || !(op->expects_kernel || op->expects_proxy) ||
	    !op->enqueued_ns || op->done_ns < op->enqueued_ns) {
		l->last = NULL;
		return;
	}
	ns = op->done_ns - op->enqueued_ns;
	h = alike && l->last ? l->last : limits_use(l, op, &new_comm);
	if (!h)
		return;
	limit.ns = l->min_ns;	/* none is shorter, and hardly an operation takes so long */
	if (ns > limit.ns)
		limit_make(l, h, is_first(op, new_comm), 0, &limit);
	if (ns <= limit.ns)
		h->refused = 0;
	else if (h->refused++ < REFUSALS)
		return;		/* a stall that went by is no example to follow */
	bin = histogram_bucket(ns) / PER_BIN;
	h->end = bin < h->end ? h->end : bin + 1;
	h->bins[bin]++;
	if (++h->total == HALVE_AT)
		history_halve(h);
}

int limits_new(struct limits **lp, uint64_t min_ns, uint64_t max_ns)
{
	struct limits *l = calloc(1, sizeof(*l));

	if (!l || keyed_init(&l->histories, &KEYED_CONFIG(struct limits_history, key, PLACES))) {
		limits_free(l);
		return -ENOMEM;
	}
	limits_set(l, min_ns, max_ns);
	*lp = l;
	return 0;
}

void limits_set(struct limits *l, uint64_t min_ns, uint64_t max_ns)
{
	l->min_ns = min_ns;
	l->max_ns = limit_longer(min_ns, max_ns);
}

void limits_free(struct limits *l)
{
	if (!l)
		return;
	keyed_deinit(&l->histories);
	free(l);
}
