/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The way from sums to figures.  Sums and histograms are added up as they are; means,
 * quantiles and rates are taken at the very end, once.
 */
#include "ncclinspd/sums/aggregate_impl.h"

static void merge_chunks(const struct aggregate *agg, struct histogram *h, uint32_t item)
{
	while (item) {
		const struct chunk *chunk = pool_at(&agg->chunks, item - 1);

		histogram_merge_octave(h, chunk->octave, chunk->count);
		item = chunk->next;
	}
}

static void merge_value(const struct aggregate *agg, struct value_sums *to,
			struct histogram *h, const struct value_sums *from)
{
	if (!from->n)
		return;
	if (!to->n || from->min < to->min)
		to->min = from->min;
	if (from->max > to->max)
		to->max = from->max;
	to->n += from->n;
	to->sum += from->sum;
	merge_chunks(agg, h, from->chunks);
}

void aggregate_merge(const struct aggregate *agg, struct sums *to, struct histogram h[VALUE_END],
		     const struct sums *from)
{
	to->ops += from->ops;
	to->sized_ops += from->sized_ops;
	to->bytes += from->bytes;
	to->fused += from->fused;
	to->derived += from->derived;
	to->timed_ops += from->timed_ops;
	to->timed_bytes += from->timed_bytes;
	to->timed_ns += from->timed_ns;
	to->busbw_ns += from->busbw_ns;
	to->bus_timed_ns += from->bus_timed_ns;
	to->waitfree_busbw_ns += from->waitfree_busbw_ns;
	to->waitfree_ns += from->waitfree_ns;
	to->compared_ns += from->compared_ns;
	to->wait_ns += from->wait_ns;
	for (int v = 0; v < VALUE_END; v++)
		merge_value(agg, &to->value[v], &h[v], &from->value[v]);
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

uint64_t aggregate_quantile(const struct aggregate *agg, const struct value_sums *sums, double q)
{
	struct histogram h = { 0 };

	merge_chunks(agg, &h, sums->chunks);
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

void aggregate_figures(struct aggregate_row *row, const struct sums *sums,
		       const struct histogram h[VALUE_END])
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
