/* SPDX-License-Identifier: Apache-2.0 */
/*
 * openat2() could do this in one call, but units with RestrictSUIDSGID= and old kernels do
 * not have it.
 */
#include "reader/base/beneath.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "util/cleanup.h"

/* O_PATH: the file system is not asked for anything. */
#define HOLD (O_PATH | O_NOFOLLOW | O_CLOEXEC)

/*
 * The attributes of that file, as far as they are at hand.  0, -EXDEV if it is of another
 * file system than `dirfd`, which is not waited for, or another negative errno.
 */
static int beneath_look(int dirfd, int fd, struct statx *stx)
{
	struct stat dir;

	if (fstat(dirfd, &dir) < 0 ||
	    statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_BASIC_STATS, stx) < 0)
		return -errno;
	return makedev(stx->stx_dev_major, stx->stx_dev_minor) == dir.st_dev ? 0 : -EXDEV;
}

int beneath_open(int dirfd, const char *name)
{
	CLEANUP(cleanup_closep) int held = openat(dirfd, name, HOLD);
	struct statx stx;
	char path[32];
	int r = held < 0 ? -errno : beneath_look(dirfd, held, &stx);

	if (r < 0)
		return r;
	if (!S_ISREG(stx.stx_mode))
		return S_ISLNK(stx.stx_mode) ? -ELOOP : -EPERM;
	/* Opens the file that was looked at, whatever lies there by now. */
	snprintf(path, sizeof(path), "/proc/self/fd/%d", held);
	r = open(path, O_RDONLY | O_CLOEXEC);
	return r < 0 ? -errno : r;
}

int beneath_stat(int dirfd, const char *name, struct stat *st)
{
	CLEANUP(cleanup_closep) int held = openat(dirfd, name, HOLD);
	struct statx stx;
	int r = held < 0 ? -errno : beneath_look(dirfd, held, &stx);

	if (r < 0)
		return r;
	return fstat(held, st) < 0 ? -errno : 0;
}

int beneath_open_dir(int rootfd, const char *path)
{
	int fd = openat(rootfd, ".", HOLD | O_DIRECTORY);
	char part[64];
	size_t n;

	for (path += strspn(path, "/"); fd >= 0 && *path; path += n + strspn(path + n, "/")) {
		CLEANUP(cleanup_closep) int above = fd;
		bool last;

		n = strcspn(path, "/");
		last = !path[n + strspn(path + n, "/")];
		if (n >= sizeof(part))
			return -ENAMETOOLONG;
		memcpy(part, path, n);
		part[n] = '\0';
		fd = openat(above, part, (last ? O_RDONLY | O_NOFOLLOW | O_CLOEXEC : HOLD) |
			    O_DIRECTORY);
	}
	return fd < 0 ? -errno : fd;
}
