/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_SIM_WIRE_H
#define TESTS_SIM_WIRE_H

/*
 * Who is at the other end of a rank's connections, and in how many steps data go
 * there.  Pure.
 */

#include "tests/sim/hook.h"

#define WIRE_MAX	16	/* connections of a rank on one channel */

struct wire {
	bool send;
	bool silent;		/* the operation begins, and nothing more is told of it */
	int peer;		/* rank in the communicator */
	int nsteps;		/* transfers */
	int window;		/* of them at the same time */
	int chunk;		/* bytes, as NCCL tells them: far more than a transfer has */
	uint64_t bytes;		/* of all transfers, flags of the protocol included */
};

/*
 * The connections to other nodes that a task uses on its index-th channel, in
 * NCCL's order; returns how many, at most WIRE_MAX.
 */
int wire_find(const struct task *task, int index, struct wire *wire);

/* Whether the network adds up for this task: CollNet, and NVLS over several nodes. */
bool wire_reduces(const struct task *task);

/* Whether a task uses any, sends or both. */
bool wire_any(const struct task *task, bool sends_only);

#endif
