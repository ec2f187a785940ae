/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A process that was killed cannot remove its segment, and there may be no daemon to do it:
 * the next process of the same user does, so that shared memory does not fill up.
 */
#include "plugin/sweep.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "plugin/identity.h"
#include "shmring/producer.h"

/* "<decimal>" and the character after it; false: no digits there. */
static bool sweep_take_number(const char **p, uint64_t *value)
{
	const char *from = *p;

	*value = 0;
	for (; **p >= '0' && **p <= '9'; (*p)++)
		*value = *value * 10 + (uint64_t)(**p - '0');
	return *p != from;
}

static bool sweep_parse_name(const char *name, uint64_t *uid, uint64_t *pid, uint64_t *start)
{
	const char *p = name + sizeof(NCI_FILE_PREFIX) - 1;
	uint64_t random;

	if (strncmp(name, NCI_FILE_PREFIX, sizeof(NCI_FILE_PREFIX) - 1) != 0)
		return false;
	return sweep_take_number(&p, uid) && *p++ == '.' && sweep_take_number(&p, pid) &&
		*p++ == '.' &&
	       sweep_take_number(&p, start) &&
	       (!*p || (*p++ == '.' && sweep_take_number(&p, &random) && !*p));
}

static bool sweep_is_old_file(int fd, uid_t uid, int64_t now_s)
{
	struct stat st;

	return shmring_stat(fd, &st) && S_ISREG(st.st_mode) && st.st_uid == uid &&
	       now_s - (int64_t)st.st_mtime > SWEEP_AGE_S;
}

static bool sweep_is_dead(int dirfd, const char *name, int64_t now_s)
{
	uint64_t uid, pid, start;
	bool dead;
	int fd;

	if (!sweep_parse_name(name, &uid, &pid, &start) || uid != getuid())
		return false;
	if (identity_start_time((pid_t)pid) == start)
		return false;
	fd = openat(dirfd, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	if (fd < 0)
		return false;
	dead = sweep_is_old_file(fd, (uid_t)uid, now_s) && !shmring_is_held(fd);
	close(fd);
	return dead;
}

void sweep_dead(const char *dir, const char *own, int64_t now_s)
{
	struct dirent *entry;
	DIR *d = opendir(dir);

	if (!d)
		return;
	while ((entry = readdir(d)))
		if (strcmp(entry->d_name, own) != 0 &&
		    sweep_is_dead(dirfd(d), entry->d_name, now_s))
			unlinkat(dirfd(d), entry->d_name, 0);
	closedir(d);
}
