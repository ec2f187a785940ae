/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What reading costs the daemon: records per second of one core from the shared
 * memory to checked events, and what a poll of idle processes costs.  The jobs
 * are segments of this process, written between the polls; only polls are timed.
 *
 *     bench_drain [rounds]
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/fixture.h"
#include "tests/fixture_daemon.h"

#define JOBS		8
#define PER_ROUND	1000	/* records of each job between two polls: a quarter of its lane */
#define IDLE_POLLS	2000

static struct shmring ring[JOBS];
static struct shmring_lane *lane[JOBS];
static struct fx_daemon fx;

static double drain_seconds(uint64_t ns)
{
	return (double)ns / 1e9;
}

static uint64_t drain_timed_poll(void)
{
	uint64_t begin = loop_clock_ns();

	drain_poll(fx.drain, begin);
	return loop_clock_ns() - begin;
}

static void lanes_fill(uint64_t from, void (*publish)(struct shmring_lane *, uint64_t))
{
	for (int i = 0; i < JOBS; i++)
		for (uint64_t n = from; n < from + PER_ROUND; n++)
			publish(lane[i], n);
}

static void drain_measure(const char *what, int rounds,
			  void (*publish)(struct shmring_lane *, uint64_t))
{
	uint64_t before = fx.seen.events, ns = 0;

	for (int i = 0; i < rounds; i++) {
		lanes_fill((uint64_t)i * PER_ROUND, publish);
		ns += drain_timed_poll();
	}
	before = fx.seen.events - before;
	printf("%-16s %8.2f million records/s   %6.1f ns/record\n", what,
	       (double)before / drain_seconds(ns) / 1e6, (double)ns / (double)before);
}

static void drain_measure_idle(void)
{
	uint64_t ns = 0;

	for (int i = 0; i < IDLE_POLLS; i++)
		ns += drain_timed_poll();
	printf("%-16s %8.2f us/poll\n", "8 idle processes", (double)ns / IDLE_POLLS / 1e3);
}

/* A segment's name has the pid in it; more than one of ours need another each. */
static void jobs_open(void)
{
	char name[80], path[160], to[160];

	for (int i = 0; i < JOBS; i++) {
		fx_job_open(&ring[i], fx.dir, name);
		lane[i] = shmring_lane_new(&ring[i], gettid());
		ring[i].header->start_time += (uint64_t)i + 1;
		snprintf(path, sizeof(path), "%s/%s", fx.dir, name);
		snprintf(to, sizeof(to), "%s/ncclinsp.%u.%d.%llu", fx.dir, (unsigned)geteuid(),
			 (int)getpid(), (unsigned long long)ring[i].header->start_time);
		if (rename(path, to) < 0)
			abort();
	}
}

static void jobs_attach(void)
{
	struct process *const *list;

	if (discover_processes(fx.discover, &list) == JOBS)
		return;
	discover_look(fx.discover, fx.now_ns + UINT64_C(4000000000));
	if (discover_processes(fx.discover, &list) != JOBS) {
		fprintf(stderr, "bench_drain: the jobs were not found\n");
		exit(EXIT_FAILURE);
	}
}

int main(int argc, char **argv)
{
	int rounds = argc > 1 ? atoi(argv[1]) : 200;

	if (!fx_daemon_open(&fx, FX_EPOLL))
		return EXIT_FAILURE;
	jobs_open();
	jobs_attach();
	drain_timed_poll();
	drain_measure("one line each", rounds, fx_job_publish);
	drain_measure("two lines each", rounds, fx_job_publish_coll);
	drain_measure_idle();
	fx_daemon_close(&fx);
	return EXIT_SUCCESS;
}
