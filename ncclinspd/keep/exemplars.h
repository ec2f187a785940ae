/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NCCLINSPD_KEEP_EXEMPLARS_H
#define NCCLINSPD_KEEP_EXEMPLARS_H

/*
 * Operations that took longer than their like ever do, each kept with all that went on
 * around it: <state-dir>/exemplars/exemplars-<UTC>.json.
 *
 * Such an operation opens a window, which closes a moment later and becomes a file.  What
 * else is too slow meanwhile belongs to it: a job that is slow everywhere at once makes
 * one file.  One window at a time, EXEMPLARS_PER_MINUTE of them, EXEMPLARS_FILES files:
 * of each user, for whom nobody else's are in the way but for the files.
 *
 * A file holds the processes of one user, so that whoever may see these may see it.
 *
 *     exemplars_op()        for each finished operation that took EXEMPLARS_EXCESS_NS or longer
 *     exemplars_due_ns()    after each poll: when to call the next one
 *     exemplars_run()       at the top of the loop
 *
 * Times are CLOCK_MONOTONIC ns.
 */

#include "ncclinspd/keep/exemplar_head.h"
#include "ncclinspd/sums/aggregate.h"

#define EXEMPLARS_EXCESS_NS	UINT64_C(1000000)	/* the least excess over the p99.9 */
#define EXEMPLARS_LEAST_OPS	128	/* operations that a p99.9 rests on */
#define EXEMPLARS_BEFORE_NS	UINT64_C(1000000000)	/* the operation was posted */
#define EXEMPLARS_AFTER_NS	UINT64_C(500000000)	/* it was found */
#define EXEMPLARS_PER_MINUTE	4
#define EXEMPLARS_FILES		64
#define EXEMPLARS_BYTES		(UINT64_C(128) << 20)
#define EXEMPLARS_USERS		8	/* users at the same time */
#define EXEMPLARS_BEYOND	64	/* told of one window, one by one */

struct exemplars;

/* One of those that were too slow. */
struct exemplar_beyond {
	bool has_comm_id;
	uint64_t comm_id;
	name_t comm_name;
	int32_t rank;
	pid_t pid;
	name_t func;
	uint64_t seq;
	uint64_t exec_ns, threshold_ns;
	uint64_t done_ns;
};

struct exemplar {
	struct exemplar_head head;
	struct op op;
	uint64_t from_ns, to_ns;	/* the time that is shown: all that was under way then */
	struct exemplar_beyond beyond[EXEMPLARS_BEYOND];	/* the first is `op` */
	uint32_t nbeyond;
};

struct exemplars_stats {
	uint64_t beyond;	/* operations that were too slow */
	uint64_t merged;	/* operations of these that were in the window of another */
	uint64_t skipped;	/* slow operations too soon after, or of one user too many */
	uint64_t written;
	uint64_t failed;	/* not written: no memory, no disk, too large */
	uint32_t files;		/* files that are there */
	uint64_t bytes;		/* bytes of them */
};

struct accounts;

/* Write the whole file into `j`.  0 or a negative errno. */
typedef int exemplars_fill_fn(void *arg, const struct exemplar *e, uint64_t now_ns,
			      struct json *j);

/*
 * The duration above which an operation is too slow, from what its like took;
 * UNKNOWN_U64: they are too few.
 */
uint64_t exemplars_threshold_ns(const struct aggregate_usual *usual);

/*
 * Makes the directory, and finds out what is in it.  `accounts` NULL: each uid is one.  0 or
 * a negative errno.
 */
int exemplars_new(struct exemplars **xp, const char *state_dir, exemplars_fill_fn *fill,
		  void *arg, const struct accounts *accounts);

void exemplars_free(struct exemplars *x);

/* `newest` is the serial of the newest operation in the log. */
void exemplars_op(struct exemplars *x, const struct op *op, const struct aggregate_usual *usual,
		  uint64_t newest, uint64_t now_ns);

/*
 * The time when exemplars_run() is to be called; UINT64_MAX: never.  At once where operations end
 * so fast that the log would forget those before the slow one.
 */
uint64_t exemplars_due_ns(const struct exemplars *x, uint64_t newest);

/* Have what is due written.  May be called at the loop's top only: it asks all stages. */
void exemplars_run(struct exemplars *x, uint64_t newest, uint64_t now_ns, uint64_t real_ns);

/* Visit the heads of all files, newest first, until `visit` returns false; `size` in bytes. */
typedef bool exemplars_visit_fn(const struct exemplar_head *h, uint64_t size, void *arg);
void exemplars_visit(struct exemplars *x, exemplars_visit_fn *visit, void *arg);

/* Read that file, as writer_read(). */
int exemplars_read(struct exemplars *x, const char *id, char **text, size_t *bytes);

/* Say on the log how writing goes; see archive_watch(). */
void exemplars_watch(struct exemplars *x, uint64_t now_ns, struct writer_output *out);

void exemplars_read_stats(struct exemplars *x, struct exemplars_stats *out);

#endif
