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

#define PROBES	8	/* cells whose keys may meet in one hash */

static const struct aggregate_limits defaults = {
	.cells = 4096,
	.slices = 65536,
	.chunks = 196608,
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

/* ---- making -------------------------------------------------------------- */

static int init_stores(struct aggregate *agg, const struct aggregate_limits *limits)
{
	int err = 0;

	err = err ? err : pool_init(&agg->cells, limits->cells, sizeof(struct cell));
	err = err ? err : pool_init(&agg->slices, limits->slices, sizeof(struct slice));
	err = err ? err : pool_init(&agg->chunks, limits->chunks, sizeof(struct chunk));
	err = err ? err : index_init(&agg->index, limits->cells, limits->seed);
	err = err ? err : index_init(&agg->members, limits->cells, limits->seed);
	err = err ? err : index_init(&agg->comms, limits->cells, limits->seed);
	agg->stats.bytes = pool_bytes(&agg->cells) + pool_bytes(&agg->slices) +
			   pool_bytes(&agg->chunks) + 3 * index_bytes(&agg->index) +
			   AGGREGATE_HELD * sizeof(struct held) +
			   AGGREGATE_TALLIES * sizeof(struct tally);
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
	if (list_init(&agg->held, AGGREGATE_HELD) < 0 || !agg->tallies || init_stores(agg, &l)) {
		aggregate_free(agg);
		return -ENOMEM;
	}
	pool_list_init(&agg->lru, offsetof(struct cell, link));
	init_windows(agg, now_ns);
	agg->seed = l.seed;
	agg->started_ns = now_ns;
	agg->last = POOL_NONE;
	*aggp = agg;
	return 0;
}

void aggregate_free(struct aggregate *agg)
{
	if (!agg)
		return;
	index_deinit(&agg->comms);
	index_deinit(&agg->members);
	index_deinit(&agg->index);
	pool_deinit(&agg->chunks);
	pool_deinit(&agg->slices);
	pool_deinit(&agg->cells);
	free(agg->tallies);
	list_deinit(&agg->held);
	free(agg);
}

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
static struct slice *current_slice(struct aggregate *agg, uint32_t item, int w)
{
	struct cell *cell = aggregate_cell(agg, item);
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
	slice->cell = item;
	slice->generation = cell->generation;
	slice->next = *first;
	*first = taken;
	cell->slice[w] = taken;
	cell->period[w] = window->period;
	return slice;
}

/* ---- cells --------------------------------------------------------------- */

static uint64_t size_class(uint64_t bytes)
{
	if (!bytes || bytes == UNKNOWN_U64)
		return bytes;
	return UINT64_C(1) << (63 - __builtin_clzll(bytes));
}

static void make_key(struct cell_key *key, const struct op *op)
{
	*key = (struct cell_key){
		.process_id = op->process_id,
		.func = op->func,
		.algo = op->algo,
		.proto = op->proto,
		.size_class = size_class(op->bytes),
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
static uint64_t member_of(struct aggregate *agg, const struct op *op)
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

static void evict(struct aggregate *agg, uint32_t item)
{
	struct cell *cell = aggregate_cell(agg, item);

	aggregate_free_chunks(agg, &cell->sums);
	index_remove(&agg->index, cell->place);
	pool_list_remove(&agg->cells, &agg->lru, item);
	pool_put(&agg->cells, item);
	agg->stats.evicted++;
	if (agg->last == item)
		agg->last = POOL_NONE;
}

static uint32_t new_cell(struct aggregate *agg, const struct cell_key *key, uint64_t place,
			 const struct op *op, uint64_t now_ns)
{
	struct cell *cell;
	uint32_t item;

	if (agg->cells.used == agg->cells.capacity)
		evict(agg, agg->lru.first);
	item = pool_take(&agg->cells);
	cell = aggregate_cell(agg, item);
	cell->key = *key;
	cell->place = place;
	cell->generation = ++agg->generations;
	cell->uid = op->uid;
	cell->has_comm_id = op->has_comm_id;
	cell->comm_id = op->comm_id;
	cell->comm_name = op->comm_name;
	cell->nranks = op->nranks;
	cell->rank = op->rank;
	cell->member = member_of(agg, op);
	cell->first_ns = now_ns;
	for (int w = 0; w < AGGREGATE_SLIDING; w++)
		cell->period[w] = UINT64_MAX;
	pool_list_append(&agg->cells, &agg->lru, item);
	index_set(&agg->index, place, item);
	return item;
}

/*
 * The cell of that key.  POOL_NONE: there is none, and *place is where it may go: it is
 * free or, past PROBES keys of one hash side by side, the last of them has to make room.
 */
static uint32_t look_up(const struct aggregate *agg, const struct cell_key *key, uint64_t *place)
{
	*place = index_hash(agg->seed, key, sizeof(*key));
	for (int probe = 1;; probe++, ++*place) {
		uint32_t item = index_find(&agg->index, *place);

		if (item == POOL_NONE ||
		    !memcmp(&aggregate_cell(agg, item)->key, key, sizeof(*key)))
			return item;
		if (probe == PROBES)
			return POOL_NONE;
	}
}

static uint32_t find_cell(struct aggregate *agg, const struct cell_key *key,
			  const struct op *op, uint64_t now_ns)
{
	uint64_t place;
	uint32_t item = look_up(agg, key, &place), taken;

	if (item != POOL_NONE)
		return item;
	taken = index_find(&agg->index, place);
	if (taken != POOL_NONE)
		evict(agg, taken);
	return new_cell(agg, key, place, op, now_ns);
}

static uint32_t touch_cell(struct aggregate *agg, const struct cell_key *key,
			   const struct op *op, uint64_t now_ns)
{
	uint32_t item = agg->last;

	if (item != POOL_NONE && !memcmp(&aggregate_cell(agg, item)->key, key, sizeof(*key)))
		return item;
	item = find_cell(agg, key, op, now_ns);
	pool_list_remove(&agg->cells, &agg->lru, item);
	pool_list_append(&agg->cells, &agg->lru, item);
	agg->last = item;
	return item;
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
	uint64_t taken = taken_ns(op), place;
	struct cell_key key;
	uint32_t item;
	double n;

	if (taken == UNKNOWN_U64 || taken < least_ns)
		return false;
	make_key(&key, op);
	item = look_up(agg, &key, &place);
	if (item == POOL_NONE)
		return false;
	past = &aggregate_cell(agg, item)->sums.value[op_is_fused(op) ? VALUE_BATCH : VALUE_EXEC];
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

static void take_in(struct aggregate *agg, const struct op *op, uint64_t now_ns)
{
	struct cell_key key;
	struct sample sample;
	uint32_t item;

	aggregate_advance(agg, now_ns);
	make_key(&key, op);
	aggregate_sample(&sample, op);
	item = touch_cell(agg, &key, op, now_ns);
	aggregate_add_sample(agg, &aggregate_cell(agg, item)->sums, &sample);
	for (int w = 0; w < AGGREGATE_SLIDING; w++) {
		struct slice *slice = current_slice(agg, item, w);

		if (slice)
			aggregate_add_sample(agg, &slice->sums, &sample);
		else
			agg->stats.unbinned++;
	}
	agg->stats.added++;
	agg->stats.cells = agg->cells.used;
}

void aggregate_hold(struct aggregate *agg)
{
	agg->holding = true;
}

void aggregate_release(struct aggregate *agg)
{
	agg->holding = false;
	agg->released++;
	for (uint32_t i = 0; i < agg->held.n; i++)
		take_in(agg, &agg->held.at[i].op, agg->held.at[i].now_ns);
	agg->held.n = 0;
}

void aggregate_add(struct aggregate *agg, const struct op *op, uint64_t now_ns)
{
	struct held *held;

	if (agg->held.n == agg->held.room)
		aggregate_release(agg);
	held = agg->holding ? list_add(&agg->held) : NULL;
	if (held)
		*held = (struct held){ *op, now_ns };
	else
		take_in(agg, op, now_ns);
}

const struct aggregate_stats *aggregate_stats(const struct aggregate *agg)
{
	return &agg->stats;
}
