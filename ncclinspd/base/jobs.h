/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NCCLINSPD_BASE_JOBS_H
#define NCCLINSPD_BASE_JOBS_H

/*
 * The processes of this node that are one job's: they are one user's, and have a
 * communicator in common, directly or through others.
 */

#include "reader/base/model.h"

/* Limits for each process: open communicators looked at, and table entries to find them. */
#define JOBS_COMMS	64
#define JOBS_ENTRIES	1024

/*
 * job[i], for each of list[n]: the number of the first one of its job, its own if nobody
 * before it belongs with it.  What has no communicator with an id is a job of its own.
 * `seed` keeps a job from choosing ids that cost much.  0 or -ENOMEM.
 */
int jobs_group(struct process *const *list, size_t n, uint64_t seed, uint32_t *job);

/*
 * The communicator as the process has it, open or not, as that rank of it, or as any with
 * UNKNOWN_I32; NULL: the process is not in it.
 */
const struct comm *jobs_comm(const struct process *p, uint64_t comm_id, int32_t rank);

/* Is the process in it, and has not left it? */
bool jobs_has_open(const struct process *p, uint64_t comm_id);

/* The process with that number; NULL: it is not in the list. */
struct process *jobs_process(struct process *const *list, size_t n, uint64_t id);

#endif
