/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_SIM_HOOK_H
#define TESTS_SIM_HOOK_H

/*
 * NCCL's launch hook: after a kernel launch it reports Group, Coll and P2p and
 * hands the work to the proxy.  Graph replays run it on a callback thread.
 */

#include "tests/sim/player.h"

/* One rank's part in one operation, from the API call on: NCCL's task. */
struct task {
	struct member *member;
	struct plan_op op;	/* a copy; op.side is not to be used */
	struct plan_side side;
	int mask;		/* latched at the API call */
	void *api;		/* CollApi or P2pApi handle */
	void *group_api;
	void *group;		/* the launch's Group handle */
	void *handle;		/* Coll or P2p; the slot is never cleared */
	int64_t late_ns;	/* launched so much later than the model says: see hook.c */
	bool hidden;		/* the API events are all there is */
};

/* The tasks of one member: one kernel launch.  `replay`: of a captured graph. */
void hook_run(struct task *task, int ntasks, bool replay);

/* Whether the hook has proxy work, so that it runs again at each replay. */
bool hook_has_proxy_work(const struct task *task, int ntasks);

/* Whether this process is to die in the middle of this operation. */
bool hook_kills_us(const struct task *task);

/* The callback thread of a process. */
int hook_new(struct hook **hookp, struct player *player);
void hook_free(struct hook *hook);		/* plays what is queued first */

/* Run the hook on the callback thread, with a copy of the tasks; 0 or -ENOMEM. */
int hook_replay(struct hook *hook, const struct task *task, int ntasks);

void hook_drain(struct hook *hook);		/* until nothing is queued */

#endif
