/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NCCLINSPD_INSTANCE_H
#define NCCLINSPD_INSTANCE_H

/* There is one daemon per socket: a lock beside it says which, and then it may listen. */

#include <limits.h>

struct instance {
	char socket[PATH_MAX];	/* "": not bound by us */
	int lock;		/* -1: not held */
};

/*
 * Take the lock and listen on `socket`, its directory made if need be.  Returns
 * the listening descriptor, the caller's, non-blocking; or a negative errno, told
 * on the log.  A socket that a dead daemon left is replaced.  `given` listens there
 * already, and is returned; -1: nothing does.
 */
int instance_open(struct instance *in, const char *socket, int given);

/*
 * Removes the socket, unless it was given, and lets go of the lock.  Zeroed but for
 * lock = -1 is fine.
 */
void instance_close(struct instance *in);

#endif
