/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A cell is what one rank did with one function, algorithm, protocol, size class
 * and so on.  It holds its totals; what it did lately stands in slices, one per
 * period of a window that it was active in:
 *
 *     window 10s:  period p-4 ... p-1   p (now)
 *                    │              │    └─► slice(cell 3) ─► slice(cell 7)
 *                    │              └─► slice(cell 3)
 *                    └─► freed, all at once, when p + 1 begins
 *
 * Histograms are lists of octaves, since durations of one cell lie close
 * together.  So memory follows activity, and an idle cell costs its totals only.
 */
#include "ncclinspd/sums/aggregate.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "ncclinspd/sums/aggregate_impl.h"

static const struct aggregate_limits defaults = {
	.cells = 4096,
	.slices = 65536,
	.chunks = 196608,
};

const char *const aggregate_windows[] = {
#define X(NAME, text, slices, ns) text,
	AGGREGATE_WINDOWS(X)
#undef X
	NULL,
};

const char *const aggregate_keys[] = {
#define X(bit, NAME, text) [bit] = text,
	AGGREGATE_KEYS(X)
#undef X
	NULL,
};

static const struct {
	uint32_t slices;
	uint64_t slice_ns;
} windows[AGGREGATE_WINDOW_END] = {
#define X(NAME, text, n, ns) [AGGREGATE_##NAME] = { n, ns },
	AGGREGATE_WINDOWS(X)
#undef X
};
#define X(NAME, text, n, ns) \
	_Static_assert((n) <= AGGREGATE_MAX_SLICES, "more slices than places: " text);
AGGREGATE_WINDOWS(X)
#undef X

/* ---- windows ------------------------------------------------------------- */

static void free_period(struct aggregate *agg, uint32_t *first)
{
	uint32_t item = *first;

	while (item != POOL_NONE) {
		struct slice *slice = aggregate_slice(agg, item);
		uint32_t next = slice->next;

		aggregate_free_chunks(agg, &slice->sums);
		pool_put(&agg->slices, item);
		item = next;
	}
	*first = POOL_NONE;
}

void aggregate_advance(struct aggregate *agg, uint64_t now_ns)
{
	if (now_ns < agg->boundary_ns)
		return;
	agg->boundary_ns = UINT64_MAX;
	for (int w = 0; w < AGGREGATE_SLIDING; w++) {
		struct window *window = &agg->window[w];
		uint64_t period = now_ns / window->slice_ns;
		uint64_t steps = period > window->period ? period - window->period : 0;

		for (uint64_t i = 1; i <= steps && i <= window->slices; i++)
			free_period(agg, &window->first[(window->period + i) % window->slices]);
		window->period += steps;
		if ((window->period + 1) * window->slice_ns < agg->boundary_ns)
			agg->boundary_ns = (window->period + 1) * window->slice_ns;
	}
}

/* The cell's slice of the window's current period; NULL: no room. */
static struct slice *cell_current_slice(struct aggregate *agg, struct cell *cell, int w)
{
	struct window *window = &agg->window[w];
	uint32_t *first = &window->first[window->period % window->slices];
	struct slice *slice;
	uint32_t taken;

	if (cell->period[w] == window->period)
		return aggregate_slice(agg, cell->slice[w]);
	taken = pool_take(&agg->slices);
	if (taken == POOL_NONE)
		return NULL;
	slice = aggregate_slice(agg, taken);
	slice->cell = keyed_number(cell);
	slice->generation = cell->generation;
	slice->next = *first;
	*first = taken;
	cell->slice[w] = taken;
	cell->period[w] = window->period;
	return slice;
}

/* ---- cells --------------------------------------------------------------- */

static uint64_t cell_size_class(uint64_t bytes)
{
	if (!bytes || bytes == UNKNOWN_U64)
		return bytes;
	return UINT64_C(1) << (63 - __builtin_clzll(bytes));
}

