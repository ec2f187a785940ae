/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory.  The device's is the host's, page by page, zeroed, and it is never
 * given back: a proxy or the GPU's thread may still be looking at it.
 */
#include "fake.h"
#include "gpu.h"

#include <string.h>
#include <sys/mman.h>

#define CUDA_OUT_OF_MEMORY	2
#define MEMORY_TYPE_DEVICE	2

struct pointer_attributes {	/* cudaPointerAttributes */
	int type;
	int device;
	void *device_pointer;
	void *host_pointer;
	long reserved[8];
};

struct ipc_handle {		/* cudaIpcMemHandle_t */
	void *address;
	char unused[56];
};

int cudaMalloc(void **memory, size_t bytes)
{
	void *p = mmap(NULL, bytes ? bytes : 1, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		return CUDA_OUT_OF_MEMORY;
	*memory = p;
	return CUDA_OK;
}

/* What a communicator's kernels know is freed when its kernels have ended. */
static int cudaFree(void *memory)
{
	gpu_forget(memory);
	return CUDA_OK;
}

static int nothing_to_do(void)
{
	return CUDA_OK;
}

static int cudaMemPoolCreate(void **pool, const void *properties)
{
	(void)properties;
	*pool = pool;
	return CUDA_OK;
}

static int cudaHostGetDevicePointer(void **device, void *host, unsigned int flags)
{
	(void)flags;
	*device = host;
	return CUDA_OK;
}

static int cudaMemcpy(void *to, const void *from, size_t bytes)
{
	memmove(to, from, bytes);
	return CUDA_OK;
}

static int cudaMemset(void *to, int value, size_t bytes)
{
	memset(to, value, bytes);
	return CUDA_OK;
}

static int cudaPointerGetAttributes(struct pointer_attributes *a, const void *p)
{
	*a = (struct pointer_attributes){
		.type = MEMORY_TYPE_DEVICE,
		.device = fake_device(),
		.device_pointer = (void *)p,
	};
	return CUDA_OK;
}

static int cudaIpcGetMemHandle(struct ipc_handle *handle, void *p)
{
	*handle = (struct ipc_handle){ .address = p };
	return CUDA_OK;
}

static int cudaIpcOpenMemHandle(void **p, struct ipc_handle handle, unsigned int flags)
{
	(void)flags;
	*p = handle.address;
	return CUDA_OK;
}

/* Arguments that come after those that are looked at change nothing. */
const struct fake_call fake_memory_calls[] = {
	FAKE_CALL(cudaMalloc),
	{ "cudaMallocAsync", (void *)cudaMalloc },
	{ "cudaMallocFromPoolAsync", (void *)cudaMalloc },
	{ "cudaHostAlloc", (void *)cudaMalloc },
	FAKE_CALL(cudaFree),
	{ "cudaFreeAsync", (void *)nothing_to_do },
	{ "cudaFreeHost", (void *)nothing_to_do },
	FAKE_CALL(cudaMemPoolCreate),
	{ "cudaMemPoolDestroy", (void *)nothing_to_do },
	{ "cudaMemPoolSetAttribute", (void *)nothing_to_do },
	{ "cudaHostRegister", (void *)nothing_to_do },
	{ "cudaHostUnregister", (void *)nothing_to_do },
	FAKE_CALL(cudaHostGetDevicePointer),
	FAKE_CALL(cudaMemcpy),
	{ "cudaMemcpyAsync", (void *)cudaMemcpy },
	FAKE_CALL(cudaMemset),
	{ "cudaMemsetAsync", (void *)cudaMemset },
	FAKE_CALL(cudaPointerGetAttributes),
	FAKE_CALL(cudaIpcGetMemHandle),
	FAKE_CALL(cudaIpcOpenMemHandle),
	{ "cudaIpcCloseMemHandle", (void *)nothing_to_do },
	/* NCCL's sockets send memory of this GPU as well as any other, if they are let. */
	{ "_Z18ncclNetSocketRegMrPvS_miPS_", (void *)nothing_to_do },
	{ NULL, NULL },
};
