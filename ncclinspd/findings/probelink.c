/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The set that the probe watches is made anew at each look, and sent where it differs from the
 * one before.  Events are looked up in it: the number of a thread or process tells whose it is.
 */
#include "ncclinspd/findings/probelink.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "judge/slow_peer.h"
#include "ncclinspd/base/loop.h"
#include "ncclinspd/findings/cpuwait.h"
#include "reader/base/model.h"
#include "util/cleanup.h"
#include "util/list.h"
#include "util/log.h"
#include "util/utf8.h"

#define RETRY_NS	UINT64_C(10000000000)	/* between two attempts to connect */
#define AGE_NS		UINT64_C(60000000000)	/* events that are older come from no probe */
#define ENDED_NS	UINT64_C(10000000000)
#define PACKETS		256	/* read between two looks; more wait, and the probe counts losses */
#define ENDS		256	/* processes whose last signal is remembered */
#define PEERS		1024	/* addresses of processes that something was sent to again */
#define HALF_NS		UINT64_C(15000000000)	/* their sums are of this half and the last */

/* A number that is watched, and the process whose it is. */
struct link_number {
	int64_t number;
	uint64_t process_id;
};

struct link_set {
	struct link_number processes[PROBE_PROCESSES], threads[PROBE_THREADS];
	uint32_t nprocesses, nthreads;
};

struct link_peer {
	uint64_t process_id;	/* 0: unused */
	uint64_t half;		/* time / HALF_NS when something was added last */
	uint64_t segments, before;	/* segments in that half and the one before */
	uint8_t address[16];
};

struct probelink {
	struct loop *loop;
	struct sockaddr_un address;
	int fd;			/* -1: not connected */
	bool listened;		/* the loop has fd */
	int error;		/* why the last attempt failed; 0: it did not */
	uint64_t retry_ns;
	uint32_t packets;	/* so many more may be read until the next look */
	uint64_t lost;		/* on this connection, as the probe says */
	struct link_set set, next;
	bool sent;		/* the probe has `set` */
	struct probelink_end ends[ENDS];
	uint32_t nends;		/* all since the start; the ring holds the last */
	uint64_t connected_ns;
	struct link_peer peers[PEERS];
	struct probelink_stats stats;
	probelink_waited_fn *waited;
	void *arg;
};

/* ---- the set ---------------------------------------------------------------------- */

static int numbers_compare(const void *a, const void *b)
{
	const struct link_number *x = a, *y = b;

	return (x->number > y->number) - (x->number < y->number);
}

static uint64_t number_owner(const struct link_number *at, uint32_t n, int32_t number)
{
	const struct link_number key = { .number = number };
	const struct link_number *found = bsearch(&key, at, n, sizeof(*at), numbers_compare);

	return found ? found->process_id : 0;
}

static void link_set_add(struct link_set *s, const struct process *p)
{
	pid_t tids[2 * CPUWAIT_THREADS];
	uint32_t n = cpuwait_threads(p->cpuwait, tids, CPUWAIT_THREADS);
	struct link_number *to = array_add(s->processes, &s->nprocesses);

	if (!to)
		return;
	*to = (struct link_number){ p->pid, p->id };
	n += cpuwait_threads(p->calling, tids + n, CPUWAIT_THREADS);
	for (uint32_t i = 0; i < n && (to = array_add(s->threads, &s->nthreads)); i++)
		*to = (struct link_number){ tids[i], p->id };
}

static bool link_sets_differ(const struct link_set *a, const struct link_set *b)
{
	return a->nprocesses != b->nprocesses || a->nthreads != b->nthreads ||
	       memcmp(a->processes, b->processes, a->nprocesses * sizeof(a->processes[0])) ||
	       memcmp(a->threads, b->threads, a->nthreads * sizeof(a->threads[0]));
}

