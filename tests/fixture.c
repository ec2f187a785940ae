/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/fixture.h"

#include <errno.h>
#include <ftw.h>
#include <limits.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* Nothing takes long; a machine may be busy. */
#define TIMEOUT_S	60

/* A compiler that a test runs finds its linker by PATH, which may be unset. */
#define USUAL_PATH	"/usr/local/bin:/usr/bin:/bin"

/* In the order of their lines: constructors run in whatever order the compiler has put them. */
static struct fx_test *tests;

void fx_enter(struct fx_test *test)
{
	struct fx_test **at = &tests;

	while (*at && (*at)->test.line < test->test.line)
		at = &(*at)->next;
	test->next = *at;
	*at = test;
}

int fx_run(void (*setup)(void), void (*teardown)(void))
{
	const char *name = program_invocation_short_name;
	Suite *suite = suite_create(name);
	TCase *tc = tcase_create(name);
	SRunner *runner = srunner_create(suite);
	int failed;

	setenv("PATH", USUAL_PATH, 0);
	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_set_timeout(tc, TIMEOUT_S);
	for (const struct fx_test *t = tests; t; t = t->next)
		tcase_add_loop_test(tc, &t->test, t->first, t->end);
	suite_add_tcase(suite, tc);
	srunner_set_tap(runner, "-");
	srunner_run_all(runner, CK_SILENT);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

bool fx_descriptors(unsigned int n)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_max >= n) {
		limit.rlim_cur = limit.rlim_max;
		if (setrlimit(RLIMIT_NOFILE, &limit) == 0)
			return true;
	}
	fx_skip("too few open files are allowed here");
	return false;
}

/* Past stdio: what the parent has buffered must not come out twice. */
void fx_skip(const char *why)
{
	dprintf(STDOUT_FILENO, "# skipped: %s\n", why);
}

static char tmpdir[64], mounted[PATH_MAX];
static pid_t tmpdir_owner;

static int remove_one(const char *path, const struct stat *st, int flag, struct FTW *ftw)
{
	(void)st;
	(void)flag;
	(void)ftw;
	return remove(path);
}

static void remove_tmpdir(void)
{
	if (getpid() != tmpdir_owner)
		return;
	if (*mounted)		/* there, or on the way there */
		umount2(mounted, MNT_DETACH);
	nftw(tmpdir, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

const char *fx_tmpdir(void)
{
	if (tmpdir_owner == getpid())
		return tmpdir;
	snprintf(tmpdir, sizeof(tmpdir), "%s/ncclinsp-test.XXXXXX", getenv("TMPDIR") ?: "/dev/shm");
	if (!mkdtemp(tmpdir))
		abort();
	tmpdir_owner = getpid();
	atexit(remove_tmpdir);
	return tmpdir;
}

void fx_put_file(const char *name, const char *format, ...)
{
	char path[PATH_MAX];
	va_list args;
	FILE *out;

	snprintf(path, sizeof(path), "%s/%s", fx_tmpdir(), name);
	for (char *at = path + strlen(fx_tmpdir()) + 1; (at = strchr(at, '/')); at++) {
		*at = '\0';
		mkdir(path, 0755);
		*at = '/';
	}
	out = fopen(path, "w");
	ck_assert_ptr_nonnull(out);
	va_start(args, format);
	vfprintf(out, format, args);
	va_end(args);
	fclose(out);
}

bool fx_mount(const char *at, const char *options, unsigned long flags)
{
	if (unshare(CLONE_NEWNS) == 0 && mount("", "/", "", MS_REC | MS_PRIVATE, NULL) == 0 &&
	    mount("tmpfs", at, "tmpfs", flags, options) == 0) {
		snprintf(mounted, sizeof(mounted), "%s", at);
		return true;
	}
	fx_skip("a private mount is refused here");
	return false;
}

static uint64_t random_state = 88172645463325252;

static uint64_t random_base;

void fx_seed(uint64_t n)
{
	random_state = 88172645463325252 + random_base + n * 7919;
}

void fx_seed_anew(void)
{
	const char *text = getenv("SEED");

	random_base = text ? strtoull(text, NULL, 0) :
			     (uint64_t)time(NULL) << 16 ^ (uint64_t)getpid();
	printf("# SEED=%llu\n", (unsigned long long)random_base);
	fflush(stdout);
	fx_seed(0);
}

uint64_t fx_random(void)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	return random_state ^= random_state << 17;
}

const char *fx_build_path(const char *name)
{
	static char path[4096];

	snprintf(path, sizeof(path), "%s/%s", B, name);
	return path;
}
