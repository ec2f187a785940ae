/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_SIM_PROXY_STATE_H
#define TESTS_SIM_PROXY_STATE_H

/* Between proxy.c, the thread, and proxy_append.c, which takes work for it. */

#include <pthread.h>

#include "tests/sim/proxy.h"
#include "tests/sim/ring.h"
#include "tests/sim/work.h"

/* What a member has of its own, whichever thread works for it. */
struct conn {
	pthread_mutex_t mutex;		/* of the counts, between those who post */
	uint64_t count[RING_CHANNELS];	/* works that the host has counted */
	int64_t busy_ns;		/* free of earlier operations, in the thread's plan */
	int64_t polled[RING_CHANNELS][2];	/* the helpers' queues are: see queue_of() */
	struct ring *ring;		/* NULL: stamps are exact */
	int waits;			/* kernels whose stamps never come */
};

struct job {
	struct job *next;
	struct conn *conn;
	void *context;			/* the issuer's */
	int pid;
	bool foreign;
	bool counted;
	uint64_t count[RING_CHANNELS];	/* the host's, before this launch */
	int ntasks;
	struct task task[];
};

struct proxy {
	struct member *member;		/* whom the thread was made for */
	int users;
	pthread_t thread;
	pthread_mutex_t mutex;
	pthread_cond_t changed;
	struct job *first, **last;
	bool leaving, resting;		/* resting: all is played as far as it goes */
	bool profiler;			/* it polls channels, and nothing else */

	/* the thread's own */
	struct work work;
	struct work_sub *all;		/* every sub ever made */
	struct work_sub *spare;		/* those to use again, handles and all */
	int open;			/* subs under way, those that hang included */
	bool active;
};

/* ---- proxy_append.c ---- */

/* How many tasks from task[i] on are one work: one, or the two of a round. */
int proxy_work_size(const struct task *task, int i, int ntasks);

/*
 * NCCL counts the works of a kernel, but not what a rank sends to itself, and from 2.31
 * on only what is watched.
 */
void proxy_count_work(uint64_t *count, const struct task *task, bool counted);

/* The ops of a job begin, and what is to happen with them is planned; how many. */
int proxy_append_job(struct proxy *proxy, const struct job *job);

/* This sub is done with. */
void proxy_free_sub(struct proxy *proxy, struct work_sub *sub);

#endif
