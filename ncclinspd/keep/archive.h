/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NCCLINSPD_KEEP_ARCHIVE_H
#define NCCLINSPD_KEEP_ARCHIVE_H

/*
 * A directory of accounts of what happened, one JSON file each:
 *
 *     <state-dir>/NAME/PREFIX-<id>.json, with .zst where they are compressed
 *
 * The id begins with the time of writing, so that ids sort by age; a word may follow.
 */

#include <limits.h>
#include <stdint.h>

#include "ncclinspd/keep/writer.h"

struct archive;
struct json;

#define ARCHIVE_ID	48

/* "20261121T233512.123456789Z", and "-word" unless that is NULL. */
void archive_make_id(char id[ARCHIVE_ID], uint64_t real_ns, const char *word);

/*
 * Makes the directory, 0700.  `name` is static, `prefix` copied, `limits` but for what
 * they say of that.  0 or a negative errno.
 */
int archive_new(struct archive **ap, const char *state_dir, const char *name,
		const char *prefix, const struct writer_limits *limits);

/* Frees as writer_close() does. */
void archive_free(struct archive *a);

/*
 * Have the text of `j` written, now, at `real_ns`: what is dated an hour ahead of that makes
 * room first, as it was set back since.  0 and its size (not compressed), or a negative
 * errno as writer_put().
 */
int archive_put(struct archive *a, const char *id, uint64_t real_ns, struct json *j,
		uint64_t *bytes);

/* The one that writes the files: for its tickets, and for what it counts. */
struct writer *archive_writer(struct archive *a);

/* Files that were written before this moment are too old to be kept. */
void archive_expire(struct archive *a, uint64_t real_ns);

const char *archive_dir(const struct archive *a);

void archive_path(const struct archive *a, const char *id, char path[PATH_MAX]);

/* Visit all files, in no order; see writer_visit(), with the id as the name. */
void archive_visit(struct archive *a, writer_visit_fn *visit, void *arg);

/* The size of that file; 0: it is not there. */
uint64_t archive_holds(struct archive *a, const char *id);

/* Read what is there, as writer_read(). */
int archive_read(struct archive *a, const char *id, size_t most, char **text, size_t *bytes);

/*
 * Once a second: say on the log when files are not written, and when they are again; and
 * how it stands.
 */
void archive_watch(struct archive *a, uint64_t now_ns, struct writer_output *out);

#endif
