/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One connection: whose it is, what it asks, what it is told, and how long that may take.
 *
 * Everybody may connect; the kernel's word for who did decides what is shown.  A connection
 * goes through its phases one request after another; what it does next depends on what the
 * socket takes and gives, and never waits for it:
 *
 *     IDLE -> READING -> ANSWERING or STREAMING -> IDLE, or LEAVING
 *                        (WAITING before, where a file is written first; MAKING before, where
 *                        the answer has many parts)
 *
 * LEAVING is there because a client that is in the middle of sending sees a broken connection
 * and no answer when it is closed at once.
 *
 * A turn may take long, and the daemon has one thread.  So the next turn is that of a client whose
 * user has taken the least of its time lately, and after ROUND_NS the daemon hears who has come
 * meanwhile, and does its other work.
 */
#include "ncclinspd/serve/serve_client.h"

#include <errno.h>
#include <grp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "reader/base/accounts.h"

#define GROUP		"ncclinsp"
#define SECOND_NS	UINT64_C(1000000000)
#define ANSWER_NS	(30 * SECOND_NS)
#define WAIT_NS		(4 * SECOND_NS)	/* the wait for a file: less than clients wait */
#define LEAVE_NS	SECOND_NS
#define LATER_NS	UINT64_C(20000000)	/* between two looks for a file */
#define IN_BYTES	(HTTP_HEAD_BYTES + 4096)
#define OUT_BYTES	(SERVE_BLOCK_BYTES + 512)
#define PIECE_HEAD	6			/* bytes of "4000" and the end of that line */
#define TURN_STEPS	32			/* steps of one connection, before the next */
#define TURN_BYTES	(256u << 10)
#define ROUND_NS	UINT64_C(10000000)	/* turns, before others are heard */

/* ---- whose it is ------------------------------------------------------------------- */

gid_t client_group(const char *name)
{
	struct group *group = getgrnam(name ? name : GROUP);

	return group ? group->gr_gid : (gid_t)-1;
}

static bool user_in_group(int fd, gid_t own, gid_t group)
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
static struct viewer client_viewer(const struct serve *s, int fd)
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
		       user_in_group(fd, peer.gid, s->group),
		.raises = peer.uid == s->config.raiser,
	};
}

/* ---- phases ------------------------------------------------------------------------ */

static void client_enter(struct serve_client *c, enum client_phase phase)
{
	static const uint64_t most_ns[] = {
		[CLIENT_MAKING] = ANSWER_NS, [CLIENT_ANSWERING] = ANSWER_NS,
		[CLIENT_WAITING] = WAIT_NS, [CLIENT_LEAVING] = LEAVE_NS,
	};
	const struct serve *s = c->serve;

	c->phase = phase;
	if (phase == CLIENT_READING)
		return;		/* its time runs since it was idle */
	c->since_ns = s->now_ns;
	if (phase == CLIENT_STREAMING)
		c->deadline_ns = UINT64_MAX;
	else
		c->deadline_ns = s->now_ns + (phase == CLIENT_IDLE ? s->config.request_ns :
							     most_ns[phase]);
}

/* Room for what comes and what goes, in one piece. */
static bool client_has_room(struct serve_client *c)
{
	if (!c->in)
		c->in = malloc(IN_BYTES + OUT_BYTES);
	c->out = c->in ? c->in + IN_BYTES : NULL;
	return c->in;
}

static void client_free_room(struct serve_client *c)
{
	free(c->in);
	c->in = c->out = NULL;
	c->in_bytes = c->head_bytes = 0;
}

/* ---- what it is told --------------------------------------------------------------- */

static void client_put_head(struct serve_client *c)
{
	const struct answer *a = &c->answer;
	time_t seconds = (time_t)((c->serve->now_ns + c->serve->writer.real_offset_ns) / SECOND_NS);
	char date[40], length[48] = "Transfer-Encoding: chunked\r\n";
	struct tm tm;

	gmtime_r(&seconds, &tm);
	strftime(date, sizeof(date), "%a, %d %b %Y %H:%M:%S GMT", &tm);
	if (!a->read)
		snprintf(length, sizeof(length), "Content-Length: %zu\r\n", a->bytes);
	else if (c->request.is_1_0)
		length[0] = '\0';
	c->out_bytes = (size_t)snprintf(c->out, OUT_BYTES,
		"HTTP/1.1 %u %s\r\nDate: %s\r\nContent-Type: %s\r\nCache-Control: no-store\r\n"
		"%s%s%s%s%s\r\n", a->status, http_reason(a->status), date, a->type, length,
		*a->allow ? "Allow: " : "", a->allow, *a->allow ? "\r\n" : "",
		a->closes ? "Connection: close\r\n" : "");
}

