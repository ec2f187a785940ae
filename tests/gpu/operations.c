/* SPDX-License-Identifier: Apache-2.0 */
#include "programs.h"

#include <time.h>

/* Every operation here moves numbers of 4 bytes. */
#define WORD	sizeof(float)

uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static size_t per_rank(const struct world *w, size_t bytes)
{
	size_t count = bytes / WORD / (size_t)w->ranks;

	return count ? count : 1;
}

static void all_reduce(struct world *w, size_t bytes)
{
	world_collective(w, ALL_REDUCE, bytes / WORD, ncclFloat32, 0);
}

static void all_gather(struct world *w, size_t bytes)
{
	world_collective(w, ALL_GATHER, per_rank(w, bytes), ncclFloat32, 0);
}

static void reduce_scatter(struct world *w, size_t bytes)
{
	world_collective(w, REDUCE_SCATTER, per_rank(w, bytes), ncclFloat32, 0);
}

static void broadcast(struct world *w, size_t bytes)
{
	world_collective(w, BROADCAST, bytes / WORD, ncclFloat32, 0);
}

static void send_recv(struct world *w, size_t bytes)
{
	world_ring(w, bytes / WORD, ncclFloat32);
}

static void alltoall(struct world *w, size_t bytes)
{
	world_alltoall(w, per_rank(w, bytes), ncclFloat32, SELF_COPIED);
}

static void native_alltoall(struct world *w, size_t bytes)
{
	world_alltoall(w, per_rank(w, bytes), ncclFloat32, SELF_NATIVE);
}

const struct operation operations[] = {
	{ "AllReduce", all_reduce, NULL },
	{ "AllGather", all_gather, NULL },
	{ "ReduceScatter", reduce_scatter, NULL },
	{ "Broadcast", broadcast, NULL },
	{ "SendRecv", send_recv, NULL },
	{ "AlltoAll", alltoall, NULL },
	{ "ncclAlltoAll", native_alltoall, "ncclAlltoAll" },
	{ NULL, NULL, NULL },
};
