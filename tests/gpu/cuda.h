/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_GPU_CUDA_H
#define TESTS_GPU_CUDA_H

/*
 * The part of the CUDA runtime that the program here uses beside that of
 * tests/nccl/fake.h, declared by us.  Nothing of CUDA or NCCL is linked: calls find
 * what cuda_find() has loaded.
 */

#include <stdbool.h>

/*
 * Load NCCL and the CUDA runtime: those that NCCL_LIB and CUDART_LIB name, or else
 * those that the system finds; what a preloaded library brings goes before both.
 * Returns 0; or 77 and says why: there is no library, or no GPU.
 */
int cuda_find(void);

/* The CUDA that was found measures time and captures graphs; a played one does not. */
bool cuda_has_time(void);

/* Whether the NCCL that was found has this function. */
bool cuda_finds(const char *function);

/* End the program if that is an error. */
void cuda_require(int result, const char *what);
#define CUDA_REQUIRE(call)	cuda_require(call, #call)

enum { cudaStreamCaptureModeThreadLocal = 1 };

int cudaEventCreate(void **event);
int cudaEventRecord(void *event, void *stream);
int cudaEventElapsedTime(float *ms, void *from, void *to);
int cudaLaunchHostFunc(void *stream, void (*function)(void *argument), void *argument);
int cudaStreamBeginCapture(void *stream, int mode);
int cudaStreamEndCapture(void *stream, void **graph);
int cudaGraphInstantiateWithFlags(void **exec, void *graph, unsigned long long flags);
int cudaGraphLaunch(void *exec, void *stream);
int cudaGraphExecDestroy(void *exec);
int cudaGraphDestroy(void *graph);

#endif
