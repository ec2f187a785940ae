/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Adds what one operation brings to sums and histograms, and makes figures of them: means,
 * quantiles and rates are taken at the very end, once.
 */
#include "ncclinspd/sums/sums.h"

/* One part of a histogram: cells touch few, so they own only those. */
struct chunk {
	uint32_t next;		/* plus one; 0: the last */
	uint16_t part;
	uint16_t account;	/* modulo ACCOUNTS_TALLY */
	uint32_t count[HISTOGRAM_PART];
};

int sums_init_chunks(struct sums_chunks *chunks, uint32_t capacity)
{
	return pool_init(&chunks->pool, capacity, sizeof(struct chunk));
}

static struct chunk *chunk_at(const struct sums_chunks *chunks, uint32_t item)
{
	return pool_at(&chunks->pool, item - 1);
}

void sums_free_value(struct value_sums *value, struct sums_chunks *chunks)
{
	uint32_t item = value->chunks;

	while (item) {
		struct chunk *chunk = chunk_at(chunks, item);
		uint32_t next = chunk->next;

		--*accounts_count(&chunks->of, chunk->account);
		pool_put(&chunks->pool, item - 1);
		item = next;
	}
	value->chunks = value->latest = 0;
}

void sums_free_chunks(struct sums *sums, struct sums_chunks *chunks)
{
	for (int v = 0; v < VALUE_END; v++)
		sums_free_value(&sums->value[v], chunks);
}

static __attribute__((noinline))
struct chunk *value_find_chunk(struct value_sums *value, struct sums_chunks *chunks,
			       uid_t account, uint32_t part)
{
	struct chunk *chunk;
	uint32_t item;

	for (item = value->chunks; item; item = chunk->next) {
		chunk = chunk_at(chunks, item);
		if (chunk->part == part) {
			value->latest = item;
			return chunk;
		}
	}
	if (!accounts_may_take(&chunks->of, account, chunks->pool.capacity - chunks->pool.used))
		return NULL;
	item = pool_take(&chunks->pool) + 1;
	chunk = chunk_at(chunks, item);
	chunk->part = (uint16_t)part;
	chunk->account = account % ACCOUNTS_TALLY;
	++*accounts_count(&chunks->of, account);
	chunk->next = value->chunks;
	value->chunks = value->latest = item;
	return chunk;
}

static inline bool value_add(struct value_sums *sums, struct sums_chunks *chunks, uid_t account,
			     uint64_t value)
{
	uint32_t bucket = histogram_bucket(value);
	struct chunk *chunk = sums->latest ? chunk_at(chunks, sums->latest) : NULL;

	if (!sums->n || value < sums->min)
		sums->min = value;
	if (value > sums->max)
		sums->max = value;
	sums->n++;
	sums->sum += value;
	if (!chunk || chunk->part != bucket / HISTOGRAM_PART)
		chunk = value_find_chunk(sums, chunks, account, bucket / HISTOGRAM_PART);
	if (chunk)
		chunk->count[bucket % HISTOGRAM_PART]++;
	return chunk;
}

bool sums_add_value(struct value_sums *sums, struct sums_chunks *chunks, uid_t account,
		    uint64_t value)
{
	return value_add(sums, chunks, account, value);
}

/* Add the time that it took, or its batch, and what was moved in that. */
static uint32_t sums_add_taken(struct sums *sums, struct sums_chunks *chunks, const struct op *op,
			       uint64_t ns)
{
	bool fused = op_is_fused(op);
	uint64_t bytes = fused ? op->batch_bytes : op->bytes;
	double busbw_gbs = fused ? op->batch_busbw_gbs : op->busbw_gbs;
	uint32_t unbinned = 0;

	if (bytes != UNKNOWN_U64) {
		sums->timed_bytes += bytes;
		sums->timed_ns += ns;
	}
	if (op->local_ranks) {
		sums->compared_ns += ns;
		sums->wait_ns += ns - op->waitfree_ns;
	}
	unbinned += !value_add(&sums->value[fused ? VALUE_BATCH : VALUE_EXEC], chunks,
			       op->account, ns);
	if (busbw_gbs >= 0) {
		sums->busbw_ns += busbw_gbs * (double)ns;
		sums->bus_timed_ns += ns;
	}
	if (busbw_gbs >= 0 && busbw_gbs <= 1e9)
		unbinned += !value_add(&sums->value[VALUE_BUSBW], chunks, op->account,
				       (uint64_t)(busbw_gbs * 1e6));
	return unbinned;
}

