/* SPDX-License-Identifier: Apache-2.0 */
#ifndef READER_BASE_PROC_H
#define READER_BASE_PROC_H

/* Small files of procfs as text, and the GPUs that NVIDIA's driver shows there. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PROC_GPUS	"/proc/driver/nvidia/gpus"

/*
 * Reads as much of <dirfd>/<path> as fits into `text`, with a NUL.  False: none of it could
 * be read.
 */
bool proc_read(int dirfd, const char *path, char *text, size_t size);

/*
 * The number that nvidia-smi gives the GPU at that place of the PCI bus: it counts them in the
 * order of their places.  `gpus` is a directory with an entry for each (PROC_GPUS).
 * UNKNOWN_I32: this one has none.
 */
int32_t proc_gpu_index(const char *gpus, const char *pci_bus_id);

#endif
