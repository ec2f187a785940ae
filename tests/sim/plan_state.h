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

struct plan {
	const struct scenario *scn;
	struct plan_frame frame[PLAN_MAX_DEPTH];
	int depth;
	bool ended;
	struct plan_step step;
	int ops_room, sides_room, nsides;
	struct plan_side *sides;
	uint64_t computes;			/* passed so far */

	int64_t host[SCENARIO_MAX_RANKS];	/* by thread */
	int64_t gpu[SCENARIO_MAX_RANKS];	/* by world rank: its stream is free */
	uint64_t comm_ops[SCENARIO_MAX_COMMS];
	bool aborted[SCENARIO_MAX_COMMS];
	uint64_t late_mark[SCENARIO_MAX_RANKS];	/* a rank is late once in a step */
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

#endif
