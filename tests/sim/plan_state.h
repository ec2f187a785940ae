/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_SIM_PLAN_STATE_H
#define TESTS_SIM_PLAN_STATE_H

/* Between plan.c, which walks the program, and plan_time.c, which times it. */

#include "tests/sim/plan.h"

#define PLAN_MAX_DEPTH	16

/* One open block of the program. */
struct plan_frame {
	const struct sim_stmt *body, *at;
	uint64_t left;			/* passes, this one included */
	enum sim_stmt_kind kind;	/* loop, graph or replay */
	int graph, part;
};

/* A call that a rank leaves out where the program has it, and makes later. */
struct plan_later {
	const struct sim_op *spec;	/* NULL: not left out so far, or made */
	const struct sim_comm *comm;
	uint64_t index;
	bool due;
};

struct plan {
	const struct scenario *scn;
	struct plan_frame frame[PLAN_MAX_DEPTH];
	int depth;
	bool ended;
	struct plan_step step;
	int ops_room, sides_room, nsides;
	struct plan_side *sides;
	uint64_t computes;			/* passed so far */
	struct plan_later later[SCENARIO_MAX_FAULTS];	/* by fault */
	bool swapped[SCENARIO_MAX_FAULTS];	/* it has been */

	int64_t host[SCENARIO_MAX_RANKS];	/* by thread */
	int64_t gpu[SCENARIO_MAX_RANKS];	/* by world rank: its stream is free */
	uint64_t comm_ops[SCENARIO_MAX_COMMS];
	bool aborted[SCENARIO_MAX_COMMS];
	uint64_t late_mark[SCENARIO_MAX_RANKS];	/* a rank is late once in a step */
	int64_t (*away)[SCENARIO_MAX_RANKS];	/* by communicator: see plan_side */
	const struct sim_stmt *graph_body[SCENARIO_MAX_GRAPHS];
	int rank_base[SCENARIO_MAX_COMMS];	/* where its ranks are in seq */
	uint64_t (*seq)[FUNC_COUNT];
};

/* The host thread of a world rank. */
int plan_thread_of(const struct scenario *scn, int world);

/* Fill in the times of all sides of the current step. */
void plan_time_launch(struct plan *plan);
void plan_time_capture(struct plan *plan);
void plan_time_replay(struct plan *plan);

/* ---- plan_fault.c ---- */

/* The fault of this kind that hits the operation; world: its rank, -1: any. */
const struct sim_fault *plan_fault_find(const struct plan *plan, const struct plan_op *op,
					enum sim_fault_kind kind, int world);

/* The fault that keeps this operation from ending, or NULL. */
const struct sim_fault *plan_fault_ending(const struct plan *plan, const struct plan_op *op);

/* How late this rank comes to this operation; `host` says which of its clocks. */
int64_t plan_fault_lateness(struct plan *plan, const struct plan_op *op, int world, bool host);

/* The fault by which this rank leaves a call for later, or NULL. */
const struct sim_fault *plan_fault_swap(struct plan *plan, const struct plan_op *op, int world);

/* After a step: are calls due that were left for after one of it? */
void plan_fault_look_back(struct plan *plan);

/* A killed process posts nothing more; an aborted communicator is gone. */
void plan_fault_apply(struct plan *plan, const struct plan_op *op);

#endif
