/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nccl-flood PLUGIN PROCESSES COMMS: a user who takes all that can be had.  So many
 * processes with so many communicators each, an operation on every one of them; then
 * "ready" on stdout, and they stay until they are killed.
 *
 * nccl-flood PLUGIN churn RATE SECONDS: a job that crashes again and again.  RATE processes
 * a second, as far as the machine can, that leave without a goodbye after one operation; how
 * many were there is on stdout.
 */
#include <dlfcn.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <signal.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "nccl/profiler.h"

#define AT_ONCE	8	/* that crash */

__attribute__((format(printf, 5, 6)))
static void log_nothing(int level, unsigned long subsystems, const char *file, int line,
			const char *format, ...)
{
	(void)level;
	(void)subsystems;
	(void)file;
	(void)line;
	(void)format;
}

static void post(const struct nccl_profiler_v6 *table, void *context)
{
	struct nccl_descr_v6 api = { .type = NCCL_COLL_API };
	struct nccl_descr_v6 coll = { .type = NCCL_COLL };
	void *of_api = NULL, *of_coll = NULL;

	api.collApi = (struct nccl_coll_api){ .func = "AllReduce", .count = 1,
					      .datatype = "ncclFloat32" };
	table->startEvent(context, &of_api, &api);
	coll.parentObj = of_api;
	coll.coll = (struct nccl_coll_v5){ .func = "AllReduce", .count = 1,
					   .datatype = "ncclFloat32", .nChannels = 1,
					   .algo = "RING", .proto = "LL" };
	table->startEvent(context, &of_coll, &coll);
	table->stopEvent(of_coll);
	table->stopEvent(of_api);
}

static const struct nccl_profiler_v6 *load(const char *plugin)
{
	void *library = dlopen(plugin, RTLD_NOW | RTLD_LOCAL);
	const struct nccl_profiler_v6 *table = library ? dlsym(library, "ncclProfiler_v6") : NULL;

	if (!table)
		fprintf(stderr, "nccl-flood: %s\n", dlerror());
	return table;
}

static void post_on(const struct nccl_profiler_v6 *table, int comms)
{
	int mask = 0;

	for (int i = 0; i < comms; i++) {
		void *context = NULL;

		table->init(&context, (uint64_t)getpid() << 16 | (uint64_t)i, &mask, "flood", 1, 2,
			    0, log_nothing);
		if (context)
			post(table, context);
	}
}

/* ---- many at once ------------------------------------------------------------ */

static int flood(const struct nccl_profiler_v6 *table, int comms, int ready)
{
	post_on(table, comms);
	if (write(ready, "", 1) != 1)
		return EXIT_FAILURE;
	pause();
	return EXIT_SUCCESS;
}

static int flood_all(const struct nccl_profiler_v6 *table, int processes, int comms)
{
	int ready[2];
	char byte;

	if (pipe(ready))
		return EXIT_FAILURE;
	for (int i = 0; i < processes; i++) {
		if (fork())
			continue;
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		return flood(table, comms, ready[1]);
	}
	close(ready[1]);
	for (int i = 0; i < processes; i++)
		if (read(ready[0], &byte, 1) != 1)
			return EXIT_FAILURE;
	puts("ready");
	fflush(stdout);
	while (wait(NULL) > 0)
		continue;
	return EXIT_SUCCESS;
}

/* ---- many one after another ---------------------------------------------------- */

static uint64_t clock_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static void sleep_until(uint64_t ns)
{
	struct timespec t = { (time_t)(ns / 1000000000), (long)(ns % 1000000000) };

	clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL);
}

static int churn(const struct nccl_profiler_v6 *table, int rate, int seconds)
{
	uint64_t from_ns = clock_ns(), step_ns = UINT64_C(1000000000) / (uint64_t)rate;
	int made, running = 0;

	for (made = 0; made < rate * seconds; made++) {
		sleep_until(from_ns + (uint64_t)made * step_ns);
		while (running && waitpid(-1, NULL, running == AT_ONCE ? 0 : WNOHANG) > 0)
			running--;
		if (!fork()) {
			post_on(table, 1);
			_exit(1);
		}
		running++;
	}
	while (wait(NULL) > 0)
		continue;
	printf("%d processes in %.1f s\n", made, (double)(clock_ns() - from_ns) / 1e9);
	return EXIT_SUCCESS;
}

int main(int argc, char **argv)
{
	bool churns = argc == 5 && !strcmp(argv[2], "churn");
	int processes = argc == 4 ? atoi(argv[2]) : 0, rate = churns ? atoi(argv[3]) : 0;
	const struct nccl_profiler_v6 *table;

	if (processes < 1 && rate < 1) {
		fprintf(stderr, "usage: nccl-flood PLUGIN PROCESSES COMMS\n"
			"       nccl-flood PLUGIN churn RATE SECONDS\n");
		return 2;
	}
	table = load(argv[1]);
	if (!table)
		return EXIT_FAILURE;
	return churns ? churn(table, rate, atoi(argv[4])) : flood_all(table, processes,
								       atoi(argv[3]));
}
