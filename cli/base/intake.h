/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_BASE_INTAKE_H
#define CLI_BASE_INTAKE_H

/*
 * JSON from elsewhere, a daemon's or a file's, as everything here takes it: its texts do
 * nothing to a terminal, and of its numbers a few can be added and turned into each other's
 * types.
 */

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

#define INTAKE_MOST	(INT64_C(1) << 60)	/* 36 years in ns: nothing that is true is more */

/*
 * Opens a regular file below the directory, or AT_FDCWD; *bytes: its size, unless that is NULL.
 * Nothing else is waited for, as a named pipe.  -1: *why tells.
 */
int intake_open(int dir, const char *path, size_t *bytes, const char **why);

/*
 * NULL, and *error unless that is NULL, where it is no JSON.  A number beyond INTAKE_MOST, or
 * below -INTAKE_MOST, becomes that; texts and names are as utf8_clean() makes them.
 */
json_t *intake_read(const char *text, size_t bytes, json_error_t *error);

/*
 * Add `by_ns` to all times of a CLOCK_MONOTONIC (*_mono_ns) in the value: another node's, or of
 * another moment, become this node's of now.  A time before its clock began cannot be said: null.
 */
void intake_move_times(json_t *value, int64_t by_ns);

/* The value as an unsigned number; below 0: 0. */
static inline uint64_t intake_whole(double value)
{
	if (!(value > 0))
		return 0;
	return value < (double)INTAKE_MOST ? (uint64_t)value : (uint64_t)INTAKE_MOST;
}

#endif
