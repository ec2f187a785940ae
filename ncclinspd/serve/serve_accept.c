/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Admission: the clients that are let in, and those that have to go for it.
 *
 * There are so many places; one is taken from accept to the last answer.  One user without
 * the right to see all gets half of them, and all of these users together seven eighths, lest
 * they shut out root.  When none is left, a client that comes takes the place of one whose
 * user has more of them, or which holds its own without asking anything: many slow ones do
 * not keep out one that asks little.  A client that gets no place is let in all the same, told
 * so with a 429 when it asks, and goes.
 */
#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "ncclinspd/serve/serve_client.h"

#define AT_ONCE		32	/* clients let in before the others are served again */
#define PAUSE_NS	UINT64_C(100000000)
#define HELD_NS		UINT64_C(1000000000)	/* a place, for one request */

/* ---- places ------------------------------------------------------------------------ */

static uint32_t places_of_user(const struct serve *s, uid_t account)
{
	uint32_t n = 0;

	for (const struct serve_client *c = s->clients; c; c = c->next)
		n += c->has_place && c->account == account;
	return n;
}

static uint32_t places_taken(const struct serve *s)
{
	uint32_t n = 0;

	for (const struct serve_client *c = s->clients; c; c = c->next)
		n += c->has_place;
	return n;
}

/* May it have to go for one whose user has `own` places?  Its user has `places`. */
static bool place_is_free_for(const struct serve_client *c, const struct viewer *v, uint32_t own,
			      uint32_t places)
{
	if (!c->has_place || (c->viewer.all && !v->all))
		return false;
	return places > own + 1 || c->phase == CLIENT_IDLE ||
	       (c->phase != CLIENT_STREAMING && c->serve->now_ns - c->since_ns >= HELD_NS);
}

/* The one whose user has most places, then whom it costs least, then the slowest. */
static struct serve_client *place_find_victim(const struct serve *s, const struct viewer *v,
					      uint32_t own)
{
	struct serve_client *victim = NULL;
	uint32_t most = 0;

	for (struct serve_client *c = s->clients; c; c = c->next) {
		uint32_t places = places_of_user(s, c->account);

		if (!place_is_free_for(c, v, own, places) || places < most)
			continue;
		if (places > most || c->phase < victim->phase ||
		    (c->phase == victim->phase && c->since_ns <= victim->since_ns))
			victim = c;
		most = places;
	}
	return victim;
}

static bool place_take(struct serve *s, const struct serve_client *c)
{
	const struct viewer *v = &c->viewer;
	uint32_t places = s->config.connections, own = places_of_user(s, c->account);
	struct serve_client *victim;

	if (!v->all && own >= places / 2)
		return false;
	if (!v->all)
		places -= places / 8;
	if (places_taken(s) < places)
		return true;
	victim = place_find_victim(s, v, own);
	if (victim)
		client_dismiss(victim);
	return victim;
}

/* Clients without a place are few: the one that was let in first goes. */
static void place_bound_others(struct serve *s)
{
	struct serve_client *first = NULL;
	uint32_t n = 0;

	for (struct serve_client *c = s->clients; c; c = c->next) {
		if (c->has_place)
			continue;
		first = c;
		n++;
	}
	if (n > SERVE_SPARE)
		client_push_out(first);
}

/* ---- the door ---------------------------------------------------------------------- */

static int serve_watch_listener(const struct serve *s, int op, uint32_t events)
{
	struct epoll_event event = { .events = events };

	return epoll_ctl(s->fd, op, s->config.listen_fd, &event) < 0 ? -errno : 0;
}

static void listener_set(struct serve *s, bool listening)
{
	if (s->listening != listening &&
	    serve_watch_listener(s, EPOLL_CTL_MOD, listening ? EPOLLIN : 0) == 0)
		s->listening = listening;
}

int accept_open(struct serve *s)
{
	int r;

	s->fd = epoll_create1(EPOLL_CLOEXEC);
	if (s->fd < 0)
		return -errno;
	r = serve_watch_listener(s, EPOLL_CTL_ADD, EPOLLIN);
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
static int client_let_in(struct serve *s)
{
	int fd = accept4(s->config.listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK), r;

	if (fd < 0)
		return errno == EINTR || errno == ECONNABORTED ? 0 : -errno;
	r = client_add(s, fd);
	if (r < 0)
		return r;
	s->clients->has_place = place_take(s, s->clients);
	place_bound_others(s);
	return 0;
}

void accept_clients(struct serve *s)
{
	int r = 0;

	if (s->now_ns < s->listen_again_ns)
		return;
	for (int i = 0; i < AT_ONCE && r == 0; i++)
		r = client_let_in(s);
	listener_set(s, r == 0 || r == -EAGAIN);
	if (r == 0 || r == -EAGAIN)
		return;
	s->listen_again_ns = s->now_ns + PAUSE_NS;
	log_limited(&s->accept_rate, s->now_ns, LOG_WARN, "clients have to wait error=\"%s\"",
		    strerror(-r));
}

uint64_t accept_deadline(const struct serve *s)
{
	return s->listening ? UINT64_MAX : s->listen_again_ns;
}
