/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A query looks at every cell (or slice of the window) once, to find out which
 * row it belongs to, and then puts the rows together one after another, so that
 * only one row's histograms exist at a time.
 *
 * Thousands of cells take milliseconds, and nobody reads what the jobs publish
 * meanwhile.  So after each BREATH of steps the caller gets a turn; the state is
 * held until the end, so that all rows are of one moment.
 */
#include "ncclinspd/sums/aggregate.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "ncclinspd/sums/aggregate_impl.h"
#include "util/list.h"

#define BREATH		256	/* steps: a cell looked at, a histogram merged */
#define ROW_STEPS	8	/* steps that a row costs by itself */

/* Compared and hashed as bytes: always zeroed first. */
struct row_key {
	uint64_t comm_id;
	uint64_t alone;		/* process and index, where there is no comm_id, and by member */
	name_t comm_name;
	name_t func, algo, proto;
	uint64_t size_class;
	uint64_t tag;
	name_t phase;
	int32_t rank;
	int32_t nranks;
	int32_t peer;
	uint32_t source;
};
_Static_assert(sizeof(struct row_key) == 88, "padding would be compared");

/* One cell's share in a row. */
struct query_part {
	uint32_t cell;
	const struct sums *sums;
	uint32_t next;		/* next part of the same row, or POOL_NONE */
};

struct aggregate_query_row {
	struct keyed_head head;
	struct row_key key;
	uint32_t first;		/* part, or POOL_NONE */
	uint64_t inside_ns, bytes;
	uint64_t since_ns;	/* time of the oldest cell */
	uint64_t records, lost;	/* records of the processes in it */
	uint32_t members;
};

/* A row's place in the answer. */
struct row_place_in {
	uint64_t inside_ns, bytes;
	const struct aggregate_query_row *row;
};

struct aggregate_work {
	const struct aggregate_query *query;
	enum aggregate_window window;
	uint64_t now_ns;
	struct hold_reader *reader;
	LIST(struct query_part) parts;
	LIST(struct row_place_in) order;
	struct keyed rows;
	struct index seen;	/* row and member, row and process */
	struct histogram *h;	/* VALUE_END of them: of the row in hand */
	const struct aggregate *agg;
	struct aggregate_query_row **row_of;	/* row of each cell, or NULL: not looked for yet */
	bool *weighed;		/* each cell: its member and age are in its row */
	uint64_t seed;
};

static int work_init(struct aggregate_work *work, const struct aggregate *agg,
		     const struct aggregate_query *query, enum aggregate_window window,
		     uint64_t now_ns, struct hold_reader *reader)
{
	uint32_t cells = agg->cells.config.capacity, rows = keyed_count(&agg->cells);
	uint32_t parts = window == AGGREGATE_ALL ? rows : agg->slices.used;

	*work = (struct aggregate_work){
		.query = query,
		.window = window,
		.now_ns = now_ns,
		.reader = reader,
		.row_of = calloc(cells, sizeof(*work->row_of)),
		.weighed = calloc(cells, sizeof(*work->weighed)),
		.h = malloc(VALUE_END * sizeof(*work->h)),
		.agg = agg,
		.seed = agg->seed,
	};
	if (!work->row_of || !work->weighed || !work->h || list_init(&work->parts, parts) < 0 ||
	    list_init(&work->order, rows) < 0 ||
	    keyed_init(&work->rows,
		       &KEYED_CONFIG(struct aggregate_query_row, key, rows + 1, .seed = agg->seed)))
		return -ENOMEM;
	return index_init(&work->seen, 2 * rows, agg->seed);
}

static void work_deinit(struct aggregate_work *work)
{
	index_deinit(&work->seen);
	keyed_deinit(&work->rows);
	free(work->h);
	list_deinit(&work->order);
	list_deinit(&work->parts);
	free(work->weighed);
	free(work->row_of);
}

/* ---- which row ----------------------------------------------------------- */

