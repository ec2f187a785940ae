/* SPDX-License-Identifier: Apache-2.0 */
#include "ncclinspd/findings/baseline.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tests/fixture.h"
#include "tests/fx_accounts.h"
#include "util/log.h"

static struct baselines *b;
static struct accounts *accounts;	/* NULL: each uid is one */
static char path[256];

static void setup(void)
{
	log_set_level(LOG_ERROR);
	snprintf(path, sizeof(path), "%s/baselines", fx_tmpdir());
	unlink(path);
	ck_assert_int_eq(baselines_new(&b, fx_tmpdir(), accounts), 0);
}

static void teardown(void)
{
	baselines_free(b);
}

static void put_of(uint32_t uid, uint64_t key)
{
	const struct baseline one = { key, (double)key / 1000, 0.02, uid, 0 };

	baselines_put(b, &one);
}

static void put(uint64_t key)
{
	put_of(0, key);
}

static void restart(void)
{
	baselines_free(b);
	ck_assert_int_eq(baselines_new(&b, fx_tmpdir(), accounts), 0);
}

static size_t read_all(char *bytes, size_t size)
{
	FILE *f = fopen(path, "r");
	size_t n;

	ck_assert_ptr_nonnull(f);
	n = fread(bytes, 1, size, f);
	fclose(f);
	return n;
}

static void write_all(const char *bytes, size_t n)
{
	FILE *f = fopen(path, "w");

	ck_assert_ptr_nonnull(f);
	ck_assert_uint_eq(fwrite(bytes, 1, n, f), n);
	fclose(f);
}

TEST(what_was_learned_is_there_after_a_restart)
{
	for (uint64_t key = 1; key <= 100; key++)
		put(key);
	put(7);
	restart();
	for (uint64_t key = 1; key <= 100; key++) {
		const struct baseline *found = baselines_find(b, key, 0);

		ck_assert_ptr_nonnull(found);
		ck_assert(fabs(found->mean - (double)key / 1000) < 1e-12);
	}
	ck_assert_ptr_null(baselines_find(b, 101, 0));
}

TEST(what_was_not_used_for_longest_makes_room)
{
	for (uint64_t key = 0; key < BASELINES; key++)
		put(key);
	baselines_find(b, 0, 0);
	put(BASELINES);
	ck_assert_ptr_null(baselines_find(b, 1, 0));
	ck_assert_ptr_nonnull(baselines_find(b, 0, 0));
	restart();
	ck_assert_ptr_nonnull(baselines_find(b, BASELINES, 0));
	ck_assert_ptr_nonnull(baselines_find(b, 0, 0));
}

TEST(one_user_s_baseline_is_no_other_s_under_any_key)
{
	put_of(1, 7);
	ck_assert_ptr_null(baselines_find(b, 7, 2));
	put_of(2, 7);
	ck_assert_ptr_nonnull(baselines_find(b, 7, 1));
	restart();
	ck_assert_uint_eq(baselines_find(b, 7, 1)->uid, 1);
	ck_assert_uint_eq(baselines_find(b, 7, 2)->uid, 2);
}

TEST(who_learns_much_leaves_others_what_they_have)
{
	accounts = fx_accounts("1000:100000:65536\n");
	restart();
	for (uint64_t key = 0; key < 10; key++)
		put_of(1, key);
	for (uint64_t key = 0; key < 2 * BASELINES; key++)
		put_of(100000 + (uint32_t)key, key);	/* ids of one user */
	for (uint64_t key = 0; key < 10; key++)
		ck_assert_ptr_nonnull(baselines_find(b, key, 1));
	for (uint64_t key = 10; key < 100; key++)
		put_of(1, key);
	for (uint64_t key = 0; key < 100; key++)
		ck_assert_ptr_nonnull(baselines_find(b, key, 1));
	accounts_free(accounts);
	accounts = NULL;
}

/* Each of its bytes wrong in turn, each length in turn. */
TEST(a_broken_file_is_ignored_and_written_anew)
{
	struct baseline at[BASELINES];
	char bytes[512], wrong[512];
	size_t n;

	for (uint64_t key = 1; key <= 10; key++)
		put(key);
	restart();
	n = read_all(bytes, sizeof(bytes));
	ck_assert_uint_eq(n, 24 + 10 * 32);
	ck_assert_int_eq(baselines_parse(bytes, n, at), 10);
	for (size_t i = 0; i < n; i++) {
		memcpy(wrong, bytes, n);
		wrong[i] ^= (char)(1 + fx_random() % 255);
		ck_assert_int_lt(baselines_parse(wrong, n, at), 0);
		ck_assert_int_lt(baselines_parse(bytes, i, at), 0);
	}
	write_all(wrong, n);
	restart();
	ck_assert_ptr_null(baselines_find(b, 1, 0));
	put(3);
	restart();
	ck_assert_ptr_nonnull(baselines_find(b, 3, 0));
}

TEST(values_that_cannot_be_used_are_left_out)
{
	const struct baseline bad[] = {
		{ 1, NAN, 1, 0, 0 }, { 1, INFINITY, 1, 0, 0 }, { 1, 1, 0, 0, 0 },
		{ 1, 1, NAN, 0, 0 }, { 1, 1e9, 1, 0, 0 },
	};

	for (int i = 0; i < FX_COUNT(bad); i++)
		baselines_put(b, &bad[i]);
	ck_assert_ptr_null(baselines_find(b, 1, 0));
}

TEST(a_place_that_cannot_be_written_to_does_no_harm)
{
	struct baselines *other;

	ck_assert_int_eq(baselines_new(&other, "/proc/self", NULL), 0);
	baselines_put(other, &(struct baseline){ 1, 2, 3, 0, 0 });
	baselines_save(other);
	ck_assert_ptr_nonnull(baselines_find(other, 1, 0));
	baselines_free(other);
	ck_assert_int_eq(baselines_new(&other, NULL, NULL), 0);
	baselines_free(other);
}

int main(void)
{
	return fx_run(setup, teardown);
}
