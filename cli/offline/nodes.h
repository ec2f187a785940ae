/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_OFFLINE_NODES_H
#define CLI_OFFLINE_NODES_H

/*
 * The daemons of many nodes in place of one: each is asked through ssh for all that it knows, some
 * at a time, and what they say is put together as snapshots in files are (offline.h).
 */

#include <jansson.h>
#include <stdbool.h>

#include "cli/offline/hosts.h"
#include "cli/offline/joint.h"

/*
 * `socket`: as for client_set_host().  `window`: the time that figures are of, as /v1/ranks takes
 * it; NULL: ten seconds.  `tells`: on stderr who does not answer, as findings do anyway.  All are
 * the caller's.  Nobody is asked yet.
 */
struct nodes *nodes_open(const struct hosts *hosts, const char *socket, const char *window,
			 bool tells);
void nodes_free(struct nodes *n);

/* Ask all, and add what they say; those that do not answer are among the joint's silent ones. */
void nodes_ask(struct nodes *n, struct joint *joint);

/*
 * A client's source, `arg` being the struct nodes.  All are asked anew when the same is asked
 * again: a sample is of one moment.
 */
json_t *nodes_answer(void *arg, const char *target);

#endif
