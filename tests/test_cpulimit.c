/* SPDX-License-Identifier: Apache-2.0 */
/* Limits of control groups, in files as the kernel has them. */
#include "ncclinspd/findings/cpulimit.h"

#include <stdio.h>
#include <string.h>

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

static void put_stat(const char *name, uint64_t periods, uint64_t throttled)
{
	fx_put_file(name, "usage_usec 1\nnr_periods %llu\nnr_throttled %llu\nthrottled_usec 5\n",
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
	fx_put_file("proc/77/cgroup", "0::/kubepods/pod1/app\n");
	fx_put_file("cgroup/kubepods/pod1/app/cpu.max", "max 100000\n");
	fx_put_file("cgroup/kubepods/pod1/cpu.max", "250000 100000\n");
	fx_put_file("cgroup/kubepods/cpu.max", "6400000 100000\n");
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
	fx_put_file("proc/77/cgroup",
		    "9:name=systemd:/x\n4:cpuset:/y\n3:cpu,cpuacct:/job/step\n0::/z\n");
	fx_put_file("cgroup/cpu/job/step/cpu.cfs_quota_us", "-1\n");
	fx_put_file("cgroup/cpu/job/step/cpu.cfs_period_us", "100000\n");
	fx_put_file("cgroup/cpu/job/cpu.cfs_quota_us", "50000\n");
	fx_put_file("cgroup/cpu/job/cpu.cfs_period_us", "100000\n");
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

	fx_put_file("cgroup/a/cpu.max", "%s", "0 0\n");
	fx_put_file("other/cpu.max", "100 100\n");
	fx_put_file("proc/77/cgroup", "%s", cgroups[_i]);
	look();
	look();
	ck_assert_str_eq(limit.dir, "");
	ck_assert(cpulimit_throttled(&limit, now_ns) < 0);
}
END_TEST

START_TEST(group_that_is_made_anew_counts_from_there_on)
{
	fx_put_file("proc/77/cgroup", "0::/a\n");
	fx_put_file("cgroup/a/cpu.max", "100 100\n");
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
