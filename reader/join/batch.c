/* SPDX-License-Identifier: Apache-2.0 */
/*
 * NCCL does not tell which operations ran as one batch: their intervals on each channel
 * do, and only the batch has a duration and a bandwidth.
 */
#include "reader/join/batch.h"

#include <stdlib.h>

#include "reader/base/sets.h"
#include "reader/join/ops.h"

static int by_channel_and_start(const void *left, const void *right)
{
	const struct batch_span *a = left, *b = right;

	if (a->channel != b->channel)
		return a->channel < b->channel ? -1 : 1;
	return (a->start > b->start) - (a->start < b->start);
}

void batch_unite(struct batch_span *spans, uint32_t nspans, uint32_t *batch, uint32_t nmembers)
{
	struct batch_span open = { 0 };	/* the union of those that overlap so far */

	for (uint32_t m = 0; m < nmembers; m++)
		batch[m] = m;
	qsort(spans, nspans, sizeof(*spans), by_channel_and_start);
	for (uint32_t i = 0; i < nspans; i++) {
		const struct batch_span *next = &spans[i];

		if (i && next->channel == open.channel &&
		    (next->start < open.stop || next->start == open.start)) {
			sets_unite(batch, open.member, next->member);
			if (next->stop > open.stop)
				open.stop = next->stop;
		} else {
			open = *next;
		}
	}
	for (uint32_t m = 0; m < nmembers; m++)
		batch[m] = sets_root(batch, m);
}

void batch_mark_unstamped(struct op *const *ops, uint32_t n)
{
	uint32_t sends = 0, transfers = 0;

	for (uint32_t i = 0; i < n; i++) {
		transfers += ops[i]->is_p2p;
		sends += ops[i]->is_p2p && ops_is_send(ops[i]->func);
	}
	/* Nobody knows which of several sends was the first. */
	for (uint32_t i = 0; i < n; i++)
		ops[i]->end_unstamped = ops[i]->is_p2p && transfers > 1 &&
					!(sends == 1 && ops_is_send(ops[i]->func));
}

/* The bytes that the members carried, on the bus; < 0: unknown for one of them. */
static double bus_bytes(struct op *const *ops, uint32_t n)
{
	double sent = 0, received = 0, reduced = 0;

	for (uint32_t i = 0; i < n; i++) {
		double bytes = ops_bus_bytes(ops[i]);

		if (bytes < 0)
			return -1;
		if (!ops[i]->is_p2p)
			reduced += bytes;
		else if (ops_is_send(ops[i]->func))
			sent += bytes;
		else
			received += bytes;
	}
	return reduced + (sent > received ? sent : received);
}

static uint64_t sum_bytes(struct op *const *ops, uint32_t n)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < n; i++)
		if (ops[i]->bytes == UNKNOWN_U64 ||
		    __builtin_add_overflow(sum, ops[i]->bytes, &sum))
			return UNKNOWN_U64;
	return sum;
}

static uint64_t span_ns(struct op *const *ops, uint32_t n)
{
	uint64_t start = UINT64_MAX, stop = 0;

	for (uint32_t i = 0; i < n; i++) {
		if (ops[i]->source != TIMING_KERNEL_GPU)
			return UNKNOWN_U64;
		start = ops[i]->gpu_start_ns < start ? ops[i]->gpu_start_ns : start;
		stop = ops[i]->gpu_stop_ns > stop ? ops[i]->gpu_stop_ns : stop;
	}
	return stop - start;
}

void batch_fill(struct op *const *ops, uint32_t n)
{
	uint64_t ns = span_ns(ops, n);
	uint64_t bytes = sum_bytes(ops, n);
	double bus = bus_bytes(ops, n);

	for (uint32_t i = 0; i < n; i++) {
		ops[i]->fused = n;
		ops[i]->batch_head = i == 0;
		ops[i]->batch = ops[0]->token;
		ops[i]->batch_ns = ns;
		ops[i]->batch_bytes = bytes;
		ops[i]->batch_busbw_gbs = bus < 0 || !ns || ns == UNKNOWN_U64 ? -1 :
					  bus / (double)ns;
	}
}
