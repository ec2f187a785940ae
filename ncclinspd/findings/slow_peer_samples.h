/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NCCLINSPD_FINDINGS_SLOW_PEER_SAMPLES_H
#define NCCLINSPD_FINDINGS_SLOW_PEER_SAMPLES_H

/* The work of links in a while, grouped by likeness, for finding_slow_peer.c to compare. */

#include "ncclinspd/findings/diagnose.h"
#include "ncclinspd/sums/links.h"
#include "util/list.h"

/* One link that sends: all that it did, and then what it did since the last look. */
struct slow_peer_sample {
	uint64_t link;		/* key of the link */
	uint64_t comm;		/* equal: one communicator */
	uint64_t group;		/* equal: and one size of transfers */
	int32_t row, column;	/* place in the matrix of its group (delay.h) */
	struct links_who who;
	uint64_t bytes, steps, busy_ns, held_ns;
};

struct slow_peer_samples {
	LIST(struct slow_peer_sample);
};

/* All that ever was, by link; the caller has list_deinit().  False: not this time. */
bool slow_peer_samples_take(struct diagnose *dg, struct slow_peer_samples *list,
			    uint64_t now_ns);

/*
 * The work between two of these, by group: a communicator's links of one size of
 * transfers.  NULL there: nothing to compare.
 */
void slow_peer_samples_since(const struct slow_peer_samples *now,
			     const struct slow_peer_samples *before,
			     struct slow_peer_samples *out);

/*
 * Links of `since` that have no other one in their group, together with those of other
 * communicators of the same job, name and size; by group, at least two in each.
 */
void slow_peer_samples_siblings(struct diagnose *dg, const struct slow_peer_samples *since,
				struct slow_peer_samples *out, uint64_t now_ns);

#endif
