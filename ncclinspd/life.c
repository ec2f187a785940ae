/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Asked of the kernel: the process's lock on its file, and /proc where we know
 * under which number the process runs here.
 */
#include "ncclinspd/life.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "util/cleanup.h"

uint64_t life_start_time(const char *proc, pid_t pid)
{
	char path[PATH_MAX], text[1024], state;
	unsigned long long start;
	const char *at;
	ssize_t n;

	snprintf(path, sizeof(path), "%s/%d/stat", proc, (int)pid);
	CLEANUP(cleanup_closep) int fd = open(path, O_RDONLY | O_CLOEXEC);
	n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
	if (n <= 0)
		return 0;
	text[n] = '\0';
	at = strrchr(text, ')');	/* the command may hold anything */
	if (!at || sscanf(at + 1, " %c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u"
			  " %*d %*d %*d %*d %*d %*d %llu", &state, &start) != 2)
		return 0;
	return strchr("ZXx", state) ? 0 : start;
}

/* 1: locked, and *pid is the owner in our pid namespace or 0; 0: not locked. */
static int lock_owner(const struct segment *seg, pid_t *pid)
{
	struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET };

	if (fcntl(seg->fd, F_GETLK, &lock) < 0)
		return -errno;
	*pid = lock.l_pid > 0 ? lock.l_pid : 0;
	return lock.l_type != F_UNLCK;
}

bool life_is_held(const struct segment *seg)
{
	pid_t pid;

	return lock_owner(seg, &pid) > 0;
}

/* The lock's owner has the number that it has here; without it, the name's may be right. */
void life_find_owner(struct segment *seg)
{
	pid_t pid = 0;

	if (lock_owner(seg, &pid) <= 0 || pid == 0)
		pid = seg->process.pid;
	seg->host_pid = pid;
	seg->host_pid_proven = life_start_time(LIFE_PROC, pid) == seg->start_time;
}

static bool said_goodbye(const struct segment *seg)
{
	struct nci_live live;
	struct stat st;

	if (fstat(seg->fd, &st) == 0 && st.st_nlink == 0)
		return true;
	return segment_read(seg, &live, sizeof(live), seg->live_offset) == 0 &&
	       atomic_load_explicit(&live.flags, memory_order_relaxed) & NCI_LIVE_EXITED;
}

/*
 * The lock alone would do, if closing any other descriptor of the file did not
 * drop it too: where /proc shows the process running, it is believed.
 */
enum life life_of(const struct segment *seg)
{
	pid_t pid;

	if (lock_owner(seg, &pid) != 0)
		return LIFE_ALIVE;
	if (said_goodbye(seg))
		return LIFE_EXITED;
	if (seg->host_pid_proven && life_start_time(LIFE_PROC, seg->host_pid) == seg->start_time)
		return LIFE_ALIVE;
	return LIFE_DIED;
}
