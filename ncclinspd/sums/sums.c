/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Adds what one operation brings to sums and histograms, and makes figures of them: means,
 * quantiles and rates are taken at the very end, once.
 */
#include "ncclinspd/sums/sums.h"

#include "util/list.h"

/* One part of a histogram: cells touch few, so they own only those. */
struct chunk {
	uint32_t next;		/* plus one; 0: the last */
	uint32_t part;
	uint32_t count[HISTOGRAM_PART];
};

int sums_init_chunks(struct pool *chunks, uint32_t capacity)
{
	return pool_init(chunks, capacity, sizeof(struct chunk));
}

void sums_free_chunks(struct sums *sums, struct pool *chunks)
{
	for (int v = 0; v < VALUE_END; v++) {
		uint32_t item = sums->value[v].chunks;

		while (item) {
			struct chunk *chunk = pool_at(chunks, item - 1);
			uint32_t next = chunk->next;

			pool_put(chunks, item - 1);
			item = next;
		}
		sums->value[v].chunks = 0;
	}
}

static struct chunk *value_find_chunk(struct value_sums *value, struct pool *chunks,
				      uint32_t part)
{
	struct chunk *chunk;
	uint32_t item;

	for (item = value->chunks; item; item = chunk->next) {
		chunk = pool_at(chunks, item - 1);
		if (chunk->part == part)
			return chunk;
	}
	item = pool_take(chunks);
	if (item == POOL_NONE)
		return NULL;
	chunk = pool_at(chunks, item);
	chunk->part = part;
	chunk->next = value->chunks;
	value->chunks = item + 1;
	return chunk;
}

static void sample_take_alone(struct sample *sample, const struct op *op)
{
	sample->timed = op->exec_ns != UNKNOWN_U64;
	sample->ns = sample->value[VALUE_EXEC] = op->exec_ns;
	sample->bytes = op->bytes;
	sample->busbw_gbs = op->busbw_gbs;
}

static void sample_take_fused(struct sample *sample, const struct op *op)
{
	sample->timed = op->fused != OP_FUSED && op->batch_ns != UNKNOWN_U64;
	if (!sample->timed || !op->batch_head)
		return;
	sample->ns = sample->value[VALUE_BATCH] = op->batch_ns;
	sample->bytes = op->batch_bytes;
	sample->busbw_gbs = op->batch_busbw_gbs;
}

static void sample_add_up(struct sample *sample)
{
	const struct op *op = sample->op;
	struct sums *one = &sample->one;

	one->ops = 1;
	one->fused = op_is_fused(op);
	one->derived = op->parts > 0;
	one->kernel_ops = op_may_be_timed(op);
	one->timed_ops = sample->timed;
	if (op->bytes != UNKNOWN_U64) {
		one->sized_ops = 1;
		one->bytes = op->bytes;
	}
	if (sample->ns != UNKNOWN_U64 && sample->bytes != UNKNOWN_U64) {
		one->timed_bytes = sample->bytes;
		one->timed_ns = sample->ns;
	}
	if (sample->busbw_gbs >= 0) {
		one->busbw_ns = sample->busbw_gbs * (double)sample->ns;
		one->bus_timed_ns = sample->ns;
	}
	if (op->busbw_waitfree_gbs > 0) {
		one->waitfree_busbw_ns = op->busbw_waitfree_gbs * (double)op->waitfree_ns;
		one->waitfree_ns = op->waitfree_ns;
	}
	if (op->local_ranks && sample->ns != UNKNOWN_U64) {
		one->compared_ns = sample->ns;
		one->wait_ns = sample->ns - op->waitfree_ns;
	}
}

void sample_init(struct sample *sample, const struct op *op)
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
		sample_take_fused(sample, op);
	else
		sample_take_alone(sample, op);
	if (sample->busbw_gbs >= 0 && sample->busbw_gbs <= 1e9)
		sample->value[VALUE_BUSBW] = (uint64_t)(sample->busbw_gbs * 1e6);
	for (int v = 0; v < VALUE_END; v++) {
		if (sample->value[v] == UNKNOWN_U64)
			continue;
		sample->bucket[v] = histogram_bucket(sample->value[v]);
		*array_must_add(sample->known, &sample->nknown) = (enum aggregate_value)v;
	}
	sample_add_up(sample);
}

/* False: its histogram has no room. */
static bool value_add(struct value_sums *sums, struct pool *chunks, uint64_t value, uint32_t bucket)
{
	struct chunk *chunk;

	if (!sums->n || value < sums->min)
		sums->min = value;
	if (value > sums->max)
		sums->max = value;
	sums->n++;
	sums->sum += value;
	chunk = value_find_chunk(sums, chunks, bucket / HISTOGRAM_PART);
	if (chunk)
		chunk->count[bucket % HISTOGRAM_PART]++;
	return chunk;
}

static void sums_add_plain(struct sums *to, const struct sums *from)
{
	sums_merge_counts(to, from);
	to->timed_ops += from->timed_ops;
	to->timed_bytes += from->timed_bytes;
	to->timed_ns += from->timed_ns;
	to->busbw_ns += from->busbw_ns;
	to->bus_timed_ns += from->bus_timed_ns;
	to->waitfree_busbw_ns += from->waitfree_busbw_ns;
	to->waitfree_ns += from->waitfree_ns;
	to->compared_ns += from->compared_ns;
	to->wait_ns += from->wait_ns;
}

