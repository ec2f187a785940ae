/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The daemon's own thread waits for nobody, and an answer may take seconds and many megabytes: so
 * a thread asks.  It has its own copy of the question, and its outcome is taken at a later look.
 */
#include "ncclinspd/findings/ras.h"

#include <errno.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "ncclinspd/findings/ras_answer.h"
#include "shmring/clock.h"
#include "tables/keyed.h"
#include "util/cleanup.h"
#include "util/log.h"
#include "util/text.h"

#define CASES		64	/* operations whose outcomes are kept */
#define TRIES		4	/* several processes share a port, also of two jobs */
#define HELLO_NS	UINT64_C(1000000000)	/* one that is stopped does not reply */
#define REPLY		128
#define PIECE		16384
#define HELLO_TEXT	"CLIENT PROTOCOL 2\n"
#define FORMAT_TEXT	"SET FORMAT json\n"
#define TIMEOUT_TEXT	"TIMEOUT 3\n"	/* s for a leg of the question, 5 more for all */
#define STATUS_TEXT	"STATUS\n"

/* An operation that was asked about. */
struct ras_case {
	struct keyed_head head;
	uint64_t key;
	uint64_t seen_ns, due_ns;
	uint16_t port;		/* 0: there is none to ask at */
	uint32_t times;
	bool told;
	struct afar afar;
};

struct ras {
	struct keyed cases;
	uint64_t asked_ns;	/* 0: never */
	uint64_t user_asked_ns[ACCOUNTS_TALLY];	/* the last question of each account; 0: never */
	pthread_t thread;
	bool started;		/* there is a thread to be joined */
	int stop;		/* eventfd: the thread is to end */
	/* the thread's, while it runs */
	uint64_t now_key;
	struct ras_question question;
	uint64_t end_ns;
	struct afar outcome;
	pthread_mutex_t lock;	/* guards the members that follow */
	bool running;
};

/* ---- the address ------------------------------------------------------------------------ */

uint16_t ras_port(const char *address)
{
	static const char *const hosts[] = {
		"localhost", "127.0.0.1", "[::1]", "0.0.0.0", "[::]",
	};
	const char *colon = address ? strrchr(address, ':') : NULL;
	int64_t port;

	if (!address)
		return RAS_PORT;
	if (!colon || text_parse_integer(colon + 1, 1, UINT16_MAX, &port))
		return 0;
	for (size_t i = 0; i < ARRAY_LEN(hosts); i++)
		if (strlen(hosts[i]) == (size_t)(colon - address) &&
		    !strncmp(address, hosts[i], (size_t)(colon - address)))
			return (uint16_t)port;
	return 0;
}

/* ---- one connection, in the thread ------------------------------------------------------ */

/* 0, or -ETIMEDOUT, or -ECANCELED. */
static int ras_wait(const struct ras *r, int fd, short events, uint64_t end_ns)
{
	struct pollfd fds[] = { { .fd = r->stop, .events = POLLIN },
				{ .fd = fd, .events = events } };
	uint64_t now_ns = clock_ns(CLOCK_MONOTONIC);
	int n;

	if (now_ns >= end_ns)
		return -ETIMEDOUT;
	n = poll(fds, ARRAY_LEN(fds), (int)((end_ns - now_ns) / 1000000) + 1);
	if (n > 0)
		return fds[0].revents ? -ECANCELED : 0;
	return n < 0 && errno != EINTR ? -errno : n < 0 ? 0 : -ETIMEDOUT;
}

/* Both loopback addresses are tried: "localhost" may be either. */
static int ras_connect(const struct ras *r, int family, uint64_t end_ns)
{
	const struct sockaddr_in v4 = { .sin_family = AF_INET, .sin_port = htons(r->question.port),
					.sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	const struct sockaddr_in6 v6 = { .sin6_family = AF_INET6,
					 .sin6_port = htons(r->question.port),
					 .sin6_addr = IN6ADDR_LOOPBACK_INIT };
	bool six = family == AF_INET6;
	int fd = socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0), error = 0;
	socklen_t bytes = sizeof(error);

	if (fd < 0)
		return -errno;
	if (connect(fd, six ? (const void *)&v6 : (const void *)&v4, six ? sizeof(v6) : sizeof(v4)))
		error = -errno;
	if (error == -EINPROGRESS) {
		error = ras_wait(r, fd, POLLOUT, end_ns);
		if (!error && !getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &bytes))
			error = -error;
	}
	if (!error)
		return fd;
	close(fd);
	return error;
}

static int ras_send(int fd, const char *text)
{
	ssize_t sent = send(fd, text, strlen(text), MSG_NOSIGNAL);

	return sent == (ssize_t)strlen(text) ? 0 : -EPIPE;
}

/* 0: the other side has closed. */
static ssize_t ras_receive(const struct ras *r, int fd, char *to, size_t room, uint64_t end_ns)
{
	for (;;) {
		ssize_t n = ras_wait(r, fd, POLLIN, end_ns);

		if (n < 0)
			return n;
		n = recv(fd, to, room, 0);
		if (n >= 0 || (errno != EAGAIN && errno != EINTR))
			return n < 0 ? -errno : n;
	}
}

