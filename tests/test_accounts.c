/* SPDX-License-Identifier: Apache-2.0 */
#include "reader/base/accounts.h"

#include <stdio.h>
#include <unistd.h>

#include "tests/fixture.h"

static struct accounts *a;
static char subuid[128], passwd[128];

static void put_text(const char *path, const char *text)
{
	FILE *f = fopen(path, "w");

	ck_assert_ptr_nonnull(f);
	fputs(text, f);
	fclose(f);
}

static void setup(void)
{
	snprintf(subuid, sizeof(subuid), "%s/subuid", fx_tmpdir());
	snprintf(passwd, sizeof(passwd), "%s/passwd", fx_tmpdir());
	put_text(passwd, "root:x:0:0::/root:/bin/sh\nada:x:1000:1000::/:/bin/sh\n"
			 "bo:x:1001:1001::/:/bin/sh\nkubelet:x:998:998::/:/bin/false\n");
	put_text(subuid, "0:2000000:65536\nbo:231072:65536\nada:100000:65536\n"
			 "1002:165536:65536\nada:400000:1000\n"
			 "root:1000000:1000000\nkubelet:3000000:7208960\n");
	ck_assert_int_eq(accounts_new(&a, subuid, passwd), 0);
}

static void teardown(void)
{
	accounts_free(a);
}

static const struct {
	uid_t uid, account;
} cases[] = {
	{ 0, 0 }, { 1000, 1000 }, { 99999, 99999 }, { 4294967294, 4294967294 },
	{ 100000, 1000 }, { 165535, 1000 },	/* a range from end to end */
	{ 165536, 1002 }, { 231071, 1002 },	/* whose owner is given as a number */
	{ 231072, 1001 }, { 296607, 1001 }, { 296608, 296608 },
	{ 400000, 1000 }, { 400999, 1000 }, { 401000, 401000 },	/* her second one */
	{ 1000000, 1000000 }, { 1065535, 1000000 }, { 1065536, 1065536 },	/* many users' */
	{ 2000001, 2000000 },
	{ 3000001, 3000000 }, { 3131073, 3131072 },	/* by pod */
};

TEST_LOOP(an_id_of_a_range_is_its_owner_s, 0, FX_COUNT(cases))
{
	ck_assert_uint_eq(accounts_of(a, cases[_i].uid), cases[_i].account);
	ck_assert_uint_eq(accounts_of(NULL, cases[_i].uid), cases[_i].uid);
}

TEST(a_file_that_changes_comes_or_goes_is_read_again)
{
	put_text(subuid, "bo:100000:65536\n");
	ck_assert_uint_eq(accounts_of(a, 100000), 1000);
	accounts_look(a);
	ck_assert_uint_eq(accounts_of(a, 100000), 1001);
	unlink(subuid);
	accounts_look(a);
	ck_assert_uint_eq(accounts_of(a, 100000), 100000);
	put_text(subuid, "ada:100000:65536\n");
	accounts_look(a);
	ck_assert_uint_eq(accounts_of(a, 100000), 1000);
}

static const char *const senseless[] = {
	"", "\n", ":", "::", "ada", "ada:100000", "ada:x:65536", "ada:100000:x", "ada:100000:0",
	"ada:-1:65536", "ada:4294967296:65536", "ada:100000:65536:1",
	"a-name-that-is-longer-than-any-user-of-a-node-has:100000:65536",
};

TEST_LOOP(a_line_that_makes_no_sense_is_none, 0, FX_COUNT(senseless))
{
	char text[256];

	snprintf(text, sizeof(text), "%s\nbo:200000:10\n", senseless[_i]);
	put_text(subuid, text);
	accounts_look(a);
	ck_assert_uint_eq(accounts_of(a, 100000), 100000);
	ck_assert_uint_eq(accounts_of(a, 200009), 1001);	/* and those behind it count */
}

TEST(a_range_to_the_end_of_all_ids_wraps_nowhere)
{
	put_text(subuid, "ada:4294900000:4294967295\n");
	accounts_look(a);
	ck_assert_uint_eq(accounts_of(a, 4294967294), 1000);
	ck_assert_uint_eq(accounts_of(a, 5), 5);
}

TEST(a_long_file_is_searched_in_order)
{
	FILE *f = fopen(subuid, "w");

	for (unsigned i = 0; i < ACCOUNTS_RANGES + 10; i++)
		fprintf(f, "%u:%u:1000\n", 5000 + i, (ACCOUNTS_RANGES + 9 - i) * 1000 + 100000);
	fclose(f);
	accounts_look(a);
	ck_assert_uint_eq(accounts_of(a, (ACCOUNTS_RANGES + 9) * 1000 + 100999), 5000);
	ck_assert_uint_eq(accounts_of(a, 10 * 1000 + 100000), 5000 + ACCOUNTS_RANGES - 1);
	ck_assert_uint_eq(accounts_of(a, 9 * 1000 + 100000), 9 * 1000 + 100000);
}

int main(void)
{
	return fx_run(setup, teardown);
}