uint32_t sums_add(struct sums *sums, struct pool *chunks, const struct sample *sample)
{
	uint32_t unbinned = 0;

	sums_add_plain(sums, &sample->one);
	for (uint32_t i = 0; i < sample->nknown; i++) {
		enum aggregate_value v = sample->known[i];

		unbinned += !value_add(&sums->value[v], chunks, sample->value[v],
				       sample->bucket[v]);
	}
	return unbinned;
}

static void histogram_merge_chunks(struct histogram *h, const struct pool *chunks, uint32_t item)
{
	while (item) {
		const struct chunk *chunk = pool_at(chunks, item - 1);

		histogram_merge_part(h, chunk->part, chunk->count);
		item = chunk->next;
	}
}

static void value_merge(struct value_sums *to, struct histogram *h, const struct value_sums *from,
			const struct pool *chunks)
{
	if (!from->n)
		return;
	if (!to->n || from->min < to->min)
		to->min = from->min;
	if (from->max > to->max)
		to->max = from->max;
	to->n += from->n;
	to->sum += from->sum;
	histogram_merge_chunks(h, chunks, from->chunks);
}

void sums_merge_counts(struct sums *to, const struct sums *from)
{
	to->ops += from->ops;
	to->sized_ops += from->sized_ops;
	to->bytes += from->bytes;
	to->fused += from->fused;
	to->derived += from->derived;
	to->kernel_ops += from->kernel_ops;
}

void sums_merge(struct sums *to, struct histogram h[VALUE_END], const struct sums *from,
		const struct pool *chunks)
{
	sums_add_plain(to, from);
	for (int v = 0; v < VALUE_END; v++)
		value_merge(&to->value[v], &h[v], &from->value[v], chunks);
}

/* A bucket's middle may lie outside of what was really seen. */
static uint64_t histogram_quantile_of(const struct histogram *h, const struct value_sums *sums,
				      double q)
{
	uint64_t value = histogram_quantile(h, q);

	if (value == UNKNOWN_U64)
		return value;
	return value < sums->min ? sums->min : value > sums->max ? sums->max : value;
}

uint64_t sums_quantile(const struct value_sums *sums, const struct pool *chunks, double q)
{
	struct histogram h;

	histogram_clear(&h);
	histogram_merge_chunks(&h, chunks, sums->chunks);
	return histogram_quantile_of(&h, sums, q);
}

static void fill_times(struct aggregate_times *times, const struct histogram *h,
		       const struct value_sums *sums)
{
	times->n = sums->n;
	times->mean_ns = sums->n ? sums->sum / sums->n : UNKNOWN_U64;
	times->max_ns = sums->n ? sums->max : UNKNOWN_U64;
	times->p50_ns = histogram_quantile_of(h, sums, 0.5);
	times->p90_ns = histogram_quantile_of(h, sums, 0.9);
	times->p95_ns = histogram_quantile_of(h, sums, 0.95);
	times->p99_ns = histogram_quantile_of(h, sums, 0.99);
}

static void fill_rates(struct aggregate_row *row, const struct histogram *h,
		       const struct sums *sums)
{
	const struct value_sums *bus = &sums->value[VALUE_BUSBW];

	row->algbw_gbs = row->busbw_mean_gbs = row->busbw_p50_gbs = row->busbw_min_gbs = -1;
	if (sums->timed_ns)
		row->algbw_gbs = (double)sums->timed_bytes / (double)sums->timed_ns;
	if (sums->bus_timed_ns)
		row->busbw_mean_gbs = sums->busbw_ns / (double)sums->bus_timed_ns;
	row->busbw_waitfree_gbs = sums->waitfree_ns ? sums->waitfree_busbw_ns /
						      (double)sums->waitfree_ns : -1;
	if (h->total)
		row->busbw_p50_gbs = (double)histogram_quantile_of(h, bus, 0.5) / 1e6;
	if (bus->n)
		row->busbw_min_gbs = (double)bus->min / 1e6;
}

void sums_figures(const struct sums *sums, const struct histogram h[VALUE_END],
		  struct aggregate_row *row)
{
	row->ops = sums->ops;
	row->bytes = sums->bytes;
	row->sized_ops = sums->sized_ops;
	fill_times(&row->exec, &h[VALUE_EXEC], &sums->value[VALUE_EXEC]);
	fill_times(&row->batch, &h[VALUE_BATCH], &sums->value[VALUE_BATCH]);
	fill_times(&row->queue, &h[VALUE_QUEUE], &sums->value[VALUE_QUEUE]);
	fill_rates(row, &h[VALUE_BUSBW], sums);
	row->wait_fraction = sums->compared_ns ? (double)sums->wait_ns /
						 (double)sums->compared_ns : -1;
	row->fused = sums->fused;
	row->derived = sums->derived;
	row->sampled_fraction = (double)sums->timed_ops / (double)sums->ops;
}
