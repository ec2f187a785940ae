/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_NCCL_FAKE_H
#define TESTS_NCCL_FAKE_H

/*
 * The CUDA that is played for the real libnccl.  libfake-cuda.so has functions of
 * the CUDA runtime under their own names, and tables of them by which patch.c
 * puts them into libnccl; programs may call them as well.
 *
 * Environment, read once:
 *
 *   FAKE_GPU_COUNT       devices of this process (2)
 *   FAKE_GPU_KERNEL_US   how long each part of a kernel takes (40)
 *   FAKE_GPU_STEP_BYTES  what a step over the network carries (8); never more
 *                        than the receiver has posted: 0 if that is nothing
 *   FAKE_GPU_DIARY       a file, for one JSON object per kernel that has ended: its
 *                        stream, and launched_ns, begin_ns and end_ns on the
 *                        monotonic clock
 *   FAKE_GPU_SYNC        1: kernels run within their launch, and only those
 *                        that need no network come to an end
 */

#include <stddef.h>

enum cuda_result {
	CUDA_OK			= 0,
	CUDA_INVALID_VALUE	= 1,
	CUDA_NOT_READY		= 600,
	CUDA_NOT_SUPPORTED	= 801,
};

/* A function by its public name; tables end with a NULL name. */
struct fake_call {
	const char *name;
	void *function;
};

#define FAKE_CALL(name)	{ #name, (void *)(name) }
#define FAKE_EXPORT	__attribute__((visibility("default")))

extern const struct fake_call fake_device_calls[];
extern const struct fake_call fake_memory_calls[];
extern const struct fake_call fake_stream_calls[];
extern const struct fake_call fake_driver_calls[];

/* The whole number in an environment variable, or `otherwise`. */
long fake_setting(const char *name, long otherwise);

/* The calling thread's device. */
int fake_device(void);
void fake_set_device(int device);

/* What CUDA is asked for most; programs that link with the library use these. */
FAKE_EXPORT int cudaSetDevice(int device);
FAKE_EXPORT int cudaGetDevice(int *device);
FAKE_EXPORT int cudaDeviceGetAttribute(int *value, int attribute, int device);
FAKE_EXPORT int cudaMalloc(void **memory, size_t bytes);
FAKE_EXPORT int cudaStreamCreateWithFlags(void **stream, unsigned int flags);
FAKE_EXPORT int cudaStreamDestroy(void *stream);
FAKE_EXPORT int cudaStreamSynchronize(void *stream);

/* Each part of the kernels that are launched from now on takes so long. */
FAKE_EXPORT void fake_kernels_last(long us);

#endif
