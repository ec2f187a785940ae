/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NCCLINSPD_KEEP_WRITER_H
#define NCCLINSPD_KEEP_WRITER_H

/*
 * Whole files of one directory, written by a thread of its own: a disk that is slow or
 * hangs holds nobody up, nor writers elsewhere.  A file is there complete (written
 * beside, synced, renamed) or not at all, and the oldest make room for the new.  A
 * directory that has vanished is made again.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct writer;

struct writer_limits {
	uint32_t files;		/* 0: nothing makes room, and nothing is listed */
	uint64_t bytes;		/* bytes of all of them together */
	mode_t mode;		/* mode of the files; 0: 0600 */
	bool stamped;		/* a time follows the prefix, else it is somebody else's file */
	bool compressed;	/* files are compressed by zstd, in the thread */
	mode_t made;		/* the directory is ours to make, with its parents; 0: it is not */
	bool fleeting;		/* the file that was written last goes with the writer */
};

struct writer_stats {
	uint64_t written;
	uint64_t failed;	/* failed files, refused ones included */
	int error;		/* reason of the last that failed: a negative errno */
	int failing;		/* the same while nothing has been written since; else 0 */
};

/* The output of one writer, for the one that is to tell of it. */
struct writer_output {
	const char *what;	/* name of the files, in the plural */
	const char *dir;
	struct writer_stats stats;
};

/*
 * A directory with its parents.  0 or a negative errno; -ETIMEDOUT: its file system has not
 * answered for a second, and it will be made when it does.
 */
int writer_make_dir(const char *dir, mode_t mode);

/*
 * `dir` must exist, unless it is made.  Ours to list and prune is what begins with `prefix`.  0 or
 * a negative errno.  A file system that does not answer within a second may do so
 * later: that is no failure here.
 */
int writer_open(struct writer **wp, const char *dir, const char *prefix,
		const struct writer_limits *limits);

/*
 * Waits until what was given is written, five seconds at most, and not at all for a directory
 * that is known to hang: then the thread is left to itself, with what it needs, and that is
 * told on the log.
 */
void writer_close(struct writer *w);

/*
 * Write `text` (malloc'ed; the writer's from now on, whatever is returned) to `name`,
 * which begins with the prefix and sorts behind older ones.  -EBUSY: too many are
 * waiting already.
 */
int writer_put(struct writer *w, const char *name, char *text, size_t bytes);

/*
 * The ticket of the file that was given last, and what came of one: 0, it is there; -EAGAIN:
 * not yet; or why it is not.  One asks before eight more have been written.
 */
uint64_t writer_last(struct writer *w);
int writer_outcome(struct writer *w, uint64_t ticket);

/* Would it be refused?  Then it need not be made. */
bool writer_is_full(struct writer *w);

/* Count a file that was not made, for that reason (a negative errno). */
void writer_miss(struct writer *w, int error);

/* Have names that sort before `name` go as well, from the next file on. */
void writer_expire(struct writer *w, const char *name);

/*
 * Names are not to sort after `name` as of now: any that does was given by a clock that
 * was ahead.
 */
void writer_distrust(struct writer *w, const char *name);

/*
 * Once a second: what has been waiting for ten of them fails for now with -ETIMEDOUT.  A time in
 * which nobody looked does not count: then the daemon was away, not the disk.
 */
void writer_watch(struct writer *w, uint64_t now_ns);

void writer_read_stats(struct writer *w, struct writer_stats *out);

/*
 * Visit the files that are there, in no order, as of the last file that was written: no
 * disk is asked.  At most as many as the limit allows.
 */
typedef void writer_visit_fn(void *arg, const char *name, uint64_t bytes);
void writer_visit(struct writer *w, writer_visit_fn *visit, void *arg);

/*
 * Read a file's first bytes, `most` of them: *text is malloc'ed, the caller's.  0 or a
 * negative errno.  -EAGAIN: the thread is writing, or the disk took longer than a fifth
 * of a second, or the directory has not been opened yet; so long this may hold its caller
 * up, and not again while it lasts.
 */
int writer_read(struct writer *w, const char *name, size_t most, char **text, size_t *bytes);

#endif
