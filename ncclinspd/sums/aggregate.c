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
 * An operation is added to the slice of the shortest window alone.  When a period is over, its
 * slices are handed up: added to those of the next longer window, and of the longest to the
 * totals.  So whoever asks for a window takes the running periods of all shorter ones with it.
 *
 * Histograms are lists of parts, since durations of one cell lie close
 * together.  So memory follows activity, and an idle cell costs its totals only.
 *
 * A query looks at every cell (or slice of the window) once, to find out which row it belongs
 * to, and then puts the rows together one after another, so that only one row's histograms
 * exist at a time.  Thousands of cells take milliseconds, and nobody reads what the jobs publish
 * meanwhile.  So after each BREATH of steps the caller gets a turn; the state is held until the
 * end, so that all rows are of one moment.
 */
#include "ncclinspd/sums/aggregate.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "ncclinspd/sums/sums.h"
#include "tables/hold.h"
#include "tables/keyed.h"
#include "util/list.h"

/* Compared and hashed as bytes: no padding. */
struct cell_key {
	uint64_t process_id;
	name_t func, algo, proto;
	uint64_t size_class;
	uint64_t tag;
	name_t phase;
	uint32_t comm_index;
	int32_t peer;
	uint32_t source;
	uint32_t derived;	/* 1: put together from others, which are cells of their own */
};
_Static_assert(sizeof(struct cell_key) == 72, "padding would be compared");

#define AGGREGATE_SLIDING AGGREGATE_ALL	/* windows before it are made of slices */

struct cell {
	struct keyed_head head;
	struct cell_key key;
	uint32_t generation;	/* slices of an evicted cell tell by it */
	pid_t pid;
	uid_t uid;
	bool has_comm_id;
	uint64_t comm_id;
	name_t comm_name;
	name_t tag_name;	/* the name of key.tag */
	int32_t nranks;
	int32_t rank;
	uint64_t member;	/* GPU of a process, as far as can be told */
	uint64_t first_ns;
	uint32_t slice[AGGREGATE_SLIDING];	/* slice in the window's current period */
	uint64_t period[AGGREGATE_SLIDING];
	struct sums sums;	/* totals since it was made */
};

/* The sums of a cell in one period of a window. */
struct slice {
	uint32_t next;		/* next one in the same period, or POOL_NONE */
	uint32_t cell;
	uid_t account;
	uint32_t generation;
	struct sums sums;
};

#define AGGREGATE_MAX_SLICES 6
#define AGGREGATE_TALLIES    1024

/* A process's records in one period of a window. */
struct tally_slice {
	uint64_t period, records, lost;
};

struct tally {
	uint64_t process_id;
	uint64_t records, lost;		/* so far */
	struct tally_slice slice[AGGREGATE_SLIDING][AGGREGATE_MAX_SLICES];
};

struct window {
	uint32_t slices;
	uint64_t slice_ns;
	uint64_t period;	/* now / slice_ns */
	uint32_t first[AGGREGATE_MAX_SLICES];	/* first slice by period % slices */
};

struct held {
	struct op op;
	uint64_t now_ns;
};

struct aggregate {
	struct keyed cells;
	struct pool slices;
	struct accounts_tally slices_of;	/* as of chunks */
	struct sums_chunks chunks;
	struct index members;		/* process and communicator -> which GPU of the process */
	struct index comms;		/* process and comm_id -> how many GPUs so far */
	struct window window[AGGREGATE_SLIDING];
	struct aggregate_stats stats;
	uint64_t seed;
	uint32_t generations;
	uint64_t started_ns;
	uint64_t boundary_ns;		/* when the next period of any window begins */
	struct tally *tallies;		/* AGGREGATE_TALLIES of them, by process */
	struct hold hold;		/* holds struct held */
};

static inline struct cell *aggregate_cell(const struct aggregate *agg, uint32_t item)
{
	return keyed_at(&agg->cells, item);
}

static inline struct slice *aggregate_slice(const struct aggregate *agg, uint32_t item)
{
	return pool_at(&agg->slices, item);
}

