/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What reading costs the daemon beside 8, 64 and 512 processes: from the shared memory to checked
 * events, and what a poll of idle processes costs.  Only polls are timed, in this thread's own
 * time; what is printed is the median of the polls.  `--count PROCESSES RECORDS` polls once, for
 * so many new records of each, to be counted with
 *
 *     valgrind --tool=callgrind --toggle-collect=drain_counted build/bench/bench_drain --count 8 64
 */
#include <stdlib.h>
#include <string.h>

#include "bench/figure.h"
#include "bench/jobs.h"
#include "shmring/clock.h"
#include "tests/fixture.h"

#define FEW		64	/* records of each process between two polls */
#define MANY		1000	/* a quarter of its lane */
#define POLLS		201

static struct jobs jobs;

static double drain_timed_poll(uint64_t now_ns)
{
	uint64_t begin = clock_ns(CLOCK_THREAD_CPUTIME_ID);

	drain_poll(jobs.fx.drain, now_ns);
	return (double)(clock_ns(CLOCK_THREAD_CPUTIME_ID) - begin);
}

/* Median time of a poll that finds so many records of each process. */
static double drain_measure(uint32_t each, jobs_publish *publish)
{
	static double ns[POLLS];
	uint32_t polls = POLLS * 8 / (8 + jobs.n / 8);

	for (uint32_t i = 0; i < polls; i++) {
		jobs_write(&jobs, each, publish);
		ns[i] = drain_timed_poll(loop_clock_ns());
	}
	return figure_median(ns, (int)polls);
}

static void drain_say(const char *what, double ns, const char *unit)
{
	figure_show(ns, unit, "%u processes, %s", jobs.n, what);
}

static __attribute__((noinline)) void drain_counted(uint64_t now_ns)
{
	drain_poll(jobs.fx.drain, now_ns);
	__asm__ volatile("" ::: "memory");	/* no tail call: it ends here */
}

static int drain_count(uint32_t processes, uint32_t records)
{
	uint64_t now_ns = loop_clock_ns();

	if (!processes || processes > JOBS_MOST)
		return EXIT_FAILURE;
	jobs_open(&jobs, processes);
	drain_timed_poll(now_ns);
	drain_timed_poll(now_ns);	/* tables were read lately, by the second */
	jobs_write(&jobs, records, fx_job_publish);
	drain_counted(now_ns);		/* nothing is due that comes now and then */
	jobs_close(&jobs);
	return EXIT_SUCCESS;
}

int main(int argc, char **argv)
{
	static const uint32_t sizes[] = { 8, 64, JOBS_MOST };

	figure_start("drain", &argc, argv);
	if (argc == 4 && !strcmp(argv[1], "--count"))
		return drain_count((uint32_t)atoi(argv[2]), (uint32_t)atoi(argv[3]));
	for (size_t i = 0; i < FX_COUNT(sizes); i++) {
		jobs_open(&jobs, sizes[i]);
		drain_timed_poll(loop_clock_ns());
		drain_say("idle", drain_measure(0, fx_job_publish) / jobs.n, "ns/process");
		drain_say("64 new records each", drain_measure(FEW, fx_job_publish) / jobs.n,
			  "ns/process");
		drain_say("1000 new records each",
			  drain_measure(MANY, fx_job_publish) / jobs.n / MANY, "ns/record");
		drain_say("1000 new records of two lines each",
			  drain_measure(MANY, fx_job_publish_coll) / jobs.n / MANY, "ns/record");
		jobs_close(&jobs);
	}
	return EXIT_SUCCESS;
}
