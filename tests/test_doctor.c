/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/fixture.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/doctor/doctor.h"

static char top[64];	/* proc/ and shm/ are below it */
static char proc[80], shm[80];

static void setup(void)
{
	strcpy(top, "/tmp/test_doctor.XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(top));
	snprintf(proc, sizeof(proc), "%s/proc", top);
	snprintf(shm, sizeof(shm), "%s/shm", top);
	ck_assert(!mkdir(proc, 0700) && !mkdir(shm, 0700));
}

static void teardown(void)
{
	char command[128];

	snprintf(command, sizeof(command), "rm -r %s", top);
	ck_assert_int_eq(system(command), 0);
}

static void put_file(int pid, const char *name, const char *bytes, size_t len)
{
	char path[256];
	FILE *out;

	snprintf(path, sizeof(path), "%s/%d", proc, pid);
	mkdir(path, 0700);
	snprintf(path, sizeof(path), "%s/%d/%s", proc, pid, name);
	out = fopen(path, "w");
	ck_assert_ptr_nonnull(out);
	fwrite(bytes, 1, len, out);
	fclose(out);
}

#define PUT(pid, name, text) put_file(pid, name, text, sizeof(text) - 1)

/* A root that shows the same directory, or another one by its name. */
static void put_root(int pid, bool own_shm)
{
	char root[256], path[512];

	snprintf(root, sizeof(root), "%s/%d/root", proc, pid);
	if (!own_shm) {
		ck_assert_int_eq(symlink("/", root), 0);
		return;
	}
	snprintf(path, sizeof(path), "mkdir -p %s%s", root, shm);
	ck_assert_int_eq(system(path), 0);
}

/* A mount namespace of its own. */
static void put_mounts(int pid)
{
	char command[256];

	snprintf(command, sizeof(command), "mkdir -p %s/%d/ns && touch %s/%d/ns/mnt", proc, pid,
		 proc, pid);
	ck_assert_int_eq(system(command), 0);
}

#define NCCL_MAP   "7f00-7f01 r-xp 0 08:01 1 /usr/lib/libnccl.so.2.28\n"
#define PLUGIN_MAP "7f02-7f03 r-xp 0 08:01 2 /opt/lib/libnccl-profiler-insp.so\n"

TEST(who_uses_nccl_is_told_from_what_is_mapped)
{
	json_t *jobs, *job;

	PUT(100, "maps", "7f00-7f01 r-xp 0 08:01 1 /usr/lib/libc.so.6\n"
			 "7f04-7f05 r-xp 0 08:01 3 /opt/lib/libnccl-profiler-inspector.so\n");
	PUT(200, "maps", NCCL_MAP PLUGIN_MAP);
	PUT(200, "environ", "HOME=/\0NOT_NCCL_PROFILER_PLUGIN=x\0NCCL_PROFILER_PLUGIN=insp\0");
	PUT(200, "comm", "python\n");
	PUT(200, "status", "Name:\tpython\nNSpid:\t200\t7\n");
	PUT(200, "stat", "200 (a) 1 ) R 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 5000 20\n");
	put_mounts(1);
	put_mounts(200);
	put_root(200, false);
	jobs = doctor_scan(proc, shm, NULL);
	ck_assert_uint_eq(json_array_size(jobs), 1);
	job = json_array_get(jobs, 0);
	ck_assert_int_eq(json_integer_value(json_object_get(job, "pid")), 200);
	ck_assert_str_eq(json_string_value(json_object_get(job, "command")), "python");
	ck_assert_str_eq(json_string_value(json_object_get(job, "plugin")), "insp");
	ck_assert(json_is_true(json_object_get(job, "loaded")));
	ck_assert(json_is_true(json_object_get(job, "other_dir")));	/* /dev/shm */
	ck_assert(json_is_false(json_object_get(job, "foreign_shm")));
	ck_assert_int_eq(json_integer_value(json_array_get(json_object_get(job, "pids"), 2)), 7);
	ck_assert_int_eq(json_integer_value(json_object_get(job, "start")), 5000);
	ck_assert(json_is_true(json_object_get(job, "own_mounts")));
	json_decref(jobs);
}

TEST(what_may_not_be_read_is_no_reason_to_fail)
{
	json_t *jobs;

	PUT(300, "maps", NCCL_MAP);
	jobs = doctor_scan(proc, shm, NULL);
	ck_assert_uint_eq(json_array_size(jobs), 1);
	ck_assert(json_is_null(json_object_get(json_array_get(jobs, 0), "plugin")));
	ck_assert(json_is_false(json_object_get(json_array_get(jobs, 0), "own_mounts")));
	json_decref(jobs);
	jobs = doctor_scan("/nonexistent", shm, NULL);
	ck_assert_uint_eq(json_array_size(jobs), 0);
	json_decref(jobs);
}

TEST(a_container_with_its_own_directory_is_seen)
{
	char environment[128];
	int len = snprintf(environment, sizeof(environment), "NCCLINSP_SHM_DIR=%s", shm);
	json_t *jobs;

	PUT(400, "maps", PLUGIN_MAP);
	put_file(400, "environ", environment, (size_t)len + 1);
	put_root(400, true);
	jobs = doctor_scan(proc, shm, NULL);
	ck_assert(json_is_true(json_object_get(json_array_get(jobs, 0), "foreign_shm")));
	ck_assert(json_is_false(json_object_get(json_array_get(jobs, 0), "other_dir")));
	json_decref(jobs);
}

TEST(a_job_is_told_from_one_that_looks_elsewhere_for_its_level)
{
	static const char environment[] = "NCCL_PROFILER_PLUGIN=/none/insp.so\0NCCLINSP_CONTROL=";
	char control[96], entry[256];
	size_t len = sizeof(environment) - 1;
	json_t *jobs;

	snprintf(control, sizeof(control), "%s/control", shm);
	fclose(fopen(control, "w"));
	for (int pid = 500; pid < 502; pid++) {
		memcpy(entry, environment, len);
		snprintf(entry + len, sizeof(entry) - len, "%s%s", pid == 500 ? "" : "/not",
			 control);
		PUT(pid, "maps", PLUGIN_MAP);
		put_file(pid, "environ", entry, len + strlen(entry + len) + 1);
		put_root(pid, false);
		jobs = doctor_scan(proc, shm, control);
		for (size_t i = 0; i < json_array_size(jobs); i++) {
			json_t *job = json_array_get(jobs, i);
			bool is_500 = json_integer_value(json_object_get(job, "pid")) == 500;

			ck_assert_int_eq(json_is_true(json_object_get(job, "foreign_control")),
					 !is_500);
			ck_assert(json_is_true(json_object_get(job, "lacks_library")));
		}
		ck_assert_uint_eq(json_array_size(jobs), pid - 499);
		json_decref(jobs);
	}
}

static const struct {
	const char *job;
	enum doctor_state state;
	const char *text;	/* part of it; NULL: all is well */
} cases[] = {
	{ "{\"pids\": [11], \"loaded\": true}", DOCTOR_OK, NULL },
	{ "{\"pids\": [4711, 11], \"loaded\": true}", DOCTOR_OK, NULL },	/* in a container */
	{ "{\"pids\": [12], \"loaded\": true}", DOCTOR_FAILED, "knows nothing of it" },
	{ "{\"pids\": [13], \"loaded\": true, \"other_dir\": true}", DOCTOR_FAILED,
	  "a plugin of another version" },
	{ "{\"pids\": [12], \"loaded\": true, \"foreign_shm\": true}", DOCTOR_FAILED,
	  "the daemon does not see" },
	{ "{\"pids\": [12], \"loaded\": true, \"other_dir\": true}", DOCTOR_WARNING,
	  "another directory" },
	{ "{\"pids\": [12], \"loaded\": true, \"other_dir\": true, \"own_mounts\": true}",
	  DOCTOR_WARNING, "a directory of its container" },
	/* seen from inside of a container: other numbers than the daemon's */
	{ "{\"pids\": [7], \"start\": 5000, \"loaded\": true}", DOCTOR_OK, NULL },
	{ "{\"pids\": [8], \"start\": 6000, \"loaded\": true}", DOCTOR_FAILED,
	  "a plugin of another version" },
	/* another container's process is called like this one, or the node's is */
	{ "{\"pids\": [99, 7], \"start\": 5001, \"loaded\": true}", DOCTOR_FAILED,
	  "knows nothing of it" },
	{ "{\"pids\": [99, 16], \"start\": 5001, \"loaded\": true}", DOCTOR_FAILED,
	  "knows nothing of it" },
	{ "{\"pids\": [16, 6], \"start\": 5000, \"loaded\": true}", DOCTOR_OK, NULL },
	{ "{\"pids\": [7], \"start\": 0, \"loaded\": true}", DOCTOR_FAILED,
	  "knows nothing of it" },	/* which of those that have that number is not known */
	{ "{\"pids\": [12], \"loaded\": false, \"plugin\": null}", DOCTOR_WARNING,
	  "without the plugin" },
	{ "{\"pids\": [12], \"loaded\": false, \"plugin\": \"\"}", DOCTOR_WARNING,
	  "without the plugin" },
	{ "{\"pids\": [11], \"loaded\": true, \"foreign_control\": true}", DOCTOR_WARNING,
	  "does not read the daemon's control file" },
	{ "{\"pids\": [14], \"loaded\": true, \"foreign_control\": true}", DOCTOR_WARNING,
	  "its plugin is older than the daemon" },
	{ "{\"pids\": [12], \"loaded\": false, \"plugin\": \"/x/insp.so\", "
	  "\"lacks_library\": true}", DOCTOR_WARNING, "a file that it does not see" },
	{ "{\"pids\": [12], \"loaded\": false, \"plugin\": \"insp\"}", DOCTOR_WARNING,
	  "but has not loaded the plugin" },
	{ "{\"pids\": [12], \"loaded\": false, \"plugin\": \"none\"}", DOCTOR_WARNING,
	  "switched off" },
};

TEST_LOOP(each_process_is_judged_by_itself, 0, FX_COUNT(cases))
{
	json_t *job = json_loads(cases[_i].job, 0, NULL), *jobs, *known, *rows, *row;

	json_object_set_new(job, "pid", json_integer(99));
	json_object_set_new(job, "command", json_string("python"));
	jobs = json_pack("[o]", job);
	known = json_pack("{s:[{s:i}, {s:i, s:b}, {s:i, s:b}, {s:i, s:s}], "
			  "s:[{s:i}, {s:i, s:s}]}", "processes", "pid", 10,
			  "pid", 11, "steerable", 1,
			  "pid", 14, "steerable", 0,
			  "pid", 16, "segment", "ncclinsp.0.7.5000",
			  "foreign", "pid", 13, "pid", 15, "segment", "ncclinsp.0.8.6000");
	rows = doctor_judge(jobs, known);
	ck_assert_uint_eq(json_array_size(rows), cases[_i].text ? 1 : 0);
	row = json_array_get(rows, 0);
	if (row) {
		ck_assert_int_eq(json_integer_value(json_object_get(row, "state")),
				 cases[_i].state);
		ck_assert_ptr_nonnull(strstr(json_string_value(json_object_get(row, "text")),
					     cases[_i].text));
		ck_assert_ptr_nonnull(json_string_value(json_object_get(row, "next")));
	}
	json_decref(jobs);
	json_decref(known);
	json_decref(rows);
}

static void put_sys(const char *name, const char *text)
{
	char command[512];

	snprintf(command, sizeof(command), "mkdir -p $(dirname %s/sys/%s) && echo %s >%s/sys/%s",
		 top, name, text, top, name);
	ck_assert_int_eq(system(command), 0);
}

TEST(process_that_may_not_run_near_its_gpu_is_told)
{
	struct doctor doctor = { .rows = json_array() };
	char sys[80];
	/* Two communicators of 12, which is 7 in its container, as the daemon sees it; 13 died. */
	json_t *ranks = json_pack("[{s:i s:s s:s} {s:i s:s s:s} {s:i s:s s:s} {s:i s:s s:n}]",
				  "pid", 11, "state", "live", "pci_bus_id", "0000:3b:00.0",
				  "pid", 7, "state", "live", "pci_bus_id", "0000:3b:00.0",
				  "pid", 7, "state", "live", "pci_bus_id", "0000:3b:00.0",
				  "pid", 7, "state", "live", "pci_bus_id");
	json_t *processes = json_pack("[{s:i s:s s:s} {s:i s:s s:s} {s:i s:s}]",
				      "pid", 11, "state", "live",
				      "segment", "ncclinsp.0.11.5",
				      "pid", 7, "state", "live",
				      "segment", "ncclinsp.0.7.6",
				      "pid", 13, "state", "died");
	json_t *jobs = json_pack("[{s:i s:[i i] s:i} {s:i s:[i i] s:i} {s:i s:[i] s:i}]",
				 "pid", 99, "pids", 99, 7, "start", 4,	/* of another container */
				 "pid", 12, "pids", 12, 7, "start", 6,
				 "pid", 11, "pids", 11, "start", 5);
	const json_t *row;

	snprintf(sys, sizeof(sys), "%s/sys", top);
	put_sys("devices/system/node/online", "0-1");
	put_sys("devices/system/node/node0/cpulist", "0-3");
	put_sys("devices/system/node/node1/cpulist", "4-7");
	put_sys("bus/pci/devices/0000:3b:00.0/numa_node", "0");
	PUT(11, "status", "Cpus_allowed_list:\t3-4\n");
	PUT(12, "status", "Cpus_allowed_list:\t0\n");
	PUT(7, "status", "Cpus_allowed_list:\t7\n");	/* whose number it is here */
	doctor_judge_places(&doctor, jobs, processes, ranks, proc, sys);
	row = json_array_get(doctor.rows, 0);
	ck_assert_str_eq(json_string_value(json_object_get(row, "state")), "ok");
	ck_assert_str_eq(json_string_value(json_object_get(row, "text")),
			 "all 2 processes may run on CPUs near their GPUs");
	PUT(12, "status", "Cpus_allowed_list:\t5\n");
	doctor_judge_places(&doctor, jobs, processes, ranks, proc, sys);
	row = json_array_get(doctor.rows, 1);
	ck_assert_str_eq(json_string_value(json_object_get(row, "state")), "warning");
	ck_assert_str_eq(json_string_value(json_object_get(row, "text")),
			 "process 12 may run only on CPUs 5, which are at NUMA node 1, but its GPU "
			 "is at node 0");
	PUT(11, "status", "Cpus_allowed_list:\t4\n");
	doctor_judge_places(&doctor, jobs, processes, ranks, proc, sys);
	row = json_array_get(doctor.rows, 2);
	ck_assert_str_eq(json_string_value(json_object_get(row, "text")),
			 "process 11 may run only on CPUs 4, which are at NUMA node 1, but its GPU "
			 "is at node 0; so it is for 2 of 2 processes");
	PUT(12, "status", "Name:\tx\n");
	PUT(11, "status", "Cpus_allowed_list:\tx\n");
	doctor_judge_places(&doctor, jobs, processes, ranks, proc, sys);
	ck_assert_uint_eq(json_array_size(doctor.rows), 3);	/* nothing is known */
	json_decref(jobs);
	json_decref(processes);
	json_decref(ranks);
	json_decref(doctor.rows);
}

int main(void)
{
	return fx_run(setup, teardown);
}
