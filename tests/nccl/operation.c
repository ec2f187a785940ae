/* SPDX-License-Identifier: Apache-2.0 */
/* What the ranks of a world do, and the truth about it. */
#include "world.h"

#include <inttypes.h>
#include <time.h>
#include <unistd.h>

#include "fake.h"

#define BUFFER_BYTES	((size_t)512 << 20)	/* half to send, half to receive */
#define NO_NUMBER	(-1)

static const struct {
	const char *name;
	size_t bytes;
} types[] = {
	[ncclInt8] = { "ncclInt8", 1 },		[ncclUint8] = { "ncclUint8", 1 },
	[ncclInt32] = { "ncclInt32", 4 },	[ncclUint32] = { "ncclUint32", 4 },
	[ncclInt64] = { "ncclInt64", 8 },	[ncclUint64] = { "ncclUint64", 8 },
	[ncclFloat16] = { "ncclFloat16", 2 },	[ncclFloat32] = { "ncclFloat32", 4 },
	[ncclFloat64] = { "ncclFloat64", 8 },	[ncclBfloat16] = { "ncclBfloat16", 2 },
};

static const struct {
	const char *name;
	bool per_rank;		/* the larger buffer has `count` for each rank */
	bool rooted;
} funcs[] = {
	[ALL_REDUCE] = { "AllReduce", false, false },
	[ALL_GATHER] = { "AllGather", true, false },
	[REDUCE_SCATTER] = { "ReduceScatter", true, false },
	[BROADCAST] = { "Broadcast", false, true },
	[REDUCE] = { "Reduce", false, true },
};

/* One more number, or null. */
static void tell_number(FILE *truth, const char *name, int number)
{
	if (number < 0)
		fprintf(truth, ",\"%s\":null", name);
	else
		fprintf(truth, ",\"%s\":%d", name, number);
}

static void tell(struct world *w, int local, const char *func, int seq, size_t count,
		 enum nccl_type type, size_t bytes, int root, int peer)
{
	FILE *truth = w->job->truth;

	/* With nobody to talk to NCCL copies, and tells nothing. */
	if (!truth || w->ranks == 1 || (count == 0 && peer < 0))
		return;
	flockfile(truth);
	fprintf(truth, "{\"comm\":\"%s\",\"nranks\":%d,\"nnodes\":%d,\"rank\":%d,\"func\":\"%s\"",
		w->name, w->ranks, w->nodes, w->rank[local], func);
	fprintf(truth, ",\"count\":%zu,\"datatype\":\"%s\",\"bytes\":%zu", count,
		types[type].name, bytes);
	tell_number(truth, "seq", seq);
	tell_number(truth, "root", root);
	tell_number(truth, "peer", peer);
	fprintf(truth, ",\"stream\":\"%d.%p\",\"called_ns\":%" PRIu64 "}\n", getpid(),
		w->stream[local], w->called_ns[local]);
	funlockfile(truth);
}

/* Nothing is computed: all ranks may have the same buffer. */
static char *buffer(void)
{
	static void *memory;

	if (!memory)
		cudaMalloc(&memory, BUFFER_BYTES);
	return memory;
}

