/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The order in which ranks came has three sources, none of which is always there: the
 * best one that all ranks have decides.
 */
#include "ncclinspd/compare/ranks_compare.h"

#include <string.h>

#include "reader/join/ops.h"

/*
 * The most by which ranks leave apart, ns.  A wider bracket tells less than durations do,
 * and clocks by which they left further apart do not agree.
 */
#define APART_MOST_NS	20000

bool ranks_are_told_apart_by(const struct op *op)
{
	const struct op_facts *facts = ops_facts(op->func);

	return facts && facts->joint && op->has_comm_id && op->nranks > 1 &&
	       op->seq != UNKNOWN_U64 && ranks_is_timed(op);
}

/* Sorts a few operations in place; those that compare alike stay in their order. */
static void ops_sort(struct op **order, uint32_t n,
		     int (*compare)(const struct op *a, const struct op *b))
{
	for (uint32_t i = 1; i < n; i++) {
		struct op *op = order[i];
		uint32_t at = i;

		for (; at && compare(order[at - 1], op) > 0; at--)
			order[at] = order[at - 1];
		order[at] = op;
	}
}

/* The longest inside came first. */
static int ops_by_arrival(const struct op *a, const struct op *b)
{
	if (op_inside_ns(a) != op_inside_ns(b))
		return op_inside_ns(a) > op_inside_ns(b) ? -1 : 1;
	return (a->rank > b->rank) - (a->rank < b->rank);
}

bool ranks_are_alike(struct op *const *ops, uint32_t n)
{
	for (uint32_t i = 1; i < n; i++)
		if (ops[i]->fused != ops[0]->fused ||
		    (!ops[0]->parts && ops[i]->bytes != ops[0]->bytes))
			return false;
	return n > 1;
}

/* 0: not known. */
static double waitfree_busbw_gbs(const struct op *op, uint64_t least_ns)
{
	double bus = op_is_fused(op) || !least_ns ? 0 : ops_bus_bytes(op);

	return bus > 0 ? bus / (double)least_ns : 0;
}

/* ---- by the GPUs' clocks ---------------------------------------------------- */

static int ops_by_start(const struct op *a, const struct op *b)
{
	return (a->gpu_start_mono_ns > b->gpu_start_mono_ns) -
	       (a->gpu_start_mono_ns < b->gpu_start_mono_ns);
}

/* An operation that ran with others, or was put together, has its start from others. */
static bool op_is_placed(const struct op *op)
{
	return op->gpu_start_mono_ns && op->gpu_clock_error_ns <= APART_MOST_NS &&
	       !op_is_fused(op) && !op->parts;
}

/* All leave nearly together, by clocks that agree. */
static bool left_together(struct op *const *ops, uint32_t n)
{
	uint64_t first = UINT64_MAX, last = 0;

	for (uint32_t i = 0; i < n; i++) {
		uint64_t end = ops[i]->gpu_start_mono_ns + op_inside_ns(ops[i]);

		first = end < first ? end : first;
		last = end > last ? end : last;
	}
	return last - first <= APART_MOST_NS;
}

/* Did they start so far from each other that each may have by more than its bracket? */
static bool started_apart(struct op *const *ops, uint32_t n)
{
	uint64_t first = UINT64_MAX, last = 0, error = UINT64_MAX;

	for (uint32_t i = 0; i < n; i++) {
		const struct op *op = ops[i];

		if (!op_is_placed(op))
			return false;
		first = op->gpu_start_mono_ns < first ? op->gpu_start_mono_ns : first;
		last = op->gpu_start_mono_ns > last ? op->gpu_start_mono_ns : last;
		error = op->gpu_clock_error_ns < error ? op->gpu_clock_error_ns : error;
	}
	return last - first > (n - 1) * error;
}

/* A start is no later than told, and earlier by its bracket at most. */
static bool sort_by_clock(struct op **order, uint32_t n)
{
	if (!started_apart(order, n) || !left_together(order, n))
		return false;
	ops_sort(order, n, ops_by_start);
	for (uint32_t i = 1; i < n; i++)
		if (order[i]->gpu_start_mono_ns - order[i - 1]->gpu_start_mono_ns <=
		    order[i]->gpu_clock_error_ns)
			return false;
	return true;
}

static int ops_by_sync(const struct op *a, const struct op *b)
{
	return (a->sync_ns < b->sync_ns) - (a->sync_ns > b->sync_ns);
}

/* The rank that waited longest came first: no clock has to agree with another one. */
static bool sort_by_sync(struct op **order, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		if (!order[i]->symmetric || !order[i]->has_sync || order[i]->stamps_refused)
			return false;
	ops_sort(order, n, ops_by_arrival);
	ops_sort(order, n, ops_by_sync);
	return true;
}

static uint64_t late_ns(const struct op *op, const struct op *first, enum arrival_source source)
{
	if (source == ARRIVAL_SYNC)
		return first->sync_ns - op->sync_ns;
	if (source == ARRIVAL_GPU_CLOCK)
		return op->gpu_start_mono_ns - first->gpu_start_mono_ns;
	return op_inside_ns(first) - op_inside_ns(op);
}

const char *ranks_arrival_text(enum arrival_source source)
{
	static const char *const text[] = {
#define X(NAME, string) [ARRIVAL_##NAME] = string,
		ARRIVAL_SOURCES(X)
#undef X
	};

	return text[source];
}

void ranks_compare(struct op *const *ops, uint32_t n)
{
	struct op *order[OP_RANKS];
	int32_t arrival[OP_RANKS] = { 0 };
	enum arrival_source source = ARRIVAL_DURATION;
	uint64_t least_ns = UINT64_MAX;
	double busbw_gbs = 0;

	memcpy(order, ops, n * sizeof(*ops));
	if (sort_by_sync(order, n))
		source = ARRIVAL_SYNC;
	else if (sort_by_clock(order, n))
		source = ARRIVAL_GPU_CLOCK;
	else
		ops_sort(order, n, ops_by_arrival);
	for (uint32_t i = 0; i < n; i++) {
		arrival[i] = order[i]->rank;
		if (op_inside_ns(ops[i]) < least_ns)
			least_ns = op_inside_ns(ops[i]);
	}
	for (uint32_t i = 0; i < n; i++) {
		ops[i]->local_ranks = n;
		ops[i]->arrival_source = source;
		ops[i]->late_ns = late_ns(ops[i], order[0], source);
		memcpy(ops[i]->arrival, arrival, sizeof(arrival));
		if (!i || !ranks_do_the_same(ops[i], ops[i - 1]))
			busbw_gbs = waitfree_busbw_gbs(ops[i], least_ns);
		ops[i]->waitfree_ns = least_ns;
		ops[i]->busbw_waitfree_gbs = busbw_gbs;
	}
}
