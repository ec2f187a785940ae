/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PLUGIN_SWEEP_H
#define PLUGIN_SWEEP_H

/* The removal of what killed processes left in the directory of segments. */

#include <stdint.h>

#define SWEEP_AGE_S	60	/* a daemon's time to read what a dead process left */

/*
 * Remove segments that dead processes of this user left in `dir`: nobody holds
 * the lock, the process is gone, and the file is older than SWEEP_AGE_S at
 * `now_s` (CLOCK_REALTIME).  `own` is never opened: to close any descriptor of a
 * file drops this process's lock on it.
 */
void sweep_dead(const char *dir, const char *own, int64_t now_s);

#endif
