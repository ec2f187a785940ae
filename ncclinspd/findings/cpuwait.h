/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NCCLINSPD_FINDINGS_CPUWAIT_H
#define NCCLINSPD_FINDINGS_CPUWAIT_H

/*
 * The time for which threads of one process could have run and had to wait for a CPU: the
 * kernel counts it in /proc/<pid>/task/<tid>/schedstat.  It tells a thread without CPU from
 * one that sleeps.  Where that is not to be had, nothing is known.
 *
 * A process in a container knows its threads by other numbers than we do; its threads'
 * status files tell both.  A thread is looked for once, some files at each look.
 */

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "probe/wire.h"

#define CPUWAIT_THREADS	16	/* watched in a process; more are not */

struct cpuwait;

/*
 * Watch the process that has that number here and began at `start_time` (life.h); `proc` is
 * where procfs is.  One descriptor is held.  0, -ESRCH (it is another process), or another
 * negative errno.
 */
int cpuwait_new(struct cpuwait **out, const char *proc, pid_t pid, uint64_t start_time);
void cpuwait_free(struct cpuwait *c);

/*
 * Now and then: these `n` threads are to be watched, by their numbers in their own pid
 * namespace.  At most *files are read, and counted off.
 */
void cpuwait_look(struct cpuwait *c, const pid_t *tids, uint32_t n, uint64_t now_ns,
		  uint32_t *files);

/* The same of the daemon's own thread, so far; UNKNOWN_U64. */
uint64_t cpuwait_own_ns(const char *proc);

/* The watched threads, by their numbers here: so many of them. */
uint32_t cpuwait_threads(const struct cpuwait *c, pid_t *tids, uint32_t max);

/* A wait as the probe saw it (probelink.h); e->number is the thread's here. */
void cpuwait_add(struct cpuwait *c, const struct probe_event *e, uint64_t now_ns);

/* One thread, in the last 20 to 40 s. */
struct cpuwait_sums {
	pid_t tid;		/* its number here */
	uint64_t watched_ns;
	uint64_t ran_ns;	/* the part of watched_ns when it had a CPU */
	uint64_t wait_ns;	/* ... when it was runnable and had none */
	struct probe_taker taker;	/* had its CPU for longest of that; pid 0: not known */
};

/*
 * The thread that waited for a CPU for the largest part of its time; the one that wanted a CPU,
 * and had it or not, for the largest part.  False: nothing is known.  `c` may be NULL.
 */
bool cpuwait_tell(const struct cpuwait *c, uint64_t now_ns, struct cpuwait_sums *sums);
bool cpuwait_tell_busiest(const struct cpuwait *c, uint64_t now_ns, struct cpuwait_sums *sums);

/* The part of its wait for which `taker` had its CPU; < 0: nobody knows. */
double cpuwait_taker_share(const struct cpuwait_sums *sums);

#endif