/* c->answer is complete, or says how it goes on. */
static void client_answer(struct serve_client *c, enum client_phase phase)
{
	struct answer *a = &c->answer;

	if (phase == CLIENT_MAKING) {
		client_enter(c, phase);
		return;
	}
	if (!a->status || !client_has_room(c)) {
		c->broken = true;	/* not even memory to say so */
		return;
	}
	a->closes |= c->request.closes;
	c->out_sent = c->text_sent = 0;
	c->out_last = c->asleep = false;
	client_put_head(c);
	client_enter(c, phase);
}

static void client_refuse(struct serve_client *c, const struct http_refusal *why)
{
	serve_stop_making(c);
	answer_deinit(&c->answer);
	c->head_only = false;
	answer_refuse(&c->answer, why->status, why->code, "%s", why->message);
	c->answer.closes = true;
	client_answer(c, CLIENT_ANSWERING);
}

static void client_refuse_place(struct serve_client *c)
{
	char text[128];
	const struct http_refusal why = { 429, "too_many_connections", text };

	snprintf(text, sizeof(text), "too many connections: the limit is %u, half of it for one "
		 "user", c->serve->config.connections);
	c->has_place = false;
	client_refuse(c, &why);
}

/* False: the socket takes no more for now, or never. */
static bool client_put(struct serve_client *c, const char *text, size_t bytes, size_t *sent,
		       int flags)
{
	while (*sent < bytes) {
		ssize_t n = send(c->fd, text + *sent, bytes - *sent,
				 MSG_DONTWAIT | MSG_NOSIGNAL | flags);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0) {
			c->writable = false;
			c->broken = errno != EAGAIN;
			return false;
		}
		*sent += (size_t)n;
	}
	return true;
}

/* Put what the answer gives next into c->out.  False: nothing for now. */
static bool client_next_piece(struct serve_client *c)
{
	ssize_t n = c->answer.read(c->answer.arg, c->out + PIECE_HEAD, SERVE_BLOCK_BYTES);
	char head[16];

	c->asleep = n == 0;
	c->broken = n == ANSWER_BROKEN;
	if (c->asleep || c->broken)
		return false;
	c->out_last = n == ANSWER_END;
	c->out_sent = c->request.is_1_0 ? PIECE_HEAD : 0;
	if (c->out_last) {
		c->out_bytes = c->out_sent;
		if (!c->request.is_1_0)
			c->out_bytes = (size_t)sprintf(c->out, "0\r\n\r\n");
		return true;
	}
	snprintf(head, sizeof(head), "%04x\r\n", (unsigned)n);
	memcpy(c->out, head, PIECE_HEAD);
	c->out_bytes = PIECE_HEAD + (size_t)n;
	if (!c->request.is_1_0) {
		memcpy(c->out + c->out_bytes, "\r\n", 2);
		c->out_bytes += 2;
	}
	return true;
}

static void client_leave(struct serve_client *c)
{
	shutdown(c->fd, SHUT_WR);
	client_free_room(c);
	c->has_place = false;
	client_enter(c, CLIENT_LEAVING);
}

/* The answer is on its way: what has come meanwhile is the next request. */
static void client_finish(struct serve_client *c)
{
	bool closes = c->answer.closes;

	c->answered++;
	answer_deinit(&c->answer);
	free(c->body);
	c->body = NULL;
	c->body_bytes = 0;
	if (closes) {
		client_leave(c);
		return;
	}
	memmove(c->in, c->in + c->head_bytes, c->in_bytes - c->head_bytes);
	c->in_bytes -= c->head_bytes;
	c->head_bytes = 0;
	c->in_seen = false;
	client_enter(c, CLIENT_IDLE);
}

