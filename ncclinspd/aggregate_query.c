/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A query looks at every cell (or slice of the window) once, to find out which
 * row it belongs to, and then puts the rows together one after another, so that
 * only one row's histograms exist at a time.
 */
#include "ncclinspd/aggregate.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "ncclinspd/aggregate_impl.h"

/* Compared and hashed as bytes: always zeroed first. */
struct row_key {
	uint64_t comm_id;
	uint64_t alone;		/* process and index, where there is no comm_id */
	name_t comm_name;
	name_t func, algo, proto;
	uint64_t size_class;
	uint64_t tag;
	int32_t rank;
	int32_t nranks;
	int32_t peer;
	uint32_t source;
};
_Static_assert(sizeof(struct row_key) == 80, "padding would be compared");

/* One cell's share in a row. */
struct part {
	uint32_t cell;
	const struct sums *sums;
	uint32_t next;		/* of the same row, or POOL_NONE */
};

struct row {
	struct row_key key;
	uint32_t first;		/* part, or POOL_NONE */
	uint64_t exec_ns, bytes;
	uint64_t since_ns;	/* of the oldest cell */
	uint32_t members;
};

struct work {
	const struct aggregate_query *query;
	struct part *parts;
	uint32_t nparts;
	struct row *rows;
	uint32_t nrows;
	struct index index;	/* hash of a row_key -> row */
	struct index members;	/* row and member -> seen */
	const struct aggregate *agg;
	uint32_t *row_of;	/* of each cell, or POOL_NONE: not looked for yet */
	bool *weighed;		/* each cell: its member and age are in its row */
	uint64_t seed;
};

static int work_init(struct work *work, const struct aggregate *agg,
		     const struct aggregate_query *query)
{
	uint32_t parts = query->window == AGGREGATE_ALL ? agg->cells.used : agg->slices.used;
	uint32_t rows = agg->cells.used;

	*work = (struct work){
		.query = query,
		.parts = malloc((parts + 1) * sizeof(*work->parts)),
		.rows = malloc((rows + 1) * sizeof(*work->rows)),
		.row_of = malloc(agg->cells.capacity * sizeof(*work->row_of)),
		.weighed = calloc(agg->cells.capacity, sizeof(*work->weighed)),
		.agg = agg,
		.seed = agg->seed,
	};
	if (!work->parts || !work->rows || !work->row_of || !work->weighed)
		return -ENOMEM;
	memset(work->row_of, 0xff, agg->cells.capacity * sizeof(*work->row_of));
	if (index_init(&work->index, rows, agg->seed))
		return -ENOMEM;
	return index_init(&work->members, rows, agg->seed);
}

static void work_deinit(struct work *work)
{
	index_deinit(&work->members);
	index_deinit(&work->index);
	free(work->weighed);
	free(work->row_of);
	free(work->rows);
	free(work->parts);
}

/* ---- which row ----------------------------------------------------------- */

static void make_row_key(struct row_key *key, const struct cell *cell, uint32_t by)
{
	memset(key, 0, sizeof(*key));
	key->source = cell->key.source;
	key->nranks = by & AGGREGATE_BY_COMM ? cell->nranks : UNKNOWN_I32;
	key->rank = by & AGGREGATE_BY_RANK ? cell->rank : UNKNOWN_I32;
	key->peer = by & AGGREGATE_BY_PEER ? cell->key.peer : UNKNOWN_I32;
	key->size_class = by & AGGREGATE_BY_SIZE ? cell->key.size_class : UNKNOWN_U64;
	key->func = by & AGGREGATE_BY_FUNC ? cell->key.func : NULL;
	key->algo = by & AGGREGATE_BY_ALGO ? cell->key.algo : NULL;
	key->proto = by & AGGREGATE_BY_PROTO ? cell->key.proto : NULL;
	key->tag = by & AGGREGATE_BY_TAG ? cell->key.tag : 0;
	if (!(by & AGGREGATE_BY_COMM))
		return;
	key->comm_name = cell->comm_name;
	if (cell->has_comm_id)
		key->comm_id = cell->comm_id;
	else
		key->alone = cell->key.process_id << 16 | (cell->key.comm_index + 1);
}

/* Where that row is, or where it would go: *place is its key in the index. */
static uint32_t find_row(const struct work *work, const struct row_key *key, uint64_t *place)
{
	uint32_t row;

	*place = aggregate_hash(work->seed, key, sizeof(*key));
	for (;; ++*place) {
		row = index_find(&work->index, *place);
		if (row == POOL_NONE || !memcmp(&work->rows[row].key, key, sizeof(*key)))
			return row;
	}
}

static uint32_t row_of(struct work *work, const struct cell *cell)
{
	struct row_key key;
	uint64_t place;
	uint32_t row;

	make_row_key(&key, cell, work->query->by);
	row = find_row(work, &key, &place);
	if (row != POOL_NONE)
		return row;
	index_set(&work->index, place, work->nrows);
	work->rows[work->nrows] = (struct row){
		.key = key,
		.first = POOL_NONE,
		.since_ns = UINT64_MAX,
	};
	return work->nrows++;
}

