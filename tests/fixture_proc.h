/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_FIXTURE_PROC_H
#define TESTS_FIXTURE_PROC_H

/* A procfs made by hand, as far as the daemon reads it. */

#include <stdarg.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/fixture.h"

#define FX_PROC_START	4711

static inline const char *fx_proc(void)
{
	static char root[256];

	snprintf(root, sizeof(root), "%s/proc", fx_tmpdir());
	mkdir(root, 0755);
	return root;
}

__attribute__((format(printf, 2, 3)))
static inline void fx_proc_file(const char *path, const char *format, ...)
{
	char name[512];
	va_list args;
	FILE *file;

	snprintf(name, sizeof(name), "%s/%s", fx_proc(), path);
	file = fopen(name, "w");
	ck_assert_ptr_nonnull(file);
	va_start(args, format);
	vfprintf(file, format, args);
	va_end(args);
	fclose(file);
}

static inline void fx_proc_dir(const char *format, int pid, int tid)
{
	char name[512], path[256];

	snprintf(path, sizeof(path), format, pid, tid);
	snprintf(name, sizeof(name), "%s/%s", fx_proc(), path);
	mkdir(name, 0755);
}

/* Thread `tid` of `pid`, in a container's pid namespace as `there`; 0: it is in ours. */
static inline void fx_proc_thread(int pid, int tid, int there)
{
	char path[128];

	fx_proc_dir("%d", pid, 0);
	fx_proc_dir("%d/task", pid, 0);
	fx_proc_dir("%d/task/%d", pid, tid);
	snprintf(path, sizeof(path), "%d/stat", pid);
	fx_proc_file(path, "%d (a) b)) S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 %d 20\n", pid,
		     FX_PROC_START);
	snprintf(path, sizeof(path), "%d/task/%d/status", pid, tid);
	if (there)
		fx_proc_file(path, "Name:\tpython\nNSpid:\t%d\t%d\nVmPeak:\t1 kB\n", tid, there);
	else
		fx_proc_file(path, "Name:\tpython\nNSpid:\t%d\nVmPeak:\t1 kB\n", tid);
}

/* How long it ran and waited for a CPU so far, and how often it ran. */
static inline void fx_proc_schedstat(int pid, int tid, uint64_t ran_ns, uint64_t wait_ns,
				     uint64_t times)
{
	char path[128];

	snprintf(path, sizeof(path), "%d/task/%d/schedstat", pid, tid);
	fx_proc_file(path, "%llu %llu %llu\n", (unsigned long long)ran_ns,
		     (unsigned long long)wait_ns, (unsigned long long)times);
}

#endif
