/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PLUGIN_COST_H
#define PLUGIN_COST_H

/* The cost of our callbacks to the job, measured on one of NCI_TIMED_ONE_IN. */

#include <stdbool.h>

#include "nci/segment.h"
#include "nccl/profiler.h"
#include "plugin/process.h"

/* Whether a callback that begins at `ticks` is one of them. */
static inline bool cost_is_measured(uint64_t ticks)
{
	/* Chance decides, and no multiplier of the counter keeps us from any callback. */
	return (uint32_t)ticks * UINT32_C(0x9e3779b1) < UINT32_MAX / NCI_TIMED_ONE_IN;
}

/* A callback that is measured, by the machine's counter at its end.  NCCL_SUCCESS. */
int cost_add(uint32_t type, uint64_t ticks, uint64_t end);

/*
 * A callback for an event of that NCI_EV_* began at `ticks` and ends now.  Whether it is
 * measured changes nothing of its way here, nor does anything come before the clock that is
 * not at hand already: what is run once in a while lies in no cache, and would be most of
 * what is measured.
 */
INLINE int cost_end(uint32_t type, uint64_t ticks)
{
	return unlikely(cost_is_measured(ticks)) ?
	       cost_add(type, ticks, clock_ticks(PROCESS_COUNTER)) : NCCL_SUCCESS;
}

#endif
