/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What /proc could say of a process: each file of a directory that stands for it has the
 * input as its text, and everything is asked that the daemon asks there.  A process chooses
 * its command, its control group's path and its mounts.
 *
 * Input: a text, and behind a zero byte what it is a moment later.
 */
#include "tests/fuzz/fuzz.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ncclinspd/find/cgroup.h"
#include "ncclinspd/find/mounts.h"
#include "ncclinspd/findings/cpuwait.h"
#include "ncclinspd/findings/resources.h"
#include "reader/read/life.h"
#include "util/procstat.h"
#include "util/utf8.h"

#define SECOND	UINT64_C(1000000000)

static const char *const files[] = {
	"7/stat", "7/status", "7/cgroup", "7/mountinfo", "7/task/8/status", "7/task/8/schedstat",
	"7/task/8/stat", "7/cpu.max", "7/cpu.stat", "7/memory.max", "7/memory.current",
	"7/memory.events", "7/memory.pressure", "7/cgroup.events", "cgroup.controllers",
};
#define FILES	(sizeof(files) / sizeof(files[0]))

static char dir[] = "/dev/shm/ncclinsp-fuzz.XXXXXX";
static int fd = -1, dirfd = -1;	/* all of these files are one */

static void remove_dir(void)
{
	static const char *const dirs[] = { "7/task/8", "7/task", "7", "." };

	for (size_t i = 0; i < FILES; i++)
		unlinkat(dirfd, files[i], 0);
	for (size_t i = 0; i < 3; i++)
		unlinkat(dirfd, dirs[i], AT_REMOVEDIR);
	rmdir(dir);
}

static void make_dir(void)
{
	demand(mkdtemp(dir));
	dirfd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	demand(dirfd >= 0 && mkdirat(dirfd, "7", 0700) == 0 &&
	       mkdirat(dirfd, "7/task", 0700) == 0 && mkdirat(dirfd, "7/task/8", 0700) == 0);
	atexit(remove_dir);
	fd = openat(dirfd, files[0], O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	demand(fd >= 0);
	for (size_t i = 1; i < FILES; i++)
		demand(linkat(dirfd, files[0], dirfd, files[i], 0) == 0);
}

/* A name that is shown, and is what it was if it is made safe again. */
static void is_safe(const char *name, size_t room)
{
	char copy[128];
	size_t n = strnlen(name, room);

	demand(n < room);
	memcpy(copy, name, n);
	utf8_clean(copy, n);
	demand(!memcmp(copy, name, n));
}

static void look_at_process(void)
{
	static struct process p;
	uint32_t depth;

	cgroup_identify(&p, dir, 7);
	is_safe(p.container, sizeof(p.container));
	is_safe(p.pod_uid, sizeof(p.pod_uid));
	life_start_time(dir, 7);
	demand(life_ns_pid(dirfd, 7, &depth) >= 0);
}

static void say(const uint8_t *data, size_t size)
{
	demand(ftruncate(fd, 0) == 0 && pwrite(fd, data, size, 0) == (ssize_t)size);
}

static void look_at_threads(const uint8_t *later, size_t size)
{
	struct cpuwait *waits = NULL;
	const pid_t tids[] = { 7, 8 };
	struct cpuwait_sums sums;
	uint32_t left = 64;

	if (cpuwait_new(&waits, dir, 7, life_start_time(dir, 7)) == 0) {
		cpuwait_look(waits, tids, 2, SECOND, &left);
		cpuwait_look(waits, tids, 2, 2 * SECOND, &left);
		say(later, size);
		cpuwait_look(waits, tids, 2, 3 * SECOND, &left);
		if (cpuwait_tell(waits, 3 * SECOND, &sums))
			demand(sums.wait_ns <= sums.watched_ns && sums.watched_ns <= 2 * SECOND);
	}
	cpuwait_free(waits);
}

/* Its own path in /proc/7/cgroup may lead to the files of 7/. */
static void look_at_resources(const uint8_t *later, size_t size)
{
	const struct resources_roots roots = { dir, dir, dir };
	struct resources_watch *w = resources_new(&roots, 7, life_start_time(dir, 7));
	struct resources told;
	uint32_t looks = 2;

	demand(w);
	resources_look(w, 8, SECOND, &looks);
	say(later, size);
	resources_look(w, 8, 9 * SECOND, &looks);
	if (resources_tell(w, 8, "0000:3b:00.0", 9 * SECOND, &told))
		demand(told.throttled <= 1 && told.memory_stalled <= 1 && told.node_io_stalled < 0);
	resources_count_kills(w, true);
	resources_kills(w);
	resources_free(w);
}

static void look_at_mounts(const uint8_t *data, size_t size)
{
	FILE *file = fmemopen((void *)(uintptr_t)data, size, "r");
	dev_t dev;

	demand(file);
	mounts_find_shm(file, &dev);
	fclose(file);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const uint8_t *end = memchr(data, 0, size);
	size_t now = end ? (size_t)(end - data) : size;

	if (!now)
		return 0;
	if (fd < 0)
		make_dir();
	say(data, now);
	look_at_process();
	look_at_mounts(data, now);
	look_at_resources(data + now + !!end, size - now - !!end);
	say(data, now);
	look_at_threads(data + now + !!end, size - now - !!end);
	return 0;
}