/* One line, without its end; it comes alone, since nothing more was asked. */
static int ras_receive_line(const struct ras *r, int fd, char line[REPLY], uint64_t end_ns)
{
	size_t n = 0;

	while (n < REPLY - 1) {
		ssize_t got = ras_receive(r, fd, line + n, REPLY - 1 - n, end_ns);

		if (got <= 0)
			return got < 0 ? (int)got : -EPIPE;
		n += (size_t)got;
		if (line[n - 1] != '\n')
			continue;
		line[n - 1] = '\0';
		return 0;
	}
	return -EPROTO;
}

/*
 * The user of the process at the other end of the connection, as the kernel says it in
 * /proc/net/tcp: the row whose own address is our peer's.
 */
static bool ras_peer_is(const char *path, uint16_t port, uint16_t own_port, uid_t uid)
{
	static const char *const loopbacks[] = { "0100007F", "00000000000000000000000001000000",
						 "0000000000000000FFFF00000100007F" };
	char line[512], from[40], to[40];
	unsigned from_port, to_port, user;
	CLEANUP(cleanup_fclosep) FILE *in = fopen(path, "re");
	bool is = false;

	while (in && !is && fgets(line, sizeof(line), in)) {
		if (sscanf(line, " %*u: %39[0-9A-F]:%x %39[0-9A-F]:%x %*x %*s %*s %*s %u", from,
			   &from_port, to, &to_port, &user) != 5 ||
		    from_port != port || to_port != own_port || user != uid || strcmp(from, to))
			continue;
		for (size_t i = 0; i < ARRAY_LEN(loopbacks); i++)
			is |= !strcmp(from, loopbacks[i]);
	}
	return is;
}

static bool ras_is_of_user(const struct ras *r, int fd)
{
	struct sockaddr_in6 own;	/* the port is where sockaddr_in has it, too */
	socklen_t bytes = sizeof(own);
	uint16_t port;

	if (getsockname(fd, (struct sockaddr *)&own, &bytes))
		return false;
	port = ntohs(own.sin6_port);
	return ras_peer_is("/proc/net/tcp", r->question.port, port, r->question.uid) ||
	       ras_peer_is("/proc/net/tcp6", r->question.port, port, r->question.uid);
}

static int ras_read_answer(const struct ras *r, int fd, struct ras_answer *a)
{
	char piece[PIECE];
	uint64_t all = 0;
	ssize_t n;

	while ((n = ras_receive(r, fd, piece, sizeof(piece), r->end_ns)) > 0) {
		all += (uint64_t)n;
		ras_answer_take(a, piece, (size_t)n);
		if (a->broken || all > RAS_MOST_BYTES)
			return -EPROTO;
	}
	return (int)n;
}

/* The outcome is in *out.  -EPROTO: no other process of that port need be asked; -ECANCELED. */
static int ras_talk(const struct ras *r, int fd, struct afar *out)
{
	const struct ras_question *q = &r->question;
	uint64_t end_ns = clock_ns(CLOCK_MONOTONIC) + HELLO_NS;
	struct ras_answer a;
	char line[REPLY];
	int error = ras_send(fd, HELLO_TEXT) ?: ras_receive_line(r, fd, line, end_ns);

	if (error)
		return error;
	out->state = AFAR_FOREIGN;
	if (strncmp(line, "SERVER PROTOCOL ", 16) || !ras_is_of_user(r, fd))
		return 0;
	error = ras_send(fd, FORMAT_TEXT) ?: ras_receive_line(r, fd, line, end_ns);
	if (error)
		return error;
	out->state = AFAR_OLD;
	if (strcmp(line, "OK"))
		return 0;
	error = ras_send(fd, TIMEOUT_TEXT) ?: ras_receive_line(r, fd, line, end_ns)
					   ?: ras_send(fd, STATUS_TEXT);
	if (error)
		return error;
	ras_answer_init(&a, q->comm_id, q->nranks, q->func);
	error = ras_read_answer(r, fd, &a);
	if (!error && ras_answer_is_good(&a))
		afar_decide(a.ranks.at, a.ranks.n, q->nranks, q->own, q->nown, out);
	else
		out->state = error ? AFAR_MUTE : AFAR_FOREIGN;
	ras_answer_deinit(&a);
	return error;
}

/* ---- the thread ------------------------------------------------------------------------- */

/* Another process of the same port may know more. */
static bool afar_is_final(const struct afar *a)
{
	return a->state != AFAR_FOREIGN && a->state != AFAR_MUTE;
}

static void *ras_work(void *arg)
{
	static const int families[] = { AF_INET, AF_INET6 };
	struct ras *r = arg;
	struct afar out = { .state = AFAR_NO_SERVICE };
	int error = 0;

	for (int i = 0; i < TRIES * 2 && error != -ECANCELED; i++) {
		struct afar one = { .state = AFAR_MUTE };
		uint64_t now_ns = clock_ns(CLOCK_MONOTONIC);
		int fd = now_ns < r->end_ns ? ras_connect(r, families[i % 2], now_ns + HELLO_NS) :
					      -ETIMEDOUT;

		if (fd < 0) {
			error = fd;
			continue;
		}
		error = ras_talk(r, fd, &one);
		close(fd);
		out = one;
		if (afar_is_final(&out) || error == -EPROTO)
			break;
	}
	r->outcome = out;
	pthread_mutex_lock(&r->lock);
	r->running = false;
	pthread_mutex_unlock(&r->lock);
	return NULL;
}

