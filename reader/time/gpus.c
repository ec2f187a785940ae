/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A GPU outlives the processes that use it, so its clock is kept when nobody does;
 * that of a communicator without a known GPU is given to the next one that needs one.
 */
#include "reader/time/gpus.h"

#include <stdlib.h>
#include <string.h>

#include "reader/time/ticks.h"
#include "reader/time/timeline.h"

void gpus_deinit(struct gpus *gpus)
{
	for (uint32_t i = 0; i < gpus->n; i++) {
		gpuclock_free(gpus->at[i]->clock);
		free(gpus->at[i]);
	}
	list_deinit(gpus);
	*gpus = (struct gpus){ 0 };
}

static bool gpu_is_same(const struct gpu *gpu, const struct process *p, const struct comm *c,
			uint16_t comm)
{
	if (c->has_gpu)
		return gpu->has_uuid && !memcmp(gpu->uuid, c->gpu_uuid, sizeof(gpu->uuid)) &&
		       gpu->uid == p->uid && gpu->host.kind == p->clock.kind;
	return !gpu->has_uuid && gpu->process_id == p->id && gpu->comm == comm;
}

static struct gpu *gpu_add(struct gpus *gpus)
{
	struct gpu *gpu = gpus->n < GPUS_MAX ? calloc(1, sizeof(*gpu)) : NULL;
	struct gpu **place = gpu ? list_append(gpus) : NULL;

	if (!place) {
		free(gpu);
		return NULL;
	}
	*place = gpu;
	return gpu;
}

static bool gpu_renew(struct gpu *gpu)
{
	struct gpuclock *clock;

	if (gpuclock_new(&clock) < 0)
		return false;
	gpuclock_free(gpu->clock);
	*gpu = (struct gpu){ .clock = clock };
	return true;
}

/*
 * The one that it is, else one that nobody uses: of a communicator that is gone, else a new one,
 * else any.
 */
static struct gpu *gpus_find(struct gpus *gpus, const struct process *p, const struct comm *c,
			     uint16_t comm)
{
	struct gpu *gone = NULL, *any = NULL, *gpu;
	uint32_t used = 0;

	for (uint32_t i = 0; i < gpus->n; i++) {
		gpu = gpus->at[i];
		if (gpu_is_same(gpu, p, c, comm))
			return gpu;
		if (gpu->users)
			used += gpu->account == p->account;
		else if (gpu->has_uuid)
			any = gpu;
		else if (!gone)
			gone = gpu;
	}
	if (used >= GPUS_OF_USER)
		return NULL;
	gpu = gone ?: gpu_add(gpus) ?: any;
	if (!gpu || !gpu_renew(gpu))
		return NULL;
	gpu->host = p->clock;
	gpu->has_uuid = c->has_gpu;
	memcpy(gpu->uuid, c->gpu_uuid, sizeof(gpu->uuid));
	memcpy(gpu->pci_bus_id, c->pci_bus_id, sizeof(gpu->pci_bus_id));
	gpu->gpu_index = c->has_gpu ? c->gpu_index : UNKNOWN_I32;
	return gpu;
}

struct gpu *gpus_get(struct gpus *gpus, const struct process *p, uint16_t comm)
{
	const struct comm *c = process_comm(p, comm);
	struct gpu *gpu = c ? gpus_find(gpus, p, c, comm) : NULL;

	if (!gpu)
		return NULL;
	gpu->process_id = p->id;
	gpu->comm = comm;
	gpu->pid = p->pid;
	gpu->uid = p->uid;
	gpu->account = p->account;
	gpu->has_comm_id = c->has_id;
	gpu->comm_id = c->id;
	gpu->rank = c->rank;
	gpu->users++;
	return gpu;
}

void gpus_put(struct gpus *gpus, struct gpu *gpu)
{
	if (gpu && !--gpu->users)
		gpus->freed++;
}

bool gpus_map(const struct gpu *gpu, const struct tick_clock *clock, uint64_t gpu_ns,
	      uint64_t *hi, uint64_t *error_ns)
{
	uint64_t lo;

	if (!gpuclock_map(gpu->clock, gpu_ns, &lo, hi))
		return false;
	*error_ns = lo ? *hi - lo : UNKNOWN_U64;
	*hi = *hi ? timeline_mono(clock, ticks_at(&gpu->host, *hi)) : 0;
	return *hi;
}
