/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_NCCL_KERNEL_H
#define TESTS_NCCL_KERNEL_H

/* One launch of NCCL's kernel: which works it does on which channel, and its stamps. */

#include <stdbool.h>
#include <stdint.h>

struct batch {
	uint8_t channel;
	uint8_t part;		/* the how many-th batch of its channel */
	uint8_t works;
	uint64_t watched;	/* bit i: work i wants its times */
};

#define KERNEL_BATCHES	512

struct kernel {
	struct kernel *next;
	char *comm;		/* NCCL's ncclKernelComm */
	uint64_t part_ns;	/* how long each part takes */
	uint64_t launched_ns;	/* monotonic clock */
	uint64_t begin_ns;	/* just before its first stamp */
	unsigned int parts;	/* the most batches that a channel has */
	unsigned int batches;
	struct batch batch[KERNEL_BATCHES];
};

/* From the argument block of a launch.  The caller frees it. */
struct kernel *kernel_new(const char *args);

/* NCCL has told its kernels to give up. */
bool kernel_aborted(const struct kernel *kernel);

/* All channels begin, and end, that part now. */
void kernel_begin(const struct kernel *kernel, unsigned int part);
void kernel_end(const struct kernel *kernel, unsigned int part);

#endif
