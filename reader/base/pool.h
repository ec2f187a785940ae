/* SPDX-License-Identifier: Apache-2.0 */
#ifndef READER_BASE_POOL_H
#define READER_BASE_POOL_H

/*
 * Memory of the stages: bounded at start, nothing allocated per record.  Pages are only
 * touched as they are needed, and freed items are taken again first, so that a large
 * capacity costs nothing until it is used.
 */

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define POOL_NONE	UINT32_MAX

/*
 * Once, before any pool: large memory comes from the kernel and goes back to it, page by
 * page.  glibc otherwise keeps what was freed, and has to touch all of it to zero it for
 * the next that wants it; and the kernel may give 2 MiB where one page is touched.
 */
void pool_use_fresh_pages(void);

/*
 * Zeroed pages for something large that may be used in part: a page is there once it is
 * touched.  NULL: no memory.  Giving back NULL is fine.
 */
void *pages_take(size_t bytes);
void pages_give(void *pages, size_t bytes);

/* Items of one size, each behind its head; a number of 32 bits stands for one in a table. */
struct pool {
	char *items;
	size_t item_bytes;
	size_t stride;
	uint32_t capacity;
	uint32_t fresh;		/* items from here on were never taken */
	uint32_t free;		/* first of the free list, or POOL_NONE */
	uint32_t used;
};

struct pool_head {
	uint32_t number;	/* its own while it is taken, else the next one of the free list */
	uint32_t taken;
};

/* Returns 0 or -ENOMEM.  A zeroed pool may be deinitialised. */
int pool_init(struct pool *pool, uint32_t capacity, size_t item_bytes);
void pool_deinit(struct pool *pool);

/* The memory of a full one. */
size_t pool_bytes(const struct pool *pool);

static inline struct pool_head *pool_head_of(const struct pool *pool, uint32_t number)
{
	return (struct pool_head *)(void *)(pool->items + (size_t)number * pool->stride);
}

static inline uint32_t pool_number(const void *item)
{
	return ((const struct pool_head *)item - 1)->number;
}

/* An item, its bytes as they are; NULL when all are taken. */
static inline void *pool_take_unset(struct pool *pool)
{
	uint32_t number = pool->free != POOL_NONE ? pool->free : pool->fresh;
	struct pool_head *head = pool_head_of(pool, number);

	if (pool->free != POOL_NONE)
		pool->free = head->number;
	else if (number < pool->capacity)
		pool->fresh++;
	else
		return NULL;
	*head = (struct pool_head){ number, true };
	pool->used++;
	return head + 1;
}

static inline void *pool_take_zeroed(struct pool *pool)
{
	bool used = pool->free != POOL_NONE;
	void *item = pool_take_unset(pool);

	return used ? memset(item, 0, pool->item_bytes) : item;
}

uint32_t pool_take(struct pool *pool);		/* the number of a zeroed one, or POOL_NONE */

static inline void pool_put_back(struct pool *pool, void *item)
{
	struct pool_head *head = (struct pool_head *)item - 1;
	uint32_t number = head->number;

	assert(head->taken);
	*head = (struct pool_head){ .number = pool->free };
	pool->free = number;
	pool->used--;
}

/* Give all pages back, if no item is taken.  Returns what was in use at most. */
size_t pool_trim(struct pool *pool);

static inline void *pool_at(const struct pool *pool, uint32_t number)
{
	assert(number < pool->fresh);	/* POOL_NONE is not, either */
	return pool_head_of(pool, number) + 1;
}

static inline void pool_put(struct pool *pool, uint32_t number)
{
	pool_put_back(pool, pool_at(pool, number));
}

static inline bool pool_is_taken(const struct pool *pool, uint32_t number)
{
	return number < pool->fresh && pool_head_of(pool, number)->taken;
}

/*
 * A map from a 64-bit key to a number.  Keys come from jobs: `seed` keeps a job from
 * choosing keys that meet in one place.
 *
 * Places are made as keys come.
 *
 * Invariant: at most three quarters of the places are in use: every search ends.
 */
struct index_place {
	uint64_t key;
	uint32_t value;		/* plus one; 0: empty, so that untouched pages are */
	uint32_t away;		/* places behind its home */
};