static const struct aggregate_limits defaults = {
	.cells = 4096,
	.slices = 65536,
	.chunks = 262144,
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

		sums_free_chunks(&slice->sums, &agg->chunks);
		--*accounts_count(&agg->slices_of, slice->account);
		pool_put(&agg->slices, item);
		item = next;
	}
	*first = POOL_NONE;
}

/* Has it a slice of the window's current period? */
static bool cell_has_slice(const struct aggregate *agg, const struct cell *cell, int w)
{
	return cell->period[w] == agg->window[w].period;
}

/* A slice for the window's current period; NULL: no room, or none for the cell's account. */
static struct slice *cell_new_slice(struct aggregate *agg, struct cell *cell, int w)
{
	struct window *window = &agg->window[w];
	uint32_t *first = &window->first[window->period % window->slices];
	struct slice *slice;
	uint32_t taken;

	if (!accounts_may_take(&agg->slices_of, cell->head.account,
			       agg->slices.capacity - agg->slices.used))
		return NULL;
	taken = pool_take(&agg->slices);
	slice = aggregate_slice(agg, taken);
	slice->cell = keyed_number(cell);
	slice->account = cell->head.account;
	++*accounts_count(&agg->slices_of, slice->account);
	slice->generation = cell->generation;
	slice->next = *first;
	*first = taken;
	cell->slice[w] = taken;
	cell->period[w] = window->period;
	return slice;
}

/*
 * The sums that take what the cell does: of the current period of that window, of the next longer
 * one if there is no room, and so on to the totals.
 */
static struct sums *cell_current_sums(struct aggregate *agg, struct cell *cell, int w)
{
	for (; w < AGGREGATE_SLIDING; w++) {
		struct slice *slice = cell_has_slice(agg, cell, w) ?
				      aggregate_slice(agg, cell->slice[w]) :
				      cell_new_slice(agg, cell, w);

		if (slice)
			return &slice->sums;
		agg->stats.unbinned++;
	}
	return &cell->sums;
}

/* The cell of a slice; NULL: it has made room for another one since. */
static struct cell *slice_cell(const struct aggregate *agg, const struct slice *slice)
{
	struct cell *cell = aggregate_cell(agg, slice->cell);

	return cell->generation == slice->generation ? cell : NULL;
}

static void window_hand_up(struct aggregate *agg, int w)
{
	const struct window *window = &agg->window[w];
	const struct slice *slice;

	for (uint32_t item = window->first[window->period % window->slices]; item != POOL_NONE;
	     item = slice->next) {
		struct cell *cell;

		slice = aggregate_slice(agg, item);
		cell = slice_cell(agg, slice);
		if (cell)
			agg->stats.unbinned += sums_hand_up(cell_current_sums(agg, cell, w + 1),
							    &slice->sums, &agg->chunks);
	}
}

/* Hand up the periods that are over, shorter windows first, and let the oldest slices go. */
static void aggregate_advance(struct aggregate *agg, uint64_t now_ns)
{
	if (now_ns < agg->boundary_ns)
		return;
	agg->boundary_ns = UINT64_MAX;
	for (int w = 0; w < AGGREGATE_SLIDING; w++) {
		struct window *window = &agg->window[w];
		uint64_t period = now_ns / window->slice_ns;
		uint64_t steps = period > window->period ? period - window->period : 0;

		if (steps)
			window_hand_up(agg, w);
		for (uint64_t i = 1; i <= steps && i <= window->slices; i++)
			free_period(agg, &window->first[(window->period + i) % window->slices]);
		window->period += steps;
		if ((window->period + 1) * window->slice_ns < agg->boundary_ns)
			agg->boundary_ns = (window->period + 1) * window->slice_ns;
	}
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

/* Would its key be the same? */
static inline bool cell_is_of(const struct cell *cell, const struct op *op)
{
	const struct cell_key *key = &cell->key;

	return key->process_id == op->process_id && key->comm_index == op->comm_index &&
	       key->func == op->func && key->size_class == cell_size_class(op->bytes) &&
	       key->algo == op->algo && key->proto == op->proto && key->tag == op->tag &&
	       key->phase == op->phase && key->peer == op->peer && key->source == op->source &&
	       key->derived == (op->parts > 0);
}

/* Empties the indexes after thousands of communicators: those in use are met again at once. */
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
	sums_free_chunks(&((struct cell *)cell)->sums, &((struct aggregate *)agg)->chunks);
}