static void add_part(struct work *work, uint32_t item, const struct sums *sums)
{
	const struct cell *cell = aggregate_cell(work->agg, item);
	struct row *row;

	if (!work->query->all_users && cell->uid != work->query->uid)
		return;
	if (work->row_of[item] == POOL_NONE)
		work->row_of[item] = row_of(work, cell);
	row = &work->rows[work->row_of[item]];
	work->parts[work->nparts] = (struct part){ item, sums, row->first };
	row->first = work->nparts++;
}

static void collect_cells(struct work *work, const struct aggregate *agg)
{
	for (uint32_t item = agg->lru.first; item != POOL_NONE;
	     item = pool_list_next(&agg->cells, &agg->lru, item))
		add_part(work, item, &aggregate_cell(agg, item)->sums);
}

static void collect_slices(struct work *work, const struct aggregate *agg,
			   const struct window *window)
{
	for (uint32_t i = 0; i < window->slices; i++) {
		const struct slice *slice;

		for (uint32_t item = window->first[i]; item != POOL_NONE; item = slice->next) {
			const struct cell *cell;

			slice = aggregate_slice(agg, item);
			cell = aggregate_cell(agg, slice->cell);
			if (cell->generation == slice->generation)
				add_part(work, slice->cell, &slice->sums);
		}
	}
}

/* ---- what belongs together ----------------------------------------------- */

static bool is_timed(uint32_t source)
{
	return source != TIMING_NONE && source != TIMING_ENQUEUE_CPU;
}

/* The row of the best source with otherwise the same keys, or POOL_NONE. */
static uint32_t timed_row(const struct work *work, const struct row *untimed)
{
	struct row_key key = untimed->key;
	uint32_t row = POOL_NONE;
	uint64_t place;

	for (key.source = TIMING_NONE + 1; row == POOL_NONE && is_timed(key.source); key.source++)
		row = find_row(work, &key, &place);
	return row;
}

static void move_parts(struct work *work, struct row *from, struct row *to)
{
	uint32_t last = from->first;

	while (work->parts[last].next != POOL_NONE)
		last = work->parts[last].next;
	work->parts[last].next = to->first;
	to->first = from->first;
	from->first = POOL_NONE;
}

/* Operations without a time are counted beside their like that have one. */
static void fold_untimed(struct work *work)
{
	for (uint32_t i = 0; i < work->nrows; i++) {
		struct row *row = &work->rows[i];
		uint32_t timed = is_timed(row->key.source) ? POOL_NONE : timed_row(work, row);

		if (timed != POOL_NONE)
			move_parts(work, row, &work->rows[timed]);
	}
}

static void weigh_cell(struct work *work, struct row *row, const struct cell *cell)
{
	const uint64_t seen[] = { (uint64_t)(row - work->rows), cell->member };
	uint64_t key = aggregate_hash(work->seed, seen, sizeof(seen));

	if (cell->first_ns < row->since_ns)
		row->since_ns = cell->first_ns;
	if (index_find(&work->members, key) != POOL_NONE)
		return;
	index_set(&work->members, key, 1);
	row->members++;
}

static void weigh_row(struct work *work, struct row *row)
{
	const struct part *part;

	for (uint32_t i = row->first; i != POOL_NONE; i = part->next) {
		part = &work->parts[i];
		row->exec_ns += part->sums->value[VALUE_EXEC].sum;
		row->bytes += part->sums->bytes;
		if (!work->weighed[part->cell])
			weigh_cell(work, row, aggregate_cell(work->agg, part->cell));
		work->weighed[part->cell] = true;
	}
}

static int by_weight(const void *a, const void *b)
{
	const struct row *x = a, *y = b;

	if (x->exec_ns != y->exec_ns)
		return x->exec_ns < y->exec_ns ? 1 : -1;
	if (x->bytes != y->bytes)
		return x->bytes < y->bytes ? 1 : -1;
	return memcmp(&x->key, &y->key, sizeof(x->key));
}

/* ---- putting a row together ---------------------------------------------- */

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

static void merge_part(const struct aggregate *agg, struct sums *to,
		       struct histogram h[VALUE_END], const struct sums *from)
{
	to->ops += from->ops;
	to->sized_ops += from->sized_ops;
	to->bytes += from->bytes;
	to->timed_bytes += from->timed_bytes;
	to->timed_ns += from->timed_ns;
	to->busbw_ns += from->busbw_ns;
	to->bus_timed_ns += from->bus_timed_ns;
	for (int v = 0; v < VALUE_END; v++)
		merge_value(agg, &to->value[v], &h[v], &from->value[v]);
}

/* A bucket's middle may lie outside of what was really seen. */
static uint64_t quantile(const struct histogram *h, const struct value_sums *sums, double q)
{
	uint64_t value = histogram_quantile(h, q);

	if (value == UNKNOWN_U64)
		return value;
	return value < sums->min ? sums->min : value > sums->max ? sums->max : value;
}

