/* SPDX-License-Identifier: Apache-2.0 */
/* Short runs, each of one kind of thing that NCCL does. */
#include "programs.h"

#include <string.h>

#include "cuda.h"

#define TURNS		2
#define LAUNCHES	5
#define IN_GRAPH	3

static void all_reduce(struct world *w)
{
	for (int i = 0; i < TURNS; i++) {
		world_collective(w, ALL_REDUCE, 256, ncclFloat32, 0);
		world_collective(w, ALL_REDUCE, 1 << 16, ncclBfloat16, 0);
	}
}

static void every(struct world *w)
{
	world_everything(w, 0);
}

static void alltoall(struct world *w)
{
	world_alltoall(w, 1000, ncclFloat32, SELF_COPIED);
	world_alltoall(w, 1000, ncclFloat32, SELF_SKIPPED);
	if (cuda_finds("ncclAlltoAll"))
		world_alltoall(w, 1000, ncclFloat32, SELF_NATIVE);
}

/* One launch: two that become one batch, another kind, and transfers. */
static void group(struct world *w)
{
	for (int i = 0; i < TURNS; i++) {
		world_group_start();
		world_collective(w, ALL_REDUCE, 1000, ncclFloat32, 0);
		world_collective(w, ALL_REDUCE, 3000, ncclFloat32, 0);
		world_collective(w, ALL_GATHER, 500, ncclFloat32, 0);
		world_ring(w, 2000, ncclFloat32);
		world_group_end();
		world_wait(w);
	}
}

static const struct {
	const char *name;
	void (*run)(struct world *w);
	struct world_options options;
} programs[] = {
	{ "allreduce", all_reduce, { .nonblocking = false } },
	{ "every", every, { .nonblocking = false } },
	{ "alltoall", alltoall, { .nonblocking = false } },
	{ "group", group, { .nonblocking = false } },
	{ "nonblocking", all_reduce, { .nonblocking = true } },
};

int program_small(struct job *job, char **arguments)
{
	for (size_t i = 0; i < sizeof(programs) / sizeof(*programs); i++) {
		struct world *w;

		if (strcmp(programs[i].name, arguments[0]) != 0)
			continue;
		w = world_new(job, programs[i].name, programs[i].options);
		programs[i].run(w);
		world_destroy(w);
		return 0;
	}
	fprintf(stderr, "gpu-job: nothing small is called '%s'\n", arguments[0]);
	return 2;
}

int program_graph(struct job *job, char **arguments)
{
	struct world *w;
	void *graph, *exec;

	(void)arguments;
	if (!cuda_has_time()) {
		printf("the CUDA that is played has no graphs\n");
		return 77;
	}
	w = world_new(job, "graph", (struct world_options){ .single = false });
	world_collective(w, ALL_REDUCE, 1000, ncclFloat32, 0);
	world_wait(w);
	CUDA_REQUIRE(cudaStreamBeginCapture(w->stream[0], cudaStreamCaptureModeThreadLocal));
	for (int i = 0; i < IN_GRAPH; i++)
		world_collective(w, ALL_REDUCE, 1000, ncclFloat32, 0);
	CUDA_REQUIRE(cudaStreamEndCapture(w->stream[0], &graph));
	CUDA_REQUIRE(cudaGraphInstantiateWithFlags(&exec, graph, 0));
	for (int i = 0; i < LAUNCHES; i++)
		CUDA_REQUIRE(cudaGraphLaunch(exec, w->stream[0]));
	world_wait(w);
	world_collective(w, ALL_REDUCE, 1000, ncclFloat32, 0);
	world_wait(w);
	CUDA_REQUIRE(cudaGraphExecDestroy(exec));
	CUDA_REQUIRE(cudaGraphDestroy(graph));
	world_destroy(w);
	return 0;
}
