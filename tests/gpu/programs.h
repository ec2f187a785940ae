/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_GPU_PROGRAMS_H
#define TESTS_GPU_PROGRAMS_H

/* What one rank can do; all return an exit status. */

#include <stddef.h>
#include <stdint.h>

#include "tests/nccl/world.h"

/* An operation whose larger buffer has so many bytes. */
struct operation {
	const char *name;
	void (*run)(struct world *w, size_t bytes);
	const char *needs;	/* a function that not every NCCL has, or NULL */
};
extern const struct operation operations[];	/* ends with a NULL name */

uint64_t now_ns(void);		/* CLOCK_MONOTONIC */

/* Every operation at sizes from 64 bytes to MOST-BYTES, timed by CUDA's events. */
int program_times(struct job *job, char **arguments);

/*
 * What an AllReduce or a P2P of 64 to MOST bytes costs this job, in turns with JOBS - 1 others
 * that share the file TURNS: as number INDEX, ROUNDS times, told as NAME.  Ranks are nodes of
 * their own, or with NODES 1 all in this process; 77: it has too few GPUs for that.
 */
int program_cost(struct job *job, char **arguments);

/* A few calls that are worth recording: see small.c for the names. */
int program_small(struct job *job, char **arguments);

/* AllReduces in a CUDA graph that is launched several times. */
int program_graph(struct job *job, char **arguments);

#endif