struct index {
	struct index_place *places;
	uint64_t seed;
	uint32_t mask;
	uint32_t capacity;
	uint32_t used;
	uint32_t roomy;		/* so many keys have places enough */
};

/* A key out of whole 64-bit words; two of them may have the same. */
static inline uint64_t index_hash(uint64_t seed, const void *words, size_t bytes)
{
	const char *at = words;
	uint64_t h = seed ^ UINT64_C(0x9e3779b97f4a7c15);

	for (; bytes >= sizeof(uint64_t); bytes -= sizeof(uint64_t), at += sizeof(uint64_t)) {
		uint64_t word;

		memcpy(&word, at, sizeof(word));
		h = (h ^ word) * UINT64_C(0xd6e8feb86659fd93);
		h ^= h >> 32;
	}
	return h;
}

/* The same for one word more. */
static inline uint64_t index_mix(uint64_t key, uint64_t word)
{
	return index_hash(key, &word, sizeof(word));
}

/* Room for up to `capacity` keys.  0 or -ENOMEM.  A zeroed one may be deinitialised. */
int index_init(struct index *index, uint32_t capacity, uint64_t seed);
void index_deinit(struct index *index);
size_t index_bytes(const struct index *index);	/* when it is full */
void index_clear(struct index *index);

static inline uint32_t index_home(const struct index *index, uint64_t key)
{
	uint64_t h = (key ^ index->seed) * UINT64_C(0x9e3779b97f4a7c15);

	h = (h ^ h >> 32) * UINT64_C(0xd6e8feb86659fd93);
	return (uint32_t)(h >> 32) & index->mask;
}

/* The place of the key, which has that home, or the empty place where it would go. */
static inline struct index_place *index_find_from(const struct index *index, uint64_t key,
						  uint32_t home)
{
	uint32_t i = home;

	while (index->places[i].value && index->places[i].key != key)
		i = (i + 1) & index->mask;
	return &index->places[i];
}

static inline struct index_place *index_find_place(const struct index *index, uint64_t key)
{
	return index_find_from(index, key, index_home(index, key));
}

/* The value, or POOL_NONE. */
static inline uint32_t index_find(const struct index *index, uint64_t key)
{
	return index_find_place(index, key)->value - 1;	/* 0, empty, gives POOL_NONE */
}

/* Set or replace a key's value (not POOL_NONE).  False: full, or no memory; nothing changed. */
bool index_set(struct index *index, uint64_t key, uint32_t value);

/* Set a new key's value.  False also if the key is there. */
bool index_add(struct index *index, uint64_t key, uint32_t value);
void index_remove(struct index *index, uint64_t key);

/* Lists through items that stay where they are, oldest first; an item's links lie in the item. */
struct pool_link {
	void *prev, *next;	/* items; NULL: none */
};

struct pool_list {
	void *first, *last;	/* NULL: it is empty */
	uint32_t count;
	uint32_t offset;	/* place of the struct pool_link in an item */
};

static inline struct pool_link *pool_link_of(const struct pool_list *list, void *item)
{
	return (struct pool_link *)(void *)((char *)item + list->offset);
}

void pool_list_init(struct pool_list *list, size_t link_offset);

static inline void pool_list_append(struct pool_list *list, void *item)
{
	*pool_link_of(list, item) = (struct pool_link){ .prev = list->last };
	*(list->last ? &pool_link_of(list, list->last)->next : &list->first) = item;
	list->last = item;
	list->count++;
}

static inline void pool_list_remove(struct pool_list *list, void *item)
{
	const struct pool_link *link = pool_link_of(list, item);

	*(link->prev ? &pool_link_of(list, link->prev)->next : &list->first) = link->next;
	*(link->next ? &pool_link_of(list, link->next)->prev : &list->last) = link->prev;
	list->count--;
}

/* Removes it and appends it: most often it is the last already. */
static inline void pool_list_touch(struct pool_list *list, void *item)
{
	if (item == list->last)
		return;
	pool_list_remove(list, item);
	pool_list_append(list, item);
}

/* The item behind this one, or NULL. */
static inline void *pool_list_next(const struct pool_list *list, void *item)
{
	return pool_link_of(list, item)->next;
}

#endif
