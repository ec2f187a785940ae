/* SPDX-License-Identifier: Apache-2.0 */
#ifndef JUDGE_SLOW_QUEUE_H
#define JUDGE_SLOW_QUEUE_H

/*
 * One of the queue pairs or sockets between two ranks that is slower than the others: these
 * differ in little but the path that the network chose for each.  Pure functions of rows.
 *
 * Compared are the median times of requests of one size (within a factor of two) that one
 * process sends from one rank to one other, over one NIC where the connection has several.
 * Requests of receives are posted ahead of what they wait for, and tell nothing.
 */

#include <stdbool.h>
#include <stdint.h>

struct slow_queue {
	const void *queue;	/* the caller's */
	uint64_t requests;
	uint64_t median_ns;	/* UNKNOWN_U64 */
	uint32_t others;	/* queues that it was compared with */
	double ratio;		/* its median over the usual one; < 0: nothing to compare */
};

/* The class of sizes that a request is of: those of one class are alike. */
uint32_t slow_queue_size(uint64_t bytes);

/* Sets `others` and `ratio` of queues, by like requests of each, and sorts by their medians. */
void slow_queues_compare(struct slow_queue *q, uint32_t n);

/* Does it take at least twice as long as more than half of all? */
bool slow_queue_is_slow(const struct slow_queue *q);

/* The queues of a link, or of its slow channel, together. */
struct slow_queues_sum {
	uint32_t queues, slow;
	double took_ns, usual_ns;	/* times of requests, as they were; as if none were slow */
};

void slow_queues_sum_add(struct slow_queues_sum *sum, const struct slow_queue *q);

/*
 * Do the slow ones make the link so many times slower, and nothing else that matters?  Where
 * all of several are slow, it is not the path of one.
 */
bool slow_queues_explain(const struct slow_queues_sum *sum, double ratio);

#endif
