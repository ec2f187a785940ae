/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_NCCL_NVML_H
#define TESTS_NCCL_NVML_H

/* What NCCL looks up in NVML, under its public names; nvml.h of CUDA describes it. */

#include <stdint.h>

#pragma GCC visibility push(default)
int nvmlInit(void);
int nvmlShutdown(void);
const char *nvmlErrorString(int error);
int nvmlDeviceGetCount(unsigned int *count);
int nvmlDeviceGetHandleByIndex(unsigned int index, uintptr_t *device);
int nvmlDeviceGetHandleByPciBusId(const char *text, uintptr_t *device);
int nvmlDeviceGetIndex(uintptr_t device, unsigned int *index);
int nvmlDeviceGetNvLinkState(uintptr_t device, unsigned int link, int *active);
int nvmlDeviceGetNvLinkCapability(uintptr_t device, unsigned int link, int which,
				  unsigned int *result);
int nvmlDeviceGetCudaComputeCapability(uintptr_t device, int *major, int *minor);
int nvmlDeviceGetP2PStatus(uintptr_t device, uintptr_t peer, int which, int *status);
int nvmlDeviceGetNvLinkRemotePciInfo(void);
int nvmlDeviceGetFieldValues(void);
int nvmlDeviceGetGpuFabricInfoV(void);
int nvmlSystemGetConfComputeState(void);
struct pci_info;
int nvmlDeviceGetPciInfo_v3(uintptr_t device, struct pci_info *info);
int nvmlDeviceGetCurrPcieLinkGeneration(uintptr_t device, unsigned int *generation);
int nvmlDeviceGetCurrPcieLinkWidth(uintptr_t device, unsigned int *width);
int nvmlDeviceGetPciInfoExt(void);
int nvmlDeviceGetPcieLinkMaxSpeed(void);
int nvmlDeviceGetPlatformInfo(void);
#pragma GCC visibility pop

#endif
