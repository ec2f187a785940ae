/* SPDX-License-Identifier: Apache-2.0 */
#include "ncclinspd/beneath.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

#define NO_LINKS (RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS)

static int open_in(int dirfd, const char *path, int flags, uint64_t resolve)
{
	struct open_how how = { .flags = (uint64_t)flags, .resolve = resolve };
	long fd = syscall(SYS_openat2, dirfd, path, &how, sizeof(how));

	return fd < 0 ? -errno : (int)fd;
}

/* A kernel or a filter that does not know the call: the directory is the node's own then. */
static int open_file(int dirfd, const char *name, int flags)
{
	int fd = open_in(dirfd, name, flags | O_NOFOLLOW,
			 RESOLVE_BENEATH | RESOLVE_NO_XDEV | NO_LINKS);

	if (fd != -ENOSYS)
		return fd;
	fd = openat(dirfd, name, flags | O_NOFOLLOW);
	return fd < 0 ? -errno : fd;
}

int beneath_open(int dirfd, const char *name)
{
	return open_file(dirfd, name, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
}

int beneath_stat(int dirfd, const char *name, struct stat *st)
{
	int fd = open_file(dirfd, name, O_PATH | O_CLOEXEC), r;

	if (fd < 0)
		return fd;
	r = fstat(fd, st) < 0 ? -errno : 0;
	close(fd);
	return r;
}

int beneath_open_dir(int rootfd, const char *path)
{
	return open_in(rootfd, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC,
		       RESOLVE_IN_ROOT | NO_LINKS);
}
