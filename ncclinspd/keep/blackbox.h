/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NCCLINSPD_KEEP_BLACKBOX_H
#define NCCLINSPD_KEEP_BLACKBOX_H

/*
 * All that the daemon knows, in a file, when something went badly wrong or somebody asks:
 * <state-dir>/blackbox/blackbox-<UTC>-<reason>.json.  At most 32 files, 256 MiB.
 *
 * The findings of one accident come one after another: a file is written a second
 * after the first of them, and the next one 10 s later at the earliest.
 *
 *     blackbox_note()   for each change of a finding
 *     blackbox_tick()   once a second
 */

#include "ncclinspd/base/finding.h"

struct blackbox;
struct json;
struct writer_output;

/* Write everything into `j`.  0 or a negative errno. */
typedef int blackbox_fill_fn(void *arg, const char *reason, uint64_t now_ns, struct json *j);

/* Makes the directory.  0 or a negative errno. */
int blackbox_new(struct blackbox **bp, const char *state_dir, blackbox_fill_fn *fill, void *arg);

void blackbox_free(struct blackbox *b);

/* Critical findings ask for a file as they are found: not yet while they are suspected. */
void blackbox_note(struct blackbox *b, const struct finding *f, uint64_t now_ns);

/* One that is critical asks for another file, since more is known of it now. */
void blackbox_ask(struct blackbox *b, const struct finding *f, uint64_t now_ns);

/* Write the file that is due, if any; say on the log when it could not be made. */
void blackbox_tick(struct blackbox *b, uint64_t now_ns, uint64_t real_ns);

/* Say on the log how writing goes; see archive_watch(). */
void blackbox_watch(struct blackbox *b, uint64_t now_ns, struct writer_output *out);

/*
 * Write one now.  The file will be at `path` (PATH_MAX) with *bytes bytes, in a
 * moment.  -EBUSY: too many at a time; -E2BIG; -ENOMEM.
 */
int blackbox_write(struct blackbox *b, const char *reason, uint64_t now_ns, uint64_t real_ns,
		   char *path, uint64_t *bytes);

/* The one that gives the files' tickets. */
struct writer *blackbox_writer(struct blackbox *b);

#endif
