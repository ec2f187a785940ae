/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Operations come in here: each is held against what is usual for its like, and kept for
 * a while, since those before it on the same GPU may be read later.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "ncclinspd/compare/straggler_impl.h"

#include "tables/stat.h"
#include "util/list.h"

#define WINDOW_NS	UINT64_C(60000000000)
#define BUCKETS		512
#define UNITS		512
#define TRACKS		256
#define MEMBERS		4096

#define KNOWN_AFTER	20		/* values, before a bucket says what is usual */
#define WAITED_PERCENT	130		/* percent of c*: longer is waiting */
#define TAIL_PERCENT	30		/* percent of c*: limit of all tails together ... */
#define TAIL_MOST_NS	20000		/* ... unless this is more, ns */
#define TAIL_LEAST_NS	1000		/* the least that GPUs' stamps tell apart */
#define TAILS		4		/* a spread of so many tails is lateness */

/* ---- stores --------------------------------------------------------------- */

/* The beginning of every item of a store. */
struct item {
	struct pool_link link;
	uint64_t key;
};

static int store_init(struct store *st, uint32_t capacity, size_t bytes, uint64_t seed)
{
	int r = pool_init(&st->pool, capacity, bytes);

	pool_list_init(&st->lru, 0);
	return r ? r : index_init(&st->index, capacity, seed);
}

static void store_deinit(struct store *st)
{
	index_deinit(&st->index);
	pool_deinit(&st->pool);
}

static void store_drop(struct store *st, uint32_t item)
{
	const struct item *at = pool_at(&st->pool, item);

	index_remove(&st->index, at->key);
	pool_list_remove(&st->pool, &st->lru, item);
	pool_put(&st->pool, item);
}

/* The item of that key, from now on the one used last; a new one is zeroed but for it. */
static uint32_t store_get(struct store *st, uint64_t key)
{
	uint32_t item = index_find(&st->index, key);
	struct item *at;

	if (item != POOL_NONE) {
		pool_list_remove(&st->pool, &st->lru, item);
		pool_list_append(&st->pool, &st->lru, item);
		return item;
	}
	if (st->pool.used == st->pool.capacity)
		store_drop(st, st->lru.first);
	item = pool_take(&st->pool);
	at = pool_at(&st->pool, item);
	at->key = key;
	pool_list_append(&st->pool, &st->lru, item);
	index_set(&st->index, key, item);
	return item;
}

uint64_t straggler_member_key(const struct straggler *s, uint64_t process_id,
			      uint32_t comm_index)
{
	const uint64_t words[] = { process_id, comm_index };

	return index_hash(s->seed, words, sizeof(words));
}

/* ---- what is usual --------------------------------------------------------- */

/* c* of a bucket, the least of now and of some windows before; UNKNOWN_U64. */
static uint64_t transfer_ns(const struct bucket *b)
{
	uint64_t least = UNKNOWN_U64;

	if (b->shortest.n >= KNOWN_AFTER)
		least = rolling_quantile(&b->shortest, 5);
	for (uint32_t i = 0; i < b->nbases && i < BASES; i++)
		if (b->base_ns[i] < least)
			least = b->base_ns[i];
	return least;
}

/* A new window: what was usual in the last one is remembered. */
static void turn_bucket(struct bucket *b, uint64_t window)
{
	if (b->window == window)
		return;
	if (b->added >= KNOWN_AFTER)
		b->base_ns[b->nbases++ % BASES] = rolling_quantile(&b->shortest, 5);
	b->window = window;
	b->added = 0;
}

struct extent {
	uint64_t least, most;
	uint32_t first, last;	/* places in part[]: inside for longest, for the least time */
	uint64_t apart_ns;	/* time from the first that left to the last; UNKNOWN_U64 */
};

/*
 * The time from the first rank that left to the last; UNKNOWN_U64: the GPUs' clocks are
 * not mapped well enough to tell, or wrongly, since nobody leaves before all others have
 * come.
 */
