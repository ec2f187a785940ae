/* SPDX-License-Identifier: Apache-2.0 */
#ifndef UTIL_PROCSTAT_H
#define UTIL_PROCSTAT_H

/*
 * Small files of procfs and sysfs as text; fields of /proc/PID/stat (see proc_pid_stat(5)), and of
 * files that have a name in each line.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Reads as much of that file, whose path may be below `dirfd`, as fits into `text`, with a NUL.
 * False: none of it could be read.
 */
__attribute__((format(printf, 4, 5)))
bool procstat_read(int dirfd, char *text, size_t size, const char *format, ...);

/*
 * The time when the process began, in the kernel's ticks since boot, and its *state ('R', 'S', 'Z',
 * ...); 0: `text` is no such line.
 */
uint64_t procstat_start_time(const char *text, char *state);

/* Its major faults so far, or those of a thread; UNKNOWN_U64. */
uint64_t procstat_major_faults(const char *text);

/* The text after that name at the begin of a line, without blanks; NULL: no such line. */
const char *procstat_find(const char *text, const char *name);

/* The number there; UNKNOWN_U64. */
uint64_t procstat_number(const char *text, const char *name);

#endif
