/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The driver's functions, which NCCL asks the runtime for by name.  What is not
 * here does not exist in this driver, and NCCL does without.
 */
#include "fake.h"
#include "gpu.h"
#include "stream.h"

#include <stdint.h>
#include <string.h>

struct launch_config {		/* CUlaunchConfig, its public beginning */
	unsigned int grid[3];
	unsigned int block[3];
	unsigned int shared_bytes;
	void *stream;
};

static int get_error(int error, const char **text)
{
	*text = error ? "an error of the fake driver" : "no error";
	return CUDA_OK;
}

static int device_get(int *device, int ordinal)
{
	*device = ordinal;
	return CUDA_OK;
}

static int device_get_uuid(unsigned char *uuid, int device)
{
	memset(uuid, 0, 16);
	uuid[15] = (unsigned char)(device + 1);
	return CUDA_OK;
}

/* A context is its device's number, counted from 1. */
static int ctx_get_current(uintptr_t *context)
{
	*context = (uintptr_t)fake_device() + 1;
	return CUDA_OK;
}

static int ctx_set_current(uintptr_t context)
{
	fake_set_device(context ? (int)context - 1 : 0);
	return CUDA_OK;
}

static int ctx_get_device(int *device)
{
	*device = fake_device();
	return CUDA_OK;
}

static int ctx_destroy(void)
{
	return CUDA_OK;
}

static int mem_get_address_range(uintptr_t *base, size_t *bytes, uintptr_t p)
{
	if (base)
		*base = p;
	if (bytes)
		*bytes = (size_t)1 << 30;
	return CUDA_OK;
}

static int mem_get_granularity(size_t *bytes)
{
	*bytes = (size_t)2 << 20;
	return CUDA_OK;
}

static int pointer_get_attribute(int *value)
{
	*value = 0;
	return CUDA_OK;
}

/* NCCL passes one argument, or a list of tagged pairs whose first is it. */
static int launch_kernel_ex(const struct launch_config *config, void *function,
			    void **params, void **extra)
{
	(void)function;
	gpu_launch(stream_of(config->stream), extra ? extra[1] : params[0]);
	return CUDA_OK;
}

static const struct fake_call driver[] = {
	{ "cuGetErrorString", (void *)get_error },
	{ "cuGetErrorName", (void *)get_error },
	{ "cuDeviceGet", (void *)device_get },
	{ "cuDeviceGetAttribute", (void *)cudaDeviceGetAttribute },
	{ "cuDeviceGetUuid", (void *)device_get_uuid },
	{ "cuCtxCreate", (void *)ctx_get_current },
	{ "cuCtxDestroy", (void *)ctx_destroy },
	{ "cuCtxGetCurrent", (void *)ctx_get_current },
	{ "cuCtxSetCurrent", (void *)ctx_set_current },
	{ "cuCtxGetDevice", (void *)ctx_get_device },
	{ "cuMemGetAddressRange", (void *)mem_get_address_range },
	{ "cuMemGetAllocationGranularity", (void *)mem_get_granularity },
	{ "cuPointerGetAttribute", (void *)pointer_get_attribute },
	{ "cuLaunchKernelEx", (void *)launch_kernel_ex },
	{ NULL, NULL },
};

static int entry_point(const char *name, void **function, int *status)
{
	const struct fake_call *call = driver;

	while (call->name && strcmp(call->name, name) != 0)
		call++;
	*function = call->function;
	if (status)
		*status = call->name ? 0 : 1;	/* found, or no such symbol */
	return CUDA_OK;
}

static int cudaGetDriverEntryPoint(const char *name, void **function,
				   unsigned long long flags, int *status)
{
	(void)flags;
	return entry_point(name, function, status);
}

static int cudaGetDriverEntryPointByVersion(const char *name, void **function,
					    unsigned int version,
					    unsigned long long flags, int *status)
{
	(void)version;
	(void)flags;
	return entry_point(name, function, status);
}

const struct fake_call fake_driver_calls[] = {
	FAKE_CALL(cudaGetDriverEntryPoint),
	FAKE_CALL(cudaGetDriverEntryPointByVersion),
	{ NULL, NULL },
};
