/* SPDX-License-Identifier: Apache-2.0 */
#include "tables/nearest.h"

#include <stdlib.h>

#include "tests/fixture.h"

#define ROOM	64
#define MANY	5000

static struct nearest l;

static void setup(void)
{
	ck_assert_int_eq(nearest_init(&l, ROOM, sizeof(uint64_t)), 0);
}

static void teardown(void)
{
	nearest_deinit(&l);
}

static void offer(uint64_t apart)
{
	uint64_t *row = nearest_offer(&l, apart);

	if (row)
		*row = apart;
}

static int by_value(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

TEST(few_rows_are_all_kept)
{
	for (uint64_t i = 0; i < ROOM; i++)
		offer(i);
	ck_assert_uint_eq(l.n, ROOM);
	ck_assert_uint_eq(l.left_out, 0);
	ck_assert_uint_eq(*(uint64_t *)nearest_row(&l, 5), 5);
}

/* Rising, falling, at random, and all the same. */
static uint64_t value(int way, uint64_t i)
{
	return way == 0 ? i : way == 1 ? MANY - i : way == 2 ? fx_random() % 1000 : 7;
}

TEST_LOOP(of_many_the_nearest_are_kept_in_whatever_order_they_come, 0, 4)
{
	static uint64_t all[MANY];

	for (uint64_t i = 0; i < MANY; i++) {
		all[i] = value(_i, i);
		offer(all[i]);
	}
	ck_assert_uint_eq(l.left_out, MANY - ROOM);
	qsort(all, MANY, sizeof(*all), by_value);
	qsort(l.rows, ROOM, sizeof(*all), by_value);
	for (uint32_t i = 0; i < ROOM; i++)
		ck_assert_uint_eq(*(uint64_t *)nearest_row(&l, i), all[i]);
}

int main(void)
{
	return fx_run(setup, teardown);
}
