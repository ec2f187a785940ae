/* SPDX-License-Identifier: Apache-2.0 */
#include "ncclinspd/metrics/tcp.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tests/fixture.h"

/* As "host port". */
static void parsed(const char *text, char out[80])
{
	const struct sockaddr_in *v4;
	const struct sockaddr_in6 *v6;
	struct tcp_address a;
	char host[64];

	ck_assert_msg(tcp_parse(text, &a) == 0, "%s", text);
	v4 = (const struct sockaddr_in *)&a.at;
	v6 = (const struct sockaddr_in6 *)&a.at;
	if (a.at.ss_family == AF_INET)
		inet_ntop(AF_INET, &v4->sin_addr, host, sizeof(host));
	else
		inet_ntop(AF_INET6, &v6->sin6_addr, host, sizeof(host));
	snprintf(out, 80, "%s %u", host,
		 ntohs(a.at.ss_family == AF_INET ? v4->sin_port : v6->sin6_port));
}

static const char *const good[][2] = {
	{ "9464", "127.0.0.1 9464" },
	{ ":9464", "127.0.0.1 9464" },
	{ "192.0.2.7:1", "192.0.2.7 1" },
	{ "0.0.0.0:65535", "0.0.0.0 65535" },
	{ "[::1]:9464", "::1 9464" },
	{ "[2001:db8::7]:80", "2001:db8::7 80" },
};

TEST_LOOP(an_address_is_numeric_and_loopback_unless_it_is_given, 0, FX_COUNT(good))
{
	char out[80];

	parsed(good[_i][0], out);
	ck_assert_str_eq(out, good[_i][1]);
}

static const char *const bad[] = {
	"", ":", "0", "65536", "99999999999999999999", "host:80", "127.0.0.1", "127.0.0.1:",
	"::1:80", "[::1]", "[::1]80", "[:80", "[127.0.0.1]:80", "1.2.3.4:8a", " 80", "-1",
	"[000000000000000000000000000000000000000000000000000000000000000::1]:80",
};

TEST_LOOP(anything_else_is_refused, 0, FX_COUNT(bad))
{
	struct tcp_address a;

	ck_assert_int_eq(tcp_parse(bad[_i], &a), -EINVAL);
}

TEST(a_place_that_is_taken_is_an_error)
{
	struct tcp_address a;
	int fd;

	ck_assert_int_eq(tcp_parse("1", &a), 0);
	((struct sockaddr_in *)&a.at)->sin_port = 0;	/* any that is free */
	fd = tcp_listen(&a);
	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(getsockname(fd, (struct sockaddr *)&a.at, &a.bytes), 0);
	ck_assert_int_eq(tcp_listen(&a), -EADDRINUSE);
	close(fd);
}

int main(void)
{
	return fx_run(NULL, NULL);
}