static uint64_t leaving_apart(const struct straggler_op *op, uint64_t spread, uint64_t most)
{
	uint64_t from = UINT64_MAX, to = 0;

	for (uint32_t i = 0; i < op->n; i++) {
		const struct straggler_part *p = &op->part[i];

		if (!p->end_ns || p->end_error_ns > spread / 2)
			return UNKNOWN_U64;
		from = p->end_ns < from ? p->end_ns : from;
		to = p->end_ns > to ? p->end_ns : to;
	}
	return to - from <= most ? to - from : UNKNOWN_U64;
}

static struct extent measure(const struct straggler_op *op)
{
	struct extent e = { .least = UINT64_MAX };

	for (uint32_t i = 0; i < op->n; i++) {
		const struct straggler_part *p = &op->part[i];

		if (i == 0 || p->inside_ns > e.most) {
			e.most = p->inside_ns;
			e.first = i;
		}
		if (p->inside_ns < e.least) {
			e.least = p->inside_ns;
			e.last = i;
		}
	}
	e.apart_ns = leaving_apart(op, e.most - e.least, e.most);
	return e;
}

/* The most that can be tail where no clock tells when ranks left. */
static uint64_t most_tail(uint64_t transfer)
{
	uint64_t most = transfer == UNKNOWN_U64 ? 0 : transfer * TAIL_PERCENT / 100;

	return (most > TAIL_MOST_NS ? most : TAIL_MOST_NS) / TAILS;
}

static void learn(struct bucket *b, const struct extent *e, uint32_t n)
{
	uint64_t tail = e->apart_ns, spread = e->most - e->least;

	b->added++;
	rolling_add(&b->shortest, e->least);
	if (n < 2)
		return;
	if (tail == UNKNOWN_U64)
		tail = most_tail(transfer_ns(b));
	rolling_add(&b->spread, spread);
	rolling_add(&b->tail, tail < spread ? tail : spread);
}

/* ---- one operation --------------------------------------------------------- */

static void join_unit(struct member *m, uint64_t unit_key)
{
	uint64_t *key;

	for (uint32_t i = 0; i < m->nunits; i++)
		if (m->unit_key[i] == unit_key)
			return;
	key = array_add(m->unit_key, &m->nunits);
	if (key)
		*key = unit_key;
}

static uint32_t seat_of(struct straggler *s, struct unit *u, const struct straggler_part *p)
{
	struct seat *seat;
	uint32_t i = 0;

	while (i < u->nseats && (u->seat[i].part.process_id != p->process_id ||
				 u->seat[i].part.comm_index != p->comm_index))
		i++;
	seat = i < u->nseats ? &u->seat[i] : array_add(u->seat, &u->nseats);
	if (!seat)
		return NOBODY;
	seat->part = *p;
	seat->track = store_get(&s->tracks, p->gpu);
	seat->member = store_get(&s->members,
				 straggler_member_key(s, p->process_id, p->comm_index));
	join_unit(member_at(s, seat->member), u->key);
	return i;
}

static void follow(struct track *t, uint64_t start, uint64_t id)
{
	t->ring[t->next].start = start;
	t->ring[t->next].id = id;
	t->next = (t->next + 1) % TRACK_JOINTS;
}

/* The median waiting of all but the last one; of an even number the lower one. */
static uint64_t blame_of(const struct straggler_op *op, const struct extent *e)
{
	double waits[OP_RANKS];
	uint32_t n = 0;

	for (uint32_t i = 0; i < op->n; i++)
		if (i != e->last)
			*array_must_add(waits, &n) = (double)(op->part[i].inside_ns - e->least);
	return n ? (uint64_t)stat_quantile(waits, n, 0.5) : 0;
}

static void judge(struct joint *j, const struct straggler_op *op, const struct extent *e,
		  const struct bucket *b)
{
	bool elsewhere = (int32_t)op->n < op->nranks && j->slow;
	uint64_t spread = e->most - e->least, usual = rolling_quantile(&b->spread, 10);

	j->first = e->first;
	j->last = elsewhere ? NOBODY : e->last;
	if (op->n > 1) {
		j->tail_ns = rolling_quantile(&b->tail, 10);
		if (j->tail_ns < TAIL_LEAST_NS)
			j->tail_ns = TAIL_LEAST_NS;
		j->judged = !elsewhere && b->spread.n >= KNOWN_AFTER &&
			    spread >= TAILS * j->tail_ns;
		j->burst = j->judged && spread >= TAILS * usual;
		j->blame_ns = blame_of(op, e);
	}
}

