/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dlopen() and its like lived in libdl until glibc 2.34, and their names are bound to
 * new versions since.  Asked for weakly and in their first version they are found wherever
 * they are: whoever loaded this library has used them.
 */
#include "plugin/loaded.h"

#include <dlfcn.h>
#include <stddef.h>

#if defined(__x86_64__)
#define FIRST_VERSION "GLIBC_2.2.5"
#elif defined(__aarch64__)
#define FIRST_VERSION "GLIBC_2.17"
#endif

extern __typeof__(dlopen) first_dlopen __attribute__((weak));
extern __typeof__(dlsym) first_dlsym __attribute__((weak));
extern __typeof__(dlclose) first_dlclose __attribute__((weak));
extern __typeof__(dladdr) first_dladdr __attribute__((weak));
__asm__(".symver first_dlopen, dlopen@" FIRST_VERSION);
__asm__(".symver first_dlsym, dlsym@" FIRST_VERSION);
__asm__(".symver first_dlclose, dlclose@" FIRST_VERSION);
__asm__(".symver first_dladdr, dladdr@" FIRST_VERSION);

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
