/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_OFFLINE_STRAGGLERS_H
#define CLI_OFFLINE_STRAGGLERS_H

/* The ranks that make those of all nodes wait: samples in snapshots become judge/'s rows. */

#include "cli/offline/shots.h"
#include "judge/late.h"

struct offline_straggler {
	const struct shots_comm *comm;
	const struct shots_series *series;	/* the series of its function */
	int64_t rank;
	uint64_t inside_ns;	/* time inside of the median other, in all operations */
	struct late_case c;	/* the case that samples make */
};

typedef void stragglers_found_fn(const struct offline_straggler *l, void *arg);

/*
 * One for each communicator and function in which one rank is over the limits of late.h.
 * `s` is settled.
 */
void stragglers_find(const struct shots *s, stragglers_found_fn *found, void *arg);

#endif
