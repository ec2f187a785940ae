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

/* An empty entry, else the oldest that nobody writes to; NULL: there is none. */
static struct handle_entry *set_oldest(struct handle_entry *set, uint32_t age, uint64_t *key)
{
	struct handle_entry *oldest = NULL;

	for (int i = 0; i < HANDLES_WAYS; i++) {
		uint64_t held = GET(set[i].key);

		if (held == BUSY || (held && oldest && (!*key ||
				     age - GET(set[i].age) <= age - GET(oldest->age))))
			continue;
		oldest = &set[i];
		*key = held;
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
	uint32_t age = atomic_fetch_add_explicit(&h->age, 1, memory_order_relaxed);
	struct handle_entry *entry;
	uint64_t held = 0;

	for (int tries = 0; tries < HANDLES_WAYS; tries++) {
		entry = set_oldest(handles_set(h, key), age, &held);
		if (!entry || !entry_take(entry, held))
			continue;
		/* Who copies a part of what follows sees that the key has gone. */
		atomic_thread_fence(memory_order_release);
		SET(entry->ours, pair->ours);
		SET(entry->others, pair->others);
		SET(entry->leaf, pair->leaf);
		SET(entry->age, age);
		atomic_store_explicit(&entry->key, key, memory_order_release);
		return true;
	}
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
		pair->leaf = GET(set[i].leaf);
		atomic_thread_fence(memory_order_acquire);
		if (GET(set[i].key) == key)
			return true;
	}
	*pair = (struct handle_pair){ 0 };
	return false;
}

void handles_remove(struct handles *h, uint64_t key)
{
	struct handle_entry *set = handles_set(h, key);

	for (int i = 0; i < HANDLES_WAYS; i++)
		if (entry_take(&set[i], key))
			SET(set[i].key, 0);
}
