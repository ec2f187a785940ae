/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NCCLINSPD_WRITER_H
#define NCCLINSPD_WRITER_H

/*
 * Whole files, written by a thread of their own: a disk that is slow or hangs holds
 * nobody up.  A file is there complete (written beside, synced, renamed) or not at
 * all, and in each directory the oldest make room for the new.  A directory that has
 * vanished is made again.
 *
 *     writer_new(&w), writer_open_dir(&d, w, ...)     one thread for all directories
 *     writer_put(d, ...)
 *     writer_close_dir(d), writer_free(w)             in this order
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct writer;
struct writer_dir;

struct writer_limits {
	uint32_t files;		/* 0: nothing makes room, and nothing is listed */
	uint64_t bytes;		/* of all of them together */
	mode_t mode;		/* of the files; 0: 0600 */
	bool compressed;	/* by zstd, in the thread */
};

struct writer_stats {
	uint64_t written;
	uint64_t failed;
	int error;		/* of the last that failed: a negative errno */
	int failing;		/* the same while nothing has been written since; else 0 */
};

/* 0 or a negative errno. */
int writer_new(struct writer **wp);

/* After its directories. */
void writer_free(struct writer *w);

/*
 * `dir` must exist.  Ours to prune is what begins with `prefix`.  0 or a negative errno;
 * -ENOSPC: the writer has no room for another directory.
 */
int writer_open_dir(struct writer_dir **dp, struct writer *w, const char *dir,
		    const char *prefix, const struct writer_limits *limits);

/* Waits until what was given is written. */
void writer_close_dir(struct writer_dir *d);

/*
 * Write `text` (malloc'ed; the writer's from now on, whatever is returned) to `name`,
 * which begins with the prefix and sorts behind older ones.  -EBUSY: too many are
 * waiting already.
 */
int writer_put(struct writer_dir *d, const char *name, char *text, size_t bytes);

/* From the next file on, those go as well whose names sort before `name`. */
void writer_expire(struct writer_dir *d, const char *name);

void writer_read_stats(struct writer_dir *d, struct writer_stats *out);

/*
 * What is there, in no order, as of the last file that was written: no disk is asked.
 * At most as many as the limit allows.
 */
typedef void writer_visit_fn(void *arg, const char *name, uint64_t bytes);
void writer_visit(struct writer_dir *d, writer_visit_fn *visit, void *arg);

/* Open one for reading: a descriptor or a negative errno. */
int writer_open(const struct writer_dir *d, const char *name);

#endif
