/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Asked of the kernel: the process's lock on its file, and /proc where we know
 * under which number the process runs here.
 *
 * What a segment says of itself anybody can write.  The kernel's words are the lock, whose
 * holder it names; the owner of the file; and of the process with that number its start, its
 * number in its own pid namespace and its user ids.
 *
 *     lock    process and owner       the segment
 *     held    agree                   is that process's: proven
 *     held    do not, or not known    is shown, and nothing is asked of /proc
 *     none    agree                   may be read on while that process runs
 *     none    are two users'          is refused: one user speaks of another's process
 *     none    no such process         is what a dead process left
 */
#include "reader/read/life.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "util/cleanup.h"
#include "util/procstat.h"

uint64_t life_start_time(const char *proc, pid_t pid)
{
	char text[1024], state;
	uint64_t start;

	if (!procstat_read(AT_FDCWD, text, sizeof(text), "%s/%d/stat", proc, (int)pid))
		return 0;
	start = procstat_start_time(text, &state);
	return start && strchr("ZXx", state) ? 0 : start;
}

/*
 * 1: locked, and *pid is the owner in our pid namespace or 0; 0: not locked, as a plugin
 * does it.  A lock for reading may be anybody's, and one of an open file (l_pid -1) nobody's.
 */
static int lock_owner(const struct segment *seg, pid_t *pid)
{
	struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET };

	if (fcntl(seg->fd, F_GETLK, &lock) < 0)
		return -errno;
	*pid = lock.l_pid;
	return lock.l_type == F_WRLCK && lock.l_pid >= 0;
}

bool life_is_held(const struct segment *seg)
{
	pid_t pid;

	return lock_owner(seg, &pid) > 0;
}

/* The rest of <proc>/<pid>/status behind "\nKey:"; NULL: not known. */
static char *status_of(int dirfd, const char *proc, pid_t pid, const char *key, char text[4096])
{
	bool read = procstat_read(dirfd, text, 4096, "%s/%d/status", proc, (int)pid);
	char *at = read ? strstr(text, key) : NULL;

	return at ? at + strlen(key) : NULL;
}

/* One more of a line's numbers, each behind a tab; the text may be cut anywhere. */
static bool number_follows(const char *at)
{
	return at && *at == '\t' && at[1] >= '0' && at[1] <= '9';
}

pid_t life_ns_pid(int dirfd, pid_t tid, uint32_t *depth)
{
	char text[4096], *at = status_of(dirfd, ".", tid, "\nNSpid:", text), *end;
	long number = 0;

	*depth = 0;
	while (number_follows(at)) {
		number = strtol(at, &end, 10);
		at = end;
		++*depth;
	}
	return number > 0 && number <= INT_MAX ? (pid_t)number : 0;
}

bool life_has_uid(const char *proc, pid_t pid, uid_t uid)
{
	char text[4096], *at = status_of(AT_FDCWD, proc, pid, "\nUid:", text), *end;

	while (number_follows(at)) {
		if (strtoul(at, &end, 10) == uid)
			return true;
		at = end;
	}
	return false;
}

bool life_is_stopped(const char *proc, pid_t pid, pid_t *tracer, char name[16])
{
	char text[4096], state = '\0', *at;

	*tracer = 0;
	*name = '\0';
	if (!procstat_read(AT_FDCWD, text, sizeof(text), "%s/%d/task/%d/stat", proc, (int)pid,
			   (int)pid) ||
	    !procstat_start_time(text, &state) || !strchr("Tt", state))
		return false;
	at = status_of(AT_FDCWD, proc, pid, "\nTracerPid:\t", text);
	if (at)
		*tracer = (pid_t)strtol(at, NULL, 10);
	if (*tracer <= 0)
		return true;
	if (procstat_read(AT_FDCWD, text, sizeof(text), "%s/%d/comm", proc, (int)*tracer))
		snprintf(name, 16, "%.*s", (int)strcspn(text, "\n"), text);
	return true;
}

/*
 * The lock tells the number that its owner has here; 0: it is in a pid namespace that is not
 * below ours, where any number means somebody else.  Without a lock the name's may be right.
 * That it is the one which made the file says when it began, and how it calls itself.
 */
int life_find_owner(struct segment *seg)
{
	struct process *p = &seg->process;
	bool same, owned;
	uint32_t depth;
	pid_t pid = 0;

	seg->locked = lock_owner(seg, &pid) > 0;
	if (seg->locked && pid == 0)
		return 0;
	seg->host_pid = p->pid = seg->locked ? pid : p->ns_pid;
	CLEANUP(cleanup_closep) int proc = open(LIFE_PROC, O_PATH | O_DIRECTORY | O_CLOEXEC);
	same = life_start_time(LIFE_PROC, p->pid) == seg->start_time &&
	       life_ns_pid(proc, p->pid, &depth) == p->ns_pid;
	owned = same && life_has_uid(LIFE_PROC, p->pid, p->uid);
	if (!seg->locked && same && !owned && !seg->chosen)
		return SEGMENT_STRANGER;
	p->proven = seg->locked && owned;
	p->contained = p->proven && depth > 1;
	return 0;
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
 * drop it too: where /proc shows the process of its owner running, it is believed.
 */
enum life life_of(struct segment *seg)
{
	pid_t pid;
	int locked = lock_owner(seg, &pid);

	seg->locked = locked > 0;
	if (locked)
		return LIFE_ALIVE;
	if (said_goodbye(seg))
		return LIFE_EXITED;
	if (seg->host_pid && life_start_time(LIFE_PROC, seg->host_pid) == seg->start_time &&
	    (seg->chosen || life_has_uid(LIFE_PROC, seg->host_pid, seg->process.uid)))
		return LIFE_ALIVE;
	return LIFE_DIED;
}
