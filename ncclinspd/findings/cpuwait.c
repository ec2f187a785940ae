/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Threads of a process are found by their number in its own pid namespace, once each, and
 * read at each look; SEARCHES bounds what one that is not found costs.
 */
#include "ncclinspd/findings/cpuwait.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "ncclinspd/base/dirs.h"
#include "reader/read/life.h"
#include "util/cleanup.h"
#include "util/list.h"
#include "util/procstat.h"
#include "util/unknown.h"

#define SLICE_NS	UINT64_C(20000000000)	/* this slice and the one before count */
#define TAKERS		8	/* remembered of a slice; the rest is small */
#define SEARCHES	3	/* through all threads of the process, then it is given up */

struct cpuwait_slice {
	uint64_t number;	/* now / SLICE_NS */
	uint64_t watched_ns, ran_ns, wait_ns;
	struct probe_taker taker[TAKERS];	/* had its CPU meanwhile; ns 0: unused */
};

struct thread {
	pid_t tid;		/* its number in its pid namespace */
	pid_t here;		/* 0: not found yet */
	bool gone;		/* it will never be read again */
	uint64_t read_ns;	/* 0: not read yet */
	uint64_t ran_ns, wait_ns;	/* counts at read_ns */
	struct cpuwait_slice slice[2];
};

struct cpuwait {
	int task;		/* /proc/<pid>/task, of this process for ever */
	bool same;		/* threads have the same numbers there and here */
	uint32_t passed;	/* entries of that directory that this search has read */
	uint32_t searches;
	uint32_t n;
	struct thread thread[CPUWAIT_THREADS];
};

/* ---- finding threads ------------------------------------------------------------ */

static struct thread *thread_find(struct cpuwait *c, pid_t tid)
{
	for (uint32_t i = 0; i < c->n; i++)
		if (c->thread[i].tid == tid)
			return &c->thread[i];
	return NULL;
}

static bool thread_is_wanted(const pid_t *tids, uint32_t n, pid_t tid)
{
	for (uint32_t i = 0; i < n; i++)
		if (tids[i] == tid)
			return true;
	return false;
}

static void threads_choose(struct cpuwait *c, const pid_t *tids, uint32_t n)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < c->n; i++)
		if (thread_is_wanted(tids, n, c->thread[i].tid))
			c->thread[kept++] = c->thread[i];
	c->n = kept;
	for (uint32_t i = 0; i < n; i++) {
		struct thread *added = thread_find(c, tids[i]) ? NULL : array_add(c->thread, &c->n);

		if (!added)
			continue;
		*added = (struct thread){
			.tid = tids[i], .here = c->same ? tids[i] : 0,
		};
		c->searches = c->passed = 0;
	}
}

static bool cpuwait_is_searching(const struct cpuwait *c)
{
	for (uint32_t i = 0; i < c->n; i++)
		if (!c->thread[i].here)
			return c->searches < SEARCHES;
	return false;
}

/* The next entries of the directory, as many as may be read. */
static void cpuwait_search(struct cpuwait *c, DIR *dir, uint32_t *files)
{
	const struct dirent *entry;
	uint32_t at = 0, depth;

	while (*files && (entry = readdir(dir))) {
		pid_t here = (pid_t)strtol(entry->d_name, NULL, 10);
		struct thread *t;

		if (at++ < c->passed)
			continue;
		c->passed++;
		if (here <= 0)
			continue;	/* entries . and .. */
		--*files;
		t = thread_find(c, life_ns_pid(c->task, here, &depth));
		if (t)
			t->here = here;
	}
	if (*files) {
		c->passed = 0;
		c->searches++;
	}
}

static void search_threads(struct cpuwait *c, uint32_t *files)
{
	CLEANUP(cleanup_closedirp) DIR *dir = dirs_list(c->task);

	if (dir)
		cpuwait_search(c, dir, files);
}

/* ---- counting ------------------------------------------------------------------- */

