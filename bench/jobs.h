/* SPDX-License-Identifier: Apache-2.0 */
#ifndef BENCH_JOBS_H
#define BENCH_JOBS_H

/*
 * Up to JOBS_MOST processes that a daemon reads, all of them segments of this one.  Another
 * process keeps their locks, by which the daemon knows that they live.
 */

#include "tests/fixture_daemon.h"

#define JOBS_MOST	512

struct jobs {
	struct fx_daemon fx;
	uint32_t n;
	struct shmring ring[JOBS_MOST];
	struct shmring_lane *lane[JOBS_MOST];
	uint64_t published;		/* records of each */
	pid_t keeper;
};

typedef void jobs_publish(struct shmring_lane *lane, uint64_t n);

/* A daemon that has found so many, no fewer than before; what cannot be had ends the program. */
void jobs_open(struct jobs *jobs, uint32_t n);
void jobs_close(struct jobs *jobs);

/* So many records more in the lane of each. */
void jobs_write(struct jobs *jobs, uint32_t each, jobs_publish *publish);

#endif
