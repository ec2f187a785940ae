/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NCCLINSPD_SUMS_OPLOG_H
#define NCCLINSPD_SUMS_OPLOG_H

/*
 * The newest finished operations, oldest out.  Each has a serial number, from 1,
 * so that a follower knows what it missed.
 *
 * What a rank does once a step would be pushed out by what it does a hundred times
 * a step, before anybody has enough of it to compare.  So an operation that leaves
 * goes to a reserve if it is one of the newest OPLOG_RARE of its rank, communicator
 * and function.  The user with most there makes room: nobody pushes out what others
 * have.
 */

#include "reader/base/model.h"

#define OPLOG_DEFAULT	16384
#define OPLOG_RARE	32		/* fewer in a log below the default size */
#define OPLOG_RESERVE	4		/* the reserve is that part of the log */

/*
 * A visitor may come in pieces, with operations added in between: it sees the log
 * as it was when it began.  What leaves the log meanwhile is kept for another
 * OPLOG_GRACE-th of the log, since nobody can wait for a visitor.  What leaves the
 * reserve meanwhile is not seen.
 */
#define OPLOG_GRACE	8
#define OPLOG_PIDS	32

struct oplog;

/* Fields that are not asked for have the value that their comment names. */
struct oplog_filter {
	bool all_users;
	uid_t uid;		/* unless all_users */
	const char *comm_name;	/* NULL: any; the text asked for as a name */
	bool has_comm_id;	/* the text is an id too: one of both must match */
	uint64_t comm_id;
	int32_t nranks;		/* UNKNOWN_I32: any; an id alone does not name a communicator */
	int32_t rank;		/* UNKNOWN_I32: any */
	const char *func;	/* NULL: any */
	uint32_t npids;		/* 0: any */
	pid_t pid[OPLOG_PIDS];
	uint64_t since_mono_ns;	/* enqueued or finished at or after; 0: any */
};

/* Returns 0 or -ENOMEM.  `capacity` 0: OPLOG_DEFAULT. */
int oplog_new(struct oplog **logp, uint32_t capacity);
void oplog_free(struct oplog *log);

/* Takes a copy and returns its serial. */
uint64_t oplog_add(struct oplog *log, const struct op *op);

/* The serial of the newest; 0: there was none yet. */
uint64_t oplog_newest(const struct oplog *log);

/* Operations that ended before this moment may have left the log; 0: nothing has. */
uint64_t oplog_since_ns(const struct oplog *log);

/* The operation with that serial, or NULL: gone, in reserve or not yet there. */
const struct op *oplog_at(const struct oplog *log, uint64_t serial);

/* The place of a visitor.  `filter` is the caller's and outlives the visit. */
struct oplog_visit {
	const struct oplog_filter *filter;
	uint64_t newest;	/* when it began */
	uint64_t next;		/* to be looked at in the log */
	uint32_t list;		/* the next account of the reserve */
	uint64_t serial;	/* the operation there that was looked at last; 0: none was */
};

void oplog_begin(struct oplog_visit *visit, const struct oplog *log,
		 const struct oplog_filter *filter);

/*
 * The next operation that passes the filter, newest first and the reserve last, user by user;
 * it holds until the log is added to.  Looks at up to *budget operations, and
 * takes those off.  NULL: that was all (*budget is above 0), or the budget is used.
 */
const struct op *oplog_next(struct oplog_visit *visit, const struct oplog *log,
			    uint32_t *budget);

#endif
