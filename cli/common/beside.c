/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the programs and libraries that were built or installed beside this one. */
#include "cli/common/beside.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

bool beside_find(const char *name, const char *dir, char *path, size_t size)
{
	char self[PATH_MAX];
	ssize_t len = readlink("/proc/self/exe", self, sizeof(self) - 1);

	if (len <= 0)
		return false;
	self[len] = '\0';
	for (size_t i = 0; i < 2 && strrchr(self, '/'); i++) {
		int n;

		*strrchr(self, '/') = '\0';
		n = snprintf(path, size, "%s/%s%s%s", self, i ? dir : "", i ? "/" : "", name);
		if (n > 0 && (size_t)n < size && !access(path, R_OK))
			return true;
	}
	return false;
}

bool beside_names_plugin(const char *text)
{
	return strstr(text, "libnccl-profiler-insp.so") ||
	       strstr(text, "libnccl-profiler-insp-chain.so");
}
