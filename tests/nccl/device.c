/* SPDX-License-Identifier: Apache-2.0 */
/* Devices: what NCCL asks about them, answered for something like an H100. */
#include "fake.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shared.h"

#define CUDA_VERSION	13000

/* Public numbers of cudaDeviceAttr and CUdevice_attribute; all others are 0. */
static const struct {
	int number;
	int value;
} attributes[] = {
	{  16, 132 },		/* multiprocessors */
	{  41, 1 },		/* unified addressing */
	{  75, 9 },		/* compute capability, major */
	{  81, 233472 },	/* shared memory per multiprocessor */
	{  97, 232448 },	/* shared memory per block, at most */
};

struct func_attributes {	/* cudaFuncAttributes, its public beginning */
	size_t shared_bytes, const_bytes, local_bytes;
	int max_threads;
	int registers;
	int ptx_version;
	int binary_version;
	int cache_mode;
	int max_dynamic_shared_bytes;
};

static _Thread_local int current;

long fake_setting(const char *name, long otherwise)
{
	const char *text = getenv(name);

	return text ? strtol(text, NULL, 10) : otherwise;
}

int fake_device(void)
{
	return current;
}

void fake_set_device(int device)
{
	current = device;
}

int cudaGetDevice(int *device)
{
	*device = current;
	return CUDA_OK;
}

int cudaSetDevice(int device)
{
	current = device;
	return CUDA_OK;
}

static int cudaGetDeviceCount(int *count)
{
	*count = (int)fake_setting("FAKE_GPU_COUNT", 2);
	return CUDA_OK;
}

static int cuda_version(int *version)
{
	*version = CUDA_VERSION;
	return CUDA_OK;
}

static int no_error(void)
{
	return CUDA_OK;
}

static const char *cudaGetErrorString(int error)
{
	return error ? "an error of the fake CUDA" : "no error";
}

int cudaDeviceGetAttribute(int *value, int attribute, int device)
{
	(void)device;
	*value = 0;
	for (size_t i = 0; i < sizeof(attributes) / sizeof(*attributes); i++)
		if (attributes[i].number == attribute)
			*value = attributes[i].value;
	return CUDA_OK;
}

static int cudaGetDeviceProperties(char *properties, int device)
{
	memset(properties, 0, SIZE_cudaDeviceProp);
	strcpy(&MEMBER(properties, cudaDeviceProp, name, char), "fake");
	MEMBER(properties, cudaDeviceProp, totalGlobalMem, size_t) = (size_t)80 << 30;
	MEMBER(properties, cudaDeviceProp, major, int) = 9;
	MEMBER(properties, cudaDeviceProp, pciBusID, int) = device + 1;
	return CUDA_OK;
}

static int cudaDeviceGetPCIBusId(char *text, int size, int device)
{
	snprintf(text, (size_t)size, "0000:%02x:00.0", device + 1);
	return CUDA_OK;
}

static int cudaDeviceGetByPCIBusId(int *device, const char *text)
{
	unsigned int bus;

	if (sscanf(text, "%*x:%x", &bus) != 1)
		return CUDA_INVALID_VALUE;
	*device = (int)bus - 1;
	return CUDA_OK;
}

static int cudaDeviceCanAccessPeer(int *can, int device, int peer)
{
	(void)device;
	(void)peer;
	*can = 0;
	return CUDA_OK;
}

static int cudaFuncGetAttributes(struct func_attributes *a, const void *function)
{
	(void)function;
	*a = (struct func_attributes){
		.max_threads = 1024,
		.registers = 96,
		.ptx_version = 90,
		.binary_version = 90,
		.max_dynamic_shared_bytes = 232448,
	};
	return CUDA_OK;
}

static int cudaGetFuncBySymbol(void **function, void *symbol)
{
	*function = symbol;
	return CUDA_OK;
}

const struct fake_call fake_device_calls[] = {
	FAKE_CALL(cudaGetDevice),
	FAKE_CALL(cudaSetDevice),
	FAKE_CALL(cudaGetDeviceCount),
	{ "cudaDriverGetVersion", (void *)cuda_version },
	{ "cudaRuntimeGetVersion", (void *)cuda_version },
	{ "cudaGetLastError", (void *)no_error },
	{ "cudaPeekAtLastError", (void *)no_error },
	FAKE_CALL(cudaGetErrorString),
	FAKE_CALL(cudaDeviceGetAttribute),
	FAKE_CALL(cudaGetDeviceProperties),
	FAKE_CALL(cudaDeviceGetPCIBusId),
	FAKE_CALL(cudaDeviceGetByPCIBusId),
	FAKE_CALL(cudaDeviceCanAccessPeer),
	{ "cudaDeviceEnablePeerAccess", (void *)no_error },
	{ "cudaDeviceSetLimit", (void *)no_error },
	{ "cudaDeviceSynchronize", (void *)no_error },
	FAKE_CALL(cudaFuncGetAttributes),
	{ "cudaFuncSetAttribute", (void *)no_error },
	FAKE_CALL(cudaGetFuncBySymbol),
	{ NULL, NULL },
};
