/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Each queue is held against the median of all, the upper one of an even number: where half of
 * them are slow, none is.  Of two it is held against the other, and neither is slow.
 */
#include "judge/slow_queue.h"

#include <stdlib.h>

#include "util/list.h"
#include "util/unknown.h"

#define LEAST_REQUESTS	20	/* requests of a queue, to be compared */
#define LEAST_OTHERS	2	/* nobody knows which of two queues is the usual one */
#define SLOW_RATIO	2.0
#define EXPLAINS	0.5	/* part of what the link is slower by */

uint32_t slow_queue_size(uint64_t bytes)
{
	return (uint32_t)__builtin_clzll(bytes | 1);
}

/* UNKNOWN_U64: it is not compared. */
static uint64_t slow_queue_median(const struct slow_queue *q)
{
	return q->requests >= LEAST_REQUESTS && q->median_ns ? q->median_ns : UNKNOWN_U64;
}

static int slow_queues_by_median(const void *a, const void *b)
{
	return number_order(slow_queue_median(a), slow_queue_median(b));
}

void slow_queues_compare(struct slow_queue *q, uint32_t n)
{
	uint32_t compared = 0;

	qsort(q, n, sizeof(*q), slow_queues_by_median);
	while (compared < n && slow_queue_median(&q[compared]) != UNKNOWN_U64)
		compared++;
	for (uint32_t i = 0; i < n; i++) {
		bool counts = i < compared && compared > 1;
		uint32_t usual = compared > 2 ? compared / 2 : !i;

		q[i].others = counts ? compared - 1 : 0;
		q[i].ratio = counts ? (double)q[i].median_ns / (double)q[usual].median_ns : -1;
	}
}

bool slow_queue_is_slow(const struct slow_queue *q)
{
	return q->others >= LEAST_OTHERS && q->ratio >= SLOW_RATIO;
}

void slow_queues_sum_add(struct slow_queues_sum *sum, const struct slow_queue *q)
{
	double took_ns = (double)q->requests * (double)q->median_ns;
	bool slow = slow_queue_is_slow(q);

	if (q->ratio <= 0)
		return;
	sum->queues++;
	sum->slow += slow;
	sum->took_ns += took_ns;
	sum->usual_ns += slow ? took_ns / q->ratio : took_ns;
}

bool slow_queues_explain(const struct slow_queues_sum *sum, double ratio)
{
	return sum->usual_ns > 0 && (sum->slow < sum->queues || sum->queues == 1) &&
	       sum->took_ns / sum->usual_ns - 1 >= EXPLAINS * (ratio - 1);
}
