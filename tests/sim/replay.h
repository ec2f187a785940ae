/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_SIM_REPLAY_H
#define TESTS_SIM_REPLAY_H

#include "tests/sim/api.h"
#include "tests/sim/recording.h"

/*
 * Make a recording's calls to a profiler, in recorded order, each recorded
 * thread's on a thread of its own.  `speed` 1 is the recorded pace, 0 none at
 * all; before the first finalize it stays for hold_ns of wall time.  As in
 * NCCL, an event that the profiler's mask does not bring about is not begun, and
 * one that it refused is neither recorded nor stopped.  Returns the number of
 * events begun, or a negative errno.
 */
int replay_run(const struct recording *rec, const struct api *api, double speed, int64_t hold_ns);

#endif
