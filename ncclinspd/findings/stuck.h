/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NCCLINSPD_FINDINGS_STUCK_H
#define NCCLINSPD_FINDINGS_STUCK_H

/*
 * The operations that the ranks of this node are in, communicator by communicator: the
 * input of desync_decide(), and what the text of a finding is made of.
 *
 * A view is made when something is stuck, and thrown away after that look.  It
 * borrows from the processes.
 */

#include "ncclinspd/findings/desync.h"
#include "reader/join/inflight.h"
#include "reader/join/reconstruct.h"
#include "util/list.h"

/*
 * Every pair of a communicator's ranks is looked at, and tables of communicators come
 * from jobs: what is more than this is left out, of each process what is oldest.
 */
#define STUCK_RANKS	2048	/* all in all; each process may have its share */
#define STUCK_LOCAL	32	/* ranks of one communicator */

struct diagnose_source;

/* One local rank of one communicator. */
struct stuck_rank {
	const struct process *process;
	const struct comm *comm;
	uint32_t index;			/* index of comm in its process */
	uint32_t group;
	struct comm_progress progress;
	bool ended;			/* its process has, and it had not left */
	bool has_oldest;
	struct op oldest;		/* the oldest of its operations in flight */
	bool has_p2p;			/* sends or receives are in flight */
	bool p2p_expects_kernel;	/* KernelCh is told of these */
	bool has_op;			/* the group's operation is in flight here */
	struct op op;			/* the group's operation as this rank has it */
	const struct inflight *transfer; /* the one that tells most, or NULL */
	const struct inflight *row;	/* the operation's own, or NULL */
	size_t first_row, end_row;	/* rows of its process */
};

/* A communicator: its ranks on this node, [first, first + n) of the view's. */
struct stuck_group {
	uint32_t first, n;
	bool has_op;
	/*
	 * The oldest in flight of its live ranks; of two that were called in another
	 * order, what more ranks called first.  If there is none: the oldest that
	 * some have posted and others have not (only func, seq and the communicator
	 * are known then), with the time since when none of them has posted anything.
	 */
	struct op op;
	bool unwatched;			/* `op` is the latter: its end is not watched */
	bool by_calls;			/* `op` is the call of a collective that not all have
					   made, or that they made unlike each other */
	uint64_t call;			/* number of that call on its communicator, from 0 */
	uint32_t decided_first;		/* place of its first in `desync` */
};

struct stuck {
	LIST(struct stuck_rank) ranks;
	uint32_t left_out;		/* ranks that are too many */
	LIST(struct stuck_group) groups;
	LIST(struct desync_rank) desync;
	struct desync_comm *comms;	/* one for each group */
	struct inflights rows;
	uint64_t now_ns;
};

/* The groups, the largest first, with their ranks in order, and what is oldest in each. */
int stuck_init(struct stuck *v, const struct diagnose_source *source, uint64_t now_ns);
void stuck_deinit(struct stuck *v);

/* Fill in the rest: where each rank stands with its group's operation.  0 or -ENOMEM. */
int stuck_look_closer(struct stuck *v, const struct diagnose_source *source);

static inline struct desync_input stuck_input(const struct stuck *v)
{
	return (struct desync_input){ v->comms, v->groups.n };
}

/*
 * Are the rank's counters the whole truth?  Yes if it lives, its communicator has an id,
 * and collectives are among what it is asked for.
 */
bool stuck_tells(const struct stuck_rank *r);

/* The number that its next operation of that function will have. */
uint64_t stuck_next_seq(const struct stuck_rank *r, name_t func);

/*
 * Did the rank call something else first, that the ranks in the group's operation have
 * yet to do?
 */
bool stuck_is_swapped(const struct stuck *v, const struct diagnose_source *source,
		      const struct stuck_rank *r);

/* The rank's call of that number, if it is one of its newest; NULL: it is not, or not made. */
const struct called *stuck_call(const struct stuck_rank *r, uint64_t number);

/*
 * Did all ranks of the group fall silent within a second, where NCCL's RAS can have them
 * do so?  The operations that each has posted say nothing then.
 */
bool stuck_may_be_silenced(const struct stuck *v, const struct stuck_group *g);

/* The time since which no rank of the group has posted anything. */
uint64_t stuck_quiet_since(const struct stuck *v, const struct stuck_group *g);

/* Is this row of the operation in question, of that rank? */
bool stuck_is_of(const struct inflight *row, const struct stuck_rank *r);

/* The newest number of that function on that communicator; UNKNOWN_U64: none. */
uint64_t stuck_last_seq(const struct comm_progress *progress, name_t func);

#endif
