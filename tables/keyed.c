/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A pool of items, an index from the hash of a key to one, and lists in the order of use:
 * what every stage needs that remembers something of everything that comes.
 */
#include "tables/keyed.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define FEW_WORDS	4
#define PROBES	8	/* items whose keys may meet in one hash; more are refused */

static uint64_t *head_key(const struct keyed_head *head)
{
	return (uint64_t *)(head + 1);
}

/* Most keys differ in the first word, and of a few a call would cost more. */
static inline bool item_has_key(const struct keyed *t, const struct keyed_head *head,
				const uint64_t *key)
{
	const uint64_t *own = head_key(head);
	size_t words = t->config.key_bytes / sizeof(*key);

	if (own[0] != key[0])
		return false;
	if (words > FEW_WORDS)
		return !memcmp(own, key, t->config.key_bytes);
	for (size_t i = 1; i < words; i++)
		if (own[i] != key[i])
			return false;
	return true;
}

int keyed_init(struct keyed *t, const struct keyed_config *config)
{
	int r;

	*t = (struct keyed){ .config = *config };
	for (uint32_t i = 0; i < ACCOUNTS_TALLY; i++)
		pool_list_init(&t->of[i], offsetof(struct keyed_head, link));
	t->latest = POOL_NONE;
	r = pool_init(&t->pool, config->capacity, config->item_bytes);
	if (!r && config->lately)
		t->lately = calloc(KEYED_LATELY, sizeof(*t->lately));
	if (!r && config->lately && !t->lately)
		r = -ENOMEM;
	return r ? r : index_init(&t->index, config->capacity, config->seed);
}

void keyed_deinit(struct keyed *t)
{
	index_deinit(&t->index);
	pool_deinit(&t->pool);
	free(t->lately);
	t->lately = NULL;
}

size_t keyed_bytes(const struct keyed *t)
{
	return pool_bytes(&t->pool) + index_bytes(&t->index) +
	       (t->lately ? KEYED_LATELY * sizeof(*t->lately) : 0);
}

/* Keys of one hash stand side by side.  NULL: *place is the one behind them. */
static struct keyed_head *item_find(const struct keyed *t, const void *key, uint64_t *place)
{
	*place = index_hash(t->config.seed, key, t->config.key_bytes);
	for (int probe = 0; probe < PROBES; probe++, ++*place) {
		uint32_t number = index_find(&t->index, *place);
		struct keyed_head *head = number == POOL_NONE ? NULL : keyed_at(t, number);

		if (!head || item_has_key(t, head, key))
			return head;
	}
	return NULL;
}

/* Items behind one that went move up: two hashes of 64 bits never stand so near each other. */
static void hole_close(struct keyed *t, uint64_t hole)
{
	struct keyed_head *head;
	uint32_t number;

	for (uint64_t at = hole + 1; (number = index_find(&t->index, at)) != POOL_NONE; at++) {
		head = keyed_at(t, number);
		index_remove(&t->index, at);
		index_set(&t->index, hole, number);
		head->place = hole;
		hole = at;
	}
}

void *keyed_find(const struct keyed *t, const void *key)
{
	uint64_t place;

	return item_find(t, key, &place);
}

static struct pool_list *keyed_list(struct keyed *t, uid_t account)
{
	return &t->of[account % ACCOUNTS_TALLY];
}

void keyed_move(struct keyed *t, struct keyed_head *head)
{
	head->made = t->made;
	pool_list_touch(keyed_list(t, head->account), head);
}

void keyed_drop(struct keyed *t, void *item)
{
	const struct keyed_head *head = item;
	struct pool_list *of = keyed_list(t, head->account);

	if (t->config.gone)
		t->config.gone(item, t->config.arg);
	index_remove(&t->index, head->place);
	hole_close(t, head->place);
	pool_list_remove(of, item);
	if (!of->count)
		t->filled[(of - t->of) / 64] &= ~(UINT64_C(1) << (of - t->of) % 64);
	if (head->number == t->latest)
		t->latest = POOL_NONE;
	t->gone++;
	pool_put_back(&t->pool, item);
}

