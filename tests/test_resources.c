/* SPDX-License-Identifier: Apache-2.0 */
/* The node around a process, in files as the kernel has them. */
#include "ncclinspd/findings/resources.h"

#include <stdio.h>
#include <string.h>

#include "tests/fixture_proc.h"

#define SECOND	UINT64_C(1000000000)
#define PID	77
#define GPU	"0000:3B:00.0"

static struct resources_roots roots;
static char cgroup[256], sys[256];
static struct resources_watch *watch;
static struct resources told;
static uint64_t now_ns;

static void setup(void)
{
	snprintf(cgroup, sizeof(cgroup), "%s/cgroup", fx_tmpdir());
	snprintf(sys, sizeof(sys), "%s/sys", fx_tmpdir());
	roots = (struct resources_roots){ fx_proc(), cgroup, sys };
	fx_proc_thread(PID, PID, 0);
	fx_put_file("cgroup/cgroup.controllers", "cpu memory\n");
	watch = NULL;
	now_ns = 1000 * SECOND;
}

static void teardown(void)
{
	resources_free(watch);
}

static void put_stat(const char *name, uint64_t periods, uint64_t throttled, uint64_t usec)
{
	fx_put_file(name, "usage_usec 1\nnr_periods %llu\nnr_throttled %llu\nthrottled_usec %llu\n",
		    (unsigned long long)periods, (unsigned long long)throttled,
		    (unsigned long long)usec);
}

static void begin(void)
{
	watch = resources_new(&roots, PID, FX_PROC_START);
	ck_assert_ptr_nonnull(watch);
}

/* A look so long after the last one; false: there is nothing to tell. */
static bool look_after(uint64_t seconds)
{
	uint32_t looks = 1;

	now_ns += seconds * SECOND;
	resources_look(watch, PID, now_ns, &looks);
	return resources_tell(watch, PID, GPU, now_ns, &told);
}

static const char *below(const char *path)
{
	ck_assert_ptr_nonnull(path);
	return path + strlen(fx_tmpdir());
}

TEST(group_above_a_process_that_was_throttled_most_is_told)
{
	fx_put_file("proc/77/cgroup", "0::/kubepods/pod1/app\n");
	fx_put_file("cgroup/kubepods/pod1/app/cpu.max", "200000 100000\n");
	fx_put_file("cgroup/kubepods/pod1/cpu.max", "250000 100000\n");
	fx_put_file("cgroup/kubepods/cpu.max", "max 100000\n");
	put_stat("cgroup/kubepods/pod1/app/cpu.stat", 100, 7, 50);
	put_stat("cgroup/kubepods/pod1/cpu.stat", 100, 7, 50);
	begin();
	ck_assert(!look_after(1));		/* nothing to compare with yet */
	put_stat("cgroup/kubepods/pod1/cpu.stat", 200, 57, 4100050);
	ck_assert(look_after(10));
	ck_assert_str_eq(below(told.cpu_cgroup), "/cgroup/kubepods/pod1");
	ck_assert_double_eq_tol(told.cpu_limit, 2.5, 1e-9);
	ck_assert_double_eq_tol(told.throttled, 0.41 / 3, 1e-9);	/* of three CPUs each */
	ck_assert_double_eq_tol(told.throttled_periods, 0.5, 1e-9);
	put_stat("cgroup/kubepods/pod1/cpu.stat", 300, 67, UINT64_C(99000000));
	ck_assert(look_after(10));		/* many CPUs' times: 6 s of periods are the bound */
	ck_assert_double_eq_tol(told.throttled, 0.3, 1e-9);
	ck_assert(!resources_tell(watch, PID, GPU, now_ns + 60 * SECOND, &told));
}

TEST(tightest_of_limits_that_took_nothing_is_told)
{
	fx_put_file("proc/77/cgroup", "0::/a/b\n");
	fx_put_file("cgroup/a/b/cpu.max", "300000 100000\n");
	fx_put_file("cgroup/a/cpu.max", "200000 100000\n");
	put_stat("cgroup/a/b/cpu.stat", 1, 1, 1);
	put_stat("cgroup/a/cpu.stat", 1, 1, 1);
	begin();
	look_after(1);
	ck_assert(look_after(5));
	ck_assert_str_eq(below(told.cpu_cgroup), "/cgroup/a");
	ck_assert_double_eq_tol(told.throttled, 0, 1e-9);
}

