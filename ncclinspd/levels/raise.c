/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A thread for each time that other nodes are asked: the kernel lets a thread wait until its
 * child's program is loaded, which may take long, and the child until all hosts have answered.
 */
#include "ncclinspd/levels/raise.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ncclinspd/base/finding.h"
#include "ncclinspd/base/jobs.h"
#include "reader/base/job.h"
#include "shmring/clock.h"
#include "util/log.h"

#define HOSTS_BYTES	1024
#define SAID_BYTES	4096	/* bytes of a child's words that are told */
#define LINES_TOLD	8
#define DETAIL		"10s"

extern char **environ;

struct raise {
	char hosts[HOSTS_BYTES];
	pthread_t thread;
	bool started;		/* there is a thread to be joined */
	uint64_t asked_ns;	/* 0: never */
	char comm[24], now[HOSTS_BYTES + 32];	/* the thread's, while it runs */
	pthread_mutex_t lock;	/* guards the members that follow */
	bool running;
	bool stop;
	pid_t child;		/* leads its own process group; 0: none */
	struct raise_stats stats;
};

/* ---- the child, in the thread ----------------------------------------------------------- */

/*
 * The child has signals as a program expects them, and none of the daemon's rights.  Its process
 * group is its own, so that its children end with it.
 */
static int child_spawn(pid_t *child, char *const *words, int said)
{
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attr;
	sigset_t none, all;
	int error;

	prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);	/* this thread's */
	sigemptyset(&none);
	sigfillset(&all);
	posix_spawnattr_init(&attr);
	posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF |
				 POSIX_SPAWN_SETPGROUP);
	posix_spawnattr_setsigmask(&attr, &none);
	posix_spawnattr_setsigdefault(&attr, &all);
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDWR, 0);
	posix_spawn_file_actions_adddup2(&actions, STDIN_FILENO, STDOUT_FILENO);
	posix_spawn_file_actions_adddup2(&actions, said, STDERR_FILENO);
	error = posix_spawnp(child, words[0], &actions, &attr, words, environ);
	posix_spawn_file_actions_destroy(&actions);
	posix_spawnattr_destroy(&attr);
	return -error;
}

static int raise_start_child(struct raise *r, int said)
{
	char program[] = "ncclinsp", command[] = "level", level[] = "detail", comm[] = "--comm";
	char time[] = "--for", s[] = DETAIL, host[] = "--host";
	char *const words[] = { program, command, level, comm, r->comm, time, s, host, r->now,
				NULL };
	pid_t child;
	int error = child_spawn(&child, words, said);

	if (error)
		return error;
	pthread_mutex_lock(&r->lock);
	r->child = child;
	if (r->stop)
		kill(-child, SIGKILL);
	pthread_mutex_unlock(&r->lock);
	return 0;
}

/* Read what the child says until it has closed its stderr, or its time is over. */
static void child_hear(int said, char text[SAID_BYTES])
{
	uint64_t end_ns = clock_ns(CLOCK_MONOTONIC) + RAISE_MOST_NS, now_ns;
	struct pollfd more = { .fd = said, .events = POLLIN };
	char dropped[512];
	size_t n = 0;
	ssize_t got = 1;

	while (got > 0 && (now_ns = clock_ns(CLOCK_MONOTONIC)) < end_ns) {
		bool room = n + 1 < SAID_BYTES;

		if (poll(&more, 1, (int)((end_ns - now_ns) / 1000000) + 1) <= 0)
			continue;
		got = read(said, room ? text + n : dropped,
			   room ? SAID_BYTES - 1 - n : sizeof(dropped));
		n += got > 0 && room ? (size_t)got : 0;
	}
	text[n] = '\0';
}

/* True: every host did as it was asked. */
static bool raise_end_child(struct raise *r)
{
	int status = -1;

	kill(-r->child, SIGKILL);	/* it has ended, or is not to go on */
	while (waitpid(r->child, &status, 0) < 0 && errno == EINTR)
		;
	return WIFEXITED(status) && !WEXITSTATUS(status);
}

static void raise_tell(const struct raise *r, char *said)
{
	char *rest, *line = strtok_r(said, "\n", &rest);
	int told = 0;

	if (!line)
		log_say(LOG_WARN, "other nodes did not answer in time comm=%s hosts=%s", r->comm,
			r->now);
	for (; line && told < LINES_TOLD; line = strtok_r(NULL, "\n", &rest), told++)
		log_say(LOG_WARN, "another node does not time every operation comm=%s error=\"%s\"",
			r->comm, line);
}

static void raise_settle(struct raise *r, int error, bool whole)
{
	pthread_mutex_lock(&r->lock);
	r->child = 0;
	r->stats.error = error;
	r->stats.last_ns = clock_ns(CLOCK_MONOTONIC);
	(*(whole ? &r->stats.asked : &r->stats.failed))++;
	r->running = false;
	pthread_mutex_unlock(&r->lock);
}

