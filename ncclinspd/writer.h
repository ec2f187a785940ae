/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NCCLINSPD_WRITER_H
#define NCCLINSPD_WRITER_H

/*
 * Whole files in one directory, written by a thread of their own: a disk that is
 * slow or hangs holds nobody up.  A file is there complete (written beside, synced,
 * renamed) or not at all, and the oldest make room for the new.
 */

#include <stddef.h>
#include <stdint.h>

struct writer;

struct writer_limits {
	uint32_t files;
	uint64_t bytes;		/* of all of them together */
};

struct writer_stats {
	uint64_t written;
	uint64_t failed;
	int error;		/* of the last that failed: a negative errno */
};

/* `dir` must exist.  Ours to prune is what begins with `prefix`.  0 or a negative errno. */
int writer_new(struct writer **wp, const char *dir, const char *prefix,
	       const struct writer_limits *limits);

/* Waits until what was given is written. */
void writer_free(struct writer *w);

/*
 * Write `text` (malloc'ed; the writer's from now on, whatever is returned) to `name`,
 * which begins with the prefix and sorts behind older ones.  -EBUSY: too many are
 * waiting already.
 */
int writer_put(struct writer *w, const char *name, char *text, size_t bytes);

void writer_read_stats(struct writer *w, struct writer_stats *out);

#endif