TEST(limits_of_the_first_version_are_found)
{
	remove(strcat(strcpy(sys, cgroup), "/cgroup.controllers"));
	fx_put_file("proc/77/cgroup",
		    "9:name=systemd:/x\n5:memory:/m/n\n4:cpuset:/y\n"
		    "3:cpu,cpuacct:/job/step\n0::/z\n");
	fx_put_file("cgroup/cpu/job/step/cpu.cfs_quota_us", "-1\n");
	fx_put_file("cgroup/cpu/job/step/cpu.cfs_period_us", "100000\n");
	fx_put_file("cgroup/cpu/job/cpu.cfs_quota_us", "50000\n");
	fx_put_file("cgroup/cpu/job/cpu.cfs_period_us", "100000\n");
	fx_put_file("cgroup/cpu/job/cpu.stat", "nr_periods 1\nnr_throttled 1\nthrottled_time 1\n");
	fx_put_file("cgroup/memory/m/n/memory.limit_in_bytes", "9223372036854771712\n");
	fx_put_file("cgroup/memory/m/memory.limit_in_bytes", "1000\n");
	fx_put_file("cgroup/memory/m/memory.usage_in_bytes", "990\n");
	fx_put_file("cgroup/memory/m/memory.failcnt", "4\n");
	fx_put_file("cgroup/unified/z/cgroup.events", "populated 1\n");
	fx_put_file("cgroup/unified/z/memory.pressure", "some avg10=0.00 total=0\n");
	begin();
	look_after(1);
	fx_put_file("cgroup/cpu/job/cpu.stat",
		    "nr_periods 101\nnr_throttled 51\nthrottled_time 5000000001\n");
	fx_put_file("cgroup/memory/m/memory.failcnt", "14\n");
	fx_put_file("cgroup/unified/z/memory.pressure", "some avg10=0.00 total=3000000\n");
	ck_assert(look_after(10));
	ck_assert_str_eq(below(told.cpu_cgroup), "/cgroup/cpu/job");
	ck_assert_double_eq_tol(told.throttled, 0.5, 1e-9);
	ck_assert_str_eq(below(told.memory_cgroup), "/cgroup/memory/m");
	ck_assert_uint_eq(told.memory_bytes, 990);
	ck_assert_uint_eq(told.memory_limit_bytes, 1000);
	ck_assert_uint_eq(told.limit_hits, 10);
	ck_assert_double_eq_tol(told.memory_stalled, 0.3, 1e-9);
}

/* A container that sees no group but its own has its limit at the root. */
TEST(memory_and_pressure_of_a_group_and_of_the_node_are_told)
{
	fx_put_file("proc/77/cgroup", "0::/\n");
	fx_put_file("cgroup/cgroup.events", "populated 1\n");
	fx_put_file("cgroup/memory.high", "max\n");
	fx_put_file("cgroup/memory.max", "2000\n");
	fx_put_file("cgroup/memory.current", "1999\n");
	fx_put_file("cgroup/memory.events", "low 9\nhigh 1\nmax 5\noom 0\noom_kill 0\n");
	fx_put_file("cgroup/memory.pressure", "some avg10=1.00 avg60=0.00 total=1000000\n"
					      "full avg10=0.00 total=1\n");
	fx_put_file("proc/pressure/io", "some avg10=0.00 avg60=0.00 total=5\n");
	fx_proc_file("77/task/77/stat", "77 (a) b)) S 1 2 3 4 5 6 7 8 100 9\n");
	fx_proc_file("77/task/77/status", "Name:\tVmSwap:\nVmSwap:\t  3 kB\n");
	begin();
	look_after(1);
	fx_put_file("cgroup/memory.events", "low 9\nhigh 2\nmax 8\noom 0\noom_kill 0\n");
	fx_put_file("cgroup/memory.pressure", "some avg10=1.00 avg60=0.00 total=6000000\n");
	fx_put_file("proc/pressure/io", "some avg10=0.00 avg60=0.00 total=1000005\n");
	fx_proc_file("77/task/77/stat", "77 (a) b)) S 1 2 3 4 5 6 7 8 600 9\n");
	ck_assert(look_after(10));
	ck_assert_str_eq(below(told.memory_cgroup), "/cgroup");
	ck_assert_uint_eq(told.limit_hits, 4);
	ck_assert_double_eq_tol(told.memory_stalled, 0.5, 1e-9);
	ck_assert_double_eq_tol(told.node_io_stalled, 0.1, 1e-9);
	ck_assert(told.io_stalled < 0 && told.node_memory_stalled < 0);
	ck_assert_double_eq_tol(told.major_faults, 50, 1e-9);
	ck_assert_uint_eq(told.swapped_bytes, 3072);
	ck_assert_ptr_null(told.cpu_cgroup);
}