/* ---- what is asked, and was told --------------------------------------------------------- */

/* An outcome is kept until a later question knows as much: RAS may be gone by then. */
static void case_take(struct ras_case *c, const struct afar *afar)
{
	if (c->told && afar_is_final(&c->afar) && !afar_is_final(afar))
		return;
	if (!c->told || c->afar.state != afar->state)
		log_say(LOG_INFO, "nccl's ras was asked outcome=%s ranks=%" PRIu32,
			afar_state_name(afar->state), afar->n);
	c->afar = *afar;
	c->told = true;
}

/* False: a thread still asks. */
static bool ras_collect(struct ras *r)
{
	struct ras_case *c;
	bool running;

	pthread_mutex_lock(&r->lock);
	running = r->running;
	pthread_mutex_unlock(&r->lock);
	if (running || !r->started)
		return !running;
	pthread_join(r->thread, NULL);
	r->started = false;
	c = keyed_find(&r->cases, &r->now_key);
	if (c)
		case_take(c, &r->outcome);
	return true;
}

const struct afar *ras_told(struct ras *r, uint64_t key)
{
	struct ras_case *c;

	ras_collect(r);
	c = keyed_find(&r->cases, &key);
	return c && c->told ? &c->afar : NULL;
}

/* The wait before the first question: nodes of one job ask one after the other. */
static uint64_t ras_turn_ns(const struct ras_question *q)
{
	int32_t lowest = q->nown ? q->own[0].rank : 0;
	uint64_t wait_ns;

	for (uint32_t i = 0; i < q->nown; i++)
		if (q->own[i].rank < lowest)
			lowest = q->own[i].rank;
	wait_ns = (uint64_t)(lowest > 0 ? lowest : 0) * RAS_RANK_NS;
	return wait_ns < RAS_WAIT_NS ? wait_ns : RAS_WAIT_NS;
}

static uint64_t *ras_user_asked(struct ras *r, const struct ras_case *c)
{
	return &r->user_asked_ns[c->head.account % ACCOUNTS_TALLY];
}

static bool case_is_due(const struct ras_case *c, uint64_t now_ns)
{
	return c->port && now_ns >= c->due_ns && c->times < RAS_TIMES;
}

/* A question waits of another user, whose last one was asked before this user's. */
static bool ras_gives_way(struct ras *r, const struct ras_case *c, uint64_t now_ns)
{
	const struct ras_case *other = NULL;

	while ((other = keyed_next(&r->cases, other)))
		if (case_is_due(other, now_ns) && now_ns - other->seen_ns <= RAS_APART_NS &&
		    *ras_user_asked(r, other) < *ras_user_asked(r, c))
			return true;
	return false;
}

void ras_ask(struct ras *r, uint64_t key, const struct ras_question *q, uint64_t now_ns)
{
	bool made, idle = ras_collect(r);
	struct ras_case *c = keyed_use(&r->cases, &key, q->account, &made);

	if (!c)
		return;
	if (made)
		c->due_ns = now_ns + ras_turn_ns(q);
	c->seen_ns = now_ns;
	c->port = q->port;
	if (!idle || !case_is_due(c, now_ns) || ras_gives_way(r, c, now_ns) ||
	    (r->asked_ns && now_ns - r->asked_ns < RAS_APART_NS))
		return;
	c->times++;
	c->due_ns = now_ns + RAS_AGAIN_NS;
	*ras_user_asked(r, c) = r->asked_ns = now_ns;
	r->now_key = key;
	r->question = *q;
	r->end_ns = clock_ns(CLOCK_MONOTONIC) + RAS_MOST_NS;
	r->running = true;
	r->started = !pthread_create(&r->thread, NULL, ras_work, r);
	if (!r->started)
		r->running = false;
}

/* ---- life ------------------------------------------------------------------------------- */

int ras_new(struct ras **out)
{
	struct ras *r = calloc(1, sizeof(*r));
	int stop = r ? eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK) : -1;

	if (stop < 0 || keyed_init(&r->cases, &KEYED_CONFIG(struct ras_case, key, CASES)) < 0) {
		if (r)
			keyed_deinit(&r->cases);
		if (stop >= 0)
			close(stop);
		free(r);
		return -ENOMEM;
	}
	r->stop = stop;
	pthread_mutex_init(&r->lock, NULL);
	*out = r;
	return 0;
}

void ras_free(struct ras *r)
{
	if (!r)
		return;
	eventfd_write(r->stop, 1);
	if (r->started)
		pthread_join(r->thread, NULL);
	close(r->stop);
	keyed_deinit(&r->cases);
	pthread_mutex_destroy(&r->lock);
	free(r);
}