static void cell_begin(struct aggregate *agg, struct cell *cell, const struct op *op,
		       uint64_t now_ns)
{
	cell->generation = ++agg->generations;
	cell->pid = op->pid;
	cell->uid = op->uid;
	cell->has_comm_id = op->has_comm_id;
	cell->comm_id = op->comm_id;
	cell->comm_name = op->comm_name;
	cell->tag_name = op->tag_name;
	cell->nranks = op->nranks;
	cell->rank = op->rank;
	cell->member = aggregate_member(agg, op);
	cell->first_ns = now_ns;
	for (int w = 0; w < AGGREGATE_SLIDING; w++)
		cell->period[w] = UINT64_MAX;
	agg->stats.cells = keyed_count(&agg->cells);
	agg->stats.evicted = agg->cells.evicted;
}

/* All that a cell has of a value so far, its histogram as *h. */
static struct value_sums cell_value(const struct aggregate *agg, const struct cell *cell,
				    enum aggregate_value v, struct histogram *h)
{
	struct value_sums all = { 0 };

	histogram_clear(h);
	sums_merge_value(&all, h, &cell->sums.value[v], &agg->chunks);
	for (int w = 0; w < AGGREGATE_SLIDING; w++)
		if (cell_has_slice(agg, cell, w))
			sums_merge_value(&all, h,
					 &aggregate_slice(agg, cell->slice[w])->sums.value[v],
					 &agg->chunks);
	return all;
}

bool aggregate_usual(const struct aggregate *agg, const struct op *op, uint64_t least_ns,
		     struct aggregate_usual *out)
{
	uint64_t taken = sums_taken_ns(op);
	const struct cell *cell;
	struct value_sums past;
	struct cell_key key;
	struct histogram h;
	double n;

	if (taken == UNKNOWN_U64 || taken < least_ns)
		return false;
	cell_make_key(&key, op);
	cell = keyed_find(&agg->cells, &key);
	if (!cell)
		return false;
	past = cell_value(agg, cell, op_is_fused(op) ? VALUE_BATCH : VALUE_EXEC, &h);
	n = (double)past.n;
	if (!past.n)
		return false;
	*out = (struct aggregate_usual){
		.taken_ns = taken,
		.ops = past.n,
		.p50_ns = sums_quantile(&past, &h, 0.5),
		/* rank n - 1, or the first thousandth */
		.p999_ns = sums_quantile(&past, &h, n < 1000 ? (n - 1.5) / n : 0.999),
	};
	return true;
}

/* The cell of an operation; NULL: no memory. */
static struct cell *aggregate_cell_of(struct aggregate *agg, const struct op *op, uint64_t now_ns)
{
	uint64_t mark = op->process_id ^ (uint64_t)op->comm_index << 24 ^
			cell_size_class(op->bytes) ^ (uintptr_t)op->func;
	struct cell *cell = keyed_lately(&agg->cells, mark);
	struct cell_key key;
	bool made;

	if (cell && cell_is_of(cell, op)) {
		keyed_touch(&agg->cells, cell);
		return cell;
	}
	cell_make_key(&key, op);
	cell = keyed_use_lately(&agg->cells, mark, &key, op->account, &made);
	if (cell && made)
		cell_begin(agg, cell, op, now_ns);
	return cell;
}