static void row_make_key(struct row_key *key, const struct cell *cell, uint32_t by)
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
	key->phase = by & AGGREGATE_BY_PHASE ? cell->key.phase : NULL;
	if (!(by & AGGREGATE_BY_COMM))
		return;
	key->comm_name = cell->comm_name;
	if (cell->has_comm_id)
		key->comm_id = cell->comm_id;
	if (!cell->has_comm_id || (by & AGGREGATE_BY_MEMBER) == AGGREGATE_BY_MEMBER)
		key->alone = cell->key.process_id << 16 | (cell->key.comm_index + 1);
}

static struct aggregate_query_row *work_row(struct aggregate_work *work, const struct cell *cell)
{
	struct row_key key;
	struct aggregate_query_row *row;
	bool made;

	row_make_key(&key, cell, work->query->by);
	row = keyed_use(&work->rows, &key, 0, &made);
	if (row && made) {
		row->first = POOL_NONE;
		row->since_ns = UINT64_MAX;
	}
	return row;
}

static void row_add_part(struct aggregate_work *work, uint32_t item, const struct sums *sums)
{
	const struct cell *cell = aggregate_cell(work->agg, item);
	struct aggregate_query_row *row;

	if (!work->query->all_users && cell->uid != work->query->uid)
		return;
	if (cell->key.derived && !(work->query->by & AGGREGATE_BY_FUNC))
		return;		/* its parts are counted */
	if (!work->row_of[item])
		work->row_of[item] = work_row(work, cell);
	row = work->row_of[item];
	if (!row)
		return;		/* no memory */
	*list_must_add(&work->parts) = (struct query_part){ item, sums, row->first };
	row->first = work->parts.n - 1;
}

static bool work_collect_cells(struct aggregate_work *work)
{
	const struct aggregate *agg = work->agg;

	for (const struct cell *cell = NULL; (cell = keyed_next(&agg->cells, cell));) {
		row_add_part(work, keyed_number(cell), &cell->sums);
		if (!hold_go_on(work->reader, 1))
			return false;
	}
	return true;
}

static bool work_collect_period(struct aggregate_work *work, uint32_t first)
{
	const struct slice *slice;

	for (uint32_t item = first; item != POOL_NONE; item = slice->next) {
		slice = aggregate_slice(work->agg, item);
		if (aggregate_cell(work->agg, slice->cell)->generation == slice->generation)
			row_add_part(work, slice->cell, &slice->sums);
		if (!hold_go_on(work->reader, 1))
			return false;
	}
	return true;
}

static bool work_collect(struct aggregate_work *work)
{
	const struct window *window;

	if (work->window == AGGREGATE_ALL)
		return work_collect_cells(work);
	window = &work->agg->window[work->window];
	for (uint32_t i = 0; i < window->slices; i++)
		if (!work_collect_period(work, window->first[i]))
			return false;
	return true;
}

/* ---- what belongs together ----------------------------------------------- */

static bool source_is_timed(uint32_t source)
{
	return source != TIMING_NONE && source != TIMING_ENQUEUE_CPU;
}

/* The row of the best source with otherwise the same keys, or NULL. */
static struct aggregate_query_row *row_timed(const struct aggregate_work *work,
					     const struct aggregate_query_row *untimed)
{
	struct row_key key = untimed->key;
	struct aggregate_query_row *row = NULL;

	for (key.source = TIMING_NONE + 1; !row && source_is_timed(key.source); key.source++)
		row = keyed_find(&work->rows, &key);
	return row;
}

static void row_move_parts(struct aggregate_work *work, struct aggregate_query_row *from,
			   struct aggregate_query_row *to)
{
	uint32_t last = from->first;

	while (work->parts.at[last].next != POOL_NONE)
		last = work->parts.at[last].next;
	work->parts.at[last].next = to->first;
	to->first = from->first;
	from->first = POOL_NONE;
}

