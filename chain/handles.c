/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sets of few entries, found by a hash of the key.  A writer takes an entry by exchanging its key;
 * a reader looks at the key before and after what it copies.
 */
#include "chain/handles.h"

#include <stddef.h>

#define BUSY	1
#define GET(x)	atomic_load_explicit(&(x), memory_order_relaxed)
#define SET(x, value) atomic_store_explicit(&(x), (value), memory_order_relaxed)

static struct handle_entry *handles_set(const struct handles *h, uint64_t key)
{
	return h->set[(key * UINT64_C(0x9e3779b97f4a7c15) >> 32) & (h->nsets - 1)];
}

/* The order in which entries make room: empty ones, those that have ended, others. */
static int entry_worth(const struct handle_entry *entry, uint64_t key)
{
	return !key ? 0 : GET(entry->ended) ? 1 : 2;
}

/* The entry that makes room, of those that nobody writes to; NULL: none. */
static struct handle_entry *set_oldest(const struct handles *h, uint64_t key, uint64_t *held)
{
	struct handle_entry *set = handles_set(h, key), *oldest = NULL;
	int least = h->keeps ? 1 : 3;

	for (int i = 0; i < HANDLES_WAYS; i++) {
		uint64_t now = GET(set[i].key);
		int worth = entry_worth(&set[i], now);

		/* Ages wrap: what is a little younger than another thread knows is not old. */
		if (now == BUSY || worth > least || (worth == least && (!oldest ||
		    (int32_t)(GET(set[i].age) - GET(oldest->age)) >= 0)))
			continue;
		least = worth;
		oldest = &set[i];
		*held = now;
	}
	return oldest;
}

static bool entry_take(struct handle_entry *entry, uint64_t key)
{
	return atomic_compare_exchange_strong_explicit(&entry->key, &key, BUSY,
						       memory_order_acquire, memory_order_relaxed);
}

bool handles_add(struct handles *h, uint64_t key, const struct handle_pair *pair)
{
	struct handle_entry *entry;
	uint64_t held = 0;

	for (int tries = 0; tries < HANDLES_WAYS; tries++) {
		entry = set_oldest(h, key, &held);
		if (!entry || !entry_take(entry, held))
			continue;
		if (held && !GET(entry->ended))
			atomic_fetch_add_explicit(&h->forgotten, 1, memory_order_relaxed);
		/* A reader that copies a part of what follows sees that the key has gone. */
		atomic_thread_fence(memory_order_release);
		SET(entry->ours, pair->ours);
		SET(entry->others, pair->others);
		SET(entry->flag, pair->flag);
		SET(entry->ended, 0);
		SET(entry->age, atomic_fetch_add_explicit(&h->age, 1, memory_order_relaxed));
		atomic_store_explicit(&entry->key, key, memory_order_release);
		return true;
	}
	atomic_fetch_add_explicit(&h->forgotten, 1, memory_order_relaxed);
	return false;
}

bool handles_find(const struct handles *h, uint64_t key, struct handle_pair *pair)
{
	struct handle_entry *set = handles_set(h, key);

	for (int i = 0; key > BUSY && i < HANDLES_WAYS; i++) {
		if (atomic_load_explicit(&set[i].key, memory_order_acquire) != key)
			continue;
		pair->ours = GET(set[i].ours);
		pair->others = GET(set[i].others);
		pair->flag = GET(set[i].flag);
		atomic_thread_fence(memory_order_acquire);
		if (GET(set[i].key) == key)
			return true;
	}
	*pair = (struct handle_pair){ 0 };
	return false;
}

void handles_end(struct handles *h, uint64_t key)
{
	struct handle_entry *set = handles_set(h, key);

	for (int i = 0; i < HANDLES_WAYS; i++)
		if (GET(set[i].key) == key)
			SET(set[i].ended, 1);
}

void handles_remove(struct handles *h, uint64_t key)
{
	struct handle_entry *set = handles_set(h, key);

	for (int i = 0; i < HANDLES_WAYS; i++)
		if (entry_take(&set[i], key))
			SET(set[i].key, 0);
}
