/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_NCCL_GPU_H
#define TESTS_NCCL_GPU_H

/*
 * The GPU: one thread that runs kernels, stream by stream and in order, and moves
 * data over the network connections of every communicator that it knows.
 */

#include <stdint.h>

struct stream;

/* Streams are for ever: events point to them. */
struct stream *gpu_stream_new(void);

/*
 * Queue one kernel.  `args` is the argument block that NCCL built; it is read
 * before this returns.  Waits, as CUDA does, while 1000 kernels are queued.
 */
void gpu_launch(struct stream *stream, const char *args);

/* Kernels launched to a stream so far, and how many of them have ended. */
uint64_t gpu_launched(struct stream *stream);
uint64_t gpu_ended(struct stream *stream);

/* Wait until so many kernels of the stream have ended. */
void gpu_wait(struct stream *stream, uint64_t kernels);

/* The communicator whose kernel argument lies there, if any, is gone. */
void gpu_forget(const void *comm);

#endif
