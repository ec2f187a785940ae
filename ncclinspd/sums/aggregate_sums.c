/* SPDX-License-Identifier: Apache-2.0 */
/* Adds what one operation brings to sums and histograms. */
#include "ncclinspd/sums/aggregate_impl.h"

void aggregate_free_chunks(struct aggregate *agg, struct sums *sums)
{
	for (int v = 0; v < VALUE_END; v++) {
		uint32_t item = sums->value[v].chunks;

		while (item) {
			struct chunk *chunk = pool_at(&agg->chunks, item - 1);
			uint32_t next = chunk->next;

			pool_put(&agg->chunks, item - 1);
			item = next;
		}
		sums->value[v].chunks = 0;
	}
}

static struct chunk *find_chunk(struct aggregate *agg, struct value_sums *value,
				uint32_t octave)
{
	struct chunk *chunk;
	uint32_t item;

	for (item = value->chunks; item; item = chunk->next) {
		chunk = pool_at(&agg->chunks, item - 1);
		if (chunk->octave == octave)
			return chunk;
	}
	item = pool_take(&agg->chunks);
	if (item == POOL_NONE)
		return NULL;
	chunk = pool_at(&agg->chunks, item);
	chunk->octave = octave;
	chunk->next = value->chunks;
	value->chunks = item + 1;
	return chunk;
}

static void take_alone(struct sample *sample, const struct op *op)
{
	sample->timed = op->exec_ns != UNKNOWN_U64;
	sample->ns = sample->value[VALUE_EXEC] = op->exec_ns;
	sample->bytes = op->bytes;
	sample->busbw_gbs = op->busbw_gbs;
}

static void take_fused(struct sample *sample, const struct op *op)
{
	sample->timed = op->fused != OP_FUSED && op->batch_ns != UNKNOWN_U64;
	if (!sample->timed || !op->batch_head)
		return;
	sample->ns = sample->value[VALUE_BATCH] = op->batch_ns;
	sample->bytes = op->batch_bytes;
	sample->busbw_gbs = op->batch_busbw_gbs;
}

void aggregate_sample(struct sample *sample, const struct op *op)
{
	*sample = (struct sample){
		.op = op,
		.ns = UNKNOWN_U64,
		.busbw_gbs = -1,
		.value = {
			[VALUE_EXEC] = UNKNOWN_U64,
			[VALUE_BATCH] = UNKNOWN_U64,
			[VALUE_QUEUE] = op->queue_ns,
			[VALUE_BUSBW] = UNKNOWN_U64,
		},
	};
	if (op_is_fused(op))
		take_fused(sample, op);
	else
		take_alone(sample, op);
	if (sample->busbw_gbs >= 0 && sample->busbw_gbs <= 1e9)
		sample->value[VALUE_BUSBW] = (uint64_t)(sample->busbw_gbs * 1e6);
	for (int v = 0; v < VALUE_END; v++)
		if (sample->value[v] != UNKNOWN_U64)
			sample->bucket[v] = histogram_bucket(sample->value[v]);
}

static void add_value(struct aggregate *agg, struct value_sums *sums, uint64_t value,
		      uint32_t bucket)
{
	struct chunk *chunk;

	if (value == UNKNOWN_U64)
		return;
	if (!sums->n || value < sums->min)
		sums->min = value;
	if (value > sums->max)
		sums->max = value;
	sums->n++;
	sums->sum += value;
	chunk = find_chunk(agg, sums, bucket / HISTOGRAM_SUB);
	if (chunk)
		chunk->count[bucket % HISTOGRAM_SUB]++;
	else
		agg->stats.unbinned++;
}

void aggregate_add_sample(struct aggregate *agg, struct sums *sums,
			  const struct sample *sample)
{
	const struct op *op = sample->op;

	sums->ops++;
	sums->fused += op_is_fused(op);
	sums->derived += op->parts > 0;
	sums->timed_ops += sample->timed;
	if (op->bytes != UNKNOWN_U64) {
		sums->sized_ops++;
		sums->bytes += op->bytes;
	}
	if (sample->ns != UNKNOWN_U64 && sample->bytes != UNKNOWN_U64) {
		sums->timed_bytes += sample->bytes;
		sums->timed_ns += sample->ns;
	}
	if (sample->busbw_gbs >= 0) {
		sums->busbw_ns += sample->busbw_gbs * (double)sample->ns;
		sums->bus_timed_ns += sample->ns;
	}
	if (op->busbw_waitfree_gbs > 0) {
		sums->waitfree_busbw_ns += op->busbw_waitfree_gbs * (double)op->waitfree_ns;
		sums->waitfree_ns += op->waitfree_ns;
	}
	if (op->local_ranks && sample->ns != UNKNOWN_U64) {
		sums->compared_ns += sample->ns;
		sums->wait_ns += sample->ns - op->waitfree_ns;
	}
	for (int v = 0; v < VALUE_END; v++)
		add_value(agg, &sums->value[v], sample->value[v], sample->bucket[v]);
}
