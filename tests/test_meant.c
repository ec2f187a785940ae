/* SPDX-License-Identifier: Apache-2.0 */
/* Which word was meant by one that is none. */
#include "tests/fixture.h"
#include "util/meant.h"

TEST(distance_is_the_number_of_letters_to_change)
{
	char longest[64] = { 0 };

	ck_assert_uint_eq(meant_distance("", ""), 0);
	ck_assert_uint_eq(meant_distance("", "abc"), 3);
	ck_assert_uint_eq(meant_distance("kitten", "sitting"), 3);
	ck_assert_uint_eq(meant_distance("sitting", "kitten"), 3);
	ck_assert_uint_eq(meant_distance("socket", "sockte"), 2);
	ck_assert_uint_eq(meant_distance("Not_Joined", "NOT_JOINED"), 0);
	memset(longest, 'x', 32);
	ck_assert_uint_eq(meant_distance(longest, longest), 0);
	ck_assert_uint_eq(meant_distance(longest, ""), 32);
	longest[32] = 'x';
	ck_assert_uint_gt(meant_distance(longest, longest), 32);
}

static const char *meant(const char *wanted)
{
	static const char *const words[] = { "ops", "peers", "inflight", "ps", "NOT_JOINED" };
	struct meant m = { .wanted = wanted };

	for (size_t i = 0; i < FX_COUNT(words); i++)
		meant_offer(&m, words[i]);
	return m.best;
}

TEST(the_nearest_word_is_meant)
{
	ck_assert_str_eq(meant("inflght"), "inflight");
	ck_assert_str_eq(meant("not-joined"), "NOT_JOINED");
	ck_assert_str_eq(meant("oops"), "ops");
	ck_assert_str_eq(meant("pear"), "peers");
}

TEST(what_is_like_none_means_none)
{
	ck_assert_ptr_null(meant("nonsense"));
	ck_assert_ptr_null(meant("xyz"));
	ck_assert_ptr_null(meant("foo"));	/* half of ops' letters are not enough */
	ck_assert_ptr_null(meant(""));
}

int main(void)
{
	return fx_run(NULL, NULL);
}