static bool link_send(const struct probelink *l)
{
	CLEANUP(cleanup_freep) struct probe_watch *w = NULL;
	size_t bytes = sizeof(*w) +
		       (l->set.nprocesses + l->set.nthreads) * sizeof(w->number[0]);

	w = calloc(1, bytes);
	if (!w)
		return false;
	*w = (struct probe_watch){ .magic = PROBE_MAGIC, .self = getpid(),
				   .processes = l->set.nprocesses, .threads = l->set.nthreads };
	for (uint32_t i = 0; i < w->processes; i++)
		w->number[i] = (int32_t)l->set.processes[i].number;
	for (uint32_t i = 0; i < w->threads; i++)
		w->number[w->processes + i] = (int32_t)l->set.threads[i].number;
	return send(l->fd, w, bytes, MSG_DONTWAIT | MSG_NOSIGNAL) == (ssize_t)bytes;
}

/* A signal that ended a process may be told a moment after its end was seen. */
static bool process_is_asked_about(const struct process *p, uint64_t now_ns)
{
	return p->proven && (p->state == PROCESS_LIVE || now_ns < p->ended_ns + ENDED_NS);
}

static void link_ask(struct probelink *l, struct process *const *list, size_t n, uint64_t now_ns)
{
	l->next.nprocesses = l->next.nthreads = 0;
	for (size_t i = 0; i < n; i++)
		if (process_is_asked_about(list[i], now_ns))
			link_set_add(&l->next, list[i]);
	qsort(l->next.processes, l->next.nprocesses, sizeof(l->next.processes[0]),
	      numbers_compare);
	qsort(l->next.threads, l->next.nthreads, sizeof(l->next.threads[0]), numbers_compare);
	if (l->sent && !link_sets_differ(&l->set, &l->next))
		return;
	l->set = l->next;
	l->stats.processes = l->set.nprocesses;
	l->stats.threads = l->set.nthreads;
	l->sent = link_send(l);
}

/* ---- events ----------------------------------------------------------------------- */

/* Texts are ended and made harmless. */
static bool taker_is_sound(struct probe_taker *t)
{
	t->command[sizeof(t->command) - 1] = '\0';
	utf8_clean(t->command, sizeof(t->command));
	return t->pid >= 0;
}

static bool event_is_wait(struct probe_event *e)
{
	uint64_t left_ns = e->wait_ns;

	if (e->wait_ns < PROBE_WAIT_NS || e->wait_ns > e->at_ns)
		return false;
	for (int i = 0; i < PROBE_TAKERS; i++) {
		if (!taker_is_sound(&e->taker[i]) || e->taker[i].ns > left_ns)
			return false;
		left_ns -= e->taker[i].ns;
	}
	return true;
}

static bool event_is_signal(struct probe_event *e)
{
	return e->signal > 0 && e->signal < 65 && taker_is_sound(&e->taker[0]);
}

static bool event_is_kill(struct probe_event *e)
{
	e->cgroup[sizeof(e->cgroup) - 1] = '\0';
	utf8_clean(e->cgroup, sizeof(e->cgroup));
	return true;
}

static struct probelink_end *link_end_of(struct probelink *l, uint64_t process_id)
{
	struct probelink_end *end;

	for (uint32_t i = 0; i < ENDS; i++)
		if (l->ends[i].process_id == process_id)
			return &l->ends[i];
	end = &l->ends[l->nends++ % ENDS];
	*end = (struct probelink_end){ .process_id = process_id };
	return end;
}

static void link_on_signal(struct probelink *l, uint64_t process_id, const struct probe_event *e)
{
	struct probelink_end *end = link_end_of(l, process_id);

	end->at_ns = e->at_ns;
	end->signal = e->signal;
	end->sender = e->taker[0].pid;
	memcpy(end->command, e->taker[0].command, sizeof(end->command));
}

static void link_on_kill(struct probelink *l, uint64_t process_id, const struct probe_event *e)
{
	struct probelink_end *end = link_end_of(l, process_id);

	end->for_memory = true;
	memcpy(end->cgroup, e->cgroup, sizeof(end->cgroup));
}

static bool event_is_resent(struct probe_event *e)
{
	return e->resent.segments > 0 && e->resent.segments < UINT32_MAX;
}

