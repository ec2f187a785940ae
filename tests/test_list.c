/* SPDX-License-Identifier: Apache-2.0 */
#include "util/list.h"

#include "tests/fixture.h"

struct item {
	char name[24];
	uint32_t n;
};

TEST(full_list_gives_no_place_and_is_not_written_behind)
{
	LIST(struct item) list;

	ck_assert_int_eq(list_init(&list, 3), 0);
	for (uint32_t i = 0; i < 5; i++) {
		struct item *item = list_add(&list);

		ck_assert_ptr_eq(item, i < 3 ? &list.at[i] : NULL);
	}
	ck_assert_uint_eq(list.n, 3);
	list_deinit(&list);
	ck_assert_ptr_null(list_add(&list));	/* nor one that has no room yet */
}

TEST(full_array_gives_no_place)
{
	uint32_t of[4] = { 0 }, n = 0, *place;

	while ((place = array_add(of, &n)))
		*place = n;
	ck_assert_uint_eq(n, 4);
	ck_assert_uint_eq(of[3], 4);
	ck_assert_ptr_null(array_add(of, &n));
	n = UINT32_MAX;		/* whatever somebody has made of it */
	ck_assert_ptr_null(array_add(of, &n));
}

TEST(what_is_removed_leaves_the_others_in_order)
{
	uint32_t left[] = { 1, 3 };
	LIST(struct item) list;

	ck_assert_int_eq(list_init(&list, 4), 0);
	for (uint32_t i = 0; i < 4; i++)
		list_add(&list)->n = i;
	list_remove(&list, 0);
	list_remove(&list, 1);
	ck_assert_uint_eq(list.n, 2);
	for (uint32_t i = 0; i < 2; i++)
		ck_assert_uint_eq(list.at[i].n, left[i]);
	list_remove(&list, 1);
	list_remove(&list, 0);
	ck_assert_uint_eq(list.n, 0);
	list_deinit(&list);
}

TEST(list_without_a_bound_keeps_what_it_has)
{
	LIST(uint64_t) list = { 0 };

	for (uint32_t i = 0; i < 1000; i++)
		*list_append(&list) = i;
	ck_assert_uint_eq(list.n, 1000);
	ck_assert_uint_ge(list.room, 1000);
	for (uint32_t i = 0; i < 1000; i++)
		ck_assert_uint_eq(list.at[i], i);
	list_deinit(&list);
}

TEST(list_that_cannot_grow_stays_as_it_is)
{
	struct item item = { .n = 7 };
	LIST(struct item) list = { .at = &item, .n = UINT32_MAX, .room = UINT32_MAX };

	ck_assert_ptr_null(list_append(&list));
	ck_assert_ptr_eq(list.at, &item);
	ck_assert_uint_eq(list.n, UINT32_MAX);
}

int main(void)
{
	return fx_run(NULL, NULL);
}