static bool client_send_text(struct serve_client *c)
{
	struct answer *a = &c->answer;
	size_t end = a->bytes - c->text_sent < TURN_BYTES ? a->bytes : c->text_sent + TURN_BYTES;

	if (!client_put(c, a->text, end, &c->text_sent, 0))
		return false;
	if (c->text_sent == a->bytes)
		client_finish(c);
	return true;
}

static bool client_send(struct serve_client *c)
{
	bool text_follows = !c->answer.read && !c->head_only;

	if (!c->writable || c->asleep ||
	    !client_put(c, c->out, c->out_bytes, &c->out_sent, text_follows ? MSG_MORE : 0))
		return false;
	if (text_follows)
		return client_send_text(c);
	if (!c->head_only && !c->out_last)
		return client_next_piece(c);
	client_finish(c);
	return true;
}

/* ---- what it asks ------------------------------------------------------------------ */

/* True: something has come. */
static bool client_receive(struct serve_client *c)
{
	ssize_t n;

	if (!c->readable)
		return false;
	if (!client_has_room(c)) {
		c->broken = true;
		return false;
	}
	n = recv(c->fd, c->in + c->in_bytes, IN_BYTES - c->in_bytes, MSG_DONTWAIT);
	if (n < 0 && errno == EINTR)
		return true;
	if (n <= 0) {
		c->readable = false;
		c->broken = n == 0 || errno != EAGAIN;	/* half a request gets no answer */
		return false;
	}
	c->in_bytes += (size_t)n;
	c->in_seen = false;
	return true;
}

/* Nothing that can be refused without its body waits for it. */
static bool client_read_head(struct serve_client *c, struct http_refusal *why)
{
	static const char go_on[] = "HTTP/1.1 100 Continue\r\n\r\n";
	size_t sent = 0;
	ssize_t n = http_read_head(c->in, c->in_bytes, &c->request, why);

	if (n <= 0) {
		c->in_seen = true;
		return n == 0;
	}
	c->head_bytes = (size_t)n;
	http_body_begin(&c->body_state, &c->request);
	if (c->request.expects && c->body_state.at != HTTP_BODY_DONE &&
	    c->request.body_bytes <= SERVE_BODY_BYTES)
		client_put(c, go_on, sizeof(go_on) - 1, &sent, 0);
	return true;
}

static void client_keep_body(struct serve_client *c, const char *bytes, size_t n)
{
	bool whole = c->body || !c->body_bytes;
	char *body = NULL;

	if (!n)
		return;
	c->body_bytes += n;
	if (whole && c->body_bytes <= SERVE_BODY_BYTES)
		body = realloc(c->body, c->body_bytes);
	if (body)
		memcpy(body + c->body_bytes - n, bytes, n);
	else
		free(c->body);
	c->body = body;
}

static bool client_read_body(struct serve_client *c, struct http_refusal *why)
{
	char *text = c->in + c->head_bytes;
	size_t bytes = c->in_bytes - c->head_bytes, carried;
	ssize_t n = http_body_take(&c->body_state, text, bytes, &carried, why);

	if (n < 0)
		return false;
	client_keep_body(c, text, carried);
	memmove(text, text + n, bytes - (size_t)n);
	c->in_bytes -= (size_t)n;
	c->in_seen = c->body_state.at != HTTP_BODY_DONE;
	if (c->body_bytes <= SERVE_BODY_BYTES && c->request.body_bytes <= SERVE_BODY_BYTES)
		return true;
	*why = (struct http_refusal){ 413, "body_too_large",
				      "the body is longer than 65536 bytes" };
	return false;
}

/* True: there is more to be done. */
static bool client_read(struct serve_client *c)
{
	struct http_refusal why;

	if (!c->in_bytes || c->in_seen)
		return client_receive(c);
	client_enter(c, CLIENT_READING);
	if (!c->has_place) {
		client_refuse_place(c);
	} else if ((!c->head_bytes && !client_read_head(c, &why)) ||
		   (c->head_bytes && !client_read_body(c, &why))) {
		client_refuse(c, &why);
	} else if (!c->in_seen) {
		c->head_only = !strcmp(c->request.method, "HEAD");
		client_answer(c, serve_request(c));
	}
	return true;
}