/* What is called next is that rank's. */
static void turn_to(struct world *w, int local)
{
	struct timespec t;

	cudaSetDevice(local);
	clock_gettime(CLOCK_MONOTONIC, &t);
	w->called_ns[local] = (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

void world_call(struct world *w, int local, enum world_func func, size_t count,
		enum nccl_type type, int root)
{
	char *from = buffer(), *to = from + BUFFER_BYTES / 2;
	ncclComm_t comm = w->comm[local];
	void *stream = w->stream[local];
	size_t bytes = count * types[type].bytes;

	turn_to(w, local);
	switch (func) {
	case ALL_REDUCE:
		WORLD_REQUIRE(ncclAllReduce(from, to, count, type, ncclSum, comm, stream));
		break;
	case ALL_GATHER:
		WORLD_REQUIRE(ncclAllGather(from, to, count, type, comm, stream));
		break;
	case REDUCE_SCATTER:
		WORLD_REQUIRE(ncclReduceScatter(from, to, count, type, ncclSum, comm, stream));
		break;
	case BROADCAST:
		WORLD_REQUIRE(ncclBroadcast(from, to, count, type, root, comm, stream));
		break;
	default:
		WORLD_REQUIRE(ncclReduce(from, to, count, type, ncclSum, root, comm, stream));
	}
	tell(w, local, funcs[func].name, (int)w->seq[local][func], count, type,
	     funcs[func].per_rank ? bytes * (size_t)w->ranks : bytes,
	     funcs[func].rooted ? root : NO_NUMBER, NO_NUMBER);
	w->seq[local][func] += count != 0;
}

void world_collective(struct world *w, enum world_func func, size_t count,
		      enum nccl_type type, int root)
{
	if (w->local > 1)
		world_group_start();
	for (int i = 0; i < w->local; i++)
		world_call(w, i, func, count, type, root);
	if (w->local > 1)
		world_group_end();
	world_settle(w);
}

static void tell_p2p(struct world *w, int local, size_t count, enum nccl_type type,
		     int to, int from)
{
	size_t bytes = count * types[type].bytes;

	tell(w, local, "Send", NO_NUMBER, count, type, bytes, NO_NUMBER, to);
	tell(w, local, "Recv", NO_NUMBER, count, type, bytes, NO_NUMBER, from);
}

static void send_recv(struct world *w, int local, size_t count, enum nccl_type type,
		      int to, int from, bool in_place)
{
	char *source = buffer();
	char *target = in_place ? source : source + BUFFER_BYTES / 2;

	turn_to(w, local);
	WORLD_REQUIRE(ncclSend(source, count, type, to, w->comm[local], w->stream[local]));
	WORLD_REQUIRE(ncclRecv(target, count, type, from, w->comm[local], w->stream[local]));
	if (in_place)		/* nothing to do: NCCL tells of the calls, which have no peer */
		to = from = NO_NUMBER;
	tell_p2p(w, local, count, type, to, from);
}

void world_send_call(struct world *w, int local, size_t count, enum nccl_type type)
{
	int to = (w->rank[local] + 1) % w->ranks;

	turn_to(w, local);
	WORLD_REQUIRE(ncclSend(buffer(), count, type, to, w->comm[local], w->stream[local]));
	tell(w, local, "Send", NO_NUMBER, count, type, count * types[type].bytes, NO_NUMBER, to);
}

void world_recv_call(struct world *w, int local, size_t count, enum nccl_type type)
{
	int from = (w->rank[local] + w->ranks - 1) % w->ranks;

	turn_to(w, local);
	WORLD_REQUIRE(ncclRecv(buffer() + BUFFER_BYTES / 2, count, type, from, w->comm[local],
			       w->stream[local]));
	tell(w, local, "Recv", NO_NUMBER, count, type, count * types[type].bytes, NO_NUMBER, from);
}

void world_ring_call(struct world *w, int local, size_t count, enum nccl_type type)
{
	int r = w->rank[local];

	world_group_start();
	send_recv(w, local, count, type, (r + 1) % w->ranks, (r + w->ranks - 1) % w->ranks, false);
	world_group_end();
}

void world_ring(struct world *w, size_t count, enum nccl_type type)
{
	world_group_start();
	for (int i = 0; i < w->local; i++)
		world_ring_call(w, i, count, type);
	world_group_end();
	world_settle(w);
}

static void native_alltoall(struct world *w, int local, size_t count, enum nccl_type type)
{
	turn_to(w, local);
	WORLD_REQUIRE(ncclAlltoAll(buffer(), buffer() + BUFFER_BYTES / 2, count, type,
			     w->comm[local], w->stream[local]));
	for (int peer = 0; peer < w->ranks; peer++)
		tell_p2p(w, local, count, type, peer, peer);
}

void world_alltoall(struct world *w, size_t count, enum nccl_type type, enum world_self self)
{
	world_group_start();
	for (int i = 0; i < w->local; i++) {
		if (self == SELF_NATIVE) {
			native_alltoall(w, i, count, type);
			continue;
		}
		for (int peer = 0; peer < w->ranks; peer++)
			if (peer != w->rank[i] || self != SELF_SKIPPED)
				send_recv(w, i, count, type, peer, peer,
					  peer == w->rank[i] && self == SELF_IN_PLACE);
	}
	world_group_end();
	world_settle(w);
}

void world_everything(struct world *w, int turn)
{
	size_t n = (size_t)turn;

	world_collective(w, ALL_REDUCE, 1000 + n, ncclFloat32, 0);
	world_collective(w, ALL_REDUCE, 1 << 18, ncclBfloat16, 0);
	world_collective(w, ALL_GATHER, 100 + n, ncclInt64, 0);
	world_collective(w, REDUCE_SCATTER, 3000, ncclFloat16, 0);
	world_collective(w, BROADCAST, 4097, ncclUint8, turn % w->ranks);
	world_collective(w, REDUCE, 77, ncclFloat64, (turn + 1) % w->ranks);
	world_ring(w, 5000 + n, ncclInt32);
}
