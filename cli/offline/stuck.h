/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_OFFLINE_STUCK_H
#define CLI_OFFLINE_STUCK_H

/*
 * Finds what hangs on a communicator, as the nodes of all its ranks tell, and which rank holds
 * it up: by the ranks' own sequence numbers and calls, so that no two clocks are compared but
 * in telling which files are too old.
 *
 * A communicator is an object with "comm_id" and "ranks" (by rank: the member of /v1/comms,
 * with "written_at", when its node's file was).  What is noted is kept in it.
 */

#include <jansson.h>
#include <stdint.h>

struct stuck {
	const char *verdict, *severity;
	const json_t *rank;	/* one of "ranks" */
	const char *func;	/* the call that most ranks are in */
	int64_t seq;
	char text[256];
};

/* Operations of that communicator that were in flight in the file of `node`. */
void stuck_note(json_t *comm, const json_t *node);

/* Finds ranks that are dead, have not joined, made another call, or the same with another size. */
void stuck_find(const json_t *comm, void found(const struct stuck *s, void *arg), void *arg);

#endif
