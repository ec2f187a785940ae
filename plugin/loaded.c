/* SPDX-License-Identifier: Apache-2.0 */
/* Asks the loader for libraries, symbols and addresses, whatever C library the job has. */
#include "plugin/loaded.h"

#include <dlfcn.h>
#include <stddef.h>
#include <string.h>

LOADED_FIRST(dlopen);
LOADED_FIRST(dlsym);
LOADED_FIRST(dlclose);
LOADED_FIRST(dladdr);

void *loaded_library(const char *name)
{
	if (!first_dlopen || !first_dlsym || !first_dlclose)
		return NULL;
	return first_dlopen(name, RTLD_LAZY | RTLD_NOLOAD);
}

void *loaded_symbol(void *library, const char *name)
{
	return first_dlsym(library, name);
}

void loaded_close(void *library)
{
	first_dlclose(library);
}

bool loaded_is_rccl(const void *address)
{
	const char *slash;
	Dl_info info;

	if (!first_dladdr || !first_dladdr(address, &info) || !info.dli_fname)
		return false;
	slash = strrchr(info.dli_fname, '/');
	return !strncmp(slash ? slash + 1 : info.dli_fname, "librccl", strlen("librccl"));
}

uint32_t loaded_nccl_version(const void *address)
{
	int (*get_version)(int *version);
	int version = 0;
	void *library;
	Dl_info info;

	if (!first_dladdr || !first_dladdr(address, &info) || !info.dli_fname)
		return 0;
	library = loaded_library(info.dli_fname);
	if (!library)
		return 0;
	*(void **)&get_version = loaded_symbol(library, "ncclGetVersion");
	if (get_version && get_version(&version) != 0)
		version = 0;
	loaded_close(library);
	return version > 0 ? (uint32_t)version : 0;
}
