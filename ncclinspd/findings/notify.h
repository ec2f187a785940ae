/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NCCLINSPD_FINDINGS_NOTIFY_H
#define NCCLINSPD_FINDINGS_NOTIFY_H

/*
 * A program that acts on findings gets each one when it is found, becomes critical or is over: by a
 * connection of its own to a Unix stream socket, which carries the finding as one JSON object and
 * ends.  Systemd listens there, and starts a command with the connection as its stdin: so this
 * process starts none, and waits for none.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ncclinspd/base/finding.h"

#define NOTIFY_AT_ONCE	10	/* after a while in which nothing was told, ... */
#define NOTIFY_APART_NS	UINT64_C(1000000000)	/* ... then one each */
#define NOTIFY_WAITING	128	/* more are not kept */

struct notify;

struct notify_stats {
	uint64_t told;
	uint64_t dropped;	/* nobody took it, or too many waited */
	uint64_t last_ns;	/* CLOCK_MONOTONIC, of the last one told; 0: none was */
	int error;		/* negative errno: why the last one was dropped; 0: it was told */
};

/* `path` of the socket, which may come and go.  0 or -ENOMEM. */
int notify_new(struct notify **out, const char *path);
void notify_free(struct notify *n);	/* NULL is fine; what waits is lost */

/* Is this change of a finding one that is told? */
bool notify_wants(const struct finding *f);

/*
 * It is to be told by notify_run(); `text` of malloc() is the callee's.  The account with most of
 * what waits makes room.
 */
void notify_put(struct notify *n, uid_t account, char *text, size_t bytes);

/*
 * Tell what waits, accounts by turns, and never wait.  The time at which to come again; 0: nothing
 * waits.
 */
uint64_t notify_run(struct notify *n, uint64_t now_ns);

void notify_read_stats(const struct notify *n, struct notify_stats *stats);

#endif
