/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PLUGIN_GPU_H
#define PLUGIN_GPU_H

/* The identity of the GPU that a communicator uses: NCCL tells the profiler nothing of it. */

#include <stdbool.h>
#include <stdint.h>

struct gpu_identity {
	uint8_t uuid[16];
	char bus_id[32];	/* text, zero-terminated */
};

/*
 * The GPU that is current in the calling thread, as the CUDA driver names it, if
 * the process has the driver loaded; we never load it.  False: not known, and
 * nothing is written.  Takes the loader's lock and the driver's: hold none.
 */
bool gpu_identify(struct gpu_identity *gpu);

#endif
