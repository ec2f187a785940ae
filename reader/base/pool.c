/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pools hand out the item freed last, whose memory is warm, and only then one
 * that was never used; each has pages of its own.  The index is open addressing with
 * linear probing; a removal moves later keys of the run back, so that there are no
 * tombstones and a table that is full of short-lived tokens stays as fast as a new one.
 */
#include "reader/base/pool.h"

#include <assert.h>
#include <errno.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>

#define LARGE_BYTES	(128 << 10)	/* size where glibc begins; set, it does not move */
#define FIRST_PLACES	64		/* places of a new index */

void pool_use_fresh_pages(void)
{
#ifdef M_MMAP_THRESHOLD
	mallopt(M_MMAP_THRESHOLD, LARGE_BYTES);
#endif
	prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0);
}

void *pages_take(size_t bytes)
{
	void *pages = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	return pages == MAP_FAILED ? NULL : pages;
}

void pages_give(void *pages, size_t bytes)
{
	if (pages)
		munmap(pages, bytes);
}

size_t pool_bytes(const struct pool *pool)
{
	return pool->capacity * pool->stride;
}

int pool_init(struct pool *pool, uint32_t capacity, size_t item_bytes)
{
	*pool = (struct pool){
		.item_bytes = item_bytes,
		.stride = (sizeof(struct pool_head) + item_bytes + 7) & ~(size_t)7,
		.capacity = capacity,
		.free = POOL_NONE,
	};
	pool->items = pages_take(pool_bytes(pool));
	return pool->items ? 0 : -ENOMEM;
}

void pool_deinit(struct pool *pool)
{
	pages_give(pool->items, pool_bytes(pool));
	*pool = (struct pool){ .free = POOL_NONE };
}

uint32_t pool_take(struct pool *pool)
{
	const void *item = pool_take_zeroed(pool);

	return item ? pool_number(item) : POOL_NONE;
}

size_t pool_trim(struct pool *pool)
{
	size_t bytes = pool->fresh * pool->stride;

	if (pool->used || madvise(pool->items, pool_bytes(pool), MADV_DONTNEED) < 0)
		return 0;
	pool->fresh = 0;
	pool->free = POOL_NONE;
	return bytes;
}

/* Makes so many places, all empty. */
static int index_make_places(struct index *index, uint32_t places)
{
	void *memory = calloc(places, sizeof(*index->places));

	if (!memory)
		return -ENOMEM;
	index->places = memory;
	index->mask = places - 1;
	index->used = 0;
	index->roomy = places / 4 * 3 >= index->capacity ? index->capacity : places / 8 * 3;
	return 0;
}

int index_init(struct index *index, uint32_t capacity, uint64_t seed)
{
	uint32_t places = 16;

	while (places < FIRST_PLACES && places / 4 * 3 < capacity)
		places *= 2;
	*index = (struct index){ .seed = seed, .capacity = capacity };
	return index_make_places(index, places);
}

size_t index_bytes(const struct index *index)
{
	size_t places = FIRST_PLACES;

	while (places / 4 * 3 < index->capacity)
		places *= 2;
	return places * sizeof(*index->places);
}

void index_deinit(struct index *index)
{
	free(index->places);
	*index = (struct index){ 0 };
}

void index_clear(struct index *index)
{
	memset(index->places, 0, (index->mask + 1) * sizeof(*index->places));
	index->used = 0;
}

static void index_put(struct index *index, struct index_place *place, uint32_t home, uint64_t key,
		      uint32_t value)
{
	uint32_t away = ((uint32_t)(place - index->places) - home) & index->mask;

	*place = (struct index_place){ key, value, away };
}

static bool index_grow(struct index *index)
{
	struct index old = *index;

	if (index_make_places(index, 2 * (old.mask + 1)) < 0)
		return false;
	for (const struct index_place *from = old.places; from <= old.places + old.mask; from++) {
		uint32_t home;

		if (!from->value)
			continue;
		home = index_home(index, from->key);
		index_put(index, index_find_from(index, from->key, home), home, from->key,
			  from->value);
	}
	index->used = old.used;
	free(old.places);
	return true;
}

/*
 * Room for one more.  Twice as many places make searches short; without the memory for these,
 * the invariant must hold.
 */
static __attribute__((noinline)) bool index_make_room(struct index *index)
{
	uint32_t places = index->mask + 1;

	if (index->used == index->capacity)
		return false;
	return index_grow(index) || index->used < places / 4 * 3;
}

/* An empty place that was found for it from its home; false: full, or no memory. */
static bool index_fill(struct index *index, struct index_place *place, uint32_t home, uint64_t key,
		       uint32_t value)
{
	assert(value != POOL_NONE);
	if (__builtin_expect(index->used >= index->roomy, 0)) {
		if (!index_make_room(index))
			return false;
		home = index_home(index, key);		/* it may have grown */
		place = index_find_from(index, key, home);
	}
	index->used++;
	index_put(index, place, home, key, value + 1);
	return true;
}

bool index_set(struct index *index, uint64_t key, uint32_t value)
{
	uint32_t home = index_home(index, key);
	struct index_place *place = index_find_from(index, key, home);

	if (!place->value)
		return index_fill(index, place, home, key, value);
	assert(value != POOL_NONE);
	place->value = value + 1;
	return true;
}

bool index_add(struct index *index, uint64_t key, uint32_t value)
{
	uint32_t home = index_home(index, key);
	struct index_place *place = index_find_from(index, key, home);

	return !place->value && index_fill(index, place, home, key, value);
}

/* Later keys of the run move up, but not to before their homes. */
void index_remove(struct index *index, uint64_t key)
{
	struct index_place *hole = index_find_place(index, key);
	uint32_t i = (uint32_t)(hole - index->places), gap = 0;

	if (!hole->value)
		return;
	index->used--;
	for (;;) {
		struct index_place *next;

		i = (i + 1) & index->mask;
		gap++;
		next = &index->places[i];
		if (!next->value)
			break;
		if (next->away < gap)
			continue;
		*hole = *next;
		hole->away -= gap;
		hole = next;
		gap = 0;
	}
	hole->value = 0;
}

void pool_list_init(struct pool_list *list, size_t link_offset)
{
	*list = (struct pool_list){ .offset = (uint32_t)link_offset };
}
