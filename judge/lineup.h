/* SPDX-License-Identifier: Apache-2.0 */
#ifndef JUDGE_LINEUP_H
#define JUDGE_LINEUP_H

/*
 * Calls of the ranks of one communicator that were counted from some moment on, when each rank was
 * somewhere else in the same sequence: which call of one is which of another, and who lacks one.
 * Pure functions of the last calls of each.
 */

#include <stdbool.h>
#include <stdint.h>

#define LINEUP_KEPT	64
#define LINEUP_LATE_NS	UINT64_C(2000000000)	/* hosts run ahead of each other by less */

struct lineup_call {
	uint64_t what;		/* equal: the same function, datatype and count */
	uint64_t at_ns;
};

enum lineup_by {
	LINEUP_NOT,		/* nothing tells which call is which */
	LINEUP_CALLS,		/* matched by what was called */
	LINEUP_TIME,		/* matched by time, where calls fit in several ways */
};

struct lineup_rank {
	uint64_t calls;		/* counted of it */
	struct lineup_call last[LINEUP_KEPT];	/* the last of them, in order */
	uint32_t n;
	/* set by lineup(): */
	enum lineup_by by;
	int64_t shift;		/* its call i is number i + shift, as the first rank counts */
};

/* A call that others have made, and this rank has not. */
struct lineup_lack {
	int64_t number;		/* the number of the call, from 1 on */
	uint64_t behind;	/* calls behind that one which were made as well */
	uint32_t first;		/* the rank that called it first, */
	uint32_t call;		/* the index among its last calls */
	uint32_t others;	/* ranks that have called it */
};

/* Numbers the calls of all as ranks[0] does, which had better have many. */
void lineup(struct lineup_rank *ranks, uint32_t n);

/* Does rank i lack a call that another one has made LINEUP_LATE_NS ago?  Sets *lack only then. */
bool lineup_lacks(const struct lineup_rank *ranks, uint32_t n, uint32_t i, uint64_t now_ns,
		  struct lineup_lack *lack);

#endif
