/* SPDX-License-Identifier: Apache-2.0 */
/* mkdir -p, for the socket, the control file and what is kept; the entries of a directory. */
#include "ncclinspd/base/dirs.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

int dirs_make(const char *path, unsigned mode)
{
	char part[PATH_MAX];
	size_t n = strlen(path);

	if (n >= sizeof(part))
		return -ENAMETOOLONG;
	memcpy(part, path, n + 1);
	for (size_t i = 1; i <= n; i++) {
		if (part[i] != '/' && part[i] != '\0')
			continue;
		part[i] = '\0';
		if (mkdir(part, path[i] ? 0755 : mode) < 0 && errno != EEXIST)
			return -errno;
		part[i] = path[i];
	}
	return 0;
}

int dirs_make_parent(const char *path)
{
	char dir[PATH_MAX];
	char *slash;

	snprintf(dir, sizeof(dir), "%s", path);
	slash = strrchr(dir, '/');
	if (!slash || slash == dir)
		return 0;
	*slash = '\0';
	return dirs_make(dir, 0755);
}

DIR *dirs_list(int fd)
{
	int own = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = own < 0 ? NULL : fdopendir(own);

	if (!dir && own >= 0)
		close(own);
	return dir;
}
