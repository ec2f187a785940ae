/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_SIM_LOADER_H
#define TESTS_SIM_LOADER_H

/* Finding a profiler library and the newest interface in it, as NCCL does. */

#include <stdbool.h>

struct loader {
	void *handle;		/* of dlopen */
	const void *table;	/* ncclProfiler_v<version> */
	int version;
	char name[256];		/* what was opened; buffer and limit are NCCL's */
};

/* The newest interface that NCCL 2.<release> knows. */
int loader_newest(int release);

/*
 * Open the library that `value` of NCCL_PROFILER_PLUGIN means to NCCL
 * 2.<release>; NULL and "" mean libnccl-profiler.so.  `version` is the newest
 * interface looked for, or the only one if `forced`.  Returns 0, -ENOENT if
 * nothing could be opened or none is wanted, or -ENOSYS if the library speaks
 * no known version.
 */
int loader_open(struct loader *loader, const char *value, int release, int version, bool forced);

void loader_close(struct loader *loader);

#endif
