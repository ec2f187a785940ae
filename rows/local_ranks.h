/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ROWS_LOCAL_RANKS_H
#define ROWS_LOCAL_RANKS_H

/* Communicators of processes of this node, each with its ranks here, as rows of /v1/comms. */

#include "rows/rows.h"
#include "util/list.h"

/* One local rank. */
struct local_rank {
	const struct process *process;
	const struct comm *comm;
	uint32_t index;
	struct comm_progress progress;
};

/* Zeroed is empty. */
struct local_ranks {
	LIST(struct local_rank);
};

static inline void local_ranks_deinit(struct local_ranks *ranks)
{
	list_deinit(ranks);
}

/* Add those of a process.  0 or -ENOMEM. */
int local_ranks_add(struct local_ranks *ranks, const struct process *p);

/*
 * Write the communicators as an array's items: the wanted fields of `comm_fields`, and of
 * `rank_fields` in their member local_ranks.  The ranks are in another order afterwards.
 */
void local_ranks_put(const struct rows_writer *w, struct json *j, struct local_ranks *ranks,
		     const struct field *comm_fields, const struct field *rank_fields,
		     const struct chosen *c);

/*
 * The newest calls of a rank where none is in flight, which is where ranks are compared by
 * them; *n: how many there are.
 */
const struct called *local_rank_calls(const struct local_rank *l, size_t *n);

#endif
