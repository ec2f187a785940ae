/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The libnvidia-ml.so.1 of a machine with FAKE_GPU_COUNT devices that have no
 * NVLink and cannot reach each other.  A handle is the device's bus number.
 */
#include "nvml.h"

#include <stdio.h>
#include <stdlib.h>

enum nvml_result { NVML_OK, NVML_INVALID_ARGUMENT = 2, NVML_NOT_SUPPORTED = 3 };

#define P2P_NOT_SUPPORTED	1	/* nvmlGpuP2PStatus_t */

int nvmlInit(void)
{
	return NVML_OK;
}

int nvmlShutdown(void)
{
	return NVML_OK;
}

const char *nvmlErrorString(int error)
{
	return error ? "an error of the fake NVML" : "no error";
}

int nvmlDeviceGetCount(unsigned int *count)
{
	const char *text = getenv("FAKE_GPU_COUNT");

	*count = text ? (unsigned int)strtoul(text, NULL, 10) : 2;
	return NVML_OK;
}

int nvmlDeviceGetHandleByIndex(unsigned int index, uintptr_t *device)
{
	*device = index + 1;
	return NVML_OK;
}

int nvmlDeviceGetHandleByPciBusId(const char *text, uintptr_t *device)
{
	unsigned int bus;

	if (sscanf(text, "%*x:%x", &bus) != 1)
		return NVML_INVALID_ARGUMENT;
	*device = bus;
	return NVML_OK;
}

int nvmlDeviceGetIndex(uintptr_t device, unsigned int *index)
{
	*index = (unsigned int)device - 1;
	return NVML_OK;
}

int nvmlDeviceGetNvLinkState(uintptr_t device, unsigned int link, int *active)
{
	(void)device;
	(void)link;
	*active = 0;
	return NVML_OK;
}

int nvmlDeviceGetNvLinkCapability(uintptr_t device, unsigned int link, int which,
				  unsigned int *result)
{
	(void)device;
	(void)link;
	(void)which;
	*result = 0;
	return NVML_OK;
}

int nvmlDeviceGetCudaComputeCapability(uintptr_t device, int *major, int *minor)
{
	(void)device;
	*major = 9;
	*minor = 0;
	return NVML_OK;
}

int nvmlDeviceGetP2PStatus(uintptr_t device, uintptr_t peer, int which, int *status)
{
	(void)device;
	(void)peer;
	(void)which;
	*status = P2P_NOT_SUPPORTED;
	return NVML_OK;
}

int nvmlDeviceGetNvLinkRemotePciInfo(void)
{
	return NVML_NOT_SUPPORTED;
}

int nvmlDeviceGetFieldValues(void)
{
	return NVML_NOT_SUPPORTED;
}

int nvmlDeviceGetGpuFabricInfoV(void)
{
	return NVML_NOT_SUPPORTED;
}

int nvmlSystemGetConfComputeState(void)
{
	return NVML_NOT_SUPPORTED;
}

struct pci_info {		/* nvmlPciInfo_t, its public beginning */
	char bus_id[16];
	unsigned int domain, bus, device, pci_device, pci_subsystem;
};

int nvmlDeviceGetPciInfo_v3(uintptr_t device, struct pci_info *info)
{
	snprintf(info->bus_id, sizeof(info->bus_id), "0000:%02x:00.0", (unsigned int)device);
	info->domain = 0;
	info->bus = (unsigned int)device;
	info->device = 0;
	info->pci_device = 0x233010de;
	info->pci_subsystem = 0x16c110de;
	return NVML_OK;
}

int nvmlDeviceGetCurrPcieLinkGeneration(uintptr_t device, unsigned int *generation)
{
	(void)device;
	*generation = 5;
	return NVML_OK;
}

int nvmlDeviceGetCurrPcieLinkWidth(uintptr_t device, unsigned int *width)
{
	(void)device;
	*width = 16;
	return NVML_OK;
}

int nvmlDeviceGetPciInfoExt(void)
{
	return NVML_NOT_SUPPORTED;
}

int nvmlDeviceGetPcieLinkMaxSpeed(void)
{
	return NVML_NOT_SUPPORTED;
}

int nvmlDeviceGetPlatformInfo(void)
{
	return NVML_NOT_SUPPORTED;
}
