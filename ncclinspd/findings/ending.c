/* SPDX-License-Identifier: Apache-2.0 */
/* Asks the kernel how a process ended, by its pidfd, and what it killed for memory meanwhile. */
#include "ncclinspd/findings/ending.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "reader/read/life.h"
#include "util/unknown.h"

/* The first version of the kernel's struct pidfd_info, which headers of this age do not have. */
struct ending_info {
	uint64_t mask;
	uint64_t cgroup_id;
	uint32_t ids[11];
	int32_t exit_code;
};

#define INFO_EXIT	(UINT64_C(1) << 3)
#define GET_INFO	_IOWR(0xff, 11, struct ending_info)

_Static_assert(sizeof(struct ending_info) == 64, "the size of its first version");

int ending_open(const char *proc, pid_t pid, uint64_t start_time)
{
	int fd = pid > 0 ? (int)syscall(SYS_pidfd_open, pid, 0) : -1;

	/* The order matters: had the number gone to another process before, that is seen here. */
	if (fd >= 0 && start_time && life_start_time(proc, pid) == start_time)
		return fd;
	if (fd >= 0)
		close(fd);
	return -1;
}

bool ending_read(int pidfd, int32_t *status)
{
	struct ending_info info = { .mask = INFO_EXIT };

	if (pidfd < 0 || ioctl(pidfd, GET_INFO, &info) < 0 || !(info.mask & INFO_EXIT))
		return false;
	*status = info.exit_code;
	return true;
}

uint64_t ending_oom_kills(const char *proc)
{
	char path[PATH_MAX], line[128];
	uint64_t kills = UNKNOWN_U64;
	FILE *in;

	snprintf(path, sizeof(path), "%s/vmstat", proc);
	in = fopen(path, "re");
	while (in && fgets(line, sizeof(line), in))
		if (sscanf(line, "oom_kill %" SCNu64, &kills) == 1)
			break;
	if (in)
		fclose(in);
	return kills;
}