/* Read what a client still sends, to throw it away. */
static bool client_drain(struct serve_client *c)
{
	char text[4096];
	ssize_t n;

	if (!c->readable)
		return false;
	n = recv(c->fd, text, sizeof(text), MSG_DONTWAIT);
	c->readable = n > 0;
	c->broken = n == 0 || (n < 0 && errno != EAGAIN);
	return n > 0;
}

/* ---- turns ------------------------------------------------------------------------- */

static bool client_wait(struct serve_client *c)
{
	if (!serve_later(c))
		return false;
	client_answer(c, CLIENT_ANSWERING);
	return true;
}

/* False: the next part is for its next turn; it does not hold its place for nothing. */
static bool client_make(struct serve_client *c)
{
	c->since_ns = c->serve->now_ns;
	if (!serve_make(c))
		return false;
	client_answer(c, CLIENT_ANSWERING);
	return true;
}

static bool client_step(struct serve_client *c)
{
	switch (c->phase) {
	case CLIENT_ANSWERING:
		return client_send(c);
	case CLIENT_STREAMING:
		c->broken |= c->hung_up;
		return !c->broken && client_send(c);
	case CLIENT_MAKING:
		return client_make(c);
	case CLIENT_WAITING:
		return client_wait(c);
	case CLIENT_LEAVING:
		return client_drain(c);
	default:
		return client_read(c);
	}
}

/* One request at a time: what else it has sent already is for its next turn. */
static void client_go_on(struct serve_client *c)
{
	uint64_t answered = c->answered;

	for (int i = 0; i < TURN_STEPS && c->answered == answered; i++)
		if (c->broken || !client_step(c))
			break;
}

/* Something has come from it, and its turn has not: it is not late. */
static bool client_is_unread(const struct serve_client *c)
{
	return (c->phase == CLIENT_IDLE || c->phase == CLIENT_READING) &&
	       (c->readable || (c->in_bytes && !c->in_seen));
}

static bool client_is_due(const struct serve_client *c)
{
	if (c->phase == CLIENT_IDLE || c->phase == CLIENT_READING)
		return client_is_unread(c);
	if (c->phase == CLIENT_LEAVING)
		return c->readable;
	if (c->phase == CLIENT_MAKING)
		return true;
	if (c->phase == CLIENT_STREAMING && c->hung_up)
		return true;
	return c->phase != CLIENT_WAITING && c->writable && !c->asleep;
}

static void client_time_out(struct serve_client *c)
{
	static const struct http_refusal slow = {
		408, "timeout", "the request was not complete in time",
	};
	static const struct http_refusal hangs = {
		503, "busy", "the disk has not answered for 4 s: the file may still come",
	};

	if (c->phase == CLIENT_READING)
		client_refuse(c, &slow);
	else if (c->phase == CLIENT_WAITING)
		client_refuse(c, &hangs);
	else
		c->broken = true;
}

void client_wake(struct serve_client *c)
{
	c->asleep = false;
}

/* ---- all of them ------------------------------------------------------------------- */

static void clients_hear(struct serve *s)
{
	struct epoll_event events[256];
	int n = epoll_wait(s->fd, events, sizeof(events) / sizeof(events[0]), 0);

	for (int i = 0; i < n; i++) {
		struct serve_client *c = events[i].data.ptr;
		uint32_t what = events[i].events;

		if (!c)
			continue;	/* somebody comes */
		c->hung_up |= !!(what & (EPOLLRDHUP | EPOLLHUP | EPOLLERR));
		c->readable |= !!(what & ~(uint32_t)EPOLLOUT);
		c->writable |= !!(what & (EPOLLOUT | EPOLLHUP | EPOLLERR));
	}
}

static uint64_t serve_clock_ns(const struct serve *s)
{
	return s->source.clock_ns ? s->source.clock_ns(s->source.arg) : 0;
}

static uint64_t *client_spent(struct serve *s, const struct serve_client *c)
{
	return &s->spent_ns[c->account % ACCOUNTS_TALLY];
}