/* Moves its halves on to this one. */
static void peer_turn(struct link_peer *p, uint64_t half)
{
	if (p->half == half)
		return;
	p->before = p->half + 1 == half ? p->segments : 0;
	p->segments = 0;
	p->half = half;
}

/* The peer of that process and address, else the stalest; what that still counts is lost. */
static struct link_peer *link_peer_of(struct probelink *l, uint64_t process_id,
				      const uint8_t address[16], uint64_t half)
{
	struct link_peer *stalest = &l->peers[0];

	for (uint32_t i = 0; i < PEERS; i++) {
		struct link_peer *p = &l->peers[i];

		if (p->process_id == process_id && !memcmp(p->address, address, sizeof(p->address)))
			return p;
		if (p->half < stalest->half)
			stalest = p;
	}
	l->stats.lost += stalest->process_id && stalest->half + 1 >= half;
	*stalest = (struct link_peer){ .process_id = process_id, .half = half };
	memcpy(stalest->address, address, sizeof(stalest->address));
	return stalest;
}

static void link_on_resent(struct probelink *l, uint64_t process_id, const struct probe_event *e,
			   uint64_t now_ns)
{
	uint64_t half = now_ns / HALF_NS;
	struct link_peer *p = link_peer_of(l, process_id, e->resent.address, half);

	peer_turn(p, half);
	p->segments += e->resent.segments;
}

static void link_on_event(struct probelink *l, struct probe_event *e, uint64_t now_ns)
{
	static bool (*const sound[PROBE_KINDS])(struct probe_event *) = {
		[PROBE_WAIT] = event_is_wait, [PROBE_SIGNAL] = event_is_signal,
		[PROBE_OOM] = event_is_kill, [PROBE_RESENT] = event_is_resent,
	};
	uint64_t id = e->kind == PROBE_WAIT ?
		number_owner(l->set.threads, l->set.nthreads, e->number) :
		number_owner(l->set.processes, l->set.nprocesses, e->number);

	l->stats.events++;
	if (e->kind >= PROBE_KINDS || !sound[e->kind] || !id || e->at_ns + AGE_NS < now_ns ||
	    e->at_ns > now_ns + AGE_NS || !sound[e->kind](e)) {
		l->stats.refused++;
		return;
	}
	if (e->lost > l->lost) {
		l->stats.lost += e->lost - l->lost;
		l->lost = e->lost;
	}
	if (e->kind == PROBE_WAIT)
		l->waited(l->arg, id, e, now_ns);
	else if (e->kind == PROBE_SIGNAL)
		link_on_signal(l, id, e);
	else if (e->kind == PROBE_RESENT)
		link_on_resent(l, id, e, now_ns);
	else
		link_on_kill(l, id, e);
}

/* ---- the connection ----------------------------------------------------------------- */

static void link_stop_listening(struct probelink *l)
{
	if (l->listened)
		loop_remove(l->loop, l->fd);
	l->listened = false;
}

static void link_close(struct probelink *l, const char *why)
{
	link_stop_listening(l);
	close(l->fd);
	l->fd = -1;
	l->stats.connected = false;
	l->stats.processes = l->stats.threads = 0;
	log_say(LOG_WARN, "probe lost path=%s reason=\"%s\"", l->address.sun_path, why);
}

/* A probe that sends without end waits for the next look, as its socket is full by then. */
static void link_on_readable(void *arg, uint64_t now_ns)
{
	struct probelink *l = arg;
	struct probe_event e[PROBE_BATCH + 1];
	ssize_t bytes;

	for (int i = 0; i < 16 && l->packets; i++, l->packets--) {
		bytes = recv(l->fd, e, sizeof(e), MSG_DONTWAIT);
		if (bytes < 0 && (errno == EAGAIN || errno == EINTR))
			return;
		if (bytes <= 0 || (size_t)bytes % sizeof(e[0]) || (size_t)bytes == sizeof(e)) {
			link_close(l, bytes < 0 ? strerror(errno) : bytes ? "it sent bad data" :
									    "it has ended");
			return;
		}
		for (size_t k = 0; k < (size_t)bytes / sizeof(e[0]); k++)
			link_on_event(l, &e[k], now_ns);
	}
	if (!l->packets)
		link_stop_listening(l);
}

