/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PLUGIN_COST_H
#define PLUGIN_COST_H

/* The cost of our callbacks to the job, measured on one of NCI_TIMED_ONE_IN. */

#include <stdbool.h>

#include "nci/segment.h"

/* Whether a callback that begins at `ticks` is one of them. */
static inline bool cost_is_measured(uint64_t ticks)
{
	/* Chance decides, and no multiplier of the counter keeps us from any callback. */
	return (uint32_t)ticks * UINT32_C(0x9e3779b1) < UINT32_MAX / NCI_TIMED_ONE_IN;
}

/* It did, for an event of that NCI_EV_*, and ends now. */
void cost_add(uint32_t type, uint64_t ticks);

#endif
