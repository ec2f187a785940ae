/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ncclinsp-probe: tells ncclinspd what only a program in the kernel sees.  It is a process of its
 * own, so that the daemon, which reads what any user writes, gets by without the rights for that.
 *
 * It serves one client at a time, whom the socket's mode has let in, and never waits for it: what
 * the client does not take is counted as lost.
 */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "probe/attach.h"
#include "probe/watching.h"
#include "util/log.h"
#include "util/text.h"

#define TELL_S		1		/* between two times that sums are told */
#define FIRST_FD	3		/* SD_LISTEN_FDS_START */
#define ROOT_PIDS	0xeffffffcu	/* inode of the node's own pid namespace */
#define WATCH_BYTES	(sizeof(struct probe_watch) + \
			 (PROBE_PROCESSES + PROBE_THREADS) * sizeof(int32_t))

struct probe {
	struct watching *watching;
	int listen_fd;
	int client;			/* -1: there is none */
	pid_t peer;			/* its process, by the kernel's word */
	struct probe_event batch[PROBE_BATCH];
	uint32_t n;
	uint64_t unsent;		/* events that the client did not take */
	time_t told_s;			/* when sums were, CLOCK_MONOTONIC */
};

static volatile sig_atomic_t stopped;

static void probe_on_stop(int signal)
{
	stopped = 1;
}

/* ---- events ---------------------------------------------------------------------- */

static void probe_flush(struct probe *p)
{
	uint64_t lost = watching_lost(p->watching) + p->unsent;

	for (uint32_t i = 0; i < p->n; i++)
		p->batch[i].lost = lost;
	if (p->n && send(p->client, p->batch, p->n * sizeof(p->batch[0]),
			 MSG_DONTWAIT | MSG_NOSIGNAL) < 0)
		p->unsent += p->n;
	p->n = 0;
}

static void probe_on_event(const struct probe_event *e, void *arg)
{
	struct probe *p = arg;

	if (p->client < 0)
		return;
	p->batch[p->n++] = *e;
	if (p->n == PROBE_BATCH)
		probe_flush(p);
}

/* ---- the client -------------------------------------------------------------------- */

static void client_close(struct probe *p, const char *why)
{
	log_say(LOG_INFO, "client gone pid=%d reason=\"%s\" unsent=%llu", (int)p->peer, why,
		(unsigned long long)p->unsent);
	watching_end(p->watching);
	close(p->client);
	p->client = -1;
	p->n = 0;
}

static void client_accept(struct probe *p)
{
	struct ucred peer;
	socklen_t bytes = sizeof(peer);
	int r;

	p->client = accept4(p->listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	if (p->client < 0)
		return;
	p->unsent = 0;
	p->peer = 0;
	if (getsockopt(p->client, SOL_SOCKET, SO_PEERCRED, &peer, &bytes) == 0)
		p->peer = peer.pid;
	r = watching_begin(p->watching);
	if (r < 0)
		client_close(p, strerror(-r));
	else
		log_say(LOG_INFO, "client pid=%d uid=%u", (int)peer.pid, (unsigned)peer.uid);
}

static bool watch_is_sound(const struct probe *p, const struct probe_watch *w, size_t bytes)
{
	return bytes >= sizeof(*w) && w->magic == PROBE_MAGIC && w->self == p->peer &&
	       w->processes <= PROBE_PROCESSES && w->threads <= PROBE_THREADS &&
	       bytes == sizeof(*w) + (w->processes + w->threads) * sizeof(w->number[0]);
}

static void client_read(struct probe *p)
{
	static union {
		struct probe_watch watch;
		char bytes[WATCH_BYTES + 1];
	} in;
	ssize_t n = recv(p->client, &in, sizeof(in), MSG_DONTWAIT);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0)
		client_close(p, n ? strerror(errno) : "closed");
	else if (!watch_is_sound(p, &in.watch, (size_t)n))
		client_close(p, "another version, or another pid namespace");
	else
		watching_set(p->watching, in.watch.number, in.watch.processes,
			     in.watch.number + in.watch.processes, in.watch.threads);
}

static void client_tell_sums(struct probe *p)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	if (now.tv_sec < p->told_s + TELL_S)
		return;
	p->told_s = now.tv_sec;
	watching_tell(p->watching);
	probe_flush(p);
}

/* ---- life --------------------------------------------------------------------------- */

/* While there is a client, others wait in the socket's queue. */
static void probe_run(struct probe *p, const sigset_t *unblocked)
{
	static const struct timespec tell = { .tv_sec = TELL_S };

	while (!stopped) {
		struct pollfd at[] = {
			{ .fd = p->client < 0 ? p->listen_fd : p->client, .events = POLLIN },
			{ .fd = watching_fd(p->watching), .events = POLLIN },
		};

		if (ppoll(at, p->client < 0 ? 1 : 2, p->client < 0 ? NULL : &tell, unblocked) < 0)
			continue;
		if (p->client < 0) {
			client_accept(p);
			continue;
		}
		if (at[1].revents) {
			watching_read(p->watching);
			probe_flush(p);
		}
		client_tell_sums(p);
		if (at[0].revents)
			client_read(p);
	}
}