void *keyed_first(const struct keyed *t, uint32_t list)
{
	for (; t->pool.used && list < ACCOUNTS_TALLY; list = (list | 63) + 1) {
		uint64_t filled = t->filled[list / 64] >> list % 64;

		if (filled)
			return t->of[list + (uint32_t)__builtin_ctzll(filled)].first;
	}
	return NULL;
}

void *keyed_first_to_go(const struct keyed *t, uid_t account)
{
	const struct pool_list *most = &t->of[account % ACCOUNTS_TALLY];

	for (uint32_t i = 0; i < ACCOUNTS_TALLY / 64; i++)
		for (uint64_t bits = t->filled[i]; bits; bits &= bits - 1) {
			const struct pool_list *of = &t->of[64 * i + __builtin_ctzll(bits)];

			most = of->count > most->count ? of : most;
		}
	return most->first;
}

/* False: refused.  An item that goes may move those behind it, and *place with them. */
static bool keyed_make_room(struct keyed *t, const void *key, uid_t account, uint64_t *place)
{
	struct keyed_head *head;
	bool near;

	if (keyed_count(t) < t->config.capacity)
		return true;
	if (t->config.refuses)
		return false;
	head = keyed_first_to_go(t, account);
	near = *place - head->place <= PROBES;
	keyed_drop(t, head);
	t->evicted++;
	if (near)
		item_find(t, key, place);
	return true;
}

static __attribute__((noinline))
void *item_make(struct keyed *t, const void *key, uint64_t place, uid_t account)
{
	struct pool_list *of = keyed_list(t, account);
	struct keyed_head *head;

	if (!keyed_make_room(t, key, account, &place))
		return NULL;
	if (index_find(&t->index, place) != POOL_NONE)
		return NULL;		/* more than PROBES of one hash */
	head = pool_take_zeroed(&t->pool);
	if (!index_set(&t->index, place, pool_number(head))) {
		pool_put_back(&t->pool, head);
		return NULL;		/* no memory */
	}
	head->place = place;
	head->number = pool_number(head);
	head->account = account;
	head->made = ++t->made;
	memcpy(head_key(head), key, t->config.key_bytes);
	pool_list_append(of, head);
	t->filled[(of - t->of) / 64] |= UINT64_C(1) << (of - t->of) % 64;
	t->latest = head->number;
	return head;
}

__attribute__((noinline))
void *keyed_get(struct keyed *t, const void *key, uid_t account, bool *made)
{
	uint64_t place;
	struct keyed_head *head = item_find(t, key, &place);

	*made = !head;
	return head ?: item_make(t, key, place, account);
}

/* The item that was used last is most often used next. */
void *keyed_use(struct keyed *t, const void *key, uid_t account, bool *made)
{
	struct keyed_head *head = t->latest != POOL_NONE ? keyed_at(t, t->latest) : NULL;

	*made = false;
	if (!head || !item_has_key(t, head, key))
		head = keyed_get(t, key, account, made);
	if (head)
		keyed_touch(t, head);
	return head;
}

void *keyed_use_again(struct keyed *t, uint32_t number, const void *key, uid_t account,
		      bool *made)
{
	struct keyed_head *head = keyed_taken(t, number);

	if (!head || !item_has_key(t, head, key))
		return keyed_use(t, key, account, made);
	*made = false;
	keyed_touch(t, head);
	return head;
}

void *keyed_use_lately(struct keyed *t, uint64_t mark, const void *key, uid_t account, bool *made)
{
	uint32_t *number = keyed_lately_place(t, mark);
	struct keyed_head *head = keyed_use_again(t, *number, key, account, made);

	if (head)
		*number = head->number;
	return head;
}
