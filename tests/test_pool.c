/* SPDX-License-Identifier: Apache-2.0 */
#include "reader/base/pool.h"

#include <stdlib.h>
#include <string.h>

#include "tests/fixture.h"

TEST(pool_gives_each_item_once_zeroed_and_refuses_when_empty)
{
	struct pool pool;
	uint32_t item;

	ck_assert_int_eq(pool_init(&pool, 3, 40), 0);
	for (uint32_t i = 0; i < 3; i++)
		ck_assert_uint_eq(pool_take(&pool), i);
	ck_assert_uint_eq(pool_take(&pool), POOL_NONE);
	memset(pool_at(&pool, 1), 0xff, 40);
	pool_put(&pool, 1);
	pool_put(&pool, 2);
	ck_assert_uint_eq(pool_take(&pool), 2);
	item = pool_take(&pool);
	ck_assert_uint_eq(item, 1);
	for (int i = 0; i < 40; i++)
		ck_assert_uint_eq(((uint8_t *)pool_at(&pool, item))[i], 0);
	ck_assert_uint_eq(pool.used, 3);
	pool_deinit(&pool);
}

TEST(index_has_room_for_what_is_in_it_and_grows_to_its_bound)
{
	struct index index;

	ck_assert_int_eq(index_init(&index, 10000, 7), 0);
	ck_assert_uint_lt(index.mask, 100);
	for (uint64_t key = 1; key <= 10000; key++)
		ck_assert(index_set(&index, key << 7, (uint32_t)key));
	ck_assert(!index_set(&index, 1, 1));
	for (uint64_t key = 1; key <= 10000; key++)
		ck_assert_uint_eq(index_find(&index, key << 7), key);
	ck_assert_uint_ge(index.mask, 4 * 10000 / 3 - 1);
	ck_assert_uint_le((index.mask + 1) * sizeof(struct index_place), index_bytes(&index));
	index_deinit(&index);
}

/* Few possible keys, so that runs of neighbours are made and torn all the time. */
TEST_LOOP(index_agrees_with_an_array_under_random_changes, 0, 8)
{
	enum { KEYS = 64 };
	uint32_t model[KEYS];
	struct index index;

	fx_seed((uint64_t)_i);
	for (int i = 0; i < KEYS; i++)
		model[i] = POOL_NONE;
	ck_assert_int_eq(index_init(&index, 32, (uint64_t)_i), 0);
	for (int i = 0; i < 100000; i++) {
		uint32_t key = fx_random() % KEYS;

		if (fx_random() % 2) {
			index_remove(&index, key);
			model[key] = POOL_NONE;
		} else if (fx_random() % 2) {
			bool room = index.used < 32 && model[key] == POOL_NONE;

			ck_assert_int_eq(index_add(&index, key, (uint32_t)i), room);
			model[key] = room ? (uint32_t)i : model[key];
		} else if (index_set(&index, key, (uint32_t)i)) {
			model[key] = (uint32_t)i;
		} else {
			ck_assert_uint_eq(index.used, 32);
			ck_assert_uint_eq(model[key], POOL_NONE);
		}
		key = fx_random() % KEYS;
		ck_assert_uint_eq(index_find(&index, key), model[key]);
	}
	for (uint32_t key = 0; key < KEYS; key++)
		ck_assert_uint_eq(index_find(&index, key), model[key]);
	index_clear(&index);
	ck_assert_uint_eq(index_find(&index, 1), POOL_NONE);
	index_deinit(&index);
}

struct item {
	uint32_t number;
	struct pool_link link;
};

TEST(list_keeps_its_order_when_items_leave_and_come_back)
{
	static const uint32_t expected[] = { 1, 3, 0, 2 };
	struct pool_list list;
	struct pool pool;
	uint32_t n = 0;

	ck_assert_int_eq(pool_init(&pool, 4, sizeof(struct item)), 0);
	pool_list_init(&list, offsetof(struct item, link));
	for (int i = 0; i < 4; i++)
		pool_list_append(&list, pool_take_zeroed(&pool));
	pool_list_remove(&list, pool_at(&pool, 0));
	pool_list_append(&list, pool_at(&pool, 0));
	pool_list_touch(&list, pool_at(&pool, 2));
	pool_list_touch(&list, pool_at(&pool, 2));
	ck_assert_uint_eq(list.count, 4);
	for (void *item = list.first; item; item = pool_list_next(&list, item))
		ck_assert_uint_eq(pool_number(item), expected[n++]);
	ck_assert_uint_eq(n, 4);
	for (int i = 0; i < 4; i++)
		pool_list_remove(&list, list.last);
	ck_assert_ptr_null(list.first);
	ck_assert_ptr_null(list.last);
	pool_deinit(&pool);
}

int main(void)
{
	return fx_run(NULL, NULL);
}