/* Operations without a time are counted beside their like that have one. */
static bool work_fold_untimed(struct aggregate_work *work)
{
	for (struct aggregate_query_row *row = NULL; (row = keyed_next(&work->rows, row));) {
		struct aggregate_query_row *timed = source_is_timed(row->key.source) ?
			NULL : row_timed(work, row);

		if (timed)
			row_move_parts(work, row, timed);
		if (!hold_go_on(work->reader, 1))
			return false;
	}
	return true;
}

/* Is it the first time that this is met in the row? */
static bool row_is_new(struct aggregate_work *work, const struct aggregate_query_row *row,
		       uint64_t kind, uint64_t what)
{
	const uint64_t seen[] = { keyed_number(row), kind, what };
	uint64_t key = index_hash(work->seed, seen, sizeof(seen));

	if (index_find(&work->seen, key) != POOL_NONE)
		return false;
	index_set(&work->seen, key, 1);
	return true;
}

static void weigh_cell(struct aggregate_work *work, struct aggregate_query_row *row,
		       const struct cell *cell)
{
	if (cell->first_ns < row->since_ns)
		row->since_ns = cell->first_ns;
	row->members += row_is_new(work, row, 0, cell->member);
	if (row_is_new(work, row, 1, cell->key.process_id))
		aggregate_tally(work->agg, cell->key.process_id, work->window, &row->records,
				&row->lost);
}

static bool weigh_row(struct aggregate_work *work, struct aggregate_query_row *row)
{
	const struct query_part *part;

	for (uint32_t i = row->first; i != POOL_NONE; i = part->next) {
		part = &work->parts.at[i];
		row->inside_ns += part->sums->value[VALUE_EXEC].sum +
				  part->sums->value[VALUE_BATCH].sum;
		row->bytes += part->sums->bytes;
		if (!work->weighed[part->cell])
			weigh_cell(work, row, aggregate_cell(work->agg, part->cell));
		work->weighed[part->cell] = true;
		if (!hold_go_on(work->reader, 1))
			return false;
	}
	return true;
}

static int rows_by_weight(const void *a, const void *b)
{
	const struct row_place_in *x = a, *y = b;

	if (x->inside_ns != y->inside_ns)
		return x->inside_ns < y->inside_ns ? 1 : -1;
	if (x->bytes != y->bytes)
		return x->bytes < y->bytes ? 1 : -1;
	return (keyed_number(x->row) > keyed_number(y->row)) -
	       (keyed_number(x->row) < keyed_number(y->row));
}

/* The rows that are left, as work->order.  False: the state was let go. */
static bool work_order_rows(struct aggregate_work *work)
{
	for (struct aggregate_query_row *row = NULL; (row = keyed_next(&work->rows, row));) {
		if (row->first == POOL_NONE)
			continue;
		if (!weigh_row(work, row))
			return false;
		*list_must_add(&work->order) = (struct row_place_in){ row->inside_ns, row->bytes,
								      row };
	}
	qsort(work->order.at, work->order.n, sizeof(*work->order.at), rows_by_weight);
	return true;
}

/* ---- putting a row together ---------------------------------------------- */

static void fill_keys(struct aggregate_row *out, const struct row_key *key, uint32_t by,
		      const struct cell *cell)
{
	out->by = by;
	out->has_comm_id = by & AGGREGATE_BY_COMM && cell->has_comm_id;
	out->comm_id = key->comm_id;
	out->comm_name = key->comm_name;
	out->nranks = key->nranks;
	out->rank = key->rank;
	out->process_id = cell->key.process_id;
	out->comm_index = cell->key.comm_index;
	out->func = key->func;
	out->algo = key->algo;
	out->proto = key->proto;
	out->size_class = key->size_class;
	out->peer = key->peer;
	out->tag = key->tag;
	out->phase = key->phase;
	out->source = key->source;
}

