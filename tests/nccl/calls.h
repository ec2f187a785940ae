/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_NCCL_CALLS_H
#define TESTS_NCCL_CALLS_H

/* Jobs whose sequences of calls make NCCL's counters drift, or kept it from its end. */

#include "world.h"

/*
 * An all-gather of uneven sizes, as frameworks make it: a group of Broadcasts of several
 * roots, again and again among other calls.
 */
void calls_allgatherv(struct job *job);

/* One AlltoAll out of place, and for seconds nothing but AllReduces. */
void calls_alltoall_once(struct job *job);

/*
 * For CALLS_S seconds (8) whatever CALLS_SEED has: some forms of groups, all of which come
 * in the job's beginning, on one communicator or two, with pauses or without.  CALLS_LEAVE
 * out, by their letters: forms[] in calls.c has them.
 */
void calls_random(struct job *job);

#endif
