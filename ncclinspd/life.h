/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NCCLINSPD_LIFE_H
#define NCCLINSPD_LIFE_H

/* Whether the process behind a segment still runs, and if not, whether it said so. */

#include "ncclinspd/segment.h"

#define LIFE_PROC	"/proc"

enum life {
	LIFE_ALIVE,
	LIFE_EXITED,
	LIFE_DIED,
};

/* Fills in host_pid and host_pid_proven of a segment that was just opened. */
void life_find_owner(struct segment *seg);

/* Its process holds the lock, as only a running one can. */
bool life_is_held(const struct segment *seg);

/*
 * Field 22 of <proc>/<pid>/stat, `proc` being where procfs is.  0: there is no such process,
 * it is not shown to us, or it is over and nobody has waited for it.
 */
uint64_t life_start_time(const char *proc, pid_t pid);

enum life life_of(const struct segment *seg);

#endif
