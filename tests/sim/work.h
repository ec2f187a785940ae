/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_SIM_WORK_H
#define TESTS_SIM_WORK_H

/*
 * What a proxy does for one operation, as a list of actions in model time.
 * Pure: from a task to subs and actions, no callback, no clock.
 */

#include "tests/sim/hook.h"
#include "tests/sim/wire.h"

#define WORK_SLOTS	8	/* NCCL_STEPS */
#define WORK_LOOP_NS	300	/* one turn of the progress loop */
#define WORK_MAX_SUBS	(WIRE_MAX + 1)	/* of a channel */

enum work_kind {
	WORK_SEND,
	WORK_RECV,
	WORK_KERNEL_CH		/* NCCL's helper op that polls one channel */
};

/* One channel's transfer in one direction, or one polled channel: NCCL's sub. */
struct work_sub {
	struct work_sub *next;		/* among the spare ones */
	struct work_sub *older;		/* all that the owner ever made */
	enum work_kind kind;
	int channel, index, peer;	/* index: the task's n-th channel */
	int nsteps, window, chunk;	/* see struct wire */
	uint64_t bytes;			/* on the wire, all steps */
	uint64_t gpu_start, gpu_stop;
	uint64_t wait_ns;		/* of a symmetric kernel, for the others; 0: of no such */
	struct ring *ring;		/* where the stamps are then; NULL: they are exact */
	uint64_t count;			/* the work there, as the host counts */
	bool silent;			/* see struct wire */
	int64_t late_ns;		/* see struct task */
	bool joint_stop;		/* stops with the others of its operation */

	/* the issuer's, who is another process for PXN */
	void *context, *parent;
	int pid, rank, mask;

	/* progress; handle slots are never cleared, not even between operations */
	void *handle, *step[WORK_SLOTS], *net[WORK_SLOTS];
	uint64_t moved;
	int steps_done;
};

enum work_verb {
	WORK_PROGRESS,			/* the transport first touches the sub */
	WORK_STEP_START,
	WORK_STEP_STATE,
	WORK_STEP_STOP,
	WORK_OP_STOP,
	WORK_OP_END,			/* nobody is told */
	WORK_KERNEL_START,
	WORK_KERNEL_STOP,
	WORK_KILL			/* this process dies here */
};

struct work_action {
	int64_t at;
	uint64_t order;			/* among actions of one time */
	enum work_verb verb;
	struct work_sub *sub;
	int step, state;
	uint64_t size;			/* transSize; garbage where NCCL's is stale */
	bool last;			/* nothing more comes for the sub */
};

struct work {
	struct work_action *action;
	int nactions, room, first;	/* [first, nactions) are to come, in time order */
	uint64_t order;
	bool failed;			/* out of memory: something is missing */
};

/* Who executes this member's sends: itself, or with PXN the next local rank. */
int work_executor(const struct scenario *scn, const struct sim_comm *comm, int rank);

/*
 * The subs of one channel of a task, in NCCL's order.  `alloc` gives subs whose
 * handle slots are as they were left; at most WORK_MAX_SUBS.  Sends that another process
 * executes are left out; `foreign` asks for just those.
 */
int work_subs(const struct task *task, int channel, bool foreign, struct work_sub **sub,
	      struct work_sub *(*alloc)(void *arg), void *arg);

/*
 * Add the actions of a sub.  `busy_ns` is when the connection, or the queue of
 * helpers, is free of earlier operations, PLAN_NEVER if it never is.
 */
void work_plan(struct work *work, const struct task *task, struct work_sub *sub,
	       int64_t busy_ns, int64_t *donep);

/* Whoever plays the actions is away: what is due meanwhile comes when he is back. */
void work_delay(struct work *work, int64_t from_ns, int64_t until_ns);

/* Add the actions that follow when all subs of an operation are done. */
void work_add(struct work *work, const struct work_action *action);

void work_sort(struct work *work);		/* after adding, before playing */
void work_deinit(struct work *work);

#endif
