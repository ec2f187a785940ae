/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The two protocols of the service manager, sd_notify(3) and sd_listen_fds(3), are written
 * out here since a library for them would bring five others.
 */
#include "ncclinspd/manager.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

#include "util/text.h"

#define FIRST_FD	3	/* SD_LISTEN_FDS_START */
#define SAY_US		100000

/* ---- words ------------------------------------------------------------------- */

/* A number of the environment that is meant for this process; 0: there is none. */
static uint64_t manager_number(const char *name, const char *pid_name, bool pid_must_be)
{
	const char *text = getenv(name), *pid_text = getenv(pid_name);
	int64_t n, pid;

	if (!text || text_parse_integer(text, 1, INT64_MAX / 1000, &n) < 0)
		return 0;
	if (!pid_text)
		return pid_must_be ? 0 : (uint64_t)n;
	if (text_parse_integer(pid_text, 1, INT32_MAX, &pid) < 0 || pid != getpid())
		return 0;
	return (uint64_t)n;
}

/* A path, or behind a "@" a name that is in no file system. */
static bool manager_take_address(struct manager *m, const char *name)
{
	size_t n = name ? strlen(name) : 0;

	if (n < 2 || n >= sizeof(m->address.sun_path) || (*name != '/' && *name != '@'))
		return false;
	m->address.sun_family = AF_UNIX;
	memcpy(m->address.sun_path, name, n);
	if (*name == '@')
		m->address.sun_path[0] = '\0';
	m->address_bytes = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + n);
	return true;
}

void manager_open(struct manager *m)
{
	const struct timeval most = { .tv_usec = SAY_US };

	*m = (struct manager){ .fd = -1 };
	if (!manager_take_address(m, getenv("NOTIFY_SOCKET")))
		return;
	m->fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (m->fd < 0)
		return;
	setsockopt(m->fd, SOL_SOCKET, SO_SNDTIMEO, &most, sizeof(most));
	m->watchdog_ns = manager_number("WATCHDOG_USEC", "WATCHDOG_PID", false) * 1000;
}

void manager_close(struct manager *m)
{
	if (m->fd >= 0)
		close(m->fd);
	m->fd = -1;
}

void manager_say(const struct manager *m, const char *text)
{
	if (m->fd >= 0)
		(void)!sendto(m->fd, text, strlen(text), MSG_NOSIGNAL,
			      (const struct sockaddr *)&m->address, m->address_bytes);
}

/* ---- the socket --------------------------------------------------------------- */

static bool socket_has_option(int fd, int option, int wanted)
{
	socklen_t bytes = sizeof(int);
	int value;

	return getsockopt(fd, SOL_SOCKET, option, &value, &bytes) == 0 && value == wanted;
}

static bool socket_listens_at(int fd, char path[PATH_MAX])
{
	struct sockaddr_un address = { 0 };
	socklen_t bytes = sizeof(address) - 1;

	if (!socket_has_option(fd, SO_DOMAIN, AF_UNIX) ||
	    !socket_has_option(fd, SO_TYPE, SOCK_STREAM) ||
	    !socket_has_option(fd, SO_ACCEPTCONN, 1))
		return false;
	if (getsockname(fd, (struct sockaddr *)&address, &bytes) < 0 ||
	    address.sun_path[0] != '/')
		return false;
	memset(path, 0, PATH_MAX);
	memcpy(path, address.sun_path, strnlen(address.sun_path, sizeof(address.sun_path)));
	return true;
}

int manager_socket(char path[PATH_MAX])
{
	uint64_t n = manager_number("LISTEN_FDS", "LISTEN_PID", true);
	int flags;

	if (n == 0)
		return -ENOENT;
	if (n > 1 || !socket_listens_at(FIRST_FD, path))
		return -EINVAL;
	flags = fcntl(FIRST_FD, F_GETFL);
	if (flags < 0 || fcntl(FIRST_FD, F_SETFL, flags | O_NONBLOCK) < 0 ||
	    fcntl(FIRST_FD, F_SETFD, FD_CLOEXEC) < 0)
		return -errno;
	return FIRST_FD;
}
