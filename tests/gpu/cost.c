/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Several jobs, alike but for their plugin, live side by side and take turns, so
 * that what changes on the machine meanwhile changes for all of them.  Whose turn
 * it is, is a number in a file that all have mapped: each process adds 1 when it
 * has done its part.
 */
#include "programs.h"

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
#define MOST_BYTES	((size_t)1 << 20)
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

static void measure(struct world *w, FILE *to, const char *name, int round, size_t bytes)
{
	uint64_t begin, posted, done, alone;

	for (int i = 0; i < 3; i++)
		world_collective(w, ALL_REDUCE, bytes / 4, ncclFloat32, 0);
	world_wait(w);
	begin = now_ns();
	for (int i = 0; i < OPS; i++)
		world_collective(w, ALL_REDUCE, bytes / 4, ncclFloat32, 0);
	posted = now_ns();
	world_wait(w);
	done = now_ns();
	for (int i = 0; i < OPS; i++) {
		world_collective(w, ALL_REDUCE, bytes / 4, ncclFloat32, 0);
		world_wait(w);
	}
	alone = now_ns();
	fprintf(to, "{\"name\":\"%s\",\"round\":%d,\"bytes\":%zu,\"post_ns\":%.0f,"
		"\"streamed_ns\":%.0f,\"alone_ns\":%.0f}\n", name, round, bytes,
		(double)(posted - begin) / OPS, (double)(done - begin) / OPS,
		(double)(alone - done) / OPS);
}

int program_cost(struct job *job, char **arguments)
{
	_Atomic uint32_t *turns = map_turns(arguments[0]);
	uint32_t index = (uint32_t)atoi(arguments[1]), jobs = (uint32_t)atoi(arguments[2]);
	int rounds = atoi(arguments[3]);
	FILE *truth = job->truth, *to;
	struct world *w;
	char path[4096];

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
		for (size_t bytes = LEAST_BYTES; bytes <= MOST_BYTES; bytes *= 8)
			measure(w, to, arguments[4], round, bytes);
		atomic_fetch_add_explicit(turns, 1, memory_order_release);
	}
	world_destroy(w);
	job->truth = truth;
	return fclose(to) ? EXIT_FAILURE : 0;
}
