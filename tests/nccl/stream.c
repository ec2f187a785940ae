/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Streams and events.  Only kernels take time, so an event is a stream and the
 * number of kernels that were launched before it.  A stream never waits for an
 * event: nothing is computed, so nothing can be too early.
 */
#include "fake.h"
#include "gpu.h"
#include "stream.h"

#include <stdlib.h>

#define DEVICES	16

struct event {
	struct stream *stream;
	uint64_t kernels;
};

/* A device's own stream, made when it is used first. */
static struct stream *own[DEVICES];

struct stream *stream_of(void *handle)
{
	struct stream **slot = &own[fake_device() % DEVICES];
	struct stream *none = NULL, *made;

	/* 1 and 2 are CUDA's names for the same stream. */
	if ((uintptr_t)handle > 2)
		return handle;
	if (__atomic_load_n(slot, __ATOMIC_ACQUIRE))
		return *slot;
	made = gpu_stream_new();
	__atomic_compare_exchange_n(slot, &none, made, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
	return *slot;
}

int cudaStreamCreateWithFlags(void **stream, unsigned int flags)
{
	(void)flags;
	*stream = gpu_stream_new();
	return CUDA_OK;
}

int cudaStreamDestroy(void *stream)
{
	(void)stream;
	return CUDA_OK;
}

int cudaStreamSynchronize(void *handle)
{
	struct stream *stream = stream_of(handle);

	gpu_wait(stream, gpu_launched(stream));
	return CUDA_OK;
}

static int cudaEventCreate(struct event **event)
{
	*event = calloc(1, sizeof(**event));
	return CUDA_OK;
}

static int cudaEventDestroy(struct event *event)
{
	free(event);
	return CUDA_OK;
}

static int cudaEventRecord(struct event *event, void *stream)
{
	event->stream = stream_of(stream);
	event->kernels = gpu_launched(event->stream);
	return CUDA_OK;
}

static int cudaEventQuery(struct event *event)
{
	if (!event->stream || gpu_ended(event->stream) >= event->kernels)
		return CUDA_OK;
	return CUDA_NOT_READY;
}

static int cudaEventSynchronize(struct event *event)
{
	if (event->stream)
		gpu_wait(event->stream, event->kernels);
	return CUDA_OK;
}

static int cudaStreamWaitEvent(void)
{
	return CUDA_OK;
}

/* The legacy stream is 1 under any of its names. */
static int cudaStreamGetId(void *stream, unsigned long long *id)
{
	*id = (uintptr_t)stream > 2 ? (uintptr_t)stream : 1;
	return CUDA_OK;
}

/* Nothing is ever captured; the status comes second in all of them. */
static int not_capturing(void *stream, int *status)
{
	(void)stream;
	*status = 0;
	return CUDA_OK;
}

static int cudaThreadExchangeStreamCaptureMode(int *mode)
{
	*mode = 0;
	return CUDA_OK;
}

static int cudaLaunchHostFunc(void *stream, void (*function)(void *), void *argument)
{
	(void)stream;
	function(argument);
	return CUDA_OK;
}

const struct fake_call fake_stream_calls[] = {
	FAKE_CALL(cudaStreamCreateWithFlags),
	{ "cudaStreamCreateWithPriority", (void *)cudaStreamCreateWithFlags },
	FAKE_CALL(cudaStreamDestroy),
	FAKE_CALL(cudaStreamSynchronize),
	FAKE_CALL(cudaStreamGetId),
	FAKE_CALL(cudaStreamWaitEvent),
	FAKE_CALL(cudaEventCreate),
	{ "cudaEventCreateWithFlags", (void *)cudaEventCreate },
	FAKE_CALL(cudaEventDestroy),
	FAKE_CALL(cudaEventRecord),
	FAKE_CALL(cudaEventQuery),
	FAKE_CALL(cudaEventSynchronize),
	{ "cudaStreamIsCapturing", (void *)not_capturing },
	{ "cudaStreamGetCaptureInfo", (void *)not_capturing },
	{ "cudaStreamGetCaptureInfo_v2", (void *)not_capturing },
	{ "cudaStreamGetCaptureInfo_v3", (void *)not_capturing },
	FAKE_CALL(cudaThreadExchangeStreamCaptureMode),
	FAKE_CALL(cudaLaunchHostFunc),
	{ NULL, NULL },
};
