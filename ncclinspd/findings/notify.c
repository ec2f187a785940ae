/* SPDX-License-Identifier: Apache-2.0 */
/* Hands each finding to the socket of ncclinsp-finding@.service, and waits for nobody. */
#include "ncclinspd/findings/notify.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "reader/base/accounts.h"
#include "util/list.h"
#include "util/log.h"

struct message {
	uid_t account;
	char *text;
	size_t bytes;
};

struct notify {
	struct sockaddr_un addr;
	struct message waiting[NOTIFY_WAITING];	/* the oldest first */
	uint32_t n;
	uint64_t turn, turn_of[ACCOUNTS_TALLY];	/* the last turn of each account */
	uint64_t free_ns;	/* one may be told (NOTIFY_AT_ONCE - 1) * NOTIFY_APART_NS before */
	struct notify_stats stats;
};

int notify_new(struct notify **out, const char *path)
{
	struct notify *n = *out = calloc(1, sizeof(*n));

	if (!n)
		return -ENOMEM;
	n->addr.sun_family = AF_UNIX;
	strncpy(n->addr.sun_path, path, sizeof(n->addr.sun_path) - 1);
	return 0;
}

void notify_free(struct notify *n)
{
	for (uint32_t i = 0; n && i < n->n; i++)
		free(n->waiting[i].text);
	free(n);
}

bool notify_wants(const struct finding *f)
{
	if (f->grade != FINDING_FOUND)
		return false;
	return f->life.until_ns || !f->life.told ||
	       (f->severity == FINDING_CRITICAL && !f->life.alarmed);
}

static void notify_drop(struct notify *n, uint32_t i)
{
	free(n->waiting[i].text);
	array_remove(n->waiting, &n->n, i);
}

/* The oldest of the account that has most. */
static uint32_t notify_victim(const struct notify *n)
{
	struct accounts_tally of = { 0 };
	uint32_t i = 0;

	for (uint32_t k = 0; k < n->n; k++)
		++*accounts_count(&of, n->waiting[k].account);
	while (!accounts_are_same(n->waiting[i].account, accounts_most(&of)))
		i++;
	return i;
}

static uint64_t *notify_turn(struct notify *n, uint32_t i)
{
	return &n->turn_of[n->waiting[i].account % ACCOUNTS_TALLY];
}

/* The oldest of the account whose turn was longest ago. */
static uint32_t notify_next(struct notify *n)
{
	uint32_t next = 0;

	for (uint32_t i = 1; i < n->n; i++)
		if (*notify_turn(n, i) < *notify_turn(n, next))
			next = i;
	return next;
}

/* The same reason is told once. */
static void notify_fail(struct notify *n, int error)
{
	if (n->stats.error != error)
		log_say(LOG_WARN, "findings are not sent on-finding=%s error=\"%s\"",
			n->addr.sun_path, strerror(-error));
	n->stats.error = error;
	n->stats.dropped++;
}

void notify_put(struct notify *n, uid_t account, char *text, size_t bytes)
{
	if (n->n == NOTIFY_WAITING) {
		notify_fail(n, -ENOBUFS);
		notify_drop(n, notify_victim(n));
	}
	*array_must_add(n->waiting, &n->n) = (struct message){ account, text, bytes };
}

/* -EAGAIN: too many wait there to be taken.  -EMSGSIZE: it is more than a socket holds. */
static int message_send(const struct message *m, const struct sockaddr_un *addr)
{
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), r = 0;
	ssize_t sent;

	if (fd < 0)
		return -errno;
	if (connect(fd, (const struct sockaddr *)addr, sizeof(*addr)) < 0) {
		r = -errno;
	} else {
		sent = send(fd, m->text, m->bytes, MSG_NOSIGNAL);
		r = sent == (ssize_t)m->bytes ? 0 : sent < 0 ? -EPIPE : -EMSGSIZE;
	}
	close(fd);
	return r;
}

static void notify_tell_next(struct notify *n, uint64_t now_ns)
{
	uint32_t next = notify_next(n);
	int r = message_send(&n->waiting[next], &n->addr);

	n->free_ns = (n->free_ns > now_ns ? n->free_ns : now_ns) + NOTIFY_APART_NS;
	if (r == -EAGAIN)
		return;
	if (r < 0) {
		notify_fail(n, r);
	} else {
		n->stats.told++;
		n->stats.last_ns = now_ns;
		n->stats.error = 0;
	}
	*notify_turn(n, next) = ++n->turn;
	notify_drop(n, next);
}

uint64_t notify_run(struct notify *n, uint64_t now_ns)
{
	const uint64_t ahead_ns = (NOTIFY_AT_ONCE - 1) * NOTIFY_APART_NS;

	while (n->n && n->free_ns <= now_ns + ahead_ns)
		notify_tell_next(n, now_ns);
	return n->n ? n->free_ns - ahead_ns : 0;
}

void notify_read_stats(const struct notify *n, struct notify_stats *stats)
{
	*stats = n->stats;
}
