/* SPDX-License-Identifier: Apache-2.0 */
#ifndef READER_JOIN_INFLIGHT_H
#define READER_JOIN_INFLIGHT_H

/*
 * All that has begun and not ended in a process, from two sources: operations that
 * reconstruct holds open, and the handle slots that are live in the segment right now
 * (kernels on a channel, proxy operations, network transfers).  A slot knows its parent's
 * token only; which operation it works for is found by following parents, through slots,
 * up to an operation.
 */

#include <stddef.h>

#include "reader/base/model.h"
#include "util/list.h"

struct reconstruct;

/* The states of an operation: how far it got. */
#define OP_STATES(X)			\
	X(POSTED,      "posted")	\
	X(NOT_STARTED, "not_started")	\
	X(RUNNING,     "running")	\
	X(FINISHING,   "finishing")

enum op_state {
#define X(NAME, text) OP_STATE_##NAME,
	OP_STATES(X)
#undef X
	OP_STATE_END
};

name_t inflight_op_state(enum op_state state);

/* The state of an open operation, as far as its children were asked for. */
enum op_state inflight_state_of(const struct op *op);

/* One thing that has begun and not ended.  What is not known is as in model.h. */
struct inflight {
	const struct process *process;
	uint64_t token;
	uint64_t parent;
	int32_t tid;
	bool is_op;		/* an operation; else a slot */
	bool may_be_over;	/* it is, unless a child of it is live */
	bool is_p2p;
	uint32_t comm_index;	/* NCI_COMM_NONE: not known */
	bool has_comm_id;
	uint64_t comm_id;
	name_t comm_name;
	int32_t rank;
	name_t event_type;	/* text of nccl_event_name() */
	name_t func;
	uint64_t seq;
	uint64_t bytes;
	uint64_t count;		/* an operation's, as are those that follow it */
	name_t datatype, algo, proto;
	int32_t root;
	uint32_t proxy_steps;
	uint64_t age_ns;	/* age now; in an ended process, at its end */
	uint64_t tag;	/* 0: none */
	name_t state;
	name_t direction;
	int32_t channel;
	int32_t peer;
	int32_t step;
	int32_t steps;
	int32_t channels;
	int32_t kernel_started;
	int32_t kernel_stopped;
	int32_t proxy_ops;
	int32_t live_kernels;	/* its KernelCh slots that are live right now */
};

/* All of them; zeroed is empty.  Those of the process in hand begin at `mine`. */
struct inflights {
	LIST(struct inflight);
	size_t mine;
	const struct process *process;
	uint64_t now_ns;
	int error;
};

void inflights_deinit(struct inflights *rows);

/*
 * Add those of a process, `slots` being its live slots now; of an ended process
 * its last_slots.  Memory that runs out is rows->error, -ENOMEM.
 */
void inflights_add(struct inflights *rows, struct reconstruct *rc, const struct process *p,
		   const struct live_slot *slots, size_t n, uint64_t now_ns);

/* The oldest first.  Nothing can be added any more. */
void inflights_sort(struct inflights *rows);

/* An age that is not known sorts, and is filtered, as the youngest. */
static inline uint64_t inflight_age_ns(const struct inflight *row)
{
	return row->age_ns == UNKNOWN_U64 ? 0 : row->age_ns;
}

#endif
