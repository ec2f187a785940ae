/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The daemon waits here: epoll tells which descriptor is readable, a list of timers in the order
 * of their times tells how long to wait, and signals arrive on a descriptor too.
 */
#include "ncclinspd/base/loop.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "shmring/clock.h"
#include "util/cleanup.h"

#define LOOP_FDS	64	/* descriptors watched at the same time */

/* C libraries before 2.35 have no function for it, headers of kernels before 5.11 no number. */
#ifndef SYS_epoll_pwait2
#define SYS_epoll_pwait2 441
#endif

struct loop_watch {
	int fd;			/* -1: none */
	loop_fn *fn;
	void *arg;
};

struct loop {
	int epoll;
	uint64_t now_ns;
	bool stopped;
	struct loop_watch watched[LOOP_FDS];
	struct loop_timer *timers;	/* the next one first */
	int signal_fd;			/* -1: no signal is handled */
	sigset_t signals;
	struct loop_watch on_signal[NSIG];	/* fd is not used */
	struct loop_watch hook;
};

uint64_t loop_clock_ns(void)
{
	return clock_ns(CLOCK_MONOTONIC);
}

int loop_new(struct loop **out)
{
	CLEANUP(cleanup_freep) struct loop *loop = calloc(1, sizeof(*loop));

	if (!loop)
		return -ENOMEM;
	loop->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (loop->epoll < 0)
		return -errno;
	for (int i = 0; i < LOOP_FDS; i++)
		loop->watched[i].fd = -1;
	loop->signal_fd = -1;
	sigemptyset(&loop->signals);
	loop->now_ns = loop_clock_ns();
	*out = DISOWN(loop);
	return 0;
}

void loop_free(struct loop *loop)
{
	if (!loop)
		return;
	close(loop->epoll);
	cleanup_closep(&loop->signal_fd);
	free(loop);
}

static struct loop_watch *loop_find(struct loop *loop, int fd)
{
	for (int i = 0; i < LOOP_FDS; i++)
		if (loop->watched[i].fd == fd)
			return &loop->watched[i];
	return NULL;
}

int loop_add(struct loop *loop, int fd, loop_fn *fn, void *arg)
{
	struct epoll_event event = { .events = EPOLLIN, .data.fd = fd };
	struct loop_watch *w;

	if (fd < 0)
		return -EBADF;
	if (loop_find(loop, fd))
		return -EEXIST;
	w = loop_find(loop, -1);
	if (!w)
		return -ENOSPC;
	if (epoll_ctl(loop->epoll, EPOLL_CTL_ADD, fd, &event) < 0)
		return -errno;
	*w = (struct loop_watch){ fd, fn, arg };
	return 0;
}

void loop_remove(struct loop *loop, int fd)
{
	struct loop_watch *w = fd < 0 ? NULL : loop_find(loop, fd);

	if (!w)
		return;
	epoll_ctl(loop->epoll, EPOLL_CTL_DEL, fd, NULL);
	w->fd = -1;
}

void loop_cancel(struct loop *loop, struct loop_timer *timer)
{
	struct loop_timer **at = &loop->timers;

	if (!timer->armed)
		return;
	while (*at != timer)
		at = &(*at)->next;
	*at = timer->next;
	timer->armed = false;
}

void loop_arm(struct loop *loop, struct loop_timer *timer, uint64_t at_ns)
{
	struct loop_timer **at = &loop->timers;

	loop_cancel(loop, timer);
	if (at_ns <= loop->now_ns)
		at_ns = loop->now_ns + 1;	/* this round would never end otherwise */
	while (*at && (*at)->at_ns <= at_ns)
		at = &(*at)->next;
	timer->at_ns = at_ns;
	timer->armed = true;
	timer->next = *at;
	*at = timer;
}

static void loop_on_signal(void *arg, uint64_t now_ns)
{
	struct loop *loop = arg;
	struct signalfd_siginfo info;

	while (read(loop->signal_fd, &info, sizeof(info)) == sizeof(info)) {
		struct loop_watch *w = info.ssi_signo < NSIG ? &loop->on_signal[info.ssi_signo]
							   : NULL;

		if (w && w->fn)
			w->fn(w->arg, now_ns);
	}
}

int loop_signal(struct loop *loop, int signo, loop_fn *fn, void *arg)
{
	sigset_t signals = loop->signals;
	bool first = loop->signal_fd < 0;
	int fd;

	if (signo < 1 || signo >= NSIG)
		return -EINVAL;
	sigaddset(&signals, signo);
	if (sigprocmask(SIG_BLOCK, &signals, NULL) < 0)
		return -errno;
	fd = signalfd(loop->signal_fd, &signals, SFD_CLOEXEC | SFD_NONBLOCK);
	if (fd < 0)
		return -errno;
	loop->signal_fd = fd;
	loop->signals = signals;
	loop->on_signal[signo] = (struct loop_watch){ -1, fn, arg };
	return first ? loop_add(loop, fd, loop_on_signal, loop) : 0;
}

void loop_hook(struct loop *loop, loop_fn *fn, void *arg)
{
	loop->hook = (struct loop_watch){ -1, fn, arg };
}

static uint64_t loop_wait_ns(const struct loop *loop, uint64_t until_ns)
{
	uint64_t now = loop_clock_ns();

	if (loop->timers && loop->timers->at_ns < until_ns)
		until_ns = loop->timers->at_ns;
	if (until_ns == UINT64_MAX)
		return UINT64_MAX;
	return until_ns > now ? until_ns - now : 0;
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
	int n = (int)syscall(SYS_epoll_pwait2, epoll, events, LOOP_FDS,
			     wait_ns == UINT64_MAX ? NULL : &ts, NULL, 0);

	return n < 0 && errno == ENOSYS ? epoll_wait_ms(epoll, events, wait_ns) : n;
}

static void timers_run(struct loop *loop)
{
	while (loop->timers && loop->timers->at_ns <= loop->now_ns) {
		struct loop_timer *timer = loop->timers;

		loop_cancel(loop, timer);
		timer->fn(timer->arg, loop->now_ns);
	}
}

int loop_once(struct loop *loop, uint64_t until_ns)
{
	struct epoll_event events[LOOP_FDS];
	int n = epoll_wait_events(loop->epoll, events, loop_wait_ns(loop, until_ns));

	if (n < 0 && errno != EINTR)
		return -errno;
	loop->now_ns = loop_clock_ns();
	for (int i = 0; i < n; i++) {
		struct loop_watch *w = loop_find(loop, events[i].data.fd);	/* NULL: removed */

		if (w)
			w->fn(w->arg, loop->now_ns);
	}
	timers_run(loop);
	if (loop->hook.fn)
		loop->hook.fn(loop->hook.arg, loop->now_ns);
	return 0;
}

int loop_run(struct loop *loop)
{
	int r = 0;

	loop->stopped = false;
	while (!loop->stopped && r == 0)
		r = loop_once(loop, UINT64_MAX);
	return r;
}

void loop_stop(struct loop *loop)
{
	loop->stopped = true;
}
