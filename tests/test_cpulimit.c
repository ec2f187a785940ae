/* SPDX-License-Identifier: Apache-2.0 */
/* Limits of control groups, in files as the kernel has them. */
#include "ncclinspd/findings/cpulimit.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "tests/fixture.h"

#define SECOND	UINT64_C(1000000000)
#define PID	77

static struct cpulimit limit;
static uint64_t now_ns;

static void setup(void)
{
	limit = (struct cpulimit){ 0 };
	now_ns = 1000 * SECOND;
}

static void teardown(void) {}

/* A file below the temporary directory, with the directories above it. */
__attribute__((format(printf, 2, 3)))
static void put(const char *name, const char *format, ...)
{
	char path[512];
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

static void put_stat(const char *name, uint64_t periods, uint64_t throttled)
{
	put(name, "usage_usec 1\nnr_periods %llu\nnr_throttled %llu\nthrottled_usec 5\n",
	    (unsigned long long)periods, (unsigned long long)throttled);
}

static void look(void)
{
	char proc[256], root[256];

	snprintf(proc, sizeof(proc), "%s/proc", fx_tmpdir());
	snprintf(root, sizeof(root), "%s/cgroup", fx_tmpdir());
	now_ns += SECOND;
	cpulimit_look(&limit, proc, root, PID, now_ns);
}

static const char *group(void)
{
	return limit.dir + strlen(fx_tmpdir());
}

START_TEST(tightest_limit_above_a_process_is_found)
{
	put("proc/77/cgroup", "0::/kubepods/pod1/app\n");
	put("cgroup/kubepods/pod1/app/cpu.max", "max 100000\n");
	put("cgroup/kubepods/pod1/cpu.max", "250000 100000\n");
	put("cgroup/kubepods/cpu.max", "6400000 100000\n");
	put_stat("cgroup/kubepods/pod1/cpu.stat", 100, 7);
	look();
	ck_assert_str_eq(group(), "/cgroup/kubepods/pod1");
	ck_assert_double_eq_tol(limit.cpus, 2.5, 1e-9);
	ck_assert(cpulimit_throttled(&limit, now_ns) < 0);	/* nothing to compare with yet */
	put_stat("cgroup/kubepods/pod1/cpu.stat", 120, 12);
	look();
	ck_assert_double_eq_tol(cpulimit_throttled(&limit, now_ns), 0.25, 1e-9);
	now_ns += 60 * SECOND;
	ck_assert(cpulimit_throttled(&limit, now_ns) < 0);	/* long ago */
}
END_TEST

START_TEST(limit_of_the_first_version_is_found)
{
	put("proc/77/cgroup", "9:name=systemd:/x\n4:cpuset:/y\n3:cpu,cpuacct:/job/step\n0::/z\n");
	put("cgroup/cpu/job/step/cpu.cfs_quota_us", "-1\n");
	put("cgroup/cpu/job/step/cpu.cfs_period_us", "100000\n");
	put("cgroup/cpu/job/cpu.cfs_quota_us", "50000\n");
	put("cgroup/cpu/job/cpu.cfs_period_us", "100000\n");
	put_stat("cgroup/cpu/job/cpu.stat", 10, 10);
	look();
	ck_assert_str_eq(group(), "/cgroup/cpu/job");
	ck_assert_double_eq_tol(limit.cpus, 0.5, 1e-9);
	put_stat("cgroup/cpu/job/cpu.stat", 20, 20);
	look();
	ck_assert_double_eq_tol(cpulimit_throttled(&limit, now_ns), 1, 1e-9);
}
END_TEST

/* As the daemon sees them from a cgroup namespace of its own, or where a file says nonsense. */
START_TEST(what_cannot_be_read_is_no_limit)
{
	static const char *const cgroups[] = {
		"", "0::/../other\n", "nonsense\n", "0::\n", "0::/none\n", "1:cpuset:/a\n",
		"0::/a\n",
	};

	put("cgroup/a/cpu.max", "%s", "0 0\n");
	put("other/cpu.max", "100 100\n");
	put("proc/77/cgroup", "%s", cgroups[_i]);
	look();
	look();
	ck_assert_str_eq(limit.dir, "");
	ck_assert(cpulimit_throttled(&limit, now_ns) < 0);
}
END_TEST

START_TEST(group_that_is_made_anew_counts_from_there_on)
{
	put("proc/77/cgroup", "0::/a\n");
	put("cgroup/a/cpu.max", "100 100\n");
	put_stat("cgroup/a/cpu.stat", 1000, 500);
	look();
	put_stat("cgroup/a/cpu.stat", 10, 5);
	look();
	ck_assert(cpulimit_throttled(&limit, now_ns) < 0);
	put_stat("cgroup/a/cpu.stat", 20, 5);
	look();
	ck_assert_double_eq_tol(cpulimit_throttled(&limit, now_ns), 0, 1e-9);
}
END_TEST

int main(void)
{
	const struct fx_test tests[] = {
		FX_TEST(tightest_limit_above_a_process_is_found),
		FX_TEST(limit_of_the_first_version_is_found),
		FX_LOOP(what_cannot_be_read_is_no_limit, 0, 7),
		FX_TEST(group_that_is_made_anew_counts_from_there_on),
	};

	return fx_run(setup, teardown, tests, FX_COUNT(tests));
}
