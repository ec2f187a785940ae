/* SPDX-License-Identifier: Apache-2.0 */
/* NCCL's search rules. */
#include "tests/sim/loader.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

int loader_newest(int release)
{
	static const int newest[] = { 1, 2, 2, 3, 4, 5, 6, 6, 7 };	/* 2.23 to 2.31 */

	return newest[release - 23];
}

static void * __attribute__((format(printf, 2, 0)))
open_as(struct loader *loader, const char *format, const char *value)
{
	int n = snprintf(loader->name, sizeof(loader->name), format, value);

	(void)n;	/* longer names are cut, as NCCL cuts them */
	return dlopen(loader->name, RTLD_NOW | RTLD_LOCAL);
}

static bool is_library_name(const char *value)
{
	size_t n = strlen(value);

	return !strncmp(value, "lib", 3) && n > 3 && !strcmp(value + n - 3, ".so");
}

static bool means_static(const char *value)
{
	return *value && !strncasecmp(value, "STATIC_PLUGIN", strlen(value));
}

/* A bare name may be the middle of a longer one. */
static void *open_name(struct loader *loader, const char *value, const char *longer)
{
	void *handle = open_as(loader, "%s", value);

	if (!handle && longer && !strchr(value, '/') && !is_library_name(value))
		handle = open_as(loader, longer, value);
	return handle;
}

/* The network library has been loaded by name before: it may hold a profiler, too. */
static void *open_net(struct loader *loader)
{
	const char *value = getenv("NCCL_NET_PLUGIN");

	return value && *value ? open_name(loader, value, "libnccl-net-%s.so") : NULL;
}

static void *open_value(struct loader *loader, const char *value, int release)
{
	void *handle;

	if (release >= 28 && value && !strcasecmp(value, "none"))
		return NULL;
	if (release >= 28 && value && means_static(value)) {
		strcpy(loader->name, "STATIC_PLUGIN");
		return dlopen(NULL, RTLD_NOW | RTLD_LOCAL);
	}
	if (value && *value)
		handle = open_name(loader, value, release >= 26 ? "libnccl-profiler-%s.so" : NULL);
	else
		handle = open_as(loader, "%s", "libnccl-profiler.so");
	return handle || release < 28 ? handle : open_net(loader);
}

int loader_open(struct loader *loader, const char *value, int release, int version, bool forced)
{
	char symbol[32];

	*loader = (struct loader){ 0 };
	loader->handle = open_value(loader, value, release);
	if (!loader->handle)
		return -ENOENT;
	for (int v = version; v > 0 && !loader->table; v = forced ? 0 : v - 1) {
		snprintf(symbol, sizeof(symbol), "ncclProfiler_v%d", v);
		loader->table = dlsym(loader->handle, symbol);
		loader->version = v;
	}
	if (loader->table)
		return 0;
	loader_close(loader);
	return -ENOSYS;
}

void loader_close(struct loader *loader)
{
	if (loader->handle)
		dlclose(loader->handle);
	*loader = (struct loader){ 0 };
}