static struct cpuwait_slice *thread_slice(struct thread *t, uint64_t now_ns)
{
	uint64_t number = now_ns / SLICE_NS;
	struct cpuwait_slice *slice = &t->slice[number % 2];

	if (slice->number != number)
		*slice = (struct cpuwait_slice){ .number = number };
	return slice;
}

static void thread_count(struct thread *t, uint64_t watched_ns, uint64_t ran_ns,
			 uint64_t wait_ns, uint64_t now_ns)
{
	struct cpuwait_slice *slice = thread_slice(t, now_ns);

	slice->watched_ns += watched_ns;
	slice->ran_ns += ran_ns < watched_ns ? ran_ns : watched_ns;
	slice->wait_ns += wait_ns < watched_ns ? wait_ns : watched_ns;
}

/*
 * A full table has all lose as much as the least has (Misra and Gries): times are told
 * too short rather than too long, and one that had more than 1 / (n + 1) of all is never lost.
 */
static void takers_add(struct probe_taker *at, uint32_t n, const struct probe_taker *more)
{
	struct probe_taker *least = at;
	uint64_t lost_ns;

	for (uint32_t i = 0; i < n; i++) {
		if (at[i].ns && at[i].pid == more->pid) {
			at[i].ns += more->ns;
			return;
		}
		if (at[i].ns < least->ns)
			least = &at[i];
	}
	lost_ns = least->ns < more->ns ? least->ns : more->ns;
	for (uint32_t i = 0; lost_ns && i < n; i++)
		at[i].ns -= lost_ns;
	if (more->ns == lost_ns)
		return;
	*least = *more;
	least->ns -= lost_ns;
}

void cpuwait_add(struct cpuwait *c, const struct probe_event *e, uint64_t now_ns)
{
	for (uint32_t i = 0; i < c->n; i++) {
		struct thread *t = &c->thread[i];

		for (int k = 0; t->here == e->number && k < PROBE_TAKERS; k++)
			if (e->taker[k].pid > 0 && e->taker[k].ns)
				takers_add(thread_slice(t, now_ns)->taker, TAKERS, &e->taker[k]);
	}
}

/* A thread that was never scheduled does not exist: the kernel does not count (zeros). */
static bool parse_schedstat(const char *text, uint64_t *ran, uint64_t *wait)
{
	uint64_t times;

	return sscanf(text, "%" SCNu64 " %" SCNu64 " %" SCNu64, ran, wait, &times) == 3 && times;
}

static void read_thread(const struct cpuwait *c, struct thread *t, uint64_t now_ns)
{
	uint64_t ran, wait;
	char text[128];

	if (!procstat_read(c->task, text, sizeof(text), "%d/schedstat", (int)t->here) ||
	    !parse_schedstat(text, &ran, &wait)) {
		t->gone = true;
		return;
	}
	/* less than before: another thread has that number now */
	if (t->read_ns && ran >= t->ran_ns && wait >= t->wait_ns)
		thread_count(t, now_ns - t->read_ns, ran - t->ran_ns, wait - t->wait_ns, now_ns);
	t->read_ns = now_ns;
	t->ran_ns = ran;
	t->wait_ns = wait;
}

uint64_t cpuwait_own_ns(const char *proc)
{
	uint64_t ran, wait;
	char text[128];

	return procstat_read(AT_FDCWD, text, sizeof(text), "%s/self/schedstat", proc) &&
	       parse_schedstat(text, &ran, &wait) ? wait : UNKNOWN_U64;
}

void cpuwait_look(struct cpuwait *c, const pid_t *tids, uint32_t n, uint64_t now_ns,
		  uint32_t *files)
{
	threads_choose(c, tids, n);
	if (cpuwait_is_searching(c))
		search_threads(c, files);
	for (uint32_t i = 0; i < c->n && *files; i++) {
		struct thread *t = &c->thread[i];

		if (!t->here || t->gone)
			continue;
		--*files;
		read_thread(c, t, now_ns);
	}
}

/* ---- telling -------------------------------------------------------------------- */

