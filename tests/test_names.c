/* SPDX-License-Identifier: Apache-2.0 */
#include "reader/base/names.h"

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

TEST(equal_texts_are_one_pointer_that_never_moves)
{
	name_t first = names_intern(names, 7, "AllReduce", 9);
	name_t prefix = names_intern(names, 7, "AllReduce", 3);
	char text[32];

	for (int i = 0; i < 45; i++) {
		snprintf(text, sizeof(text), "name %d", i);
		names_intern(names, 7, text, strlen(text));
	}
	ck_assert_ptr_eq(names_intern(names, 7, "AllReduce", 9), first);
	ck_assert_str_eq(first, "AllReduce");
	ck_assert_str_eq(prefix, "All");
	ck_assert_uint_eq(names_count(names), 47);
}

TEST(text_ends_at_a_zero_byte_and_an_empty_one_is_no_name)
{
	ck_assert_ptr_eq(names_intern(names, 7, "RING\0garbage", 12),
			 names_intern(names, 7, "RING", 4));
	ck_assert_ptr_null(names_intern(names, 7, "", 0));
	ck_assert_ptr_null(names_intern(names, 7, "\0x", 2));
}

TEST(user_who_invents_names_gets_other_and_is_counted)
{
	char text[32];

	for (int i = 0; i < 150; i++) {
		name_t name;

		snprintf(text, sizeof(text), "name %d", i);
		name = names_intern(names, 7, text, strlen(text));
		ck_assert_str_eq(name, i < 50 ? text : NAMES_OTHER);
	}
	ck_assert_uint_eq(names_count(names), 50);
	ck_assert_uint_eq(names_refused(names), 100);
	ck_assert_str_eq(names_intern(names, 7, "name 7", 6), "name 7");
}

static void invent(uid_t uid, int n)
{
	char text[48];

	for (int i = 0; i < n; i++) {
		snprintf(text, sizeof(text), "%u's %d", (unsigned)uid, i);
		names_intern(names, uid, text, strlen(text));
	}
}

TEST(others_are_left_half_of_the_room)
{
	invent(1000, 1000);
	ck_assert_str_eq(names_intern(names, 1000, "ReduceScatter", 13), NAMES_OTHER);
	ck_assert_str_eq(names_intern(names, 1001, "ReduceScatter", 13), "ReduceScatter");
	invent(1001, 1000);
	ck_assert_uint_eq(names_count(names), 100);
	ck_assert_str_eq(names_intern(names, 1002, "Reduce", 6), NAMES_OTHER);
}

TEST(what_is_there_already_costs_nobody_anything)
{
	invent(1000, 50);
	for (int i = 0; i < 100; i++)
		names_intern(names, 1001, "1000's 7", 8);
	invent(1001, 50);
	ck_assert_uint_eq(names_count(names), 100);
}

/* An eighth of the room is a user's, a quarter all users'. */
TEST(names_of_tags_leave_room_to_all_others)
{
	uint32_t kept = 0;
	char text[32];

	for (int user = 1; user <= 4; user++)
		for (int i = 0; i < 100; i++) {
			snprintf(text, sizeof(text), "%d's step %d", user, i);
			kept += names_intern_tag(names, (uid_t)user, text, strlen(text)) != NULL;
		}
	ck_assert_uint_eq(kept, 25);
	ck_assert_uint_eq(names_refused(names), 400 - 25);
	ck_assert_str_eq(names_intern(names, 1, "AllReduce", 9), "AllReduce");
	ck_assert_str_eq(names_intern_tag(names, 2, "AllReduce", 9), "AllReduce");
}

TEST(endless_text_is_cut)
{
	char text[1000];

	memset(text, 'x', sizeof(text));
	ck_assert_uint_eq(strlen(names_intern(names, 7, text, sizeof(text))), NAMES_MAX_BYTES);
}

int main(void)
{
	return fx_run(setup, teardown);
}
