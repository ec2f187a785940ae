/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_RUN_OWN_H
#define CLI_RUN_OWN_H

/*
 * A daemon of one's own for as long as a job runs, where no other one answers.  Those that a
 * launcher starts beside each other on a node share one, so that it can compare their ranks; it
 * ends with the last of them, however that ends.
 */

#include <limits.h>
#include <stdbool.h>

#define OWN_SOCKET 108	/* bytes, as the kernel has it */

struct own {
	char dir[OWN_SOCKET];	/* all that is its own is in here; "": there is none */
	char shm[OWN_SOCKET];	/* the directory for the job's segments */
	char socket[OWN_SOCKET];
	char control[PATH_MAX];
	int election;	/* lock of whoever starts or ends it; -1: not held */
	int users;	/* lock that all who use it share; -1: not held */
};

/*
 * Have one that answers, started where needed.  `state_dir`: where it keeps black boxes and
 * snapshots; NULL: nowhere for long.  0 or a negative errno: there is none.  What it
 * holds is given back by own_close() in both cases.
 */
int own_open(struct own *own, const char *state_dir);

/* Does nobody else use it?  Then nobody can begin to, until own_close(). */
bool own_is_last(struct own *own);

/* Goes without it; the last one ends it and removes what it has left. */
void own_close(struct own *own);

#endif
