/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PLUGIN_PROCESS_H
#define PLUGIN_PROCESS_H

/*
 * State of the process, held once: the segment, the level, the communicators that
 * NCCL has shown us, and the lane that each thread writes to.
 *
 * The first init that finds no communicator open makes the segment, if there is
 * none, and reads the environment.  When that fails the process is muted: inits
 * succeed, nothing is wanted, every start is refused at its first test.  A
 * forked child begins muted and without a segment; its own first init makes one.
 * The segment stays until the process ends: it is the black box.
 */

#include "plugin/intern.h"
#include "nccl/profiler.h"
#include "plugin/steer.h"
#include "shmring/clock.h"
#include "shmring/producer.h"

#define likely(x)	__builtin_expect(!!(x), 1)
#define unlikely(x)	__builtin_expect(!!(x), 0)
#define INLINE		static inline __attribute__((always_inline))
#define RARE		static __attribute__((noinline, cold))	/* out of the callbacks' way */

struct plugin_process {
	/* Read by every callback. */
	_Alignas(64) _Atomic uint32_t wanted;	/* events that get a handle; 0: muted */
	uint32_t clock;			/* NCI_CLOCK_* */
	_Atomic uint32_t folds;		/* steps leave no record of their own */
	uint32_t generation;		/* the segment's; lanes of older ones are void */
	uint32_t quick_states;		/* states below it take the machine's counter */
	uint32_t group;			/* NCI_EV_*: at whose stop decisions are made */
	uint64_t contexts;		/* context token of the first communicator */
	_Atomic uint32_t open[SHMRING_COMMS];	/* number + 1 of each entry's communicator; or 0 */
	_Atomic(struct nci_live *) live;		/* NULL: no segment */
	pid_t pid;			/* the process that made the segment */
	pid_t loaded_pid;		/* the one that loaded us: NCCL goes by it after fork too */
	struct shmring ring;
	struct intern names;
	struct plugin_steer steer;
};

/* The lane of a thread; void if its generation is not the process's. */
struct process_thread {
	struct shmring_lane lane;	/* a copy; without a pool: none */
	uint32_t generation;
	uint32_t usual;		/* the same if there is a lane, and the machine's counter; or 0 */
	uint32_t refused;	/* events, for want of a lane */
	uint64_t tag;		/* tag.c; 0: none */
	struct steer_thread steer;
};

extern struct plugin_process process_self __attribute__((visibility("hidden")));
extern __thread struct process_thread process_thread;

/* A communicator at init; v1 to v3 tell nothing of it: has_id is false, logger NULL. */
struct process_comm {
	int version;
	const void *caller;	/* an address in that NCCL */
	bool has_id;
	uint64_t id;
	const char *name;	/* may be NULL; copied */
	int nnodes, nranks, rank;
	nccl_logger_fn *logger;
};

/* Always succeeds: the communicator's context token, never 0; *mask is written. */
uint64_t process_init(const struct process_comm *comm, int *mask);

/* Any number; what is no open context of this process is ignored. */
void process_finalize(uint64_t context);

/* The calling thread's first event: a lane for it, or NULL until it asks again. */
struct shmring_lane *process_lane_slowly(struct process_thread *thread);

/* The calling thread's, looked up once: a compiler that knows would do it in each function. */
INLINE struct process_thread *process_thread_self(void)
{
	struct process_thread *thread = &process_thread;

	__asm__("" : "+r"(thread));
	return thread;
}

/* Its lane, if it has one and the clock is the machine's counter; or NULL. */
INLINE struct shmring_lane *process_lane_usual(void)
{
	struct process_thread *thread = process_thread_self();

	return likely(thread->usual == process_self.generation) ? &thread->lane : NULL;
}

/* NULL: none, or the thread has not asked for one yet. */
static inline struct shmring_lane *process_lane_known(void)
{
	struct process_thread *thread = process_thread_self();

	return thread->generation == process_self.generation && thread->lane.pool ?
	       &thread->lane : NULL;
}

static inline struct shmring_lane *process_lane(void)
{
	struct process_thread *thread = process_thread_self();

	return thread->generation == process_self.generation ? process_lane_known() :
	       process_lane_slowly(thread);
}

/* The clock that machines have; NCI_CLOCK_MONOTONIC is what the others get. */
#if defined(__aarch64__)
#define PROCESS_COUNTER	NCI_CLOCK_CNTVCT
#else
#define PROCESS_COUNTER	NCI_CLOCK_TSC
#endif

/* Count a rare thing that any thread may meet: PROCESS_COUNT(stale). */
#define PROCESS_COUNT(field) do {							\
	struct nci_live *live_ = atomic_load_explicit(&process_self.live,		\
						      memory_order_acquire);		\
	if (live_)									\
		atomic_fetch_add_explicit(&live_->field, 1, memory_order_relaxed);	\
} while (0)

/* A communicator's number, or anything else. */
static inline bool process_is_open(uint64_t comm)
{
	return comm < NCI_COMM_NUMBERS &&
	       atomic_load_explicit(&process_self.open[comm % SHMRING_COMMS],
				    memory_order_acquire) == comm + 1;
}

/* Whether a communicator of this process has ever had that number. */
bool process_was_open(uint32_t comm);

#endif
