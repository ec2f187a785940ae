/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Each queue is held against the median of all, the upper one of an even number: where half of
 * them are slow, none is.  Of two it is held against the other, and neither is slow.
 */
#include "judge/slow_queue.h"

#include "tables/stat.h"
#include "util/unknown.h"

#define LEAST_REQUESTS	20	/* requests of a queue, to be compared */
#define LEAST_OTHERS	2	/* nobody knows which of two queues is the usual one */
#define SLOW_RATIO	2.0
#define EXPLAINS	0.5	/* part of what the link is slower by */

uint32_t slow_queue_size(uint64_t bytes)
{
	return (uint32_t)__builtin_clzll(bytes | 1);
}

static bool slow_queue_counts(const struct slow_queue *q)
{
	return q->requests >= LEAST_REQUESTS && q->median_ns && q->median_ns != UNKNOWN_U64;
}

void slow_queues_compare(struct slow_queue *q, uint32_t n, double *scratch)
{
	uint32_t compared = 0;

	for (uint32_t i = 0; i < n; i++)
		if (slow_queue_counts(&q[i]))
			scratch[compared++] = (double)q[i].median_ns;
	stat_sort(scratch, compared);
	for (uint32_t i = 0; i < n; i++) {
		double median = (double)q[i].median_ns;
		uint32_t usual = compared > 2 ? compared / 2 : median <= scratch[0];

		q[i].others = 0;
		q[i].ratio = -1;
		if (compared < 2 || !slow_queue_counts(&q[i]))
			continue;
		q[i].others = compared - 1;
		q[i].ratio = median / scratch[usual];
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
