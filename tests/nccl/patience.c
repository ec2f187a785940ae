/* SPDX-License-Identifier: Apache-2.0 */
/*
 * While NCCL sets up connections it asks one socket again and again, without rest.
 * Where there are fewer cores than such threads, the one that would answer waits
 * for all of them.  So who asks the same socket in vain a few times in a row
 * sleeps until it has something, though not for long.
 */
#include <errno.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "fake.h"

#define IN_VAIN		4
#define AT_MOST_MS	1

static _Thread_local struct {
	int fd;
	unsigned int times;
} asked;

static ssize_t rest_after(int fd, ssize_t result)
{
	struct pollfd wait = { .fd = fd, .events = POLLIN };
	int error = errno;

	if (result >= 0 || error != EAGAIN || fd != asked.fd)
		asked.times = 0;
	asked.fd = fd;
	if (result >= 0 || error != EAGAIN)
		return result;
	if (asked.times++ >= IN_VAIN)
		poll(&wait, 1, AT_MOST_MS);
	errno = error;
	return result;
}

FAKE_EXPORT ssize_t recv(int fd, void *to, size_t bytes, int flags)
{
	return rest_after(fd, recvfrom(fd, to, bytes, flags, NULL, NULL));
}

FAKE_EXPORT int accept(int fd, struct sockaddr *address, socklen_t *length)
{
	return (int)rest_after(fd, accept4(fd, address, length, 0));
}