static void spent_forget(struct serve *s)
{
	uint64_t seconds = (s->now_ns - s->spent_since_ns) / SECOND_NS;

	s->spent_since_ns += seconds * SECOND_NS;
	for (uint32_t i = 0; seconds && i < ACCOUNTS_TALLY; i++)
		s->spent_ns[i] = seconds < 64 ? s->spent_ns[i] >> seconds : 0;
}

/*
 * The client of this round whose user has taken the least time; of one user's, whose turn was
 * longest ago.  NULL: all have had their turn.
 */
static struct serve_client *clients_next(struct serve *s)
{
	struct serve_client *next = NULL;

	for (struct serve_client *c = s->clients; c; c = c->next) {
		uint64_t spent_ns = *client_spent(s, c);

		if (c->round == s->round || !client_is_due(c))
			continue;
		if (!next || spent_ns < *client_spent(s, next) ||
		    (spent_ns == *client_spent(s, next) && c->round < next->round))
			next = c;
	}
	return next;
}

static void client_take_turn(struct serve_client *c)
{
	struct serve *s = c->serve;
	uint64_t *spent_ns = client_spent(s, c), from_ns = serve_clock_ns(s);

	c->round = s->round;
	client_go_on(c);
	if (c->broken)
		client_close(c);
	*spent_ns += serve_clock_ns(s) - from_ns;
}

void clients_run(struct serve *s)
{
	struct serve_client *next;
	uint64_t from_ns;

	clients_hear(s);
	accept_clients(s);
	spent_forget(s);
	from_ns = serve_clock_ns(s);
	s->round++;
	for (struct serve_client *c = s->clients; c; c = next) {
		next = c->next;
		if (c->deadline_ns <= s->now_ns && !client_is_unread(c))
			client_time_out(c);
		if (c->broken || c->phase == CLIENT_WAITING)
			client_take_turn(c);
	}
	while (serve_clock_ns(s) - from_ns < ROUND_NS && (next = clients_next(s)))
		client_take_turn(next);
}

uint64_t clients_due(const struct serve *s)
{
	uint64_t first = UINT64_MAX;

	for (const struct serve_client *c = s->clients; c; c = c->next) {
		uint64_t at = c->deadline_ns;

		if (client_is_due(c))
			return 0;
		if (c->phase == CLIENT_WAITING && s->now_ns + LATER_NS < at)
			at = s->now_ns + LATER_NS;
		if (at < first)
			first = at;
	}
	return first;
}

int client_add(struct serve *s, int fd)
{
	struct epoll_event event = { .events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET };
	struct serve_client *c = calloc(1, sizeof(*c));

	event.data.ptr = c;
	if (!c || epoll_ctl(s->fd, EPOLL_CTL_ADD, fd, &event) < 0) {
		int error = c ? -errno : -ENOMEM;

		free(c);
		close(fd);
		return error;
	}
	c->serve = s;
	c->fd = fd;
	c->viewer = client_viewer(s, fd);
	c->account = accounts_of(s->source.accounts, c->viewer.uid);
	c->readable = c->writable = true;
	c->round = s->round;
	client_enter(c, CLIENT_IDLE);
	client_enter(c, CLIENT_READING);
	c->next = s->clients;
	c->prev = &s->clients;
	if (c->next)
		c->next->prev = &c->next;
	s->clients = c;
	s->nclients++;
	return 0;
}

void client_close(struct serve_client *c)
{
	*c->prev = c->next;
	if (c->next)
		c->next->prev = c->prev;
	c->serve->nclients--;
	serve_stop_making(c);
	answer_deinit(&c->answer);
	client_free_room(c);
	free(c->body);
	close(c->fd);
	free(c);
}

void client_dismiss(struct serve_client *c)
{
	c->has_place = false;
	if (c->phase == CLIENT_READING && !c->in_bytes)
		return;		/* it is told when it asks */
	if (c->phase == CLIENT_READING || c->phase == CLIENT_MAKING ||
	    c->phase == CLIENT_WAITING)
		client_refuse_place(c);
	else
		c->broken = true;
	client_go_on(c);
	if (c->broken)
		client_close(c);
}

void client_push_out(struct serve_client *c)
{
	if (c->phase == CLIENT_READING)
		client_refuse_place(c);
	client_go_on(c);
	client_close(c);
}
