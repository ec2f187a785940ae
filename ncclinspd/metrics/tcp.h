/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NCCLINSPD_METRICS_TCP_H
#define NCCLINSPD_METRICS_TCP_H

/* A listening TCP socket, for what may be collected over the network. */

#include <sys/socket.h>

#define TCP_TEXT_BYTES	64	/* room for an address and a port, with the end */

struct tcp_address {
	struct sockaddr_storage at;
	socklen_t bytes;
};

/*
 * PORT or :PORT (loopback), 192.0.2.1:PORT, [2001:db8::1]:PORT; no names, which somebody
 * would have to be asked for.  0 or -EINVAL.
 */
int tcp_parse(const char *text, struct tcp_address *out);

/* Bound, listening, non-blocking: a descriptor or a negative errno. */
int tcp_listen(const struct tcp_address *address);

#endif