static void cell_make_key(struct cell_key *key, const struct op *op)
{
	*key = (struct cell_key){
		.process_id = op->process_id,
		.func = op->func,
		.algo = op->algo,
		.proto = op->proto,
		.size_class = cell_size_class(op->bytes),
		.tag = op->tag,
		.phase = op->phase,
		.comm_index = op->comm_index,
		.peer = op->peer,
		.source = op->source,
		.derived = op->parts > 0,
	};
}

/* After thousands of communicators: those still in use are met again at once. */
static void forget_members(struct aggregate *agg)
{
	index_clear(&agg->members);
	index_clear(&agg->comms);
}

/*
 * The GPU of its process that a communicator's member is: one process may hold several
 * ranks of a communicator, and then each is a GPU of its own; but the same rank in another
 * communicator is not.  So: the n-th member of that comm_id in that process is its n-th
 * GPU.
 */
static uint64_t aggregate_member(struct aggregate *agg, const struct op *op)
{
	const uint64_t member[] = { op->process_id, op->comm_index };
	const uint64_t comm[] = { op->process_id, op->comm_id, 1 };
	uint64_t member_key = index_hash(agg->seed, member, sizeof(member));
	uint64_t comm_key = index_hash(agg->seed, comm, sizeof(comm));
	uint32_t nth = 0;

	if (op->has_comm_id && op->comm_index != NCI_COMM_NONE) {
		nth = index_find(&agg->members, member_key);
		if (nth == POOL_NONE) {
			if (agg->members.used == agg->members.capacity)
				forget_members(agg);
			nth = index_find(&agg->comms, comm_key) + 1;
			index_set(&agg->members, member_key, nth);
			index_set(&agg->comms, comm_key, nth);
		}
	}
	return op->process_id << 16 | (nth & 0xffff);
}

static void cell_gone(void *cell, void *agg)
{
	aggregate_free_chunks(agg, &((struct cell *)cell)->sums);
}

static void cell_begin(struct aggregate *agg, struct cell *cell, const struct op *op,
		       uint64_t now_ns)
{
	cell->generation = ++agg->generations;
	cell->uid = op->uid;
	cell->has_comm_id = op->has_comm_id;
	cell->comm_id = op->comm_id;
	cell->comm_name = op->comm_name;
	cell->nranks = op->nranks;
	cell->rank = op->rank;
	cell->member = aggregate_member(agg, op);
	cell->first_ns = now_ns;
	for (int w = 0; w < AGGREGATE_SLIDING; w++)
		cell->period[w] = UINT64_MAX;
	agg->stats.cells = keyed_count(&agg->cells);
	agg->stats.evicted = agg->cells.evicted;
}

/* UNKNOWN_U64: nobody knows, or a batch's head tells it. */
static uint64_t taken_ns(const struct op *op)
{
	if (!op_is_fused(op))
		return op->exec_ns;
	return op->fused != OP_FUSED && op->batch_head ? op->batch_ns : UNKNOWN_U64;
}

bool aggregate_usual(const struct aggregate *agg, const struct op *op, uint64_t least_ns,
		     struct aggregate_usual *out)
{
	const struct value_sums *past;
	uint64_t taken = taken_ns(op);
	const struct cell *cell;
	struct cell_key key;
	double n;

	if (taken == UNKNOWN_U64 || taken < least_ns)
		return false;
	cell_make_key(&key, op);
	cell = keyed_find(&agg->cells, &key);
	if (!cell)
		return false;
	past = &cell->sums.value[op_is_fused(op) ? VALUE_BATCH : VALUE_EXEC];
	n = (double)past->n;
	if (!past->n)
		return false;
	*out = (struct aggregate_usual){
		.taken_ns = taken,
		.ops = past->n,
		.p50_ns = aggregate_quantile(agg, past, 0.5),
		/* rank n - 1, or the first thousandth */
		.p999_ns = aggregate_quantile(agg, past, n < 1000 ? (n - 1.5) / n : 0.999),
	};
	return true;
}

