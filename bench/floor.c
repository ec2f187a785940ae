/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/floor.h"

#include "nci/record.h"
#include "shmring/clock.h"

#define LINES	16384	/* 1 MiB */

static __thread struct nci_line ring[LINES];
static __thread uint64_t next;

static void floor_store(uint64_t a, uint64_t b, uint64_t c, uint64_t d)
{
	struct nci_line *line = &ring[next++ % LINES];

	line->word[0] = clock_ticks(NCI_CLOCK_TSC);
	line->word[1] = a;
	line->word[2] = b;
	line->word[3] = c;
	line->word[4] = d;
	line->word[5] = 0;
	line->word[6] = 0;
	line->word[7] = next;
}

static int floor_init(void **context, uint64_t id, int *mask, const char *name, int nnodes,
		      int nranks, int rank, nccl_logger_fn *logger)
{
	*context = (void *)1;
	*mask = NCCL_EVENTS_V6;
	return NCCL_SUCCESS;
}

static int floor_start(void *context, void **handle, struct nccl_descr_v6 *d)
{
	*handle = (void *)(next + 1);
	floor_store(d->type, (uint64_t)d->parentObj, (uint64_t)context, d->coll.seqNumber);
	return NCCL_SUCCESS;
}

static int floor_stop(void *handle)
{
	floor_store(1, (uint64_t)handle, 0, 0);
	return NCCL_SUCCESS;
}

static int floor_state(void *handle, int state, union nccl_args_v4 *args)
{
	floor_store(2, (uint64_t)handle, (uint64_t)state, args ? args->kernelCh.pTimer : 0);
	return NCCL_SUCCESS;
}

static int floor_nothing(void *handle)
{
	return NCCL_SUCCESS;
}

static int empty_start(void *context, void **handle, struct nccl_descr_v6 *d)
{
	*handle = NULL;
	return NCCL_SUCCESS;
}

static int empty_state(void *handle, int state, union nccl_args_v4 *args)
{
	return NCCL_SUCCESS;
}

const struct nccl_profiler_v6 floor_plugin = {
	"floor", floor_init, floor_start, floor_stop, floor_state, floor_nothing,
};

const struct nccl_profiler_v6 empty_plugin = {
	"empty", floor_init, empty_start, floor_nothing, empty_state, floor_nothing,
};
