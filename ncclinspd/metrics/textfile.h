/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NCCLINSPD_METRICS_TEXTFILE_H
#define NCCLINSPD_METRICS_TEXTFILE_H

/*
 * The metrics as a file, for node_exporter's textfile collector: there whole or not at
 * all, and gone when the daemon ends.
 */

#include <stdint.h>

#include "ncclinspd/keep/writer.h"

struct metrics;
struct textfile;

#define TEXTFILE_NS	UINT64_C(10000000000)	/* between two of them */

struct textfile_stats {
	uint64_t written, failed;
	uint64_t last_ns;	/* about when the last was written, CLOCK_MONOTONIC; 0: none was */
	int error;		/* the last failure's, if none was written after it; else 0 */
};

/* A negative errno: the directory of `path` is not there, or has no place for it. */
int textfile_new(struct textfile **tp, const char *path);

/* Waits as writer_close() does; the file goes. */
void textfile_free(struct textfile *t);

/* Have it written.  What cannot be is told by the stats. */
void textfile_write(struct textfile *t, const struct metrics *m, uint64_t now_ns);

/* Once a second: how it stands. */
void textfile_watch(struct textfile *t, uint64_t now_ns, struct writer_output *out);

void textfile_read_stats(struct textfile *t, struct textfile_stats *out);

#endif