/* Two findings may ask about two threads of a process by turns. */
TEST(each_thread_has_its_own_faults)
{
	uint32_t looks = 9;

	fx_proc_thread(PID, 78, 0);
	fx_put_file("proc/77/cgroup", "0::/\n");
	fx_proc_file("77/task/77/stat", "77 (a) S 1 2 3 4 5 6 7 8 100 9\n");
	fx_proc_file("77/task/78/stat", "78 (a) S 1 2 3 4 5 6 7 8 200 9\n");
	begin();
	for (int i = 0; i < 10; i++) {
		now_ns += 5 * SECOND;
		resources_look(watch, 78, now_ns, &looks);
		resources_look(watch, 0, now_ns, &looks);
		fx_proc_file("77/task/78/stat", "78 (a) S 1 2 3 4 5 6 7 8 %d 9\n", 250 + 50 * i);
		looks = 9;
	}
	ck_assert(resources_tell(watch, 78, "", now_ns, &told));
	ck_assert_double_eq_tol(told.major_faults, 10, 1e-9);
	ck_assert(resources_tell(watch, 0, "", now_ns, &told));
	ck_assert_double_eq_tol(told.major_faults, 0, 1e-9);
	ck_assert(resources_tell(watch, 79, "", now_ns, &told));
	ck_assert(told.major_faults < 0);
	for (pid_t tid = 80; tid < 84; tid++)
		resources_look(watch, tid, now_ns, &looks);
	ck_assert(resources_tell(watch, 78, "", now_ns, &told));
	ck_assert(told.major_faults < 0);		/* others had its place */
}

TEST(thread_away_from_its_gpu_is_told)
{
	static const struct {
		const char *allowed, *node;
		bool apart;
	} cases[] = {
		{ "32-63", "2\n", false },
		{ "32-63", "0\n", true }, { "40", "0\n", true }, { "0-63", "0\n", false },
		{ "31-32", "0\n", false }, { "32-63", "1\n", false }, { "32-63", "-1\n", false },
		{ "", "0\n", false }, { "x", "0\n", false },
		{ "99999999999999999999", "0\n", false },
		{ "63-32", "0\n", false },
	};

	fx_put_file("sys/devices/system/node/online", "0-2\n");
	fx_put_file("sys/devices/system/node/node2/cpulist", "\n");	/* memory alone */
	fx_put_file("sys/devices/system/node/node0/cpulist", "0-31\n");
	fx_put_file("sys/devices/system/node/node1/cpulist", "32-63\n");
	fx_proc_file("77/cgroup", "0::/\n");
	begin();
	for (int i = 0; i < FX_COUNT(cases); i++) {
		fx_put_file("sys/bus/pci/devices/0000:3b:00.0/numa_node", "%s", cases[i].node);
		fx_proc_file("77/task/77/status", "Cpus_allowed_list:\t%s\n", cases[i].allowed);
		look_after(5);
		ck_assert(look_after(5));
		ck_assert_msg(told.apart == cases[i].apart, "%s %s", cases[i].allowed,
			      cases[i].node);
	}
	fx_put_file("sys/bus/pci/devices/0000:3b:00.0/numa_node", "0\n");
	fx_proc_file("77/task/77/status", "Cpus_allowed_list:\t32-63\n");
	ck_assert(look_after(5));
	ck_assert_str_eq(told.placement.cpus, "32-63");
	ck_assert_str_eq(told.placement.nodes, "1");
	ck_assert_str_eq(told.placement.device_nodes, "0");
}

