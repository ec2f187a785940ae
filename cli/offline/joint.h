/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_OFFLINE_JOINT_H
#define CLI_OFFLINE_JOINT_H

/* Many nodes together: snapshots of them all, and what is wrong. */

#include "cli/offline/shots.h"
#include "cli/offline/slow_peers.h"

/* It must not be moved: its parts point at each other. */
struct joint {
	struct shots shots;
	struct slow_peers slow_peers;
	struct flight *flight;	/* the caller's; NULL: none */
};

void joint_init(struct joint *joint);
void joint_deinit(struct joint *joint);

/*
 * A new array of what is wrong, as the rows of ncclinsp report are, in no order; and the member by
 * which the worst come first: its "weight", the larger the worse.
 */
json_t *joint_verdicts(struct joint *joint);

/*
 * A new array of the same as findings of /v1/findings, with the "host" of each; and what nodes
 * have to say beside.  Their `processes` tell whose job it is.
 */
json_t *joint_findings(struct joint *joint);

/* Have rows of /v1/ranks tell of these findings in place of their own nodes'. */
void joint_mark_ranks(json_t *ranks, const json_t *findings);

#endif
