/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_NCCL_WORLD_H
#define TESTS_NCCL_WORLD_H

/*
 * Communicators for test programs: what one process has of them, what it does with
 * them, and a truth file that tells it, one JSON object for each operation of each
 * local rank:
 *
 *   comm, nranks, nnodes, rank, func, seq, count, datatype, bytes, root, peer
 *
 * as the daemon tells them (docs/api.md), null where something does not apply, and
 *
 *   stream, called_ns
 *
 * where, and when on the monotonic clock, it was called: its kernels are those of
 * that stream (FAKE_GPU_DIARY) that are launched next.
 * Whatever NCCL refuses ends the program.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "nccl_calls.h"

#define WORLD_LOCAL	8

enum world_func { ALL_REDUCE, ALL_GATHER, REDUCE_SCATTER, BROADCAST, REDUCE, FUNCS };

/* What this process is: local ranks first .. first + local - 1 of so many. */
#define JOB_LIMIT_S	45	/* a program that hangs must not keep its machine busy */

struct job {
	int ranks;
	int first;
	int local;
	const char *directory;	/* shared by all processes, for ids */
	FILE *truth;		/* or NULL */
};

struct world {
	struct job *job;
	struct nccl_unique_id id;
	char name[64];
	int ranks, nodes;
	int local;
	bool nonblocking;
	int rank[WORLD_LOCAL];
	ncclComm_t comm[WORLD_LOCAL];
	void *stream[WORLD_LOCAL];
	uint64_t called_ns[WORLD_LOCAL];	/* the latest call, monotonic clock */
	unsigned int seq[WORLD_LOCAL][FUNCS];
};

struct world_options {
	bool nonblocking;
	bool share;		/* a split's resources with its parent's */
	bool single;		/* ranks initialise one by one, each in its own thread */
};

/* All ranks of the job.  The name is NCCL's commName, and must be new. */
struct world *world_new(struct job *job, const char *name, struct world_options options);

/*
 * Where a process has one rank, those of equal rank modulo `colors` go together;
 * else all of them do.
 */
struct world *world_split(struct world *parent, int colors, const char *name,
			  struct world_options options);

/* Without the last rank; NULL for who has only that. */
struct world *world_shrink(struct world *parent, const char *name, int flags);

/* Run that for every local rank, each in a thread of its own. */
void world_each(struct world *w, void (*run)(struct world *w, int local));

/* One local rank's calls; the caller groups them if it has several in a thread. */
void world_call(struct world *w, int local, enum world_func func, size_t count,
		enum nccl_type type, int root);
void world_ring_call(struct world *w, int local, size_t count, enum nccl_type type);
/* The two halves of it, for a group of the caller's. */
void world_send_call(struct world *w, int local, size_t count, enum nccl_type type);
void world_recv_call(struct world *w, int local, size_t count, enum nccl_type type);

/* All local ranks, in one group. */
void world_collective(struct world *w, enum world_func func, size_t count,
		      enum nccl_type type, int root);
/* Everyone sends to the next rank and receives from the one before. */
void world_ring(struct world *w, size_t count, enum nccl_type type);

enum world_self { SELF_SKIPPED, SELF_COPIED, SELF_IN_PLACE, SELF_NATIVE };

/* Everyone sends to everyone; native: by NCCL's own AlltoAll. */
void world_alltoall(struct world *w, size_t count, enum nccl_type type, enum world_self self);

/* Some of everything; `turn` varies sizes and roots. */
void world_everything(struct world *w, int turn);

/* Until the GPU has done what was launched. */
void world_wait(struct world *w);

/* Destroy, or abort without waiting, and free it. */
void world_destroy(struct world *w);
void world_abort(struct world *w);

void world_group_start(void);
void world_group_end(void);

/* Until nonblocking communicators have done what they were told, if that has begun. */
void world_settle(struct world *w);

/* End the program if that is an error. */
void world_require(int result, const char *what);
#define WORLD_REQUIRE(call)	world_require(call, #call)

#endif