/* A Unix socket is connected at once, or not at all. */
static int link_open(const struct probelink *l)
{
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), r;

	if (fd < 0 || connect(fd, (const struct sockaddr *)&l->address, sizeof(l->address)) == 0)
		return fd < 0 ? -errno : fd;
	r = -errno;
	close(fd);
	return r;
}

static void link_connect(struct probelink *l, uint64_t now_ns)
{
	int fd;

	if (now_ns < l->retry_ns)
		return;
	l->retry_ns = now_ns + RETRY_NS;
	fd = link_open(l);
	if (fd >= 0) {
		l->fd = fd;
		l->sent = false;
		l->connected_ns = now_ns;
		l->lost = 0;
		l->error = 0;
		l->stats.connected = true;
		log_say(LOG_INFO, "probe found path=%s", l->address.sun_path);
	} else if (fd != l->error) {
		l->error = fd;
		log_say(LOG_WARN, "no probe path=%s error=\"%s\"", l->address.sun_path,
			strerror(-fd));
	}
}

void probelink_look(struct probelink *l, struct process *const *list, size_t n, uint64_t now_ns)
{
	if (l->fd < 0)
		link_connect(l, now_ns);
	if (l->fd < 0)
		return;
	l->packets = PACKETS;
	if (!l->listened)
		l->listened = loop_add(l->loop, l->fd, link_on_readable, l) == 0;
	link_ask(l, list, n, now_ns);
}

/* ---- telling, life ------------------------------------------------------------------ */

const struct probelink_end *probelink_end(const struct probelink *l, uint64_t process_id)
{
	for (uint32_t i = 0; l && i < ENDS; i++)
		if (l->ends[i].process_id == process_id)
			return &l->ends[i];
	return NULL;
}

static bool link_watches_thread_of(const struct probelink *l, uint64_t process_id)
{
	for (uint32_t i = 0; i < l->set.nthreads; i++)
		if (l->set.threads[i].process_id == process_id)
			return true;
	return false;
}

static void address_say(const uint8_t address[16], char *to, socklen_t size)
{
	static const uint8_t v4[12] = { [10] = 0xff, [11] = 0xff };

	if (memcmp(address, v4, sizeof(v4)))
		inet_ntop(AF_INET6, address, to, size);
	else
		inet_ntop(AF_INET, address + sizeof(v4), to, size);
}

void probelink_resent(const struct probelink *l, uint64_t process_id, uint64_t now_ns,
		      struct slow_peer_resent *out)
{
	uint64_t half = now_ns / HALF_NS, since_ns = half * HALF_NS - HALF_NS;
	struct slow_peer_resent most = { .to = "" };

	if (!l || !l->stats.connected || !link_watches_thread_of(l, process_id))
		return;
	most.window_ns = now_ns - (since_ns > l->connected_ns ? since_ns : l->connected_ns);
	for (uint32_t i = 0; i < PEERS; i++) {
		struct link_peer p = l->peers[i];

		peer_turn(&p, half);
		if (p.process_id != process_id || p.segments + p.before <= most.segments)
			continue;
		most.segments = p.segments + p.before;
		address_say(p.address, most.to, sizeof(most.to));
	}
	*out = most;
}

const struct probelink_stats *probelink_stats(const struct probelink *l)
{
	return &l->stats;
}

int probelink_new(struct probelink **out, struct loop *loop, const char *path,
		  probelink_waited_fn *waited, void *arg)
{
	struct probelink *l = calloc(1, sizeof(*l));

	if (!l)
		return -ENOMEM;
	l->loop = loop;
	l->fd = -1;
	l->waited = waited;
	l->arg = arg;
	l->address.sun_family = AF_UNIX;
	memcpy(l->address.sun_path, path, strnlen(path, sizeof(l->address.sun_path) - 1));
	*out = l;
	return 0;
}

void probelink_free(struct probelink *l)
{
	if (!l)
		return;
	link_stop_listening(l);
	cleanup_closep(&l->fd);
	free(l);
}
