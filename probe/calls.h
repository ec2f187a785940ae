/* SPDX-License-Identifier: (Apache-2.0 OR GPL-2.0) */
#ifndef PROBE_CALLS_H
#define PROBE_CALLS_H

/*
 * Calls of NCCL's functions, as the program in the kernel (kernel/attach.c) counts them for
 * `ncclinsp-probe --attach`: the keys and values of its two maps.
 */

#ifdef __bpf__
#include "probe/kernel/types.h"
#else
#include <stdint.h>
#endif

#define CALLS_ROWS	16384u
#define CALLS_COMMS	1024u
#define CALLS_KEPT	64u	/* the last calls of a communicator: a power of two */

/*
 * Functions, by the arguments that have the count, the datatype and the communicator, from 1 on.
 * Collective ones are called by all ranks of a communicator in one order.  ncclBcast is missing,
 * since it calls ncclBroadcast.
 */
#define CALLS_FUNCTIONS(X)				\
	X(AllReduce,		true,	3, 4, 6)	\
	X(Broadcast,		true,	3, 4, 6)	\
	X(Reduce,		true,	3, 4, 7)	\
	X(AllGather,		true,	3, 4, 5)	\
	X(ReduceScatter,	true,	3, 4, 6)	\
	X(AlltoAll,		true,	3, 4, 5)	\
	X(Gather,		true,	3, 4, 6)	\
	X(Scatter,		true,	3, 4, 6)	\
	X(Send,			false,	2, 3, 5)	\
	X(Recv,			false,	2, 3, 5)

enum calls_function {
#define X(name, collective, count, datatype, comm) CALLS_##name,
	CALLS_FUNCTIONS(X)
#undef X
	CALLS_END
};

/* A probe's cookie: the function, the process's place, and where its communicators have a rank. */
#define CALLS_COOKIE(function, process, rank_at) \
	((uint64_t)(rank_at) << 32 | (uint64_t)(process) << 8 | (function))
#define CALLS_FUNCTION(cookie)	((uint32_t)(cookie) & 0xff)
#define CALLS_PROCESS(cookie)	((uint32_t)(cookie) >> 8)
#define CALLS_RANK_AT(cookie)	((uint32_t)((cookie) >> 32))	/* 0: not known */

/* A communicator of a process. */
struct calls_comm_key {
	uint64_t id;		/* NCCL's commHash; where that is not known, its address */
	int32_t rank, nranks;	/* -1: not known */
	uint32_t process;
	uint32_t zero;
};

struct calls_key {
	struct calls_comm_key comm;
	uint64_t count;
	uint32_t function;
	uint32_t datatype;	/* ncclDataType_t */
};

/* One call. */
struct calls_call {
	uint64_t at_ns;		/* CLOCK_MONOTONIC */
	uint64_t count;
	uint32_t function;
	uint32_t datatype;
};

/* The collective calls of a communicator: number i, from 0 on, at kept[i % CALLS_KEPT]. */
struct calls_comm {
	uint64_t calls;
	struct calls_call kept[CALLS_KEPT];
};

_Static_assert(sizeof(struct calls_comm_key) == 24, "no byte of a key is left to chance");
_Static_assert(sizeof(struct calls_key) == 40, "no byte of a key is left to chance");

#endif
