/* SPDX-License-Identifier: Apache-2.0 */
/* The CUDA driver is asked, if it is in the process already. */
#include "plugin/gpu.h"

#include <string.h>

#include "plugin/loaded.h"

struct uuid {
	uint8_t byte[16];
};

struct driver {
	int (*get_device)(int *device);
	int (*get_uuid)(struct uuid *uuid, int device);
	int (*get_bus_id)(char *text, int room, int device);
};

static bool driver_find_functions(void *lib, struct driver *cu)
{
	void *uuid = loaded_symbol(lib, "cuDeviceGetUuid_v2");	/* tells MIG instances apart */

	if (!uuid)
		uuid = loaded_symbol(lib, "cuDeviceGetUuid");
	*(void **)&cu->get_device = loaded_symbol(lib, "cuCtxGetDevice");
	*(void **)&cu->get_uuid = uuid;
	*(void **)&cu->get_bus_id = loaded_symbol(lib, "cuDeviceGetPCIBusId");
	return cu->get_device && cu->get_uuid && cu->get_bus_id;
}

static bool driver_ask(const struct driver *cu, struct uuid *uuid, char bus_id[32])
{
	int device;

	return cu->get_device(&device) == 0 && cu->get_uuid(uuid, device) == 0 &&
	       cu->get_bus_id(bus_id, 32, device) == 0;
}

bool gpu_identify(struct gpu_identity *gpu)
{
	struct gpu_identity found = { .bus_id = "" };
	struct driver cu;
	struct uuid id;
	bool known;
	void *lib;

	lib = loaded_library("libcuda.so.1");
	if (!lib)
		return false;
	known = driver_find_functions(lib, &cu) && driver_ask(&cu, &id, found.bus_id);
	loaded_close(lib);
	if (!known)
		return false;
	memcpy(found.uuid, id.byte, sizeof(found.uuid));
	found.bus_id[sizeof(found.bus_id) - 1] = '\0';
	*gpu = found;
	return true;
}
