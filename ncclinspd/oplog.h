/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NCCLINSPD_OPLOG_H
#define NCCLINSPD_OPLOG_H

/*
 * The newest finished operations, oldest out.  Each has a serial number, from 1,
 * so that a follower knows what it missed.
 *
 * What a rank does once a step would be pushed out by what it does a hundred times
 * a step, before anybody has enough of it to compare.  So an operation that leaves
 * goes to a reserve if it is one of the newest OPLOG_RARE of its rank, communicator
 * and function.
 */

#include "ncclinspd/model.h"

#define OPLOG_DEFAULT	16384
#define OPLOG_RARE	32		/* fewer in a log below the default size */
#define OPLOG_RESERVE	4		/* the reserve is that part of the log */

struct oplog;

/* Fields that are not asked for have the value that their comment names. */
struct oplog_filter {
	bool all_users;
	uid_t uid;		/* unless all_users */
	const char *comm_name;	/* NULL: any; what is asked for may be a name ... */
	bool has_comm_id;	/* ... or also an id: one of both must match */
	uint64_t comm_id;
	int32_t rank;		/* UNKNOWN_I32: any */
	const char *func;	/* NULL: any */
	pid_t pid;		/* 0: any */
	uint64_t since_mono_ns;	/* enqueued or finished at or after; 0: any */
	uint32_t limit;		/* 0: no limit */
};

/* 0 or -ENOMEM.  `capacity` 0: OPLOG_DEFAULT. */
int oplog_new(struct oplog **logp, uint32_t capacity);
void oplog_free(struct oplog *log);

/* Takes a copy and returns its serial. */
uint64_t oplog_add(struct oplog *log, const struct op *op);

/* The operation with that serial, or NULL: gone, in reserve or not yet there. */
const struct op *oplog_at(const struct oplog *log, uint64_t serial);

/*
 * Newest first, the reserve included.  `visit` returns false to stop.  Returns how
 * many were visited.
 */
typedef bool oplog_fn(const struct op *op, uint64_t serial, void *arg);
uint32_t oplog_visit(const struct oplog *log, const struct oplog_filter *filter,
		     oplog_fn *visit, void *arg);

#endif
