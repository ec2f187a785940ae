/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NCCLINSPD_FINDINGS_ENDING_H
#define NCCLINSPD_FINDINGS_ENDING_H

/*
 * The kernel's word on how a process ended that is nobody's child here: a pidfd that was opened
 * while it lived tells it (PIDFD_GET_INFO, Linux 6.15 and newer; no right is needed), once its
 * parent has waited for it.
 */

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/*
 * A pidfd of the process that has that number here and began at `start_time` (life.h); `proc`
 * is where procfs is.  -1: it cannot be had.
 */
int ending_open(const char *proc, pid_t pid, uint64_t start_time);

/* False: it lives, nobody has waited for it, or this kernel does not tell.  *status: wait(2)'s. */
bool ending_read(int pidfd, int32_t *status);

/*
 * The processes that the kernel has killed since it was booted because memory ran out, in a
 * cgroup or all of it: oom_kill of <proc>/vmstat.  UNKNOWN_U64: it does not tell.
 */
uint64_t ending_oom_kills(const char *proc);

#endif
