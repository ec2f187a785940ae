/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_TOP_CAPTURE_H
#define CLI_TOP_CAPTURE_H

/*
 * A trace that the live view takes beside itself: `ncclinsp trace` in a process of its
 * own, so that the screen never waits for it.
 */

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "cli/table/line.h"

#define CAPTURE_S    10		/* length of one */
#define CAPTURE_PATH 256	/* bytes of a file's name */
#define CAPTURE_TEXT 512	/* bytes of what is said of it */

struct capture {
	pid_t pid;		/* 0: none is being taken */
	int said;		/* its stderr */
	uint64_t began_ns;	/* CLOCK_MONOTONIC */
	uint64_t now_ns;	/* when it was looked at last */
	char whom[CAPTURE_PATH];
	char path[CAPTURE_PATH];
	json_t *ended;		/* outcome of each, as text; NULL: none has ended */
};

/*
 * A name for a file that starts now, by the time in UTC: here, or where temporary files
 * are if nothing can be written here.
 */
void capture_name(char path[CAPTURE_PATH]);

/*
 * Begin one of what `bodies` name, as for PUT /v1/level: of several targets the processes
 * that `ranks`, rows of the ranks' table, say they have.  Returns 0, or a negative errno:
 * -EBUSY while there is one already.
 */
int capture_start(struct capture *capture, const char *socket, const json_t *bodies,
		  const json_t *ranks, uint64_t now_ns);

/* True when it has ended by now: what came of it is in `told`, with "! " where it failed. */
bool capture_look(struct capture *capture, uint64_t now_ns, char told[CAPTURE_TEXT]);

/* "tracing process 4711: 4 of 10 s"; nothing when there is none. */
void capture_put(const struct capture *capture, struct line *line);

/* End one that is being taken, which keeps what it has, and say on stderr what all came to. */
void capture_end(struct capture *capture);

#endif
