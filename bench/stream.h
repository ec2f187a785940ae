/* SPDX-License-Identifier: Apache-2.0 */
#ifndef BENCH_STREAM_H
#define BENCH_STREAM_H

/*
 * What NCCL calls for one AllReduce over two nodes with every event asked for:
 * 4 channels, 8 steps each way, 84 events and 378 callbacks.
 */

#include "nccl/profiler.h"

#define STREAM_CHANNELS		4
#define STREAM_STEPS		8
#define STREAM_CALLBACKS	378

/* All calls in the calling thread; what was refused (NULL handle) is left alone. */
void stream_play(const struct nccl_profiler_v6 *p, void *context, uint64_t seq);

/* The same, each callback timed: raises *longest (ticks) if one took longer. */
void stream_play_timed(const struct nccl_profiler_v6 *p, void *context, uint64_t seq,
		       uint64_t *longest);

#endif
