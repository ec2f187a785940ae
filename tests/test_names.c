/* SPDX-License-Identifier: Apache-2.0 */
#include "ncclinspd/names.h"

#include <stdio.h>
#include <string.h>

#include "tests/fixture.h"

static struct names *names;

static void setup(void)
{
	ck_assert_int_eq(names_new(&names, 100), 0);
}

static void teardown(void)
{
	names_free(names);
}

START_TEST(equal_texts_are_one_pointer_that_never_moves)
{
	name_t first = names_intern(names, "AllReduce", 9);
	name_t prefix = names_intern(names, "AllReduce", 3);
	char text[32];

	for (int i = 0; i < 90; i++) {
		snprintf(text, sizeof(text), "name %d", i);
		names_intern(names, text, strlen(text));
	}
	ck_assert_ptr_eq(names_intern(names, "AllReduce", 9), first);
	ck_assert_str_eq(first, "AllReduce");
	ck_assert_str_eq(prefix, "All");
	ck_assert_uint_eq(names_count(names), 92);
}
END_TEST

START_TEST(text_ends_at_a_zero_byte_and_an_empty_one_is_no_name)
{
	ck_assert_ptr_eq(names_intern(names, "RING\0garbage", 12), names_intern(names, "RING", 4));
	ck_assert_ptr_null(names_intern(names, "", 0));
	ck_assert_ptr_null(names_intern(names, "\0x", 2));
}
END_TEST

START_TEST(full_table_gives_other_and_counts_it)
{
	char text[32];

	for (int i = 0; i < 150; i++) {
		name_t name;

		snprintf(text, sizeof(text), "name %d", i);
		name = names_intern(names, text, strlen(text));
		ck_assert_str_eq(name, i < 100 ? text : NAMES_OTHER);
	}
	ck_assert_uint_eq(names_count(names), 100);
	ck_assert_uint_eq(names_refused(names), 50);
	ck_assert_str_eq(names_intern(names, "name 7", 6), "name 7");
}
END_TEST

START_TEST(endless_text_is_cut)
{
	char text[1000];

	memset(text, 'x', sizeof(text));
	ck_assert_uint_eq(strlen(names_intern(names, text, sizeof(text))), NAMES_MAX_BYTES);
}
END_TEST

int main(void)
{
	const struct fx_test tests[] = {
		FX_TEST(equal_texts_are_one_pointer_that_never_moves),
		FX_TEST(text_ends_at_a_zero_byte_and_an_empty_one_is_no_name),
		FX_TEST(full_table_gives_other_and_counts_it),
		FX_TEST(endless_text_is_cut),
	};

	return fx_run(setup, teardown, tests, FX_COUNT(tests));
}
