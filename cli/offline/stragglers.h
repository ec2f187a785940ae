/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_OFFLINE_STRAGGLERS_H
#define CLI_OFFLINE_STRAGGLERS_H

/*
 * Finds the rank that makes the ranks of all nodes wait.  In an operation for which each rank
 * needs the data of all others, the one that is inside for the shortest time came last: each
 * time is of one GPU's clock alone, so no two clocks are compared.
 */

#include "cli/offline/shots.h"

struct late {
	const char *comm, *func;
	int64_t rank;
	size_t ops;		/* operations in which a rank was late */
	size_t last;		/* number of `ops` in which it was this one */
	int64_t wait_ns;	/* waiting for it of the median other, summed over these */
	double share;		/* part of the others' time inside, in all operations */
};

/*
 * One for each communicator and function in which one rank is late in half of the
 * operations and more, of twenty at least, and costs a twentieth of the time inside, and
 * much more of all waiting than its share.
 * `samples` are sorted.
 */
void late_find(const struct shots *s, void found(const struct late *l, void *arg), void *arg);

#endif
