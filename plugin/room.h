/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PLUGIN_ROOM_H
#define PLUGIN_ROOM_H

/* Memory that a job has left, for which segments must not compete with it.  Slow. */

#include <stdbool.h>
#include <stdint.h>

/* Whether `dir` lies in memory (tmpfs, ramfs): a store elsewhere may wait, or raise SIGBUS. */
bool room_is_memory(const char *dir);

/*
 * Bytes that the memory limits of this process's cgroups leave, in which page cache counts
 * as free; UINT64_MAX: there is no limit.
 */
uint64_t room_in_cgroups(void);

/* Bytes that may still be taken in `dir`, `most` at most; 0: its file system does not tell. */
uint64_t room_in(const char *dir, uint64_t most);

#endif
