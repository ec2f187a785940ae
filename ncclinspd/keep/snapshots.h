/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NCCLINSPD_KEEP_SNAPSHOTS_H
#define NCCLINSPD_KEEP_SNAPSHOTS_H

/*
 * All that the daemon knows, in a file every so often, for whoever looks at many nodes or
 * at a time that is over: <state-dir>/snapshots/<host>-<UTC>.json.zst.  Kept are the
 * newest 1440, of two days, and 512 MiB of them at most.
 *
 * They are due at the multiples of the interval on the wall clock, so that those of all
 * nodes are about the same moment.
 */

#include <stdint.h>

#include "ncclinspd/keep/writer.h"

struct json;
struct snapshots;

struct snapshots_stats {
	uint64_t written, failed;
	uint64_t last_ns;	/* when the newest was begun that is there; 0: none was */
	int error;		/* result of the newest, a negative errno; 0: it was written */
};

/* Write everything into `j`.  0 or a negative errno. */
typedef int snapshots_fill_fn(void *arg, uint64_t now_ns, struct json *j);

/* Makes the directory.  0 or a negative errno. */
int snapshots_new(struct snapshots **sp, const char *state_dir, const char *host,
		  snapshots_fill_fn *fill, void *arg);
void snapshots_free(struct snapshots *s);

/* The time when the next is due, in the time of `now_ns`; UINT64_MAX: never (the interval is 0). */
uint64_t snapshots_due_ns(uint64_t interval_ns, uint64_t now_ns, uint64_t real_ns);

/* Write one.  What cannot be written is counted; where too many wait none is made. */
void snapshots_write(struct snapshots *s, uint64_t now_ns, uint64_t real_ns);

/* Say on the log how writing goes; see archive_watch(). */
void snapshots_watch(struct snapshots *s, uint64_t now_ns, struct writer_output *out);

/* The directory of the files. */
const char *snapshots_dir(const struct snapshots *s);

void snapshots_read_stats(struct snapshots *s, struct snapshots_stats *out);

#endif
