/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/fixture.h"

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

int fx_run(Suite *suite)
{
	SRunner *runner = srunner_create(suite);
	int failed;

	srunner_set_tap(runner, "-");
	srunner_run_all(runner, CK_SILENT);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

/* Past stdio: what the parent has buffered must not come out twice. */
void fx_skip(const char *why)
{
	dprintf(STDOUT_FILENO, "# skipped: %s\n", why);
}

static char tmpdir[64];
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
	if (getpid() == tmpdir_owner)
		nftw(tmpdir, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

const char *fx_tmpdir(void)
{
	if (tmpdir_owner == getpid())
		return tmpdir;
	snprintf(tmpdir, sizeof(tmpdir), "/tmp/ncclinsp-test.XXXXXX");
	if (!mkdtemp(tmpdir))
		abort();
	tmpdir_owner = getpid();
	atexit(remove_tmpdir);
	return tmpdir;
}

const char *fx_build_path(const char *name)
{
	static char path[4096];

	snprintf(path, sizeof(path), "%s/%s", B, name);
	return path;
}