/* As the daemon sees them from a cgroup namespace of its own, or where a file says nonsense. */
TEST_LOOP(what_cannot_be_read_is_no_limit, 0, 7)
{
	static const char *const cgroups[] = {
		"", "0::/../other\n", "nonsense\n", "0::\n", "0::/none\n", "1:cpuset:/a\n",
		"0::/a\n",
	};

	fx_put_file("cgroup/a/cpu.max", "%s", "0 0\n");
	fx_put_file("cgroup/a/memory.max", "%s", "-5\n");
	fx_put_file("other/cpu.max", "100 100\n");
	fx_put_file("proc/77/cgroup", "%s", cgroups[_i]);
	begin();
	look_after(5);
	ck_assert(look_after(5));
	ck_assert_ptr_null(told.cpu_cgroup);
	ck_assert_ptr_null(told.memory_cgroup);
	ck_assert(told.throttled < 0 && told.memory_stalled < 0 && told.major_faults < 0);
	ck_assert_ptr_null(resources_kills(watch).cgroup);
}

TEST(group_that_is_made_anew_and_another_process_tell_nothing_old)
{
	fx_put_file("proc/77/cgroup", "0::/a\n");
	fx_put_file("cgroup/a/cpu.max", "100 100\n");
	put_stat("cgroup/a/cpu.stat", 1000, 500, 9);
	begin();
	look_after(1);
	put_stat("cgroup/a/cpu.stat", 10, 5, 9);
	ck_assert(look_after(5));
	ck_assert(told.throttled_periods < 0);
	fx_put_file("cgroup/b/cpu.max", "100 100\n");
	fx_put_file("proc/77/cgroup", "0::/b\n");	/* it has moved */
	put_stat("cgroup/b/cpu.stat", 2000, 2000, 9);
	ck_assert(!look_after(5));
	ck_assert(look_after(5));
	ck_assert_double_eq_tol(told.throttled, 0, 1e-9);
	fx_proc_file("77/stat", "77 (a) S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 %d 20\n",
		     FX_PROC_START + 1);
	ck_assert(!look_after(5));
}

TEST(files_are_read_every_few_seconds_and_only_of_so_many)
{
	uint32_t looks = 2;

	fx_put_file("proc/77/cgroup", "0::/\n");
	begin();
	resources_look(watch, 0, now_ns, &looks);
	resources_look(watch, 0, now_ns + 3 * SECOND, &looks);
	ck_assert_uint_eq(looks, 1);
	resources_look(watch, 0, now_ns + 5 * SECOND, &looks);
	resources_look(watch, 0, now_ns + 10 * SECOND, &looks);
	ck_assert_uint_eq(looks, 0);
	resources_look(NULL, 0, now_ns, &looks);
	ck_assert(!resources_tell(NULL, 0, "", now_ns, &told));
	ck_assert_ptr_null(resources_kills(NULL).cgroup);
}

static void ck_kills(const char *group, bool above, uint64_t n)
{
	struct resources_kills kills = resources_kills(watch);

	ck_assert_str_eq(below(kills.cgroup), group);
	ck_assert(kills.above == above);
	ck_assert_uint_eq(kills.kills, n);
	ck_assert_uint_eq(kills.limit_bytes, above ? 4096 : UNKNOWN_U64);
}

TEST(kills_of_its_own_group_count_or_else_of_those_above)
{
	fx_put_file("proc/77/cgroup", "0::/pod/app\n");
	fx_put_file("cgroup/pod/app/memory.events", "oom 1\noom_kill 2\noom_group_kill 7\n");
	fx_put_file("cgroup/pod/memory.events", "oom_kill 2\n");
	fx_put_file("cgroup/pod/memory.max", "4096\n");
	begin();
	ck_kills("/cgroup/pod/app", false, 0);
	fx_put_file("cgroup/pod/memory.events", "oom_kill 3\n");
	ck_kills("/cgroup/pod/app", false, 0);		/* others' */
	fx_put_file("cgroup/pod/app/memory.events", "nonsense\n");
	ck_kills("/cgroup/pod", true, 1);
	fx_put_file("cgroup/pod/app/memory.events", "oom 1\noom_kill 4\n");
	ck_kills("/cgroup/pod/app", false, 2);
}

TEST(kills_before_the_last_four_counts_do_not_count)
{
	fx_put_file("proc/77/cgroup", "0::/app\n");
	fx_put_file("cgroup/app/memory.events", "oom_kill 2\n");
	begin();
	fx_put_file("cgroup/app/memory.events", "oom_kill 3\n");
	for (int i = 0; i < 3; i++) {
		resources_count_kills(watch, true);
		ck_kills("/cgroup/app", false, 1);
	}
	resources_count_kills(watch, false);
	ck_kills("/cgroup/app", false, 0);
	fx_put_file("cgroup/app/memory.events", "oom_kill 5\n");
	resources_count_kills(watch, false);	/* no process of the node was killed: not read */
	for (int i = 0; i < 4; i++) {
		ck_kills("/cgroup/app", false, 2);
		resources_count_kills(watch, true);
	}
	ck_kills("/cgroup/app", false, 0);
	resources_count_kills(NULL, true);
}