static void aggregate_take_in(struct aggregate *agg, const struct op *op, uint64_t now_ns)
{
	struct cell_key key;
	struct sample sample;
	struct cell *cell;
	bool made;

	aggregate_advance(agg, now_ns);
	cell_make_key(&key, op);
	aggregate_sample(&sample, op);
	cell = keyed_use(&agg->cells, &key, 0, &made);
	if (!cell)
		return;
	if (made)
		cell_begin(agg, cell, op, now_ns);
	aggregate_add_sample(agg, &cell->sums, &sample);
	for (int w = 0; w < AGGREGATE_SLIDING; w++) {
		struct slice *slice = cell_current_slice(agg, cell, w);

		if (slice)
			aggregate_add_sample(agg, &slice->sums, &sample);
		else
			agg->stats.unbinned++;
	}
	agg->stats.added++;
}

static void aggregate_take_held(const void *entry, void *agg)
{
	const struct held *held = entry;

	aggregate_take_in(agg, &held->op, held->now_ns);
}

void aggregate_add(struct aggregate *agg, const struct op *op, uint64_t now_ns)
{
	struct held *held = hold_place(&agg->hold);

	if (held)
		*held = (struct held){ *op, now_ns };
	else
		aggregate_take_in(agg, op, now_ns);
}

const struct aggregate_stats *aggregate_stats(const struct aggregate *agg)
{
	return &agg->stats;
}

/* ---- life ---------------------------------------------------------------- */

static int aggregate_init_stores(struct aggregate *agg, const struct aggregate_limits *limits)
{
	int err = keyed_init(&agg->cells, &KEYED_CONFIG(struct cell, key, limits->cells,
				.seed = limits->seed, .gone = cell_gone, .arg = agg));

	err = err ? err : pool_init(&agg->slices, limits->slices, sizeof(struct slice));
	err = err ? err : pool_init(&agg->chunks, limits->chunks, sizeof(struct chunk));
	err = err ? err : index_init(&agg->members, limits->cells, limits->seed);
	err = err ? err : index_init(&agg->comms, limits->cells, limits->seed);
	err = err ?
		err : hold_init(&agg->hold, AGGREGATE_HELD, sizeof(struct held),
				aggregate_take_held,
				    agg);
	agg->stats.bytes = keyed_bytes(&agg->cells) + pool_bytes(&agg->slices) +
			   pool_bytes(&agg->chunks) + 2 * index_bytes(&agg->members) +
			   hold_bytes(&agg->hold) + AGGREGATE_TALLIES * sizeof(struct tally);
	return err;
}

static void init_windows(struct aggregate *agg, uint64_t now_ns)
{
	for (int w = 0; w < AGGREGATE_SLIDING; w++) {
		struct window *window = &agg->window[w];

		window->slices = windows[w].slices;
		window->slice_ns = windows[w].slice_ns;
		window->period = now_ns / window->slice_ns;
		for (uint32_t i = 0; i < window->slices; i++)
			window->first[i] = POOL_NONE;
	}
}

int aggregate_new(struct aggregate **aggp, const struct aggregate_limits *limits,
		  uint64_t now_ns)
{
	struct aggregate *agg = calloc(1, sizeof(*agg));
	struct aggregate_limits l = defaults;

	if (!agg)
		return -ENOMEM;
	if (limits) {
		l.cells = limits->cells ? limits->cells : l.cells;
		l.slices = limits->slices ? limits->slices : l.slices;
		l.chunks = limits->chunks ? limits->chunks : l.chunks;
		l.seed = limits->seed;
	}
	agg->tallies = calloc(AGGREGATE_TALLIES, sizeof(*agg->tallies));
	if (!agg->tallies || aggregate_init_stores(agg, &l)) {
		aggregate_free(agg);
		return -ENOMEM;
	}
	init_windows(agg, now_ns);
	agg->seed = l.seed;
	agg->started_ns = now_ns;
	*aggp = agg;
	return 0;
}

void aggregate_free(struct aggregate *agg)
{
	if (!agg)
		return;
	index_deinit(&agg->comms);
	index_deinit(&agg->members);
	pool_deinit(&agg->chunks);
	pool_deinit(&agg->slices);
	keyed_deinit(&agg->cells);
	free(agg->tallies);
	hold_deinit(&agg->hold);
	free(agg);
}
