/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RECORD_STORE_H
#define RECORD_STORE_H

/* The one file of this process: room for records, without a lock or a wait. */

#include <stdint.h>

/*
 * Make the file that `pattern` names (%p: process id, %h: host name, %%: %),
 * which must not exist yet, with room for limit_bytes at most; or, if this
 * process closed it before, go on at its end.  0, or a negative errno: then
 * there is no room for anything.  Callers take turns.
 */
int store_open(const char *pattern, uint64_t limit_bytes, int api);

/* In a child, which has the mapping, but not the threads: the file is its parent's. */
void store_forget(void);

/*
 * Cut the file to what was written.  Callbacks may go on: what they bring is
 * counted as lost until it is opened again.  Takes turns with store_open().
 */
void store_close(void);

/*
 * Room for a record of `bytes`, a multiple of 8, all zero, at *offset of the file;
 * NULL, and counted: there is none.  From any thread.
 */
void *store_take(uint32_t bytes, uint64_t *offset);

/* ns since the recording's time 0. */
uint64_t store_time(void);

/* The number of a handle whose record lies at this offset. */
uint64_t store_handle(uint64_t offset);

/* The path of the file; "" before the first store_open(). */
const char *store_path(void);

#endif
