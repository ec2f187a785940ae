/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nccl-flood PLUGIN PROCESSES COMMS: a user who takes all that can be had.  So many
 * processes with so many communicators each, an operation on every one of them; then
 * "ready" on stdout, and they stay until they are killed.
 */
#include <dlfcn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <signal.h>
#include <unistd.h>

#include "plugin/nccl_profiler.h"

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

static int flood(const char *plugin, int comms, int ready)
{
	void *library = dlopen(plugin, RTLD_NOW | RTLD_LOCAL), *context;
	const struct nccl_profiler_v6 *table = library ? dlsym(library, "ncclProfiler_v6") : NULL;
	int mask = 0;

	if (!table) {
		fprintf(stderr, "nccl-flood: %s\n", dlerror());
		return EXIT_FAILURE;
	}
	for (int i = 0; i < comms; i++) {
		context = NULL;
		table->init(&context, (uint64_t)getpid() << 16 | (uint64_t)i, &mask, "flood", 1, 2,
			    0, log_nothing);
		if (context)
			post(table, context);
	}
	if (write(ready, "", 1) != 1)
		return EXIT_FAILURE;
	pause();
	return EXIT_SUCCESS;
}

int main(int argc, char **argv)
{
	int processes = argc == 4 ? atoi(argv[2]) : 0, ready[2];
	char byte;

	if (processes < 1 || pipe(ready)) {
		fprintf(stderr, "usage: nccl-flood PLUGIN PROCESSES COMMS\n");
		return 2;
	}
	for (int i = 0; i < processes; i++) {
		if (fork())
			continue;
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		return flood(argv[1], atoi(argv[3]), ready[1]);
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