/* All that are here took much longer than the transfer; false also: it is not known. */
static bool is_slow(const struct extent *e, uint64_t transfer)
{
	return transfer != UNKNOWN_U64 &&
	       (double)e->least * 100 > (double)transfer * WAITED_PERCENT;
}

static void rate(struct joint *j, const struct extent *e, uint64_t transfer)
{
	j->rated = transfer != UNKNOWN_U64;
	j->slow = is_slow(e, transfer);
	j->slow_ns = j->slow ? e->least - transfer : 0;
}

static struct joint *new_joint(struct straggler *s, uint64_t now_ns)
{
	struct joint *j;

	if (s->last_id - s->settled_id >= JOINTS / 2) {
		s->settled_id++;
		straggler_settle(s, &s->joints[s->settled_id % JOINTS]);
	}
	s->last_id++;
	j = &s->joints[s->last_id % JOINTS];
	memset(j, 0, sizeof(*j));
	j->id = s->last_id;
	j->seen_ns = now_ns;
	return j;
}

/* False: there are more ranks than there may be. */
static bool add_parts(struct straggler *s, struct unit *u, struct joint *j,
		      const struct straggler_op *op)
{
	for (uint32_t i = 0; i < op->n; i++) {
		const struct straggler_part *p = &op->part[i];
		uint32_t seat = seat_of(s, u, p);

		if (seat == NOBODY)
			return false;
		*array_must_add(j->part, &j->n) = (struct joint_part){
			.track = u->seat[seat].track, .seat = seat, .gpu = p->gpu,
			.start = p->start,
		};
		follow(track_at(s, u->seat[seat].track), p->start, j->id);
		member_at(s, u->seat[seat].member)->sums.ops++;
	}
	return true;
}

/* Everybody has waited for the last, or all together for one elsewhere. */
static void add_waits(struct straggler *s, const struct unit *u, struct joint *j,
		      const struct straggler_op *op, const struct extent *e)
{
	uint64_t away_ns = j->last == NOBODY ? j->slow_ns : 0;

	for (uint32_t i = 0; i < j->n; i++) {
		struct joint_part *p = &j->part[i];
		struct straggler_sums *sums = &member_at(s, u->seat[p->seat].member)->sums;

		p->inside_ns = op->part[i].inside_ns;
		p->wait_ns = p->inside_ns - e->least + away_ns;
		p->late_ns = e->most - p->inside_ns;
		sums->wait_ns += p->wait_ns;
		sums->remote_wait_ns += away_ns;
	}
}

static struct unit *unit_of(struct straggler *s, const struct straggler_op *op, uint32_t *item)
{
	const uint64_t words[] = { op->comm, (uintptr_t)op->func };
	struct unit *u;

	*item = store_get(&s->units, index_hash(s->seed, words, sizeof(words)));
	u = unit_at(s, *item);
	u->comm = op->comm;
	u->func = op->func;
	u->nranks = op->nranks;
	return u;
}

static struct bucket *bucket_of(struct straggler *s, const struct straggler_op *op)
{
	const uint64_t words[] = { op->comm, (uintptr_t)op->func, op->kind };
	uint64_t key = index_hash(s->seed, words, sizeof(words));
	struct bucket *b = pool_at(&s->buckets.pool, store_get(&s->buckets, key));

	turn_bucket(b, s->windows);
	return b;
}