static void fill_times(struct aggregate_times *times, const struct histogram *h,
		       const struct value_sums *sums)
{
	times->n = sums->n;
	times->mean_ns = sums->n ? sums->sum / sums->n : UNKNOWN_U64;
	times->max_ns = sums->n ? sums->max : UNKNOWN_U64;
	times->p50_ns = quantile(h, sums, 0.5);
	times->p90_ns = quantile(h, sums, 0.9);
	times->p99_ns = quantile(h, sums, 0.99);
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
	if (h->total)
		row->busbw_p50_gbs = (double)quantile(h, bus, 0.5) / 1e6;
	if (bus->n)
		row->busbw_min_gbs = (double)bus->min / 1e6;
}

static void fill_keys(struct aggregate_row *out, const struct row_key *key, uint32_t by,
		      const struct cell *cell)
{
	out->by = by;
	out->has_comm_id = by & AGGREGATE_BY_COMM && cell->has_comm_id;
	out->comm_id = key->comm_id;
	out->comm_name = key->comm_name;
	out->nranks = key->nranks;
	out->rank = key->rank;
	out->func = key->func;
	out->algo = key->algo;
	out->proto = key->proto;
	out->size_class = key->size_class;
	out->peer = key->peer;
	out->tag = key->tag;
	out->source = key->source;
}

static uint64_t since(uint64_t then_ns, uint64_t now_ns)
{
	return now_ns > then_ns ? now_ns - then_ns : 0;
}

/* How long the figures cover: the running period counts as far as it has come. */
static uint64_t covered_ns(const struct aggregate *agg, const struct aggregate_query *query,
			   const struct row *row, uint64_t now_ns)
{
	const struct window *window;
	uint64_t ns;

	if (query->window == AGGREGATE_ALL)
		return since(row->since_ns, now_ns);
	window = &agg->window[query->window];
	ns = (window->slices - 1) * window->slice_ns + now_ns % window->slice_ns;
	return ns < since(agg->started_ns, now_ns) ? ns : since(agg->started_ns, now_ns);
}

static void fill_row(const struct aggregate *agg, const struct work *work,
		     const struct row *row, struct histogram h[VALUE_END], uint64_t now_ns,
		     struct aggregate_row *out)
{
	const struct cell *cell = aggregate_cell(agg, work->parts[row->first].cell);
	struct sums sums = { 0 };
	double inside;

	memset(h, 0, VALUE_END * sizeof(*h));
	for (uint32_t i = row->first; i != POOL_NONE; i = work->parts[i].next)
		merge_part(agg, &sums, h, work->parts[i].sums);
	fill_keys(out, &row->key, work->query->by, cell);
	out->window_ns = covered_ns(agg, work->query, row, now_ns);
	out->ops = sums.ops;
	out->bytes = sums.bytes;
	out->sized_ops = sums.sized_ops;
	fill_times(&out->exec, &h[VALUE_EXEC], &sums.value[VALUE_EXEC]);
	fill_times(&out->queue, &h[VALUE_QUEUE], &sums.value[VALUE_QUEUE]);
	fill_rates(out, &h[VALUE_BUSBW], &sums);
	out->sampled_fraction = (double)out->exec.n / (double)sums.ops;
	inside = (double)out->window_ns * row->members;
	out->share = out->exec.n && inside > 0 ? (double)row->exec_ns / inside : -1;
}

static int visit_rows(const struct aggregate *agg, const struct work *work, uint64_t now_ns,
		      aggregate_row_fn *visit, void *arg)
{
	struct histogram *h = malloc(VALUE_END * sizeof(*h));
	struct aggregate_row out;
	int visited = 0;

	if (!h)
		return -ENOMEM;
	for (uint32_t i = 0; i < work->nrows; i++) {
		if (work->rows[i].first == POOL_NONE)
			continue;
		fill_row(agg, work, &work->rows[i], h, now_ns, &out);
		visited++;
		if (!visit(&out, arg))
			break;
	}
	free(h);
	return visited;
}

int aggregate_query(struct aggregate *agg, const struct aggregate_query *query,
		    uint64_t now_ns, aggregate_row_fn *visit, void *arg)
{
	struct work work;
	int err;

	aggregate_advance(agg, now_ns);
	err = work_init(&work, agg, query);
	if (!err) {
		if (query->window == AGGREGATE_ALL)
			collect_cells(&work, agg);
		else
			collect_slices(&work, agg, &agg->window[query->window]);
		fold_untimed(&work);
		for (uint32_t i = 0; i < work.nrows; i++)
			weigh_row(&work, &work.rows[i]);
		qsort(work.rows, work.nrows, sizeof(*work.rows), by_weight);
		err = visit_rows(agg, &work, now_ns, visit, arg);
	}
	work_deinit(&work);
	return err;
}
