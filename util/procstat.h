/* SPDX-License-Identifier: Apache-2.0 */
#ifndef UTIL_PROCSTAT_H
#define UTIL_PROCSTAT_H

/* Fields of /proc/PID/stat; see proc_pid_stat(5). */

#include <stdint.h>

/*
 * The time when the process began, in the kernel's ticks since boot, and its *state ('R', 'S', 'Z',
 * ...); 0: `text` is no such line.
 */
uint64_t procstat_start_time(const char *text, char *state);

#endif
