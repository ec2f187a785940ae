/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One rank of a job on a real GPU.  All ranks may have the same GPU if they are
 * several nodes to NCCL, by NCCL_HOSTID.
 *
 *   gpu-job RANKS RANK DIRECTORY times MOST-BYTES
 *   gpu-job RANKS RANK DIRECTORY cost AllReduce|P2P NODES MOST TURNS INDEX JOBS ROUNDS NAME
 *   gpu-job RANKS RANK DIRECTORY small NAME...
 *   gpu-job RANKS RANK DIRECTORY graph
 *   gpu-job RANKS RANK DIRECTORY look        whether there is a GPU
 *
 * DIRECTORY, the same for all ranks, gets truth.RANK (see times.c) or cost.RANK.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cuda.h"
#include "programs.h"

#define EXIT_USAGE	2

/* cuda_find() has looked. */
static int look(struct job *job, char **arguments)
{
	(void)job;
	(void)arguments;
	return 0;
}

static const struct {
	const char *name;
	int arguments;
	int (*run)(struct job *job, char **arguments);
} programs[] = {
	{ "times", 1, program_times },
	{ "cost", 8, program_cost },
	{ "small", 1, program_small },
	{ "graph", 0, program_graph },
	{ "look", 0, look },
};

static int run(struct job *job, int count, char **arguments)
{
	for (size_t i = 0; i < sizeof(programs) / sizeof(*programs); i++)
		if (strcmp(programs[i].name, arguments[0]) == 0 && count > programs[i].arguments)
			return programs[i].run(job, arguments + 1);
	fprintf(stderr, "gpu-job: no program '%s' with %d arguments\n", arguments[0], count - 1);
	return EXIT_USAGE;
}

int main(int argc, char **argv)
{
	struct job job = { .local = 1 };
	char path[4096];
	int status;

	if (argc < 5) {
		fprintf(stderr, "usage: gpu-job RANKS RANK DIRECTORY PROGRAM [ARGUMENT...]\n");
		return EXIT_USAGE;
	}
	job.ranks = atoi(argv[1]);
	job.first = atoi(argv[2]);
	job.directory = argv[3];
	status = cuda_find();
	if (status)
		return status;
	snprintf(path, sizeof(path), "%s/truth.%d", job.directory, job.first);
	job.truth = fopen(path, "w");
	if (!job.truth) {
		perror(path);
		return EXIT_FAILURE;
	}
	fprintf(job.truth, "{\"pid\":%d}\n", (int)getpid());
	status = run(&job, argc - 4, argv + 4);
	fclose(job.truth);
	return status;
}
