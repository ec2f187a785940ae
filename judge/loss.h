/* SPDX-License-Identifier: Apache-2.0 */
#ifndef JUDGE_LOSS_H
#define JUDGE_LOSS_H

/*
 * Does a process lose so many records that what is shown of it cannot be relied on?  Decided
 * from its counters at two moments, against the records that were read.  A table that is full
 * is told at the first name or communicator that finds no room.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "judge/whom.h"
#include "util/unknown.h"

/* The names of /v1/processes. */
#define LOSS_CAUSES(X)		\
	X(OVERRUN,  overrun)	\
	X(POOL,     pool)	\
	X(LANE,     lane)	\
	X(REJECTED, rejected)	\
	X(UNKNOWN,  unknown)	\
	X(EVICTED,  evicted)	\
	X(STRING,   string)	\
	X(COMM,     comm)

enum loss_cause {
#define X(NAME, name) LOSS_##NAME,
	LOSS_CAUSES(X)
#undef X
	LOSS_CAUSE_END
};

/* The counters of a process at a moment. */
struct loss_row {
	uint64_t at_ns;
	uint64_t records;	/* records that were read */
	uint64_t lost[LOSS_CAUSE_END];
	uint64_t before;	/* records overwritten before anybody read */
	uint64_t waited_ns;	/* time that the daemon waited for a CPU; UNKNOWN_U64 */
};

/* The growth of these counters. */
struct loss_growth {
	uint64_t window_ns;
	uint64_t records;
	uint64_t lost[LOSS_CAUSE_END];
	uint64_t before;
	uint64_t all;		/* sum of `lost`, all but tables */
	uint64_t full;		/* names and the like that found a table full */
	double share;		/* part of all records, read and lost */
	uint64_t waited_ns;	/* UNKNOWN_U64 */
};

struct loss_growth loss_compare(const struct loss_row *from, const struct loss_row *to);

/* Is it enough for a finding to begin, and for one to go on? */
bool loss_begins(const struct loss_growth *l);
bool loss_goes_on(const struct loss_growth *l);

/* Did the daemon lack a CPU?  Then what was overwritten tells nothing of the job. */
bool loss_is_starved(const struct loss_growth *l);

struct loss_case {
	struct whom who;	/* named by its rank in its largest communicator */
	const char *comm_name;	/* "": none */
	bool before;		/* told of is what was lost before anybody read, no fault */
	struct loss_growth growth;
};

void loss_say(const struct loss_case *c, char *text, size_t size);

#endif
