/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NCCLINSPD_AROUND_NVML_H
#define NCCLINSPD_AROUND_NVML_H

/*
 * NVIDIA's management library, which is loaded when it is wanted and never linked.  Any call may
 * take seconds, or never return, where a GPU has fallen off the bus: only a thread that nobody
 * waits for makes them (sensors.c).
 */

#include "judge/gpu.h"

#define NVML_LIBRARY	"libnvidia-ml.so.1"
#define NVML_WHY	160

struct nvml {
	void *library;		/* NULL: it is not loaded */
	/* Public names of nvml.h; NULL: this version has none, except for the first four. */
	int (*init)(void);
	int (*shutdown)(void);
	const char *(*error_text)(int error);
	int (*find)(const char *pci_bus_id, void **device);
	int (*reasons)(void *device, unsigned long long *reasons);
	int (*clock)(void *device, unsigned int which, unsigned int *mhz);
	int (*most_clock)(void *device, unsigned int which, unsigned int *mhz);
	int (*power)(void *device, unsigned int *mw);
	int (*power_limit)(void *device, unsigned int *mw);
	int (*temperature)(void *device, unsigned int which, unsigned int *celsius);
	int (*ecc)(void *device, unsigned int which, unsigned int since, unsigned long long *n);
	int (*remapped)(void *device, unsigned int *corrected, unsigned int *uncorrected,
			unsigned int *pending, unsigned int *failed);
	int (*link_state)(void *device, unsigned int link, unsigned int *active);
	int (*link_errors)(void *device, unsigned int link, unsigned int which,
			   unsigned long long *n);
};

/* False: there is none, or it does not work; `why` says so.  The driver keeps GPUs for it. */
bool nvml_open(struct nvml *nvml, const char *library, char why[NVML_WHY]);

/* The driver lets go of the GPUs, so that they can be reset.  Nothing, where it is not open. */
void nvml_close(struct nvml *nvml);

/*
 * Read the GPU that g->pci_bus_id names: GPU_QUICK_VALUES, whether it is lost, and, if `whole`,
 * GPU_SLOW_VALUES, which take many calls.
 */
void nvml_read(const struct nvml *nvml, struct gpu_health *g, bool whole);

#endif
