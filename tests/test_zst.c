/* SPDX-License-Identifier: Apache-2.0 */
/* What is packed comes out the same, and what is damaged never as something else. */
#include "util/zst.h"

#include <check.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "tests/fixture.h"

#define SIZE 100000

static char *text, *packed, *back;
static size_t packed_bytes, back_bytes;

static void setup(void)
{
	text = malloc(SIZE);
	for (size_t i = 0; i < SIZE; i++)
		text[i] = (char)("ncclinsp"[i % 8] + (i % 251 == 0));
	packed = back = NULL;
	ck_assert_int_eq(zst_compress(text, SIZE, &packed, &packed_bytes), 0);
}

static void teardown(void)
{
	free(text);
	free(packed);
	free(back);
}

TEST(it_is_smaller_and_comes_back)
{
	ck_assert_uint_lt(packed_bytes, SIZE / 10);
	ck_assert(zst_is(packed, packed_bytes));
	ck_assert(!zst_is(text, SIZE));
	ck_assert(!zst_is(packed, 3));
	ck_assert_int_eq(zst_expand(packed, packed_bytes, SIZE, &back, &back_bytes), 0);
	ck_assert_uint_eq(back_bytes, SIZE);
	ck_assert_mem_eq(back, text, SIZE);
}

TEST(more_than_is_wanted_is_refused)
{
	ck_assert_int_eq(zst_expand(packed, packed_bytes, SIZE - 1, &back, &back_bytes), -EFBIG);
	ck_assert_ptr_null(back);
}

TEST(what_is_cut_or_changed_is_refused)
{
	for (size_t n = 0; n < packed_bytes; n++)
		ck_assert_int_eq(zst_expand(packed, n, SIZE, &back, &back_bytes), -EBADMSG);
	packed[packed_bytes / 2] ^= 1;
	ck_assert_int_eq(zst_expand(packed, packed_bytes, SIZE, &back, &back_bytes), -EBADMSG);
}

int main(void)
{
	return fx_run(setup, teardown);
}
