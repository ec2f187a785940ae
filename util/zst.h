/* SPDX-License-Identifier: Apache-2.0 */
#ifndef UTIL_ZST_H
#define UTIL_ZST_H

/* Whole texts, compressed as one zstd frame that says how long it was and has a checksum. */

#include <stdbool.h>
#include <stddef.h>

#define ZST_SUFFIX ".zst"

/* Return 0 and *out, the caller's to free(); -ENOMEM; -EIO: the library would not. */
int zst_compress(const char *text, size_t bytes, char **out, size_t *out_bytes);

/* Does that begin as a zstd frame does? */
bool zst_is(const char *bytes, size_t n);

/*
 * Return 0 and *out, the caller's to free(), of at most `max` bytes.  -EBADMSG: not
 * one whole frame; -EFBIG: more than max; -ENOMEM.
 */
int zst_expand(const char *bytes, size_t n, size_t max, char **out, size_t *out_bytes);

#endif
