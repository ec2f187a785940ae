/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NCCLINSPD_FIND_LIFE_H
#define NCCLINSPD_FIND_LIFE_H

/* Whether the process behind a segment still runs, and if not, whether it said so. */

#include "ncclinspd/find/segment.h"

#define LIFE_PROC	"/proc"

enum life {
	LIFE_ALIVE,
	LIFE_EXITED,
	LIFE_DIED,
};

/*
 * Who an opened segment's process is here, by its lock: host_pid, host_pid_proven, and its
 * process's pid and container.
 */
void life_find_owner(struct segment *seg);

/* Its process holds the lock, as only a running one can. */
bool life_is_held(const struct segment *seg);

/*
 * Field 22 of <proc>/<pid>/stat, `proc` being where procfs is.  0: there is no such process,
 * it is not shown to us, or it is over and nobody has waited for it.
 */
uint64_t life_start_time(const char *proc, pid_t pid);

/*
 * Thread `tid`, whose <tid>/status lies in `dirfd`, as it calls itself: the last number of its
 * NSpid line; *depth: how many there are, so many pid namespaces deep.  0: not known.
 */
pid_t life_ns_pid(int dirfd, pid_t tid, uint32_t *depth);

enum life life_of(const struct segment *seg);

#endif
