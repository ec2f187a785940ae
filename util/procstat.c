/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A short file is read whole, with one read, into the caller's buffer.  A pid is used again: it
 * names one process only together with the start time, which lies behind a command that may hold
 * anything.
 */
#include "util/procstat.h"

#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "util/cleanup.h"
#include "util/unknown.h"

bool procstat_read(int dirfd, char *text, size_t size, const char *format, ...)
{
	CLEANUP(cleanup_closep) int fd = -1;
	char path[PATH_MAX];
	va_list args;
	ssize_t n;

	va_start(args, format);
	vsnprintf(path, sizeof(path), format, args);
	va_end(args);
	fd = openat(dirfd, path, O_RDONLY | O_CLOEXEC);
	n = fd < 0 ? -1 : read(fd, text, size - 1);
	if (n <= 0)
		return false;
	text[n] = '\0';
	return true;
}

uint64_t procstat_start_time(const char *text, char *state)
{
	const char *at = strrchr(text, ')');	/* the command may hold anything */
	unsigned long long start;

	if (!at || sscanf(at + 1, " %c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u"
			  " %*d %*d %*d %*d %*d %*d %llu", state, &start) != 2)
		return 0;
	return start;
}

uint64_t procstat_major_faults(const char *text)
{
	const char *at = strrchr(text, ')');
	uint64_t faults;

	if (!at || sscanf(at + 1, " %*c %*d %*d %*d %*d %*d %*u %*u %*u %" SCNu64, &faults) != 1)
		return UNKNOWN_U64;
	return faults;
}

const char *procstat_find(const char *text, const char *name)
{
	size_t n = strlen(name);

	while (text && strncmp(text, name, n)) {
		text = strchr(text, '\n');
		text = text ? text + 1 : NULL;
	}
	return text ? text + n + strspn(text + n, " \t") : NULL;
}

uint64_t procstat_number(const char *text, const char *name)
{
	const char *at = procstat_find(text, name);
	uint64_t number;

	return at && *at >= '0' && *at <= '9' && sscanf(at, "%" SCNu64, &number) == 1 ?
	       number : UNKNOWN_U64;
}
