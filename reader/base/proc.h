/* SPDX-License-Identifier: Apache-2.0 */
#ifndef READER_BASE_PROC_H
#define READER_BASE_PROC_H

/* Small files of procfs, as text. */

#include <stdbool.h>
#include <stddef.h>

/*
 * Reads as much of <dirfd>/<path> as fits into `text`, with a NUL.  False: none of it could
 * be read.
 */
bool proc_read(int dirfd, const char *path, char *text, size_t size);

#endif