static void aggregate_take_in(struct aggregate *agg, const struct op *op, uint64_t now_ns)
{
	struct cell *cell;
	struct sums *sums;

	aggregate_advance(agg, now_ns);
	cell = aggregate_cell_of(agg, op, now_ns);
	if (!cell)
		return;
	sums = cell_has_slice(agg, cell, 0) ? &aggregate_slice(agg, cell->slice[0])->sums :
					      cell_current_sums(agg, cell, 0);
	agg->stats.unbinned += sums_add(sums, &agg->chunks, op);
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

/* ---- what was lost ----------------------------------------------------- */

/*
 * Processes are numbered as they come, so that the newest AGGREGATE_TALLIES of them have
 * places of their own.
 */
static struct tally *tally_of(const struct aggregate *agg, uint64_t process_id)
{
	return &agg->tallies[process_id % AGGREGATE_TALLIES];
}

static void add_to_slice(struct tally_slice *slice, uint64_t period, uint64_t records,
			 uint64_t lost)
{
	if (slice->period != period)
		*slice = (struct tally_slice){ .period = period };
	slice->records += records;
	slice->lost += lost;
}

void aggregate_account(struct aggregate *agg, uint64_t process_id, uint64_t records,
		       uint64_t lost, uint64_t now_ns)
{
	struct tally *t = tally_of(agg, process_id);

	if (t->process_id > process_id || agg->hold.holding)
		return;		/* counters only grow: what is held up now comes with the next */
	if (t->process_id != process_id)
		*t = (struct tally){ .process_id = process_id };
	if (records == t->records && lost == t->lost)
		return;
	aggregate_advance(agg, now_ns);
	for (int w = 0; w < AGGREGATE_SLIDING; w++) {
		const struct window *window = &agg->window[w];

		add_to_slice(&t->slice[w][window->period % window->slices], window->period,
			     records - t->records, lost - t->lost);
	}
	t->records = records;
	t->lost = lost;
}

/* Add what that process wrote within the window to *records and *lost. */
static void tally_add_to(const struct aggregate *agg, uint64_t process_id,
		     enum aggregate_window window, uint64_t *records, uint64_t *lost)
{
	const struct tally *t = tally_of(agg, process_id);
	const struct window *w = &agg->window[window];

	if (t->process_id != process_id)
		return;
	if (window == AGGREGATE_ALL) {
		*records += t->records;
		*lost += t->lost;
		return;
	}
	for (uint32_t i = 0; i < w->slices; i++) {
		if (t->slice[window][i].period + w->slices <= w->period)
			continue;
		*records += t->slice[window][i].records;
		*lost += t->slice[window][i].lost;
	}
}

/* ---- queries ----------------------------------------------------------- */

#define BREATH		256	/* steps: a cell looked at */
#define MERGE_STEPS	2	/* steps that merging the histograms of a cell costs */
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
	uint32_t parts = rows + agg->slices.used;

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

static bool work_collect_totals(struct aggregate_work *work)
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
		if (slice_cell(work->agg, slice))
			row_add_part(work, slice->cell, &slice->sums);
		if (!hold_go_on(work->reader, 1))
			return false;
	}
	return true;
}