static struct cpuwait_slice thread_add_up(const struct thread *t, uint64_t now_ns)
{
	uint64_t number = now_ns / SLICE_NS;
	struct cpuwait_slice sum = { 0 };

	for (int i = 0; i < 2; i++) {
		if (t->slice[i].number + 1 < number)
			continue;
		sum.watched_ns += t->slice[i].watched_ns;
		sum.ran_ns += t->slice[i].ran_ns;
		sum.wait_ns += t->slice[i].wait_ns;
		for (int k = 0; k < TAKERS; k++)
			if (t->slice[i].taker[k].ns)
				takers_add(sum.taker, TAKERS, &t->slice[i].taker[k]);
	}
	return sum;
}

static struct probe_taker takers_largest(const struct probe_taker *at, uint32_t n)
{
	const struct probe_taker *most = at;

	for (uint32_t i = 1; i < n; i++)
		if (at[i].ns > most->ns)
			most = &at[i];
	return most->ns ? *most : (struct probe_taker){ .pid = 0 };
}

uint32_t cpuwait_threads(const struct cpuwait *c, pid_t *tids, uint32_t max)
{
	uint32_t n = 0;

	for (uint32_t i = 0; c && i < c->n && n < max; i++)
		if (c->thread[i].here && !c->thread[i].gone)
			tids[n++] = c->thread[i].here;
	return n;
}

/* The thread with the largest part of its time by that measure. */
static bool cpuwait_find(const struct cpuwait *c, uint64_t now_ns, bool also_ran,
			 struct cpuwait_sums *sums)
{
	double most = -1;

	*sums = (struct cpuwait_sums){ 0 };
	for (uint32_t i = 0; c && i < c->n; i++) {
		struct cpuwait_slice sum = thread_add_up(&c->thread[i], now_ns);
		double part = (double)(sum.wait_ns + (also_ran ? sum.ran_ns : 0)) /
			      (double)sum.watched_ns;

		if (!sum.watched_ns || part <= most)
			continue;
		most = part;
		*sums = (struct cpuwait_sums){ c->thread[i].here, sum.watched_ns, sum.ran_ns,
					       sum.wait_ns,
					       takers_largest(sum.taker, TAKERS) };
	}
	return sums->watched_ns;
}

bool cpuwait_tell(const struct cpuwait *c, uint64_t now_ns, struct cpuwait_sums *sums)
{
	return cpuwait_find(c, now_ns, false, sums);
}

bool cpuwait_tell_busiest(const struct cpuwait *c, uint64_t now_ns, struct cpuwait_sums *sums)
{
	return cpuwait_find(c, now_ns, true, sums);
}

/* The kernel counts all of the wait, the probe the longer ones of about the same time. */
double cpuwait_taker_share(const struct cpuwait_sums *sums)
{
	if (!sums->taker.pid || !sums->wait_ns)
		return -1;
	return sums->taker.ns < sums->wait_ns ? (double)sums->taker.ns / (double)sums->wait_ns : 1;
}

/* ---- life ------------------------------------------------------------------------ */

CLEANUP_DEFINE(cpuwait_free, struct cpuwait)

int cpuwait_new(struct cpuwait **out, const char *proc, pid_t pid, uint64_t start_time)
{
	CLEANUP(cpuwait_freep) struct cpuwait *c = calloc(1, sizeof(*c));
	char path[PATH_MAX];
	uint32_t depth;

	if (!c)
		return -ENOMEM;
	snprintf(path, sizeof(path), "%s/%d/task", proc, (int)pid);
	c->task = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (c->task < 0)
		return -errno;
	/* The order matters: had the number gone to another process before, that is seen here. */
	if (!start_time || life_start_time(proc, pid) != start_time)
		return -ESRCH;
	c->same = life_ns_pid(c->task, pid, &depth) == pid && depth == 1;
	*out = DISOWN(c);
	return 0;
}

void cpuwait_free(struct cpuwait *c)
{
	if (!c)
		return;
	if (c->task >= 0)
		close(c->task);
	free(c);
}
