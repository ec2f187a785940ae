/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A collector on the network reaches the daemon through one address, given in digits: no name
 * service is ever asked, or waited for.
 */
#include "ncclinspd/metrics/tcp.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdint.h>
#include <string.h>

#include "util/cleanup.h"

#define BACKLOG 16

/* 0: none. */
static in_port_t address_parse_port(const char *text)
{
	uint32_t port = 0;

	for (; *text >= '0' && *text <= '9' && port <= UINT16_MAX; text++)
		port = port * 10 + (uint32_t)(*text - '0');
	return *text || port > UINT16_MAX ? 0 : htons((in_port_t)port);
}

static int address_set_v6(struct tcp_address *out, const char *host, in_port_t port)
{
	struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)&out->at;

	v6->sin6_family = AF_INET6;
	v6->sin6_port = port;
	out->bytes = sizeof(*v6);
	return inet_pton(AF_INET6, host, &v6->sin6_addr) == 1 ? 0 : -EINVAL;
}

static int address_set_v4(struct tcp_address *out, const char *host, in_port_t port)
{
	struct sockaddr_in *v4 = (struct sockaddr_in *)&out->at;

	v4->sin_family = AF_INET;
	v4->sin_port = port;
	out->bytes = sizeof(*v4);
	return inet_pton(AF_INET, *host ? host : "127.0.0.1", &v4->sin_addr) == 1 ? 0 : -EINVAL;
}

int tcp_parse(const char *text, struct tcp_address *out)
{
	char host[TCP_TEXT_BYTES];
	const char *colon = strrchr(text, ':'), *port = colon ? colon + 1 : text;
	size_t n = colon ? (size_t)(colon - text) : 0;

	*out = (struct tcp_address){ 0 };
	if (n >= sizeof(host) || !address_parse_port(port))
		return -EINVAL;
	memcpy(host, text, n);
	host[n] = '\0';
	if (*host != '[')
		return address_set_v4(out, host, address_parse_port(port));
	if (host[n - 1] != ']')
		return -EINVAL;
	host[n - 1] = '\0';
	return address_set_v6(out, host + 1, address_parse_port(port));
}

int tcp_listen(const struct tcp_address *address)
{
	const struct sockaddr *at = (const struct sockaddr *)&address->at;
	CLEANUP(cleanup_closep) int fd = -1;
	int yes = 1, r;

	fd = socket(at->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
	if (at->sa_family == AF_INET6)	/* take what was named, and nothing else */
		setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &yes, sizeof(yes));
	if (bind(fd, at, address->bytes) < 0 || listen(fd, BACKLOG) < 0)
		return -errno;
	r = fd;
	fd = -1;
	return r;
}
