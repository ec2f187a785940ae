/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PLUGIN_STEER_H
#define PLUGIN_STEER_H

/*
 * What NCCL is asked for while the job runs: level, sampling and bursts, changed
 * when a group ends.  NCCL reads its mask at the begin of each API call, before we
 * hear of the call; an operation in flight keeps what it was posted with.
 *
 * When KernelCh may change
 *
 * A Send that is watched, in one group with a Recv that is not, hangs the job (seen
 * inside NCCL 2.28.9): the kernel stamps for neither, and NCCL waits for the stamp
 * when the communicator is destroyed.  Everything else that a change can leave behind,
 * a watched Recv beside a Send that is not, or collectives of both kinds, does no harm.
 * So between the first and the last call of a group with sends and receives the bit
 * must stand still.  (NCCL's own AlltoAll is such a group: it asks before each part.)
 *
 *  - It changes only when a GroupApi stops.  NCCL also ends that at an inner
 *    ncclGroupEnd whose start came after the first call; the outermost end is known by
 *    the launch before it (Coll or P2p on this thread), or by depth 1: a lone call.
 *  - Once a thread has posted a send or receive, only this thread changes it: it
 *    knows that it is not within a group.  Before, any thread may, since nobody has one.
 *  - Once a second thread has, nobody does (NCI_REASON_THREADS): another thread may have
 *    read the old mask, and we would not know of it yet.  The bit stays as it is, for
 *    good; there is no moment that is safe for a last change.
 *  - What stays for good should rather be off.  So from the first send on the bit goes
 *    off, and no burst begins for `settle` seconds, in which a second thread shows up:
 *    the one that runs backward passes, say.  The same holds after a level that showed
 *    us no calls, and after a second rank of one communicator has come: where a process
 *    has a GPU for each thread, all of them send for the first time at once, and none of
 *    them may change anything any more.  (No rank has made a call then: NCCL lets the
 *    ranks of a node go on when all of them have been through init.)
 *
 * That leaves one race.  A thread whose first send ever reads the mask just before
 * another thread changes it.  So whoever sends for the first time within the second
 * after a change sets the bit to what its own first call cannot conflict with: on after
 * a Send, off after a Recv.  And who decided on a change before that may not make it any
 * more: each first send alters the mask, in a bit that means nothing beside others, and
 * a change is stored only where the mask is what it was when its reasons were looked at.
 */

#include "nci/events.h"
#include "plugin/burst.h"
#include "plugin/orders.h"
#include "plugin/level.h"
#include "plugin/nccl_profiler.h"

struct process;
struct process_thread;

/* The handle of a group that leaves no record, but at whose stop we decide: no event has it. */
#define STEER_HANDLE	UINT64_C(0x7fffffffffffffff)

#define STEER_CAPTURES	1	/* a group was captured into a CUDA graph */
#define STEER_SENDERS	2	/* several threads send and receive */
#define STEER_LIBRARIES	4	/* two NCCLs have shown us their masks */

struct steer {
	/* Of all threads. */
	_Atomic uint32_t busy;		/* one thread decides; the others go on */
	_Atomic uint32_t value;		/* what we put into NCCL's mask last */
	_Atomic(int *) mask;		/* NCCL's; NULL: no communicator is open */
	_Atomic uint64_t quiet_from;	/* CLOCK_REALTIME_COARSE: nothing to decide from then */
	_Atomic uint64_t quiet_ns;	/* for so long */
	_Atomic uint64_t switched;	/* ticks of KernelCh's last change; 0: at init */
	_Atomic uint32_t switches;	/* changes of KernelCh */
	_Atomic uint32_t flags;		/* STEER_* */
	_Atomic uint32_t epoch;		/* grows when threads must say anew that they send */
	_Atomic uint32_t fresh;		/* groups to watch because a communicator is new */
	_Atomic uint32_t waits;		/* a change that only the sender may make */
	_Atomic uint32_t sending;	/* it is within a group */
	_Atomic(const struct process_thread *) sender;
	_Atomic uint64_t usual[2];	/* ticks of a callback, by NCI_THREADS_* */
	/* Of the one that is busy. */
	int version;
	bool from_environment;
	bool keeps_graphs;	/* NCCLINSP_GRAPHS=kernel */
	bool scarce;		/* too little shared memory for KernelCh */
	bool misspelt;		/* a variable that was ignored */
	struct level env, now;
	uint32_t env_sample, sample;
	uint32_t env_budget_ppm, budget_ppm;
	uint32_t cost_ns;
	uint64_t settle_ns;
	uint64_t settled_ns;	/* CLOCK_MONOTONIC until which no burst begins; 0: no wait */
	bool settles;		/* that was begun for the sender */
	bool unsettled;		/* it is to begin: calls are shown again, or ranks come */
	bool replan;		/* budget or cost are new */
	bool seems_whole;	/* no plan yet, and so far the budget is enough for all */
	uint64_t fresh_ns;	/* ... when the first look after its init was; 0: none yet */
	uint64_t looked_ns;	/* ... of the last look at the control file */
	uint64_t until_ns;	/* ... when something in force ends; 0: nothing does */
	struct burst_plan plan;
	struct burst_rate rate;
	struct orders orders;
};

/* A thread's own part, in process_thread. */
struct steer_thread {
	uint32_t epoch;		/* in which it has said that it sends; 0: in none */
	uint32_t switches;	/* when its group began */
	uint32_t ops;		/* API calls in it */
	bool open;		/* it is within a group, as far as GroupApi tells */
	bool ends;		/* ... and the next stop is the outermost end */
	bool watched;		/* KernelCh was on when it began */
};

/*
 * The first communicator: environment, control file, and what NCCL is to be asked for.
 * Under the lock of inits, as all that takes a struct process here.
 */
void steer_begin(struct process *p, int version, uint64_t spare_bytes);

/* Who else has a communicator in this process. */
struct steer_company {
	bool twins;		/* other ranks of the same one */
	bool others;		/* ranks of others */
};

/* One more: true if KernelCh has just gone, since shared memory has become scarce. */
bool steer_comm(struct process *p, uint64_t spare_bytes, struct steer_company company);

/* What a communicator's init is to leave in its NCCL's mask; true: the one that is steered. */
bool steer_mask(struct process *p, int version, int *mask);

/* The last communicator of the NCCL that is steered is gone, and the mask with it. */
void steer_end(struct process *p);

/* In a forked child. */
void steer_forget(struct process *p);

/* Why KernelCh is not what level and sampling say: NCI_REASON_*. */
uint32_t steer_reason(const struct steer *s);

/* ---- from callbacks ---- */

#define STEER_EVENTS	(NCCL_GROUP_API | NCCL_COLL_API | NCCL_P2P_API)

/* An event of STEER_EVENTS starts on this thread. */
void steer_started(const struct nccl_descr_v6 *d, uint64_t ticks);

/* A GroupApi, or before version 5 a Group, has stopped on this thread. */
void steer_stopped(void);

/*
 * A Coll or P2p starts on this thread, hence a launch: whether KernelCh was on for sure
 * when the operation was called.
 */
bool steer_launched(uint64_t ticks);

/* One of NCI_TIMED_ONE_IN callbacks began at `ticks`, and this is its end. */
void steer_timed(uint32_t type, uint64_t ticks);

static inline bool steer_is_timed(uint64_t ticks)
{
	/* By chance, and no multiplier of the counter keeps us from any callback. */
	return (uint32_t)ticks * UINT32_C(0x9e3779b1) < UINT32_MAX / NCI_TIMED_ONE_IN;
}

#endif
