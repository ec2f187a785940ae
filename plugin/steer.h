/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PLUGIN_STEER_H
#define PLUGIN_STEER_H

/*
 * Level, sampling and bursts, which NCCL is asked for while the job runs, change when a
 * group ends.  NCCL reads its mask at the begin of each API call, before we hear of the
 * call; an operation in flight keeps what it was posted with.
 *
 * Two things about KernelCh let jobs never end in ncclCommDestroy (docs/kernels.md has
 * the runs).  NCCL up to 2.30 waits there for every stamp that it has looked for.
 *
 *  - A Send that is watched, paired with a Recv that is not: the kernel stamps for
 *    neither.  So the bit must stand still in a group with sends and receives.  It
 *    changes when a GroupApi stops, on the thread that sends and outside of its group,
 *    or on any thread as long as nobody has sent.  The second thread that sends ends all
 *    changes.  A thread that decided before that may not store after it: each of the first
 *    two senders sets a spare bit of the mask, and the store compares all of it.  What
 *    remains is a thread whose first send ever has read the mask and not called us yet:
 *    so nothing changes until the process has shown for a while how it uses NCCL.
 *
 *  - Counts of works that drift: NCCL then waits for another work's stamp, which never
 *    comes if that one is not watched.  A rank that sends to itself, CUDA graphs and, from
 *    2.29 on, a group of Broadcasts with several roots do that.  After the first KernelCh
 *    never comes on again, since only a pause leaves works without stamps; after captured
 *    graphs it stays as it is, since replays go on as they were captured; after the last
 *    it goes off for good.
 *
 * From 2.31 on NCCL counts watched works only: KernelCh is on from the first one, and
 * once it is off it stays off.
 */

#include "nci/segment.h"
#include "plugin/environment.h"
#include "plugin/level.h"
#include "nccl/profiler.h"
#include "plugin/orders.h"
#include "shmring/producer.h"

struct plugin_process;
struct process_thread;

#define STEER_FIRST_S		60	/* kernels are timed for so long, from NCCL 2.31 on */
#define STEER_PERIOD_MS		16000	/* bursts where no daemon plans them: even if timing */
#define STEER_LENGTH_US		80000	/* doubled what NCCL takes, it would cost 0.5 % */

/* Last posts of a communicator that matter beside something else of their group. */
struct steer_comm {
	_Atomic uint64_t broadcast;	/* group << 32 | root */
	_Atomic uint32_t send;		/* group */
};

struct plugin_steer {
	/* Shared by all threads. */
	_Atomic uint32_t busy;		/* one thread decides; the others go on */
	_Atomic uint32_t value;		/* our last value of NCCL's mask, spare bits left out */
	_Atomic(int *) mask;		/* NCCL's; NULL: no communicator is open */
	_Atomic uint64_t due_ns;	/* CLOCK_REALTIME_COARSE: nothing to decide before */
	_Atomic uint64_t switched;	/* ticks of KernelCh's last change; 0: at init */
	_Atomic uint32_t switches;	/* changes of KernelCh */
	_Atomic uint32_t seen;		/* NCI_SEEN_* */
	_Atomic uint32_t groups;	/* numbers of outermost groups */
	_Atomic uint32_t open;		/* threads within a group */
	_Atomic uint32_t waits;		/* a change that only the sender may make */
	_Atomic(const struct process_thread *) sender;
	struct steer_comm comm[SHMRING_COMMS + 1];	/* the last one: all without an entry */
	/* Used by the busy thread alone. */
	int version;
	bool modern;			/* NCCL 2.31 or newer */
	struct environment env;
	struct level start, now;	/* the environment's; the one in force */
	uint32_t sample, mode, mode_s;
	uint32_t before;		/* `value` before its last change */
	uint64_t period_ns, length_ns;	/* the bursts' */
	uint64_t active_ns;		/* time with groups in it, a pause counted for a second */
	uint64_t first_end_ns;		/* CLOCK_MONOTONIC; 0: no group yet */
	uint64_t looked_ns, decided_ns;	/* CLOCK_MONOTONIC: last look at the control file; at all */
	uint64_t decided_ticks;		/* the latter, by the process's clock */
	uint64_t until_ns;		/* ... when something in force ends; 0: nothing does */
	struct orders orders;
};

/* A thread's own part, in process_thread. */
struct steer_thread {
	uint32_t group;		/* number of the outermost group, as far as can be told */
	uint32_t switches;	/* when its GroupApi began */
	bool open;		/* it is within a GroupApi */
	bool launched;		/* its GroupApi's next stop is the outermost end */
	bool over;		/* the outermost group has ended, most likely */
	bool sends;		/* it has ever sent */
	bool sent;		/* it has sent in its present group, as far as can be told */
	bool watched;		/* KernelCh was on when the GroupApi began */
};

/* The first communicator.  Under the lock of inits, as all that takes a process here. */
void steer_begin(struct plugin_process *p, int version, uint32_t nccl_version,
		 uint64_t spare_bytes);

/* One more: true if kernels are not timed any more, since shared memory has become scarce. */
bool steer_one_more(struct plugin_process *p, uint64_t spare_bytes);

/* Write the mask that an init leaves in its NCCL; true: that NCCL is the one steered. */
bool steer_mask(struct plugin_process *p, int version, int *mask);

/* The last communicator of the NCCL that is steered is gone, and the mask with it. */
void steer_end(struct plugin_process *p);

/* Forget all that the parent has decided, in a forked child. */
void steer_forget(struct plugin_process *p);

/* ---- from callbacks; `comm` is the communicator's number, or NCI_COMM_NONE or above ---- */

#define STEER_EVENTS	(NCCL_GROUP_API | NCCL_COLL_API | NCCL_P2P_API | NCCL_P2P)

/* An event of STEER_EVENTS starts on this thread. */
void steer_started(uint64_t comm, const struct nccl_descr_v6 *d, uint64_t ticks);

/*
 * A GroupApi, or before version 5 a Group, has stopped on this thread, `took` ticks after
 * the application had ended it; 0: not known.
 */
void steer_stopped(uint64_t took);

/*
 * A Coll or P2p starts on this thread, hence a launch: whether KernelCh was on for sure
 * when the operation was called.
 */
bool steer_launched(uint64_t ticks);

#endif
