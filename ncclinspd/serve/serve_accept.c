/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Clients are let in here and handed to the library.  By itself the library tries again
 * without a pause where the first client finds no descriptor left; and where a later one
 * does, it listens no more until one of the others goes, which nobody wakes it up for.
 */
#include "ncclinspd/serve/serve_impl.h"

#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#define AT_ONCE		64	/* clients let in before the others are served again */
#define PAUSE_NS	UINT64_C(100000000)

static int watch(const struct serve *s, int op, int fd, uint32_t events)
{
	struct epoll_event event = { .events = events };

	return epoll_ctl(s->fd, op, fd, &event) < 0 ? -errno : 0;
}

static void listen_if(struct serve *s, bool listening)
{
	if (s->listening != listening &&
	    watch(s, EPOLL_CTL_MOD, s->config.listen_fd, listening ? EPOLLIN : 0) == 0)
		s->listening = listening;
}

static bool has_room(const struct serve *s)
{
	return s->nclients < s->config.connections + SERVE_SPARE;
}

int accept_open(struct serve *s)
{
	const union MHD_DaemonInfo *info;
	int r;

	info = MHD_get_daemon_info(s->http, MHD_DAEMON_INFO_EPOLL_FD);
	if (!info)
		return -ENOSYS;
	s->fd = epoll_create1(EPOLL_CLOEXEC);
	if (s->fd < 0)
		return -errno;
	r = watch(s, EPOLL_CTL_ADD, info->epoll_fd, EPOLLIN);
	if (r == 0)
		r = watch(s, EPOLL_CTL_ADD, s->config.listen_fd, EPOLLIN);
	s->listening = r == 0;
	return r;
}

void accept_close(struct serve *s)
{
	if (s->fd >= 0)
		close(s->fd);
	close(s->config.listen_fd);
}

/* 0, -EAGAIN: nobody is there; or why the next one has to wait. */
static int let_in(struct serve *s)
{
	struct sockaddr_storage from = { 0 };
	socklen_t bytes = sizeof(from);
	int fd = accept4(s->config.listen_fd, (struct sockaddr *)&from, &bytes,
			 SOCK_CLOEXEC | SOCK_NONBLOCK);

	if (fd < 0)
		return errno == EINTR || errno == ECONNABORTED ? 0 : -errno;
	/* It closes what it does not take. */
	return MHD_add_connection(s->http, fd, (struct sockaddr *)&from, bytes) == MHD_YES ?
	       0 : -ENOMEM;
}

void accept_clients(struct serve *s)
{
	int r = 0;

	if (s->now_ns < s->listen_again_ns)
		return;
	for (int i = 0; i < AT_ONCE && r == 0 && has_room(s); i++)
		r = let_in(s);
	listen_if(s, has_room(s) && (r == 0 || r == -EAGAIN));
	if (r == 0 || r == -EAGAIN)
		return;
	s->listen_again_ns = s->now_ns + PAUSE_NS;
	log_limited(&s->accept_rate, s->now_ns, LOG_WARN, "clients have to wait error=\"%s\"",
		    strerror(-r));
}

uint64_t accept_deadline(const struct serve *s)
{
	return s->listening || !has_room(s) ? UINT64_MAX : s->listen_again_ns;
}
