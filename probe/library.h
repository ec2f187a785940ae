/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PROBE_LIBRARY_H
#define PROBE_LIBRARY_H

/* The NCCL of a process: the file that is mapped, and where its functions begin there. */

#include <stdint.h>
#include <sys/types.h>

#include "probe/calls.h"

struct library {
	int fd;				/* the file, whatever name it has by now */
	char path[512];			/* the path that the process has; a longer one is cut */
	uint64_t at[CALLS_END];		/* places in the file; 0: it has no such function */
	uint32_t rank_at;		/* place of `rank` in struct ncclComm; 0: not known */
};

/*
 * Finds it in /proc/PID/maps, as libnccl.so or linked into something else.  The caller closes fd.
 * 0, -ENOENT: nothing that is mapped has NCCL's symbols, or another negative errno.
 */
int library_find(pid_t pid, struct library *library);

#endif
