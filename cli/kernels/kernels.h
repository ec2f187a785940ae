/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_KERNELS_KERNELS_H
#define CLI_KERNELS_KERNELS_H

/*
 * The kernels of one process as a profiler saw them through CUPTI, NCCL's and all others, and
 * their place on the daemon's time axis.
 *
 *   kernels.c        reads a trace of PyTorch's profiler (Kineto), event by event
 *   kernels_join.c   finds NCCL's kernels among the daemon's operations: the two clocks' offset
 *   kernels_sums.c   compute, communication, and what of it nothing hides, for each step
 */

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "util/list.h"
#include "util/unknown.h"

#define KERNELS_WHY	384	/* bytes of a sentence that says why not */
#define KERNELS_DEVICES	64	/* GPUs that a process may have */

struct gpu_kernel {
	int64_t start_ns, stop_ns;	/* time of day, since 1970 */
	uint64_t correlation;		/* grows from launch to launch; 0: unknown */
	uint64_t stream;
	const char *name;
	const struct kernels_unit *unit;	/* the operation that it ran; NULL: not found */
	int32_t device;			/* number of the GPU in the process */
	bool nccl;
	uint8_t func;			/* as kernels_func() */
};

/* A step of the profiler, "ProfilerStep#12". */
struct kernels_step {
	int64_t at_ns;			/* its begin on the host */
	int64_t number;
	/* the first launched from there on; UINT64_MAX: none is; 0: the file has no launches */
	uint64_t correlation;
};

/* One kernel by the daemon: an operation, or a batch of them. */
struct kernels_unit {
	uint64_t start_ns, stop_ns;	/* CLOCK_MONOTONIC, by the daemon */
	const json_t *row;		/* the operation, or the first of the batch */
	const struct gpu_kernel *kernel;	/* NULL: not found */
	uint64_t wait_ns;		/* waiting for the last rank; UINT64_MAX: unknown */
	uint32_t group;			/* number of its communicator and rank in it */
	uint8_t func;			/* 0: several functions */
};

struct kernels {
	char *path;			/* safe to show */
	LIST(struct gpu_kernel) all;	/* by their start */
	LIST(struct kernels_step) steps;	/* by their begin */
	json_t *names;			/* an object, whose keys they are */
	int64_t first_ns, last_ns;	/* begin and end of all kernels */
	int32_t pid;			/* the process, as it calls itself, or UNKNOWN_I32 */
	int32_t rank;			/* rank in the job, or UNKNOWN_I32 */
	uint64_t malformed;		/* events that made no sense */
	/* once joined */
	int32_t host_pid;		/* the process on the node; 0: it is not joined */
	LIST(struct kernels_unit) units;
	uint32_t compared, matched;	/* units in the time of the kernels; with a kernel */
	int64_t offset_ns;		/* a kernel's time less CLOCK_MONOTONIC */
	int64_t shift_ns;		/* the part of it that the time of day does not explain */
	uint64_t spread_ns;		/* nine in ten ends lie closer together */
};

/* Returns 0, or -1 and the reason in `why`.  The caller calls kernels_deinit() in both cases. */
int kernels_read(struct kernels *k, const char *path, char why[KERNELS_WHY]);
void kernels_deinit(struct kernels *k);

/*
 * Joins them with rows of /v1/processes and /v1/collectives, which must outlive it.  As above;
 * what was read stays usable without.
 */
int kernels_join(struct kernels *k, const json_t *processes, const json_t *rows,
		 char why[KERNELS_WHY]);

/* Prints on stderr what the join rests on. */
void kernels_tell_join(const struct kernels *k);

/* Adds rows as schema/overlap.schema has them: for each GPU all, then each step. */
void kernels_sum(const struct kernels *k, json_t *rows);

struct kernels_span {
	int64_t start_ns, stop_ns;
};

/* Invariant: in order, disjoint. */
struct kernels_spans {
	LIST(struct kernels_span) list;
	uint32_t passed;		/* spans that are over in what was asked for last */
};

/* The times in which only NCCL's kernels run on that GPU; the caller's. */
struct kernels_spans kernels_exposed(const struct kernels *k, int32_t device);

/* A number for NCCL's functions that have kernels of their own, from 1; 0: it is none of them. */
uint8_t kernels_func(const char *name, size_t bytes);

#endif
