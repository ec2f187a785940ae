/* SPDX-License-Identifier: Apache-2.0 */
#ifndef READER_BASE_PROC_H
#define READER_BASE_PROC_H

/* The GPUs that NVIDIA's driver shows in procfs. */

#include <stdint.h>

#define PROC_GPUS	"/proc/driver/nvidia/gpus"

/*
 * The number that nvidia-smi gives the GPU at that place of the PCI bus: it counts them in the
 * order of their places.  `gpus` is a directory with an entry for each (PROC_GPUS).
 * UNKNOWN_I32: this one has none.
 */
int32_t proc_gpu_index(const char *gpus, const char *pci_bus_id);

#endif
