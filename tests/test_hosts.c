/* SPDX-License-Identifier: Apache-2.0 */
/* Lists of nodes as Slurm writes them. */
#include <errno.h>
#include <string.h>

#include "cli/offline/hosts.h"
#include "tests/fixture.h"

/* All names behind each other; or why not. */
static const char *names(const char *list)
{
	static char text[4096], why[HOSTS_WHY];
	struct hosts h = { .names.n = 0 };
	int r = hosts_read(&h, list, why);

	text[0] = '\0';
	for (uint32_t i = 0; !r && i < h.names.n; i++) {
		strcat(text, i ? " " : "");
		strcat(text, h.names.at[i]);
	}
	hosts_deinit(&h);
	ck_assert(!r || r == -EINVAL);
	return r ? why : text;
}

TEST(names_are_what_slurm_means)
{
	ck_assert_str_eq(names("node7"), "node7");
	ck_assert_str_eq(names("root@node7,fe80::1%eth0"), "root@node7 fe80::1%eth0");
	ck_assert_str_eq(names("n[1-3]"), "n1 n2 n3");
	ck_assert_str_eq(names("n[008-011,2]x,login"), "n008x n009x n010x n011x n2x login");
	ck_assert_str_eq(names("r[1-2]n[0-1],r1n1"), "r1n0 r1n1 r2n0 r2n1");
	ck_assert_str_eq(names("a,,b,"), "a b");
}

TEST(what_is_no_list_is_refused_with_the_reason)
{
	ck_assert_str_eq(names(""), "no host is given");
	ck_assert_str_eq(names("n[1-3"), "'[1-3' has no closing bracket");
	ck_assert_str_eq(names("n[3-1]"), "'[3-1]' is not a list of numbers such as 1-64,70");
	ck_assert_str_eq(names("n[a-b]"), "'[a-b]' is not a list of numbers such as 1-64,70");
	ck_assert_str_eq(names("n[]"), "'[]' is not a list of numbers such as 1-64,70");
	ck_assert_str_eq(names("n[1-]"), "'[1-]' is not a list of numbers such as 1-64,70");
	ck_assert_str_eq(names("n[1-99999]"),
			 "'[1-99999]' is not a list of numbers such as 1-64,70");
	ck_assert_str_eq(names("n[0-9999]m[0-9]"), "more than 16384 hosts");
	ck_assert_str_eq(names("slurm:1;reboot"), "'1;reboot' is not a job number");
}

/* ssh would take the first for an option, and shells others for more than a word. */
TEST(what_ssh_could_misunderstand_is_no_host)
{
	static const char *const none[] = { "-oProxyCommand=reboot", "a b", "a;b", "$(a)", "a\nb" };

	for (size_t i = 0; i < FX_COUNT(none); i++)
		ck_assert_ptr_nonnull(strstr(names(none[i]), "cannot be the name of a host"));
}

int main(void)
{
	return fx_run(NULL, NULL);
}
