/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NCCLINSPD_FINDINGS_STUCK_H
#define NCCLINSPD_FINDINGS_STUCK_H

/*
 * The rows of judge/hang.h, made of the processes of this node.  They are made at each
 * look, borrow from the processes, and are thrown away after it.
 */

#include "judge/hang.h"
#include "reader/base/model.h"
#include "reader/join/reconstruct.h"

/*
 * Every pair of a communicator's ranks is looked at, and tables of communicators come
 * from jobs: what is more than this is left out, of each process what is oldest.
 */
#define STUCK_RANKS	2048	/* all in all; a user has a share, of which each process has one */
#define STUCK_LOCAL	32	/* ranks of one communicator */

struct diagnose_source;

/* All ranks, their groups, and what is oldest in each; hang_deinit() ends it.  0 or -ENOMEM. */
int stuck_init(struct hang *h, const struct diagnose_source *source, uint64_t now_ns,
	       uint32_t *left_out);

/* All that is in flight, and where each rank stands.  0 or -ENOMEM. */
int stuck_look_closer(struct hang *h, const struct diagnose_source *source);

static inline const struct process *stuck_process(const struct hang_rank *r)
{
	return r->owner;
}

/* The part of the group's operation by which its history is kept; its end is watched. */
void stuck_op(const struct hang *h, const struct hang_group *g, struct op *op);

#endif