static void *raise_work(void *arg)
{
	struct raise *r = arg;
	char text[SAID_BYTES] = "";
	bool whole = false;
	int said[2], error = pipe2(said, O_CLOEXEC) ? -errno : 0;

	if (error) {
		raise_settle(r, error, false);
		return NULL;
	}
	error = raise_start_child(r, said[1]);
	close(said[1]);
	if (!error) {
		child_hear(said[0], text);
		whole = raise_end_child(r);
	}
	close(said[0]);
	if (error)
		log_say(LOG_WARN, "ncclinsp cannot be run, other nodes are not asked error=\"%s\"",
			strerror(-error));
	else if (!whole)
		raise_tell(r, text);
	raise_settle(r, error, whole);
	return NULL;
}

/* ---- whom to ask ------------------------------------------------------------------------ */

/* The process of the rank that it names first, else of any rank here; NULL: there is none. */
static const struct process *finding_process(const struct finding *f,
					     struct process *const *list, size_t n)
{
	const struct process *any = NULL;

	for (size_t i = 0; i < n; i++) {
		if (list[i]->state != PROCESS_LIVE || list[i]->uid != f->uid)
			continue;
		if (f->nranks && jobs_comm(list[i], f->comm_id, f->ranks[0]))
			return list[i];
		if (!any && jobs_comm(list[i], f->comm_id, UNKNOWN_I32))
			any = list[i];
	}
	return any;
}

static bool comm_reaches_on(const struct comm *c, struct process *const *list, size_t n)
{
	int32_t here = 0;

	for (size_t i = 0; i < n; i++)
		here += list[i]->state == PROCESS_LIVE && jobs_comm(list[i], c->id, UNKNOWN_I32);
	return c->has_id && c->nranks > here;
}

/*
 * The communicator that it is about, or where all of that is on this node, the largest one of
 * the process, in which others wait for it.  NULL: none reaches another node.
 */
static const struct comm *raise_comm(const struct finding *f, const struct process *p,
				     struct process *const *list, size_t n)
{
	const struct comm *own = jobs_comm(p, f->comm_id, UNKNOWN_I32);
	const struct comm *largest = job_largest_comm(p);

	if (own && comm_reaches_on(own, list, n))
		return own;
	return largest && comm_reaches_on(largest, list, n) ? largest : NULL;
}

/* False: nobody says which hosts these are. */
static bool raise_take_hosts(struct raise *r, const struct process *p)
{
	int32_t job = job_number(job_id(p));

	if (strcmp(r->hosts, "slurm"))
		snprintf(r->now, sizeof(r->now), "%s", r->hosts);
	else if (job != UNKNOWN_I32)
		snprintf(r->now, sizeof(r->now), "slurm:%d", job);
	return strcmp(r->hosts, "slurm") || job != UNKNOWN_I32;
}

/* False: others have been asked just now, or are still. */
static bool raise_is_free(struct raise *r, uint64_t now_ns)
{
	bool busy = r->asked_ns && now_ns - r->asked_ns < RAISE_APART_NS;

	pthread_mutex_lock(&r->lock);
	busy |= r->running;
	r->stats.failed += busy;
	pthread_mutex_unlock(&r->lock);
	if (!busy && r->started)
		pthread_join(r->thread, NULL);
	r->started &= busy;
	return !busy;
}

void raise_finding(struct raise *r, const struct finding *f, struct process *const *list,
		   size_t n, uint64_t now_ns)
{
	const struct process *p = finding_process(f, list, n);
	const struct comm *c = p ? raise_comm(f, p, list, n) : NULL;

	if (!c || !raise_is_free(r, now_ns) || !raise_take_hosts(r, p))
		return;
	snprintf(r->comm, sizeof(r->comm), "0x%016" PRIx64, c->id);
	r->asked_ns = now_ns;
	r->running = true;
	r->started = !pthread_create(&r->thread, NULL, raise_work, r);
	if (!r->started)
		raise_settle(r, -EAGAIN, false);
	log_say(LOG_INFO, "other nodes are asked to time every operation for " DETAIL
		" finding=%" PRIu64 " comm=%s hosts=%s", f->life.id, r->comm, r->now);
}

/* ---- life ------------------------------------------------------------------------------- */

int raise_new(struct raise **out, const char *hosts)
{
	struct raise *r = calloc(1, sizeof(*r));

	if (!r)
		return -ENOMEM;
	snprintf(r->hosts, sizeof(r->hosts), "%s", hosts);
	pthread_mutex_init(&r->lock, NULL);
	*out = r;
	return 0;
}

void raise_free(struct raise *r)
{
	if (!r)
		return;
	pthread_mutex_lock(&r->lock);
	r->stop = true;
	if (r->child)
		kill(-r->child, SIGKILL);
	pthread_mutex_unlock(&r->lock);
	if (r->started)
		pthread_join(r->thread, NULL);
	pthread_mutex_destroy(&r->lock);
	free(r);
}

void raise_read_stats(struct raise *r, struct raise_stats *stats)
{
	pthread_mutex_lock(&r->lock);
	*stats = r->stats;
	pthread_mutex_unlock(&r->lock);
}
