/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NCCLINSPD_MANAGER_H
#define NCCLINSPD_MANAGER_H

/*
 * The service manager that started us, if one did: where it wants to hear that we are
 * ready and alive, and the socket that it holds for us (the protocols of sd_notify(3)
 * and sd_listen_fds(3), for which a library would bring five others).
 */

#include <limits.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/un.h>

struct manager {
	int fd;			/* -1: nobody wants to hear anything */
	struct sockaddr_un address;
	socklen_t address_bytes;
	uint64_t watchdog_ns;	/* silence for which we are killed; 0: never */
};

/* Reads the environment.  Never fails: what cannot be is taken as not there. */
void manager_open(struct manager *m);
void manager_close(struct manager *m);

/* "READY=1" and the like, lines.  Waits 100 ms at most; what does not go out is lost. */
void manager_say(const struct manager *m, const char *text);

/*
 * The listening socket that was handed over, the caller's, non-blocking, and its path.
 * -ENOENT: none was; -EINVAL: something else was, or more than one.
 */
int manager_socket(char path[PATH_MAX]);

#endif