static uint64_t time_since(uint64_t then_ns, uint64_t now_ns)
{
	return now_ns > then_ns ? now_ns - then_ns : 0;
}

/* The time that the figures cover: the running period counts as far as it has come. */
static uint64_t covered_ns(const struct aggregate_work *work, const struct aggregate_query_row *row)
{
	const struct aggregate *agg = work->agg;
	uint64_t now_ns = work->now_ns, ns;
	const struct window *window;

	if (work->window == AGGREGATE_ALL)
		return time_since(row->since_ns, now_ns);
	window = &agg->window[work->window];
	ns = (window->slices - 1) * window->slice_ns + now_ns % window->slice_ns;
	return ns < time_since(agg->started_ns, now_ns) ? ns : time_since(agg->started_ns, now_ns);
}

static void row_fill(const struct aggregate_work *work, const struct aggregate_query_row *row,
		     const struct sums *sums, struct aggregate_row *out)
{
	const struct cell *cell = aggregate_cell(work->agg, work->parts.at[row->first].cell);
	double inside;

	out->window = work->window;
	fill_keys(out, &row->key, work->query->by, cell);
	out->window_ns = covered_ns(work, row);
	aggregate_figures(out, sums, work->h);
	inside = (double)out->window_ns * row->members;
	out->share = out->exec.n + out->batch.n && inside > 0 ?
		     (double)row->inside_ns / inside : -1;
	out->lost_fraction = row->records + row->lost ?
			     (double)row->lost / (double)(row->records + row->lost) : -1;
}

static bool row_make(struct aggregate_work *work, const struct aggregate_query_row *row,
		     struct aggregate_row *out)
{
	struct sums sums = { 0 };

	memset(work->h, 0, VALUE_END * sizeof(*work->h));
	for (uint32_t i = row->first; i != POOL_NONE; i = work->parts.at[i].next) {
		aggregate_merge(work->agg, &sums, work->h, work->parts.at[i].sums);
		if (!hold_go_on(work->reader, 1))
			return false;
	}
	row_fill(work, row, &sums, out);
	return hold_go_on(work->reader, ROW_STEPS);
}

static int work_visit_rows(struct aggregate_work *work, aggregate_row_fn *visit, void *arg)
{
	struct aggregate_row out;

	memset(&out, 0, sizeof(out));	/* rows may be compared as bytes */
	if (!work_collect(work) || !work_fold_untimed(work) || !work_order_rows(work))
		return -EAGAIN;
	for (uint32_t i = 0; i < work->order.n; i++) {
		if (!row_make(work, work->order.at[i].row, &out))
			return -EAGAIN;
		if (!visit(&out, arg))
			return -ENOMEM;
	}
	return (int)work->order.n;
}

static int aggregate_visit_window(struct aggregate *agg, const struct aggregate_query *query,
				  enum aggregate_window window, uint64_t now_ns,
				  struct hold_reader *reader, aggregate_row_fn *visit, void *arg)
{
	struct aggregate_work work;
	int n = work_init(&work, agg, query, window, now_ns, reader);

	if (!n)
		n = work_visit_rows(&work, visit, arg);
	work_deinit(&work);
	return n;
}

int aggregate_query(struct aggregate *agg, const struct aggregate_query *query,
		    uint64_t now_ns, aggregate_row_fn *visit, void *arg)
{
	struct hold_reader reader = {
		.most = BREATH, .meanwhile = query->meanwhile, .arg = query->meanwhile_arg,
	};
	int visited = 0, n = 0;

	aggregate_advance(agg, now_ns);
	hold_begin(&reader, &agg->hold);
	for (uint32_t w = 0; n >= 0 && w < AGGREGATE_WINDOW_END; w++) {
		if (!(query->windows & 1u << w))
			continue;
		n = aggregate_visit_window(agg, query, w, now_ns, &reader, visit, arg);
		visited += n;
	}
	hold_end(&agg->hold);
	return n < 0 ? n : visited;
}
