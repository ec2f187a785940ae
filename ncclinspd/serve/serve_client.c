/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One connection: whose it is, and how long it may take.
 *
 * Everybody may connect; the kernel's word for who did decides what is shown.
 * The library knows a timeout without traffic only, which a client that sends a
 * byte now and then never meets, so requests have a deadline of their own.
 */
#include "ncclinspd/serve/serve_impl.h"

#include <grp.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#define GROUP	"ncclinsp"

gid_t client_group(const char *name)
{
	struct group *group = getgrnam(name ? name : GROUP);

	return group ? group->gr_gid : (gid_t)-1;
}

static bool in_group(int fd, gid_t own, gid_t group)
{
	gid_t groups[1024];	/* a peer with more is not looked through */
	socklen_t bytes = sizeof(groups);

	if (group == (gid_t)-1)
		return false;
	if (own == group)
		return true;
	if (getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, groups, &bytes) < 0)
		return false;
	for (size_t i = 0; i < bytes / sizeof(groups[0]); i++)
		if (groups[i] == group)
			return true;
	return false;
}

/* A peer that the kernel does not name sees nothing: no process is of uid -1. */
static struct viewer viewer_of(const struct serve *s, int fd)
{
	struct ucred peer = { .uid = (uid_t)-1 };
	socklen_t bytes = sizeof(peer);

	if (s->config.metrics_only)
		return (struct viewer){ .uid = (uid_t)-1, .all = true };
	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &bytes) < 0)
		return (struct viewer){ .uid = (uid_t)-1 };
	return (struct viewer){
		.uid = peer.uid,
		.all = peer.uid == 0 || peer.uid == geteuid() ||
		       in_group(fd, peer.gid, s->group),
	};
}

/*
 * One user without the right to see all gets half of the places, and all of these users
 * together seven eighths, lest they shut out root.  Who is refused takes no place.
 */
static bool is_surplus(const struct serve *s, const struct viewer *v)
{
	uint32_t places = s->config.connections, taken = 0, same = 0;

	for (const struct client *c = s->clients; c; c = c->next) {
		taken += !c->surplus;
		same += !c->surplus && !c->viewer.all && c->viewer.uid == v->uid;
	}
	if (v->all)
		return taken >= places;
	return taken >= places - places / 8 || same >= places / 2;
}

static uint32_t count_surplus(const struct serve *s)
{
	uint32_t n = 0;

	for (const struct client *c = s->clients; c; c = c->next)
		n += c->surplus;
	return n;
}

static void client_add(struct serve *s, struct MHD_Connection *connection, void **context)
{
	struct client *c = calloc(1, sizeof(*c));

	*context = c;
	if (!c)
		return;
	c->serve = s;
	c->fd = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd;
	c->viewer = viewer_of(s, c->fd);
	c->surplus = is_surplus(s, &c->viewer);
	c->deadline_ns = s->now_ns + s->config.request_ns;
	c->next = s->clients;
	c->prev = &s->clients;
	if (c->next)
		c->next->prev = &c->next;
	s->clients = c;
	s->nclients++;
	/* The library takes no more than so many, whoever comes: these must go at once. */
	if (c->surplus && count_surplus(s) > SERVE_SPARE / 2)
		shutdown(c->fd, SHUT_RDWR);
}

static void client_remove(struct client *c)
{
	*c->prev = c->next;
	if (c->next)
		c->next->prev = c->prev;
	c->serve->nclients--;
	free(c);
}

void client_notify(void *arg, struct MHD_Connection *connection, void **context,
		   enum MHD_ConnectionNotificationCode code)
{
	if (code == MHD_CONNECTION_NOTIFY_STARTED)
		client_add(arg, connection, context);
	else if (*context)
		client_remove(*context);
}

struct client *client_of(struct MHD_Connection *connection)
{
	return MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT)
		->socket_context;
}

void client_enter(struct client *c, enum client_phase phase)
{
	static const uint64_t answer_ns = UINT64_C(30) * 1000000000;
	const struct serve *s = c->serve;

	c->phase = phase;
	if (phase == CLIENT_STREAMING)
		c->deadline_ns = UINT64_MAX;
	else if (phase == CLIENT_ANSWERING)
		c->deadline_ns = s->now_ns + answer_ns;
	else if (phase == CLIENT_IDLE)
		c->deadline_ns = s->now_ns + s->config.request_ns;
}

/*
 * The library sees the hang-up and closes.  Nothing of an answer has been sent
 * while a request is still on its way, so the refusal does not land inside one.
 */
static void expire(struct client *c)
{
	static const char body[] = "{\"error\":{\"code\":\"timeout\",\"message\":"
				   "\"the request was not complete in time\"}}\n";
	char text[512];
	int bytes;

	bytes = snprintf(text, sizeof(text),
			 "HTTP/1.1 408 Request Timeout\r\nConnection: close\r\n"
			 "Content-Type: application/json\r\nContent-Length: %zu\r\n\r\n%s",
			 sizeof(body) - 1, body);
	if (c->phase == CLIENT_READING)
		(void)!send(c->fd, text, (size_t)bytes, MSG_DONTWAIT | MSG_NOSIGNAL);
	shutdown(c->fd, SHUT_RDWR);
	c->deadline_ns = UINT64_MAX;
}

void clients_expire(struct serve *s)
{
	for (struct client *c = s->clients; c; c = c->next)
		if (c->deadline_ns <= s->now_ns)
			expire(c);
}

uint64_t clients_deadline(const struct serve *s)
{
	uint64_t first = UINT64_MAX;

	for (const struct client *c = s->clients; c; c = c->next)
		if (c->deadline_ns < first)
			first = c->deadline_ns;
	return first;
}
