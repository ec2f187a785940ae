/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A callback that the kernel did not let run says nothing of what we cost: none counts
 * for much more than the usual one.
 */
#include "plugin/cost.h"

#include "nci/events.h"
#include "plugin/process.h"

#define FIRST_USUAL	64	/* ticks */
#define MOST_USUAL	16	/* no callback of ours takes longer by itself */

/* Ticks of the usual callback beyond FIRST_USUAL, by NCI_THREADS_*. */
static _Atomic uint64_t usual[NCI_THREAD_CLASSES];

/* One step up or down with each that is measured keeps it near the median. */
static uint64_t cost_clip(_Atomic uint64_t *above, uint64_t took)
{
	uint64_t u = atomic_load_explicit(above, memory_order_relaxed) + FIRST_USUAL;
	uint64_t step = u / 16, next = took > u ? u + step : u - step;

	atomic_store_explicit(above, next > FIRST_USUAL ? next - FIRST_USUAL : 0,
			      memory_order_relaxed);
	return took < u * MOST_USUAL ? took : u * MOST_USUAL;
}

int cost_add(uint32_t type, uint64_t ticks, uint64_t end)
{
	const uint32_t proxy = NCCL_PROXY_OP | NCCL_PROXY_STEP | NCCL_PROXY_CTRL |
			       NCCL_KERNEL_CH | NCCL_NET_PLUGIN;
	uint64_t took = (process_self.clock == PROCESS_COUNTER ? end :
			 clock_ticks(process_self.clock)) - ticks;
	int who = NCI_EVENT_BIT(type) & proxy ? NCI_THREADS_PROXY : NCI_THREADS_USER;
	struct nci_timed *out = &process_self.ring.header->steer.timed[who];

	took = cost_clip(&usual[who], took);
	atomic_fetch_add_explicit(&out->count, 1, memory_order_relaxed);
	atomic_fetch_add_explicit(&out->ticks, took, memory_order_relaxed);
	return NCCL_SUCCESS;
}
