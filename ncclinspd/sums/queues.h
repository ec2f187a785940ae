/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NCCLINSPD_SUMS_QUEUES_H
#define NCCLINSPD_SUMS_QUEUES_H

/*
 * Requests of network plugins -> figures of each queue pair and socket, and which of those
 * between two ranks is slower than the others.  Lately, and since it was first used.  NCCL
 * tells requests at level trace alone, if it was built to: else nothing is kept here.  Memory
 * is fixed: the queue that was idle for longest makes room, of the user with most.
 */

#include "judge/slow_queue.h"
#include "ncclinspd/sums/links.h"

struct queues_row {
	enum links_window window;
	uint64_t window_ns;	/* time from the posting of the first to the end of the last */
	struct links_who who;	/* where its operation is not known, without peer and channel */
	bool is_socket;
	uint32_t number;	/* queue pair, or descriptor */
	int32_t nic;		/* place in the connection's list; UNKNOWN_I32: a socket */
	uint64_t requests;
	uint64_t bytes;		/* 0: not told */
	double rate;		/* requests a second; < 0 */
	uint64_t p50_ns, p99_ns, max_ns;
	struct slow_queue load;	/* requests of the size that took most of its time */
};

/* Zero means the default. */
struct queues_limits {
	uint32_t queues;	/* 8192 */
	uint32_t chunks;	/* parts of histograms (262144) */
	uint64_t seed;
};

struct queues_stats {
	uint32_t queues;	/* in use, each for requests of one size */
	uint64_t added;		/* requests taken in */
	uint64_t refused;	/* requests whose times cannot be true, left out */
	uint64_t evicted;	/* queues thrown out for new ones */
	uint64_t unbinned;	/* times that found no histogram */
	uint64_t bytes;		/* memory reserved; what is touched is less */
};

struct queues;

/* Returns 0 or -ENOMEM.  `limits` may be NULL. */
int queues_new(struct queues **qp, const struct queues_limits *limits);
void queues_free(struct queues *q);

void queues_add(struct queues *q, const struct net_request *request, uint64_t now_ns);

/*
 * The same as links_visit(); in each window the slowest against its like first.  Each channel is
 * apart, and where more comes `meanwhile` than can wait, that is called no more.
 */
typedef bool queues_row_fn(const struct queues_row *row, void *arg);
int queues_visit(struct queues *q, const struct links_query *query, uint64_t now_ns,
		 queues_row_fn *visit, void *arg);

const struct queues_stats *queues_stats(const struct queues *q);

#endif