TEST(groups_stay_those_that_a_process_had_when_it_ended)
{
	fx_put_file("proc/77/cgroup", "0::/app\n");
	fx_put_file("cgroup/memory.events", "oom_kill 0\n");
	fx_put_file("cgroup/app/memory.events", "oom_kill 2\n");
	fx_put_file("cgroup/b/memory.events", "oom_kill 70\n");
	begin();
	fx_put_file("cgroup/app/memory.events", "oom_kill 3\n");
	fx_put_file("proc/77/cgroup", "0::/\n");	/* as v1 shows one that ends */
	look_after(5);
	ck_kills("/cgroup/app", false, 1);
	fx_proc_file("77/stat", "77 (a) S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 %d 20\n",
		     FX_PROC_START + 1);
	fx_put_file("proc/77/cgroup", "0::/b\n");	/* its number's next process */
	resources_count_kills(watch, true);
	look_after(5);
	ck_kills("/cgroup/app", false, 1);
	remove(strcat(strcpy(sys, fx_proc()), "/77/cgroup"));
	look_after(5);
	ck_kills("/cgroup/app", false, 1);
}

TEST(kills_are_counted_anew_after_a_move)
{
	fx_put_file("proc/77/cgroup", "0::/app\n");
	fx_put_file("cgroup/app/memory.events", "oom_kill 2\n");
	fx_put_file("cgroup/b/memory.events", "oom_kill 70\n");
	begin();
	fx_put_file("proc/77/cgroup", "0::/b\n");
	ck_assert_ptr_null(resources_kills(watch).cgroup);	/* nobody knows when */
	fx_put_file("cgroup/b/memory.events", "oom_kill 71\n");
	ck_kills("/cgroup/b", false, 1);
	fx_put_file("proc/77/cgroup", "0::/app\n");
	look_after(5);
	ck_kills("/cgroup/app", false, 0);
}

/* ... and only where none was, the fullest. */
TEST(limit_of_memory_that_was_met_is_told)
{
	fx_put_file("proc/77/cgroup", "0::/a/b\n");
	fx_put_file("cgroup/a/b/memory.max", "1000\n");
	fx_put_file("cgroup/a/b/memory.current", "999\n");
	fx_put_file("cgroup/a/b/memory.events", "high 0\nmax 5\n");
	fx_put_file("cgroup/a/memory.max", "2000\n");
	fx_put_file("cgroup/a/memory.current", "1500\n");
	fx_put_file("cgroup/a/memory.events", "high 0\nmax 5\n");
	begin();
	look_after(1);
	ck_assert(look_after(5));
	ck_assert_str_eq(below(told.memory_cgroup), "/cgroup/a/b");
	fx_put_file("cgroup/a/memory.events", "high 0\nmax 9\n");
	ck_assert(look_after(5));
	ck_assert_str_eq(below(told.memory_cgroup), "/cgroup/a");
	ck_assert_uint_eq(told.limit_hits, 4);
}

TEST(source_that_is_absent_says_why)
{
	struct sensors_source source;

	ck_assert(resources_source(&roots, 0, &source) && source.state == SENSORS_PRESENT);
	ck_assert(resources_source(&roots, 1, &source) && source.state == SENSORS_ABSENT);
	ck_assert_ptr_nonnull(strstr(source.why, "/pressure/memory: No such file"));
	ck_assert(resources_source(&roots, 2, &source) && source.state == SENSORS_ABSENT);
	fx_put_file("sys/devices/system/node/online", "0\n");
	fx_put_file("sys/devices/system/node/node0/cpulist", "0-31\n");
	ck_assert(resources_source(&roots, 2, &source) && source.state == SENSORS_UNUSED);
	fx_put_file("proc/self/ns/cgroup", "here: not the first of the kernel's\n");
	ck_assert(resources_source(&roots, 0, &source) && source.state == SENSORS_ABSENT);
	ck_assert(!resources_source(&roots, 3, &source));
}

int main(void)
{
	return fx_run(setup, teardown);
}