void straggler_add(struct straggler *s, const struct straggler_op *op, uint64_t now_ns)
{
	struct joint *j = new_joint(s, now_ns);
	struct unit *u = unit_of(s, op, &j->unit);
	struct extent e;
	struct bucket *b;
	uint64_t transfer;

	j->comm = op->comm;
	j->unit_key = u->key;
	if (!add_parts(s, u, j, op))
		return;
	if (op->n < u->nseats)
		return;		/* whoever is missing may be the last */
	j->whole = true;
	e = measure(op);
	b = bucket_of(s, op);
	transfer = transfer_ns(b);
	rate(j, &e, transfer);
	learn(b, &e, op->n);
	judge(j, op, &e, b);
	add_waits(s, u, j, op, &e);
}

/* ---- life ------------------------------------------------------------------ */

void straggler_turn(struct straggler *s, uint64_t now_ns)
{
	while (s->settled_id < s->last_id) {
		const struct joint *j = &s->joints[(s->settled_id + 1) % JOINTS];

		if (now_ns < j->seen_ns + STRAGGLER_SETTLE_NS)
			break;
		s->settled_id++;
		straggler_settle(s, j);
	}
	s->turned_ns = now_ns;
	if (!s->opened_ns)
		s->opened_ns = now_ns;
	if (now_ns >= s->opened_ns + s->window_ns)
		straggler_close(s, now_ns);
}

static bool has_process(const struct unit *u, uint64_t process_id)
{
	for (uint32_t i = 0; i < u->nseats; i++)
		if (u->seat[i].part.process_id == process_id)
			return true;
	return false;
}

static void store_forget(struct store *st, uint64_t key)
{
	uint32_t item = index_find(&st->index, key);

	if (item != POOL_NONE)
		store_drop(st, item);
}

static void forget_unit(struct straggler *s, uint32_t item)
{
	const struct unit *u = unit_at(s, item);

	for (uint32_t i = 0; i < u->nseats; i++) {
		const struct straggler_part *p = &u->seat[i].part;

		store_forget(&s->tracks, p->gpu);
		store_forget(&s->members,
			     straggler_member_key(s, p->process_id, p->comm_index));
	}
	store_drop(&s->units, item);
}

/* Its communicators cannot go on without it. */
void straggler_forget(struct straggler *s, uint64_t process_id)
{
	struct store *st = &s->units;
	uint32_t next;

	for (uint32_t item = st->lru.first; item != POOL_NONE; item = next) {
		next = pool_list_next(&st->pool, &st->lru, item);
		if (has_process(unit_at(s, item), process_id))
			forget_unit(s, item);
	}
}

bool straggler_of(const struct straggler *s, uint64_t process_id, uint32_t comm_index,
		  struct straggler_sums *sums)
{
	uint32_t item = index_find(&s->members.index,
				   straggler_member_key(s, process_id, comm_index));

	if (item == POOL_NONE)
		return false;
	*sums = member_at(s, item)->sums;
	return true;
}

void straggler_set_window(struct straggler *s, uint64_t window_ns)
{
	s->window_ns = window_ns ? window_ns : WINDOW_NS;
}

int straggler_new(struct straggler **sp, const struct straggler_config *config)
{
	struct straggler *s = calloc(1, sizeof(*s));
	int r;

	if (!s)
		return -ENOMEM;
	s->seed = config ? config->seed : 0;
	straggler_set_window(s, config ? config->window_ns : 0);
	s->joints = calloc(JOINTS, sizeof(*s->joints));
	r = s->joints ? 0 : -ENOMEM;
	r = r ? r : store_init(&s->buckets, BUCKETS, sizeof(struct bucket), s->seed);
	r = r ? r : store_init(&s->units, UNITS, sizeof(struct unit), s->seed);
	r = r ? r : store_init(&s->tracks, TRACKS, sizeof(struct track), s->seed);
	r = r ? r : store_init(&s->members, MEMBERS, sizeof(struct member), s->seed);
	if (r < 0) {
		straggler_free(s);
		return r;
	}
	*sp = s;
	return 0;
}

void straggler_free(struct straggler *s)
{
	if (!s)
		return;
	store_deinit(&s->members);
	store_deinit(&s->tracks);
	store_deinit(&s->units);
	store_deinit(&s->buckets);
	free(s->joints);
	free(s);
}
