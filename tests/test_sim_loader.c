/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finding a profiler library by NCCL's rules.  The libraries are compiled here,
 * into a directory that LD_LIBRARY_PATH names; since dlopen reads that at start
 * only, the test program runs itself again.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/fixture.h"
#include "tests/sim/loader.h"

#define DIR_VARIABLE	"TEST_SIM_LOADER_DIR"

/* A library that exports tables of these versions. */
static int compile(const char *dir, const char *name, const char *versions)
{
	char command[1024], source[300];
	FILE *f;

	snprintf(source, sizeof(source), "%s/x.c", dir);
	f = fopen(source, "we");
	if (!f)
		return -1;
	for (const char *v = versions; *v; v++)
		fprintf(f, "void *ncclProfiler_v%c[6];\n", *v);
	fputs("int some_library;\n", f);
	fclose(f);
	snprintf(command, sizeof(command), "${CC:-cc} -shared -fPIC -o %s/%s %s", dir, name,
		 source);
	return system(command);
}

static struct loader loader;

static int open_as(const char *value, int release)
{
	return loader_open(&loader, value, release, loader_newest(release), false);
}

static void teardown(void)
{
	loader_close(&loader);
}

TEST(the_newest_version_that_the_release_knows_wins)
{
	static const int newest[] = { 1, 2, 2, 3, 4, 5, 6, 6 };

	ck_assert_int_eq(open_as("all", 26), 0);
	ck_assert_int_eq(loader.version, 3);
	for (int release = 23; release <= 30; release++)
		ck_assert_int_eq(loader_newest(release), newest[release - 23]);
	loader_close(&loader);
	ck_assert_int_eq(open_as("all", 30), 0);
	ck_assert_int_eq(loader.version, 6);
}

TEST(an_older_version_is_taken_where_there_is_no_newer)
{
	ck_assert_int_eq(open_as("old", 30), 0);
	ck_assert_int_eq(loader.version, 4);
}

TEST(a_forced_version_is_the_only_one_looked_for)
{
	ck_assert_int_eq(loader_open(&loader, "all", 30, 2, true), 0);
	ck_assert_int_eq(loader.version, 2);
	loader_close(&loader);
	ck_assert_int_eq(loader_open(&loader, "old", 30, 5, true), -ENOSYS);
}

TEST(an_unset_or_empty_name_means_the_default_library)
{
	ck_assert_int_eq(open_as(NULL, 30), 0);
	ck_assert_str_eq(loader.name, "libnccl-profiler.so");
	loader_close(&loader);
	ck_assert_int_eq(open_as("", 30), 0);
}

TEST(a_bare_word_is_tried_as_it_is_and_then_as_a_suffix)
{
	ck_assert_int_eq(open_as("all", 30), 0);
	ck_assert_str_eq(loader.name, "libnccl-profiler-all.so");
	loader_close(&loader);
	ck_assert_int_eq(open_as("libother.so", 30), 0);
	ck_assert_str_eq(loader.name, "libother.so");
}

TEST(a_path_or_a_library_name_is_not_made_a_suffix)
{
	ck_assert_int_eq(chdir(getenv(DIR_VARIABLE)), 0);
	ck_assert_int_eq(open_as("sub/all", 30), -ENOENT);
	ck_assert_int_eq(open_as("liball.so", 30), -ENOENT);
}

TEST(before_2_26_a_word_is_no_suffix)
{
	ck_assert_int_eq(open_as("all", 25), -ENOENT);
}

TEST(none_in_any_case_means_no_profiler)
{
	ck_assert_int_eq(open_as("None", 30), -ENOENT);
	ck_assert_int_eq(open_as("none", 28), -ENOENT);
}

TEST(a_library_without_a_known_table_is_refused)
{
	ck_assert_int_eq(open_as("empty", 30), -ENOSYS);
	ck_assert_ptr_null(loader.handle);
}

TEST(a_prefix_of_static_plugin_means_the_program_itself)
{
	ck_assert_int_eq(open_as("static", 30), -ENOSYS);
	ck_assert_int_eq(open_as("s", 30), -ENOSYS);
}

TEST(a_network_library_may_hold_a_profiler_that_nobody_named)
{
	ck_assert_int_eq(open_as("nowhere", 28), -ENOENT);
	setenv("NCCL_NET_PLUGIN", "fast", 1);
	ck_assert_int_eq(open_as("none", 28), -ENOENT);
	ck_assert_int_eq(open_as("nowhere", 27), -ENOENT);
	ck_assert_int_eq(open_as("empty", 28), -ENOSYS);	/* it was found: no fall-back */
	ck_assert_int_eq(open_as("nowhere", 28), 0);
	ck_assert_str_eq(loader.name, "libnccl-net-fast.so");
	ck_assert_int_eq(loader.version, 5);
	unsetenv("NCCL_NET_PLUGIN");
}

static int run_tests(void)
{
	return fx_run(NULL, teardown);
}

static bool compile_all(const char *dir)
{
	char sub[300];

	snprintf(sub, sizeof(sub), "%s/libnccl-profiler-sub", dir);
	return !mkdir(sub, 0700) &&
	       !compile(dir, "libnccl-profiler-sub/all.so", "6") &&
	       !compile(dir, "libnccl-profiler-liball.so.so", "6") &&
	       !compile(dir, "libnccl-profiler.so", "6") &&
	       !compile(dir, "libnccl-profiler-all.so", "123456") &&
	       !compile(dir, "libnccl-profiler-old.so", "1234") &&
	       !compile(dir, "libnccl-profiler-empty.so", "") &&
	       !compile(dir, "libother.so", "56") &&
	       !compile(dir, "libnccl-net-fast.so", "5");
}

int main(int argc, char **argv)
{
	const char *dir = fx_tmpdir();
	int status;

	(void)argc;
	if (getenv(DIR_VARIABLE))
		return run_tests();
	if (!compile_all(dir)) {
		puts("1..0 # SKIP no C compiler to make libraries with");
		return EXIT_SUCCESS;
	}
	if (!fork()) {
		setenv(DIR_VARIABLE, dir, 1);
		setenv("LD_LIBRARY_PATH", dir, 1);
		execv("/proc/self/exe", argv);
		_exit(127);
	}
	wait(&status);
	return WIFEXITED(status) ? WEXITSTATUS(status) : EXIT_FAILURE;
}
