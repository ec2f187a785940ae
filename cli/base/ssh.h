/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_BASE_SSH_H
#define CLI_BASE_SSH_H

/*
 * A connection to another node's daemon: ssh runs ncclinsp's dial-stdio there, so that rights,
 * keys and names are ssh's own, and no port is opened.
 *
 * $NCCLINSP_SSH is the command in place of "ssh", with its options; $NCCLINSP_REMOTE the
 * program in place of "ncclinsp" there.
 */

#include <stdbool.h>
#include <stddef.h>

struct ssh;

/* Can it be the name of a host, or user@host?  What ssh would take for an option is none. */
bool ssh_is_host(const char *host);

/*
 * `socket`: the daemon's there; NULL: the one that is found.  `asks`: ssh may ask its user, for a
 * password say.  `fd` is its input and output; it stays the caller's.  NULL: it cannot be run;
 * errno tells why.
 */
struct ssh *ssh_start(const char *host, const char *socket, bool asks, int fd);

/* Ends it.  `why` gets the last line that it, or the other side, said of a failure; or "". */
void ssh_end(struct ssh *ssh, char *why, size_t size);

#endif
