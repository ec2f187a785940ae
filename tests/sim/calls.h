/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_SIM_CALLS_H
#define TESTS_SIM_CALLS_H

/*
 * The API calls of one application thread, with the state that NCCL keeps of them
 * for each thread.
 */

#include "tests/sim/hook.h"

struct calls {
	struct player *player;
	int depth;		/* groups that the application has open */
	bool open;		/* the GroupApi event was begun */
	int counted;		/* groups that NCCL thinks are open since */
	void *group_api, *coll_api, *p2p_api;	/* the second is never cleared */
};

/* One call, which opens the event of the group if it is the first one there. */
void calls_make(struct calls *calls, struct task *task, bool captured);

/*
 * An inner group ends.  If it was opened after the event was, NCCL takes this for
 * the end of the outermost one.
 */
void calls_leave_group(struct calls *calls);

void calls_close(struct calls *calls);	/* all calls of the group are made */
void calls_stop(struct calls *calls);	/* what they wanted is launched; twice is fine */

/* The stream of a world rank's operations. */
void *calls_stream(int world);

#endif
