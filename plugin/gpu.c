/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dlopen() lived in libdl until glibc 2.34, and its name there is bound to a new
 * version since.  Asked for weakly and in its first version it is found wherever
 * it is: whoever loaded this library has used it.
 */
#include "plugin/gpu.h"

#include <dlfcn.h>
#include <string.h>

#if defined(__x86_64__)
#define FIRST_VERSION "GLIBC_2.2.5"
#elif defined(__aarch64__)
#define FIRST_VERSION "GLIBC_2.17"
#endif

extern __typeof__(dlopen) gpu_dlopen __attribute__((weak));
extern __typeof__(dlsym) gpu_dlsym __attribute__((weak));
extern __typeof__(dlclose) gpu_dlclose __attribute__((weak));
__asm__(".symver gpu_dlopen, dlopen@" FIRST_VERSION);
__asm__(".symver gpu_dlsym, dlsym@" FIRST_VERSION);
__asm__(".symver gpu_dlclose, dlclose@" FIRST_VERSION);

struct uuid {
	uint8_t byte[16];
};

struct driver {
	int (*get_device)(int *device);
	int (*get_uuid)(struct uuid *uuid, int device);
	int (*get_bus_id)(char *text, int room, int device);
};

static bool find_functions(void *lib, struct driver *cu)
{
	void *uuid = gpu_dlsym(lib, "cuDeviceGetUuid_v2");	/* tells MIG instances apart */

	if (!uuid)
		uuid = gpu_dlsym(lib, "cuDeviceGetUuid");
	*(void **)&cu->get_device = gpu_dlsym(lib, "cuCtxGetDevice");
	*(void **)&cu->get_uuid = uuid;
	*(void **)&cu->get_bus_id = gpu_dlsym(lib, "cuDeviceGetPCIBusId");
	return cu->get_device && cu->get_uuid && cu->get_bus_id;
}

static bool ask(const struct driver *cu, struct uuid *uuid, char bus_id[32])
{
	int device;

	return cu->get_device(&device) == 0 && cu->get_uuid(uuid, device) == 0 &&
	       cu->get_bus_id(bus_id, 32, device) == 0;
}

bool gpu_identify(struct gpu *gpu)
{
	struct gpu found = { .bus_id = "" };
	struct driver cu;
	struct uuid id;
	bool known;
	void *lib;

	if (!gpu_dlopen || !gpu_dlsym || !gpu_dlclose)
		return false;
	lib = gpu_dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
	if (!lib)
		return false;
	known = find_functions(lib, &cu) && ask(&cu, &id, found.bus_id);
	gpu_dlclose(lib);
	if (!known)
		return false;
	memcpy(found.uuid, id.byte, sizeof(found.uuid));
	found.bus_id[sizeof(found.bus_id) - 1] = '\0';
	*gpu = found;
	return true;
}
