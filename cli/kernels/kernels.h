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

/* NCCL's functions that have kernels of their own. */
enum kernels_func {
	KERNELS_ANY,		/* not NCCL's, or of several functions */
	KERNELS_ALL_REDUCE, KERNELS_ALL_GATHER, KERNELS_REDUCE_SCATTER, KERNELS_BROADCAST,
	KERNELS_REDUCE, KERNELS_SEND_RECV,
};

struct gpu_kernel {
	int64_t start_ns, stop_ns;	/* time of day, since 1970 */
	uint64_t correlation;		/* grows from launch to launch; 0: unknown */
	uint32_t name;
	int32_t device;			/* number of the GPU in the process */
	uint64_t stream;
	uint32_t unit;			/* the operation that it ran, plus one; 0: not found */
	bool nccl;
	uint8_t func;
};

struct kernels_launch {
	int64_t at_ns;
	uint64_t correlation;
};

/* The host's begin of a step, "ProfilerStep#12". */
struct kernels_step {
	int64_t at_ns;
	int64_t number;
};

/* One kernel by the daemon: an operation, or a batch of them. */
struct kernels_unit {
	uint64_t start_ns, stop_ns;	/* CLOCK_MONOTONIC, by the daemon */
	const json_t *row;		/* the operation, or the first of the batch */
	uint32_t group;			/* number of its communicator and rank in it */
	uint32_t kernel;		/* plus one; 0: not found */
	uint64_t wait_ns;		/* waiting for the last rank; UINT64_MAX: unknown */
	uint8_t func;
};

/* Sorted by time, all of it. */
struct kernels {
	const char *path;
	LIST(struct gpu_kernel) all;
	LIST(struct kernels_launch) launches;
	LIST(struct kernels_step) steps;
	LIST(char *) names;
	json_t *numbers;		/* places in `names` */
	int32_t pid;			/* number that the process has to itself, or UNKNOWN_I32 */
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

/* Writes a sentence on what the join rests on. */
void kernels_tell_join(const struct kernels *k, char *text, size_t size);

/* A row of /v1/collectives whose operation ran as that kernel; NULL: unknown. */
static inline const struct kernels_unit *kernel_unit(const struct kernels *k,
						     const struct gpu_kernel *kernel)
{
	return kernel->unit ? &k->units.at[kernel->unit - 1] : NULL;
}

/* Adds rows as schema/overlap.schema has them: for each GPU all, then each step. */
void kernels_sum(const struct kernels *k, json_t *rows);

/* Calls `on_span` for each time in which only NCCL's kernels run on a GPU. */
struct kernels_exposed {
	void (*on_span)(void *arg, int32_t device, int64_t start_ns, int64_t stop_ns);
	void *arg;
};

void kernels_each_exposed(const struct kernels *k, struct kernels_exposed to);

enum kernels_func kernels_func_of(const char *token, size_t bytes);

#endif
