/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PLUGIN_ROOM_H
#define PLUGIN_ROOM_H

/* Memory that a job has left, for which segments must not compete with it.  Slow. */

#include <stdbool.h>
#include <stdint.h>

/* Whether `dir` lies in memory (tmpfs, ramfs): a store elsewhere may wait, or raise SIGBUS. */
bool room_is_memory(const char *dir);

/*
 * Bytes that may still be taken in `dir`, by its file system and by the memory limits of
 * the cgroups that this process is in, in which page cache counts as free; UINT64_MAX: there
 * is no limit, 0: the file system does not tell.
 */
uint64_t room_bytes(const char *dir);

#endif
