/* SPDX-License-Identifier: Apache-2.0 */
/* Of a GPU nothing but the name of its directory is looked at: to read there may wake it. */
#include "reader/base/proc.h"

#include <dirent.h>
#include <stdbool.h>
#include <stdio.h>

#include "util/cleanup.h"
#include "util/unknown.h"

/* Its domain, bus, device and function as one number, however many digits each has. */
static uint64_t bus_place(const char *text)
{
	unsigned domain, bus, device, function;

	if (sscanf(text, "%8x:%2x:%2x.%1x", &domain, &bus, &device, &function) != 4)
		return UINT64_MAX;
	return (uint64_t)domain << 24 | bus << 16 | device << 8 | function;
}

int32_t proc_gpu_index(const char *gpus, const char *pci_bus_id)
{
	uint64_t wanted = bus_place(pci_bus_id), place;
	int32_t before = 0;
	bool found = false;
	struct dirent *entry;
	CLEANUP(cleanup_closedirp) DIR *dir = opendir(gpus);

	while (dir && (entry = readdir(dir))) {
		place = bus_place(entry->d_name);
		before += place < wanted;
		found = found || (place == wanted && place != UINT64_MAX);
	}
	return found ? before : UNKNOWN_I32;
}
