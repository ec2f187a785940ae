/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A short file of procfs is read whole, with one read, into the caller's buffer.  Of a GPU nothing
 * but the name of its directory is looked at: to read there may wake it.
 */
#include "reader/base/proc.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "util/cleanup.h"
#include "util/unknown.h"

bool proc_read(int dirfd, const char *path, char *text, size_t size)
{
	CLEANUP(cleanup_closep) int fd = openat(dirfd, path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, text, size - 1);

	if (n <= 0)
		return false;
	text[n] = '\0';
	return true;
}

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
