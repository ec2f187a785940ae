/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NCCLINSPD_KEEP_STORE_H
#define NCCLINSPD_KEEP_STORE_H

/*
 * A directory as its writer's thread handles it.  Each of these may block for as long as
 * a file system likes: for that thread only.
 */

#include <limits.h>

#include "ncclinspd/keep/writer.h"

struct store {
	int fd;			/* -1: not open */
	char path[PATH_MAX];
	char prefix[96];
	char temporary[104];	/* name of the file that is being written; hidden */
	char last[NAME_MAX + 1];	/* name of the file that was written last; "": nothing */
	struct writer_limits limits;
};

void store_init(struct store *s, const char *dir, const char *prefix,
		const struct writer_limits *limits);

/*
 * Opens the directory, and removes what a daemon that was killed had half written.  0 or
 * a negative errno.
 */
int store_open(struct store *s);

/* Closes it, and removes what is not to stay. */
void store_close(struct store *s);

/*
 * `*text` (malloc'ed) is compressed in place where that is wanted.  What sorts before
 * `expired` goes, a few at a time, and others as far as the limits want: first what sorts
 * after `ahead` ("": nothing does), then the oldest, this one never.  0 or a negative errno.
 */
int store_write(struct store *s, const char *name, char **text, size_t bytes,
		const char *expired, const char *ahead);

/* -ENOTDIR: it cannot be read. */
int store_visit(const struct store *s, writer_visit_fn *visit, void *arg);

/* Reads as writer_read() does. */
int store_read(const struct store *s, const char *name, size_t most, char **text,
	       size_t *bytes);

#endif