/* The running periods of shorter windows have not been handed up yet. */
static bool work_collect(struct aggregate_work *work)
{
	const struct window *window = work->agg->window;

	for (uint32_t w = 0; w < work->window; w++)
		if (!work_collect_period(work,
					 window[w].first[window[w].period % window[w].slices]))
			return false;
	if (work->window == AGGREGATE_ALL)
		return work_collect_totals(work);
	window += work->window;
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

/* The row of the best source with otherwise the same keys, or NULL: it is the row itself. */
static struct aggregate_query_row *row_timed(const struct aggregate_work *work,
					     const struct aggregate_query_row *like)
{
	struct row_key key = like->key;
	struct aggregate_query_row *row = NULL;

	for (key.source = TIMING_NONE + 1; !row && source_is_timed(key.source); key.source++)
		row = keyed_find(&work->rows, &key);
	return row == like ? NULL : row;
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

/* Operations without a time, or with a worse clock's, are counted beside their like. */
static bool work_fold_sources(struct aggregate_work *work)
{
	for (struct aggregate_query_row *row = NULL; (row = keyed_next(&work->rows, row));) {
		struct aggregate_query_row *timed = row_timed(work, row);

		if (timed)
			row_move_parts(work, row, timed);
		if (!hold_go_on(work->reader, 1))
			return false;
	}
	return true;
}

/* Are its times the row's?  Else it is counted alone. */
static bool part_is_timed(const struct aggregate_work *work, const struct aggregate_query_row *row,
			  const struct query_part *part)
{
	return aggregate_cell(work->agg, part->cell)->key.source == row->key.source;
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
		tally_add_to(work->agg, cell->key.process_id, work->window, &row->records,
				&row->lost);
}

static bool weigh_row(struct aggregate_work *work, struct aggregate_query_row *row)
{
	const struct query_part *part;

	for (uint32_t i = row->first; i != POOL_NONE; i = part->next) {
		part = &work->parts.at[i];
		if (part_is_timed(work, row, part))
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
	list_sort(&work->order, rows_by_weight);
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
	out->pid = by & AGGREGATE_BY_COMM && !cell->has_comm_id ? cell->pid : UNKNOWN_I32;
	out->uid = cell->uid;
	out->process_id = cell->key.process_id;
	out->comm_index = cell->key.comm_index;
	out->func = key->func;
	out->algo = key->algo;
	out->proto = key->proto;
	out->size_class = key->size_class;
	out->peer = key->peer;
	out->tag = key->tag;
	out->tag_name = by & AGGREGATE_BY_TAG ? cell->tag_name : NULL;
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
	sums_figures(sums, work->h, out);
	inside = (double)out->window_ns * row->members;
	out->share = out->exec.n + out->batch.n && inside > 0 ?
		     (double)row->inside_ns / inside * (double)sums->kernel_ops /
		     (double)sums->timed_ops : -1;
	out->lost_fraction = row->records + row->lost ?
			     (double)row->lost / (double)(row->records + row->lost) : -1;
}

static bool row_make(struct aggregate_work *work, const struct aggregate_query_row *row,
		     struct aggregate_row *out)
{
	struct sums sums = { 0 };

	for (int v = 0; v < VALUE_END; v++)
		histogram_clear(&work->h[v]);
	for (uint32_t i = row->first; i != POOL_NONE; i = work->parts.at[i].next) {
		if (part_is_timed(work, row, &work->parts.at[i]))
			sums_merge(&sums, work->h, work->parts.at[i].sums, &work->agg->chunks);
		else
			sums_merge_counts(&sums, work->parts.at[i].sums);
		if (!hold_go_on(work->reader, MERGE_STEPS))
			return false;
	}
	row_fill(work, row, &sums, out);
	return hold_go_on(work->reader, ROW_STEPS);
}

static int work_visit_rows(struct aggregate_work *work, aggregate_row_fn *visit, void *arg)
{
	struct aggregate_row out;

	memset(&out, 0, sizeof(out));	/* rows may be compared as bytes */
	if (!work_collect(work) || !work_fold_sources(work) || !work_order_rows(work))
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

/* ---- life ---------------------------------------------------------------- */

static int aggregate_init_stores(struct aggregate *agg, const struct aggregate_limits *limits)
{
	int err = keyed_init(&agg->cells, &KEYED_CONFIG(struct cell, key, limits->cells,
				.seed = limits->seed, .gone = cell_gone, .arg = agg,
				.lately = true));

	err = err ? err : pool_init(&agg->slices, limits->slices, sizeof(struct slice));
	err = err ? err : sums_init_chunks(&agg->chunks, limits->chunks);
	err = err ? err : index_init(&agg->members, limits->cells, limits->seed);
	err = err ? err : index_init(&agg->comms, limits->cells, limits->seed);
	err = err ?
		err : hold_init(&agg->hold, AGGREGATE_HELD, sizeof(struct held),
				aggregate_take_held,
				    agg);
	agg->stats.bytes = keyed_bytes(&agg->cells) + pool_bytes(&agg->slices) +
			   pool_bytes(&agg->chunks.pool) + 2 * index_bytes(&agg->members) +
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
	pool_deinit(&agg->chunks.pool);
	pool_deinit(&agg->slices);
	keyed_deinit(&agg->cells);
	free(agg->tallies);
	hold_deinit(&agg->hold);
	free(agg);
}
