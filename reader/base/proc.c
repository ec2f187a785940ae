/* SPDX-License-Identifier: Apache-2.0 */
/* A short file of procfs is read whole, with one read, into the caller's buffer. */
#include "reader/base/proc.h"

#include <fcntl.h>
#include <unistd.h>

#include "util/cleanup.h"

bool proc_read(int dirfd, const char *path, char *text, size_t size)
{
	CLEANUP(cleanup_closep) int fd = openat(dirfd, path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, text, size - 1);

	if (n <= 0)
		return false;
	text[n] = '\0';
	return true;
}
