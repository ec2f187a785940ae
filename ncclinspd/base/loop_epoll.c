/* SPDX-License-Identifier: Apache-2.0 */
/* The backend for where io_uring is refused: epoll, and one pread per read. */
#include "ncclinspd/base/loop_backend.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "util/cleanup.h"

static int epoll_open(void **state)
{
	CLEANUP(cleanup_freep) int *epoll = malloc(sizeof(*epoll));

	if (!epoll)
		return -ENOMEM;
	*epoll = epoll_create1(EPOLL_CLOEXEC);
	if (*epoll < 0)
		return -errno;
	*state = epoll;
	epoll = NULL;
	return 0;
}

static void epoll_close(void *state)
{
	close(*(int *)state);
	free(state);
}

static int epoll_watch(void *state, int fd)
{
	struct epoll_event event = { .events = EPOLLIN, .data.fd = fd };

	return epoll_ctl(*(int *)state, EPOLL_CTL_ADD, fd, &event) < 0 ? -errno : 0;
}

static void epoll_unwatch(void *state, int fd)
{
	epoll_ctl(*(int *)state, EPOLL_CTL_DEL, fd, NULL);
}

/* Kernels before 5.11 know milliseconds only: later rather than too early, and spinning. */
static int epoll_wait_ms(int epoll, struct epoll_event *events, uint64_t wait_ns)
{
	uint64_t ms = wait_ns / 1000000 + (wait_ns % 1000000 != 0);

	if (wait_ns == UINT64_MAX)
		return epoll_wait(epoll, events, LOOP_FDS, -1);
	return epoll_wait(epoll, events, LOOP_FDS, ms < 86400000 ? (int)ms : 86400000);
}

static int epoll_wait_events(int epoll, struct epoll_event *events, uint64_t wait_ns)
{
	struct timespec ts = {
		.tv_sec = (time_t)(wait_ns / 1000000000),
		.tv_nsec = (long)(wait_ns % 1000000000),
	};
	int n = epoll_pwait2(epoll, events, LOOP_FDS, wait_ns == UINT64_MAX ? NULL : &ts, NULL);

	return n < 0 && errno == ENOSYS ? epoll_wait_ms(epoll, events, wait_ns) : n;
}

static int epoll_ready(void *state, uint64_t wait_ns, int ready[LOOP_FDS])
{
	struct epoll_event events[LOOP_FDS];
	int n = epoll_wait_events(*(int *)state, events, wait_ns);

	if (n < 0)
		return errno == EINTR ? 0 : -errno;
	for (int i = 0; i < n; i++)
		ready[i] = events[i].data.fd;
	return n;
}

const struct loop_ops loop_epoll = {
	.name = "epoll",
	.open = epoll_open,
	.close = epoll_close,
	.watch = epoll_watch,
	.unwatch = epoll_unwatch,
	.wait = epoll_ready,
};
