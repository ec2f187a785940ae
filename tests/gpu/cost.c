/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Several jobs, alike but for their plugin, live side by side and take turns, so
 * that what changes on the machine meanwhile changes for all of them.  Whose turn
 * it is, is a number in a file that all have mapped: each process adds its ranks
 * when it has done its part.
 */
#include "programs.h"

#include "tests/gpu/cuda.h"
#include "tests/nccl/fake.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define OPS		40
#define LEAST_BYTES	64
#define POLL_NS		200000

static _Atomic uint32_t *map_turns(const char *path)
{
	int fd = open(path, O_RDWR | O_CLOEXEC);
	void *at = MAP_FAILED;

	if (fd >= 0)
		at = mmap(NULL, sizeof(uint32_t), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (at == MAP_FAILED) {
		fprintf(stderr, "%s: %s\n", path, strerror(errno));
		exit(EXIT_FAILURE);
	}
	close(fd);
	return at;
}

static void wait_for(const _Atomic uint32_t *turns, uint32_t mine)
{
	const struct timespec pause = { .tv_nsec = POLL_NS };

	while (atomic_load_explicit(turns, memory_order_acquire) < mine)
		nanosleep(&pause, NULL);
}

static void all_reduce(struct world *w, size_t bytes)
{
	world_collective(w, ALL_REDUCE, bytes / 4, ncclFloat32, 0);
}

/* Each rank sends to the next one, and receives from the one before. */
static void p2p(struct world *w, size_t bytes)
{
	world_ring(w, bytes / 4, ncclFloat32);
}

static void measure(struct world *w, FILE *to, const char *head, size_t bytes,
		    void (*run)(struct world *w, size_t bytes))
{
	uint64_t begin, posted, done, alone;

	for (int i = 0; i < 3; i++)
		run(w, bytes);
	world_wait(w);
	begin = now_ns();
	for (int i = 0; i < OPS; i++)
		run(w, bytes);
	posted = now_ns();
	world_wait(w);
	done = now_ns();
	for (int i = 0; i < OPS; i++) {
		run(w, bytes);
		world_wait(w);
	}
	alone = now_ns();
	fprintf(to, "{%s,\"ops\":%d,\"bytes\":%zu,\"post_ns\":%.0f,"
		"\"streamed_ns\":%.0f,\"alone_ns\":%.0f}\n", head, 3 + 2 * OPS, bytes,
		(double)(posted - begin) / OPS, (double)(done - begin) / OPS,
		(double)(alone - done) / OPS);
}

int program_cost(struct job *job, char **arguments)
{
	bool is_p2p = !strcmp(arguments[0], "P2P");
	int nodes = atoi(arguments[1]), rounds = atoi(arguments[6]);
	size_t most = strtoul(arguments[2], NULL, 10);
	_Atomic uint32_t *turns = map_turns(arguments[3]);
	uint32_t index = (uint32_t)atoi(arguments[4]), jobs = (uint32_t)atoi(arguments[5]);
	FILE *truth = job->truth, *to;
	struct world *w;
	char path[4096], head[256];

	if (nodes == 1)		/* all ranks are this process's, each with a GPU of its own */
		job->local = job->ranks;
	if (cudaSetDevice(job->local - 1)) {
		printf("there are fewer than %d GPUs\n", job->local);
		return 77;
	}
	snprintf(path, sizeof(path), "%s/cost.%d", job->directory, job->first);
	to = fopen(path, "w");
	if (!to) {
		perror(path);
		return EXIT_FAILURE;
	}
	job->truth = NULL;	/* it takes time */
	w = world_new(job, "cost", (struct world_options){ .single = false });
	for (int round = 0; round < rounds; round++) {
		uint32_t turn = (uint32_t)round * jobs + index;

		wait_for(turns, turn * (uint32_t)job->ranks);
		snprintf(head, sizeof(head), "\"what\":\"%s\",\"nodes\":%d,\"name\":\"%s\","
			 "\"round\":%d", arguments[0], nodes, arguments[7], round);
		for (size_t bytes = LEAST_BYTES; bytes <= most; bytes *= 8)
			measure(w, to, head, bytes, is_p2p ? p2p : all_reduce);
		atomic_fetch_add_explicit(turns, (uint32_t)job->local, memory_order_release);
	}
	world_destroy(w);
	job->truth = truth;
	return fclose(to) ? EXIT_FAILURE : 0;
}
