/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NCCLINSPD_LEVELS_RAISE_H
#define NCCLINSPD_LEVELS_RAISE_H

/*
 * Other nodes are asked to time every operation of a communicator, too, when a finding has it
 * timed here: by `ncclinsp -H HOSTS level detail --comm ID`, a child that a thread waits for.
 *
 * A process that was raised is not raised again for LEVELS_DETAIL_APART_NS, whoever asks, and
 * where nobody is raised nobody else is asked: so nodes do not raise each other in turn.  What
 * was raised ends by itself (levels.h), whatever becomes of the node that asked for it.
 */

#include "reader/base/model.h"

struct finding;
struct raise;

#define RAISE_APART_NS	(UINT64_C(10) * 1000000000)	/* time from one request to the next */
#define RAISE_MOST_NS	(UINT64_C(20) * 1000000000)	/* time for all to answer */

struct raise_stats {
	uint64_t asked;		/* times that all answered */
	uint64_t failed;	/* times that some did not, or refused, or that it was too soon */
	uint64_t last_ns;	/* 0: never */
	int error;		/* negative errno: why nobody could be asked; 0: somebody was */
};

/* `hosts` as ncclinsp's -H takes them, or "slurm": those of the job.  0 or -ENOMEM. */
int raise_new(struct raise **out, const char *hosts);

/* Ends what is under way. */
void raise_free(struct raise *r);

/* The finding has raised processes of this list.  Never waits. */
void raise_finding(struct raise *r, const struct finding *f, struct process *const *list,
		   size_t n, uint64_t now_ns);

void raise_read_stats(struct raise *r, struct raise_stats *stats);

#endif
