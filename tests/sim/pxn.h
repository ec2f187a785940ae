/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_SIM_PXN_H
#define TESTS_SIM_PXN_H

/*
 * PXN: a send that another local process carries out.  The issuer leaves its
 * task in a box in memory that all processes share; the executor's proxy takes
 * it, with the issuer's context, parent and pid, none of which mean anything
 * in its own process.
 */

#include <stdbool.h>

#include "tests/sim/hook.h"

#define PXN_BOX_SLOTS	64

struct pxn;

struct pxn_message {
	struct task task;	/* its pointers are the issuer's, but for the scenario's */
	void *context;
	int pid, issuer;	/* issuer: rank of the communicator */
};

/* Before the processes are forked; 0, or -errno.  *pxnp stays NULL where no PXN is. */
int pxn_new(struct pxn **pxnp, const struct scenario *scn);
void pxn_free(struct pxn *pxn, const struct scenario *scn);

/* Leave a message for this rank's proxy; waits while the box is full, -EPIPE if too long. */
int pxn_put(struct pxn *pxn, const struct sim_comm *comm, int executor,
	    const struct pxn_message *message);

/* Take the oldest message for this rank; false if there is none. */
bool pxn_take(struct pxn *pxn, const struct sim_comm *comm, int rank,
	      struct pxn_message *message);

/* This process issues nothing more; wait (a while) until that is so for all. */
void pxn_leave(struct pxn *pxn, const struct scenario *scn);

#endif