uint32_t sums_add(struct sums *sums, struct sums_chunks *chunks, const struct op *op)
{
	uint64_t ns = sums_taken_ns(op);
	uint32_t unbinned = 0;

	sums->ops++;
	sums->fused += op_is_fused(op);
	sums->derived += op->parts > 0;
	sums->kernel_ops += op_may_be_timed(op);
	sums->timed_ops += op->fused != OP_FUSED && op_inside_ns(op) != UNKNOWN_U64;
	if (op->bytes != UNKNOWN_U64) {
		sums->sized_ops++;
		sums->bytes += op->bytes;
	}
	if (op->busbw_waitfree_gbs > 0) {
		sums->waitfree_busbw_ns += op->busbw_waitfree_gbs * (double)op->waitfree_ns;
		sums->waitfree_ns += op->waitfree_ns;
	}
	if (ns != UNKNOWN_U64)
		unbinned += sums_add_taken(sums, chunks, op, ns);
	if (op->queue_ns != UNKNOWN_U64)
		unbinned += !value_add(&sums->value[VALUE_QUEUE], chunks, op->account,
				       op->queue_ns);
	return unbinned;
}

/* All but its histogram.  False: there is nothing to add. */
static bool value_merge_plain(struct value_sums *to, const struct value_sums *from)
{
	if (!from->n)
		return false;
	if (!to->n || from->min < to->min)
		to->min = from->min;
	if (from->max > to->max)
		to->max = from->max;
	to->n += from->n;
	to->sum += from->sum;
	return true;
}

static void histogram_merge_chunks(struct histogram *h, const struct sums_chunks *chunks,
				   uint32_t item)
{
	while (item) {
		const struct chunk *chunk = chunk_at(chunks, item);

		histogram_merge_part(h, chunk->part, chunk->count);
		item = chunk->next;
	}
}

void sums_merge_value(struct value_sums *to, struct histogram *h, const struct value_sums *from,
		      const struct sums_chunks *chunks)
{
	if (!value_merge_plain(to, from))
		return;
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

static void sums_merge_plain(struct sums *to, const struct sums *from)
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

void sums_merge(struct sums *to, struct histogram h[VALUE_END], const struct sums *from,
		const struct sums_chunks *chunks)
{
	sums_merge_plain(to, from);
	for (int v = 0; v < VALUE_END; v++)
		sums_merge_value(&to->value[v], &h[v], &from->value[v], chunks);
}

/* Returns how many values are in no histogram. */
static uint32_t value_hand_up(struct value_sums *to, const struct value_sums *from,
			      struct sums_chunks *chunks)
{
	uint32_t unbinned = 0;

	if (!value_merge_plain(to, from))
		return 0;
	for (uint32_t item = from->chunks; item;) {
		const struct chunk *chunk = chunk_at(chunks, item);
		struct chunk *into = value_find_chunk(to, chunks, chunk->account,
						      chunk->part);

		for (uint32_t i = 0; i < HISTOGRAM_PART; i++) {
			if (into)
				into->count[i] += chunk->count[i];
			else
				unbinned += chunk->count[i];
		}
		item = chunk->next;
	}
	return unbinned;
}

uint32_t sums_hand_up(struct sums *to, const struct sums *from, struct sums_chunks *chunks)
{
	uint32_t unbinned = 0;

	sums_merge_plain(to, from);
	for (int v = 0; v < VALUE_END; v++)
		unbinned += value_hand_up(&to->value[v], &from->value[v], chunks);
	return unbinned;
}

uint64_t sums_quantile(const struct value_sums *sums, const struct histogram *h, double q)
{
	uint64_t value = histogram_quantile(h, q);

	if (value == UNKNOWN_U64 || h->total < sums->n - sums->n / 1000)
		return UNKNOWN_U64;
	/* A bucket's middle may lie outside of what was really seen. */
	return value < sums->min ? sums->min : value > sums->max ? sums->max : value;
}

static void fill_times(struct aggregate_times *times, const struct histogram *h,
		       const struct value_sums *sums)
{
	times->n = sums->n;
	times->mean_ns = sums->n ? sums->sum / sums->n : UNKNOWN_U64;
	times->max_ns = sums->n ? sums->max : UNKNOWN_U64;
	times->p50_ns = sums_quantile(sums, h, 0.5);
	times->p90_ns = sums_quantile(sums, h, 0.9);
	times->p95_ns = sums_quantile(sums, h, 0.95);
	times->p99_ns = sums_quantile(sums, h, 0.99);
}

static void fill_rates(struct aggregate_row *row, const struct histogram *h,
		       const struct sums *sums)
{
	const struct value_sums *bus = &sums->value[VALUE_BUSBW];
	uint64_t p50 = sums_quantile(bus, h, 0.5);

	row->algbw_gbs = row->busbw_mean_gbs = row->busbw_p50_gbs = row->busbw_min_gbs = -1;
	if (sums->timed_ns)
		row->algbw_gbs = (double)sums->timed_bytes / (double)sums->timed_ns;
	if (sums->bus_timed_ns)
		row->busbw_mean_gbs = sums->busbw_ns / (double)sums->bus_timed_ns;
	row->busbw_waitfree_gbs = sums->waitfree_ns ? sums->waitfree_busbw_ns /
						      (double)sums->waitfree_ns : -1;
	if (p50 != UNKNOWN_U64)
		row->busbw_p50_gbs = (double)p50 / 1e6;
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
