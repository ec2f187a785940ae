/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_SIM_PLAN_H
#define TESTS_SIM_PLAN_H

/*
 * The model: what happens in a scenario and when, for all ranks at once.  It is
 * a pure function of scenario and seed, so every thread of every process works
 * it out for itself, and all agree without a word between them.
 *
 * Times are model ns since the program's start; PLAN_NEVER: does not happen.
 */

#include <stdbool.h>
#include <stdint.h>

#include "tests/sim/scenario.h"

#define PLAN_NEVER	INT64_MAX

enum plan_kind {
	PLAN_LAUNCH,		/* operations that are launched together */
	PLAN_CAPTURE,		/* the same, into a graph: nothing runs yet */
	PLAN_REPLAY,		/* a captured launch runs */
	PLAN_SYNC,		/* hosts wait for their GPUs */
	PLAN_END
};

/* One rank's part in one operation. */
struct plan_side {
	enum sim_func func;	/* Send and Recv are sides of one operation */
	int rank, peer;		/* in the communicator; peer: Send and Recv, else -1 */
	uint64_t count, bytes;	/* as this rank passes them; bytes: its larger buffer */
	int datatype, root;
	int64_t due;		/* when its host comes to the call, or would */
	int64_t enqueued;	/* the API call; PLAN_NEVER: this rank does not join */
	int64_t launched;	/* the kernel launch */
	int64_t arrival;	/* the GPU begins: stream free, kernel there */
	int64_t stop;		/* the GPU is done */
	uint64_t gpu_start, gpu_stop;	/* by this GPU's clock; stop 0: never */
	uint64_t seq;		/* of this communicator, function and rank */
	bool has_seq;		/* Send and Recv have none */
	bool moves;		/* false: within a rank and in place */
	bool elsewhere;		/* this call is made in another step */
	int64_t away;		/* the rank's progress thread gets no CPU before this */
	bool busy;		/* ... though it wants one, while others have it */
};

struct plan_op {
	const struct sim_op *spec;
	const struct sim_comm *comm;
	uint64_t index;		/* how many-th of its communicator, from 0 */
	uint64_t bytes;		/* the larger buffer of one rank, as most pass it */
	int first_channel, nchannels;
	int all_channels;	/* after so many comes channel 0 again */
	int round;		/* in which a Send and its Recv meet (schedule.h) */
	int members;		/* operations of this communicator in this launch */
	int64_t data_ns;	/* data begins to flow: the last rank is there */
	int64_t cut_ns;		/* nothing happens in this operation after this */
	int64_t fast_ns;	/* one channel is slow: what the others take; 0: none is */
	int slow_index;		/* which one; -1: of another operation of this kernel */
	int last_rank;		/* who came last; -1: not all came */
	const struct sim_fault *fault;	/* that keeps it from ending */
	struct plan_side *side;
	int nsides;
};

struct plan_step {
	enum plan_kind kind;
	int graph;		/* capture, replay */
	int part;		/* which launch of the graph */
	bool grouped;		/* between ncclGroupStart and ncclGroupEnd */
	uint64_t number;	/* of launches so far */
	struct plan_op *op;
	int nops;
};

/* When one channel of a rank's part begins and ends, by the model and by its GPU. */
struct plan_span {
	int64_t start, stop;		/* PLAN_NEVER as in plan_side */
	uint64_t gpu_start, gpu_stop;
};

struct plan;

int plan_new(struct plan **planp, const struct scenario *scn);	/* 0 or -ENOMEM */
void plan_free(struct plan *plan);

/*
 * What comes next in the program.  The step belongs to the plan and holds until
 * the next call.  Returns 0 or -ENOMEM.  After PLAN_END it stays at the end.
 * The end also comes when no host can go on.
 */
int plan_next(struct plan *plan, const struct plan_step **stepp);

/* Whether the host thread of this world rank can go on, and its time. */
int64_t plan_host_ns(const struct plan *plan, int world);

/* When the GPU of this world rank has done all it was given. */
int64_t plan_gpu_ns(const struct plan *plan, int world);

/*
 * The index-th channel of a side that arrived.  The first channel begins and the
 * last one ends with the kernel.
 */
void plan_channel(const struct scenario *scn, const struct plan_op *op,
		  const struct plan_side *side, int index, struct plan_span *span);

/* Whether its API events are all that NCCL tells of it. */
bool plan_is_hidden(const struct scenario *scn, const struct sim_op *op);

/* The number of the index-th channel. */
int plan_channel_number(const struct plan_op *op, int index);

/* A GPU's clock at a model time. */
uint64_t plan_gpu_clock(const struct scenario *scn, int world, int64_t model_ns);

/* Whether a fault is in store for this operation and has a rank in it. */
bool plan_fault_covers(const struct scenario *scn, const struct sim_fault *fault,
		       const struct plan_op *op);

/*
 * How many times slower than it is a link, or a channel of a rank, is in this operation; in that
 * step, or with -1 in any.
 */
double plan_fault_link(const struct scenario *scn, const struct plan_op *op, int from, int to);
double plan_fault_channel(const struct scenario *scn, const struct plan_op *op, int world,
			  int channel, int step);

/* A link as it is in this operation: one that a fault makes slow, if it does. */
struct sim_link plan_link(const struct scenario *scn, const struct plan_op *op, int from, int to);

/* A reproducible random number for this purpose and place. */
uint64_t plan_hash(uint64_t seed, uint64_t a, uint64_t b, uint64_t c);

/* The side of this rank, or NULL; `nth` counts when a rank has several. */
const struct plan_side *plan_side_of(const struct plan_op *op, int rank, int nth);

#endif
