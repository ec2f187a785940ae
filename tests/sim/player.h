/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_SIM_PLAYER_H
#define TESTS_SIM_PLAYER_H

/*
 * One simulated process: an NCCL with its communicators and threads, which
 * plays its ranks' part of the plan to a profiler library.
 */

#include <stdatomic.h>

#include "tests/sim/api.h"
#include "tests/sim/pace.h"
#include "tests/sim/plan.h"
#include "tests/sim/asked.h"

struct conn;
struct hook;
struct meet;
struct proxy;
struct pxn;

/* A rank of a communicator that lives in this process: NCCL's ncclComm. */
struct member {
	struct player *player;
	const struct sim_comm *comm;
	int rank, world;
	void *context;
	struct proxy *proxy;
	struct proxy *profiler;		/* what polls the GPU's channels, from 2.31 on */
	struct conn *conn;
	uint64_t seq[FUNC_COUNT];
	uint64_t ce_seq;
	void *group[2];			/* handle slots, eager and replay; never cleared */
	bool aborted;
	bool capturing;			/* the last launch went into a graph */
	int64_t late_ns;		/* most that a launch came late, in model time */
	struct asked asked;
};

struct player {
	const struct scenario *scn;
	struct api api;
	struct pace pace;
	struct pxn *pxn;		/* NULL: none in this scenario */
	struct meet *meet;		/* NULL: threads do not wait for their peers */
	int asked_fd;			/* -1: nobody wants to know */
	int process;
	int mask;			/* NCCL's one activation mask; libraries write it */
	struct hook *hook;		/* the callback thread */
	_Atomic int64_t lag_ns;		/* how much later than in the model its hosts call */
	struct member *member;
	int nmembers;
};

/* What ncclProfiler* a process of this scenario finds; for tests, a table of their own. */
struct player_plugin {
	const void *table;		/* NULL: nothing is profiled */
	int version;
};

/* What all processes of a job have in common: see struct player. */
struct player_shared {
	struct pxn *pxn;
	struct meet *meet;
	int asked_fd;
};
#define PLAYER_ALONE	((struct player_shared){ .asked_fd = -1 })

/*
 * Play process `process` from init to finalize, in the calling process.  Returns 0
 * when all was played, 1 when operations hang for ever (after the scenario's hold),
 * or -errno.
 */
int player_run(const struct scenario *scn, int process, const struct player_plugin *plugin,
	       const struct pace *pace, const struct player_shared *shared);

/* The member of this communicator and rank, or NULL if it lives elsewhere. */
struct member *player_member(struct player *player, const struct sim_comm *comm, int rank);

/* Until a host comes to what the model has it do at this time. */
static inline void player_wait(const struct player *player, int64_t model_ns)
{
	pace_wait(&player->pace, model_ns + player->lag_ns);
}

/* The mask as NCCL reads it. */
static inline int player_mask(struct player *player)
{
	return __atomic_load_n(&player->mask, __ATOMIC_RELAXED);
}

/* Events that these bits of the mask bring along (2.28 and later). */
#define PLAYER_BELOW_TASK	(NCCL_PROXY_OP | NCCL_PROXY_STEP | \
				 NCCL_KERNEL_CH | NCCL_NET_PLUGIN)
#define PLAYER_CE		(NCCL_CE_COLL | NCCL_CE_SYNC | NCCL_CE_BATCH)
#define PLAYER_WANTS_GROUP_API	(~NCCL_PROXY_CTRL)
#define PLAYER_WANTS_COLL_API	(NCCL_COLL_API | NCCL_COLL | PLAYER_BELOW_TASK | PLAYER_CE)
#define PLAYER_WANTS_P2P_API	(NCCL_P2P_API | NCCL_P2P | PLAYER_BELOW_TASK)
#define PLAYER_WANTS_GROUP	(NCCL_GROUP | NCCL_COLL | NCCL_P2P | PLAYER_BELOW_TASK)
#define PLAYER_WANTS_COLL	(NCCL_COLL | PLAYER_BELOW_TASK)
#define PLAYER_WANTS_P2P	(NCCL_P2P | PLAYER_BELOW_TASK)
#define PLAYER_WANTS_OP		(NCCL_PROXY_OP | NCCL_PROXY_STEP | NCCL_NET_PLUGIN)
#define PLAYER_WANTS_STEP	(NCCL_PROXY_STEP | NCCL_NET_PLUGIN)

/* A slot that NCCL does not initialise. */
#define PLAYER_GARBAGE	((void *)0x5ca1ab1e5ca1ab1eull)

#endif
