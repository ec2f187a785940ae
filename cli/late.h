/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_LATE_H
#define CLI_LATE_H

/*
 * Which of a communicator's ranks on this node comes last.
 *
 * All ranks leave an AllReduce, AllGather or ReduceScatter nearly together, so
 * the one that was inside for the least time came last, and the differences are
 * the others' waiting.  Only durations are compared, so no clock is.
 */

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#define LATE_RANKS 64
#define LATE_NONE  INT64_MIN

struct late {
	char comm_id[24];
	char name[64];		/* the communicator's label, name or id */
	bool whole;		/* all of its ranks are on this node */
	int64_t rank;		/* comes last in a clear majority; LATE_NONE: nobody does */
	int64_t pid;		/* its process */
	const char *func;	/* of this function's operations; NULL: of none */
	int ops;		/* that all local ranks finished and that a GPU timed */
	int times;		/* that it was last in */
	uint64_t late_ns;	/* its median distance to the first */
	uint64_t wait_ns;	/* the median waiting of the others */
	int ranks;
	struct {
		int64_t rank;
		int64_t pid;
		uint64_t late_ns;	/* median distance to the first, in `func` or in all */
	} each[LATE_RANKS];
};

/* Has this communicator, a row of /v1/comms, an id and two ranks here, alive or `over`? */
bool late_comparable(const json_t *comm, bool over);

/*
 * Compare the newest operations of one communicator, a row of /v1/comms, among
 * `collectives`, rows of /v1/collectives.  Each function is judged by itself (who
 * computes before one comes late to that one only); the one with the longest
 * waiting is told.  False when there are too few to say anything: fewer than two
 * local ranks, or than five operations.
 */
bool late_find(const json_t *comm, const json_t *collectives, struct late *late);

#endif
