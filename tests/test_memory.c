/* SPDX-License-Identifier: Apache-2.0 */
/* One account for all: its ceiling, a user's part, and when it is tight. */
#include "reader/base/memory.h"

#include "tests/fixture.h"

#define MIB	(UINT64_C(1) << 20)
#define MOST	(64 * MIB)

static struct memory memory;

static void setup(void)
{
	memory_init(&memory, MEMORY_OWN + MOST);
}

static void teardown(void)
{
}

TEST(no_user_takes_more_than_three_quarters)
{
	ck_assert(memory_take(&memory, 1, 48 * MIB));
	ck_assert(!memory_has(&memory, 1, 1));
	ck_assert(!memory_take(&memory, 1, 1));
	ck_assert_uint_eq(memory.refused, 1);
	ck_assert(memory_take(&memory, 2, 16 * MIB));
	ck_assert(!memory_take(&memory, 2, 1));
	ck_assert_uint_eq(memory.taken, MOST);
	ck_assert_uint_eq(memory.refused, 2);
}

TEST(what_is_given_back_can_be_taken_again)
{
	ck_assert(memory_take(&memory, 1, 48 * MIB));
	memory_give(&memory, 1, 8 * MIB);
	ck_assert_uint_eq(memory.taken, 40 * MIB);
	ck_assert(memory_take(&memory, 1, 8 * MIB));
	ck_assert_uint_eq(memory.refused, 0);
}

TEST(it_is_tight_for_a_user_before_it_is_full)
{
	ck_assert(memory_take(&memory, 7, 42 * MIB));
	ck_assert(!memory.tight);
	ck_assert(memory_take(&memory, 7, 1));
	ck_assert(memory.tight);
	ck_assert_uint_eq(memory.tight_account, 7);
}

TEST(a_size_that_wraps_is_refused)
{
	ck_assert(memory_take(&memory, 1, MIB));
	ck_assert(!memory_take(&memory, 1, UINT64_MAX));
	ck_assert_uint_eq(memory.taken, MIB);
}

TEST(nothing_is_refused_where_there_is_no_ceiling)
{
	ck_assert(memory_take(NULL, 1, UINT64_MAX));
	ck_assert(memory_has(NULL, 1, UINT64_MAX));
	memory_give(NULL, 1, UINT64_MAX);
}

int main(void)
{
	return fx_run(setup, teardown);
}
