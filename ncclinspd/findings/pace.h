/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NCCLINSPD_FINDINGS_PACE_H
#define NCCLINSPD_FINDINGS_PACE_H

/* The pace at which each process posts operations: its iteration and its longest pause. */

#include "ncclinspd/findings/period.h"
#include "reader/base/model.h"

#define PACES	2048		/* more than there are processes at a time */

/* All of them; zeroed is empty.  Up to 66 KiB for each process that posts. */
struct paces {
	struct pace *at[PACES];
	uint64_t token;		/* the kind of the operation that was added last */
};

void paces_deinit(struct paces *paces);

/* A finished operation, `alike`: of the kind of the one that was given before. */
void paces_add(struct paces *paces, const struct op *op, bool alike);
void paces_forget(struct paces *paces, uint64_t process_id);

/* Median iteration time in ns; 0: none is known.  One that `rests` has posted all that it will. */
uint64_t paces_period(struct paces *paces, uint64_t process_id, bool rests);

/* Iterations that ended since then. */
struct period_quartiles paces_period_since(struct paces *paces, uint64_t process_id,
					   uint64_t from_ns);

/*
 * The iterations of the last 10 s, or the last one.  Its parts are not known where nothing was
 * timed, or lately nothing posted, and moving_ns not where ranks were not compared either.  False:
 * there is none.
 */
bool paces_step(struct paces *paces, uint64_t process_id, uint64_t now_ns,
		struct period_step *out);

/* Was the end of its newest operation something that could be seen? */
bool paces_watched(struct paces *paces, uint64_t process_id);

/* The longest time between two operations, in ns. */
uint64_t paces_longest_pause(struct paces *paces, uint64_t process_id);

#endif