static int socket_at(const char *path)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int fd;

	if (strlen(path) >= sizeof(address.sun_path))
		return -ENAMETOOLONG;
	strcpy(address.sun_path, path);
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -errno;
	umask(0177);
	unlink(path);
	if (bind(fd, (const struct sockaddr *)&address, sizeof(address)) < 0 || listen(fd, 1) < 0)
		return -errno;
	return fd;
}

/* The one that the service manager holds, sd_listen_fds(3); else our own. */
static int probe_listen(const char *path)
{
	const char *n = getenv("LISTEN_FDS"), *pid = getenv("LISTEN_PID");

	if (!n || strcmp(n, "1") || !pid || strtol(pid, NULL, 10) != getpid())
		return socket_at(path);
	if (fcntl(FIRST_FD, F_SETFL, O_NONBLOCK) < 0 || fcntl(FIRST_FD, F_SETFD, FD_CLOEXEC) < 0)
		return -errno;
	return FIRST_FD;
}

static bool pids_are_the_node_s(void)
{
	struct stat ns;

	return stat("/proc/self/ns/pid", &ns) == 0 && ns.st_ino == ROOT_PIDS;
}

static int probe_fail(const char *what, int error)
{
	log_say(LOG_ERROR, "%s error=\"%s\"", what, strerror(-error));
	return EXIT_FAILURE;
}

/* Everything that needs rights or a kernel that can do it. */
static int probe_check(struct probe *p)
{
	int r = watching_begin(p->watching);

	if (r < 0)
		return probe_fail("cannot watch", r);
	watching_end(p->watching);
	puts("ncclinsp-probe works here");
	return EXIT_SUCCESS;
}

static int probe_serve(struct probe *p, const char *path)
{
	struct sigaction stop = { .sa_handler = probe_on_stop };
	sigset_t before, blocked;

	p->listen_fd = probe_listen(path);
	if (p->listen_fd < 0)
		return probe_fail("cannot listen", p->listen_fd);
	sigemptyset(&blocked);
	sigaddset(&blocked, SIGTERM);
	sigaddset(&blocked, SIGINT);
	sigprocmask(SIG_BLOCK, &blocked, &before);
	sigaction(SIGTERM, &stop, NULL);
	sigaction(SIGINT, &stop, NULL);
	probe_run(p, &before);
	if (p->client >= 0)
		client_close(p, "asked to stop");
	return EXIT_SUCCESS;
}

static const char usage[] =
	"Usage: ncclinsp-probe [option...]\n"
	"Tell ncclinspd what only a program in the kernel sees: see ncclinsp-probe(8).\n"
	"\n"
	"  -S, --socket PATH  listen there (default " PROBE_SOCKET ")\n"
	"  -C, --check        say whether it can work here, and exit\n"
	"  -a, --attach PIDS  count the NCCL calls of these processes, such as 4711,4712\n"
	"  -f, --for SECONDS  with --attach: for this time (60)\n"
	"  -V, --version      print the version\n"
	"  -h, --help         print this\n";

int main(int argc, char **argv)
{
	static const struct option longs[] = {
		{ "socket", required_argument, NULL, 'S' }, { "check", no_argument, NULL, 'C' },
		{ "attach", required_argument, NULL, 'a' }, { "for", required_argument, NULL, 'f' },
		{ "version", no_argument, NULL, 'V' }, { "help", no_argument, NULL, 'h' }, { 0 },
	};
	static struct probe p = { .client = -1 };
	const char *path = PROBE_SOCKET, *pids = NULL;
	int64_t seconds = 60;
	bool check = false;
	int r;

	while ((r = getopt_long(argc, argv, "S:Ca:f:Vh", longs, NULL)) >= 0) {
		if (r == 'V' || r == 'h') {
			fputs(r == 'h' ? usage : "ncclinsp-probe " NCCLINSP_VERSION "\n", stdout);
			return EXIT_SUCCESS;
		}
		if (r == 'f' && text_parse_integer(optarg, 1, ATTACH_MOST_S, &seconds)) {
			fprintf(stderr, "ncclinsp-probe: --for must be a number of seconds from 1 "
				"to %d\n", ATTACH_MOST_S);
			return 2;
		}
		if (r == '?')
			return 2;
		check = check || r == 'C';
		path = r == 'S' ? optarg : path;
		pids = r == 'a' ? optarg : pids;
	}
	if (pids)
		return attach_run(pids, (uint32_t)seconds);
	if (!pids_are_the_node_s())
		return probe_fail("not in the node's own pid namespace", -EINVAL);
	r = watching_new(&p.watching, probe_on_event, &p);
	if (r < 0)
		return probe_fail("cannot load: CAP_BPF and CAP_PERFMON, and a kernel with BTF, "
				  "are needed", r);
	r = check ? probe_check(&p) : probe_serve(&p, path);
	watching_free(p.watching);
	return r;
}
