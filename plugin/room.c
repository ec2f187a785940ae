/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shared memory is charged to the memory cgroup like all else, so that a file system with
 * room does not mean that there is some: the kernel would kill the job for our lanes.
 */
#include "plugin/room.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <unistd.h>

#define TMPFS	0x01021994u
#define RAMFS	0x858458f6u

bool room_is_memory(const char *dir)
{
	struct statfs fs;

	return statfs(dir, &fs) == 0 &&
	       ((uint32_t)fs.f_type == TMPFS || (uint32_t)fs.f_type == RAMFS);
}

/* The file's beginning as text.  False: it cannot be read. */
static bool room_read(const char *dir, const char *name, char *text, size_t size)
{
	char path[4096 + 64];
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	n = read(fd, text, size - 1);
	close(fd);
	text[n > 0 ? n : 0] = '\0';
	return n > 0;
}

/* The number behind a word at the beginning of a line; 0: there is none. */
static uint64_t room_value(const char *text, const char *word)
{
	size_t bytes = strlen(word);

	for (; text; text = strchr(text, '\n'), text += !!text)
		if (!strncmp(text, word, bytes))
			return strtoull(text + bytes, NULL, 10);
	return 0;
}

static const struct room_cgroup {
	const char *line;	/* text before the path in /proc/self/cgroup */
	const char *root, *limit, *used, *cache, *shared;
} cgroups[] = {
	{ "0::", "/sys/fs/cgroup", "memory.max", "memory.current", "file ", "shmem " },
	{ ":memory:", "/sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.usage_in_bytes",
	  "total_cache ", "total_shmem " },
};

/* Room in one cgroup, whose limit may be "max". */
static uint64_t room_of_cgroup(const struct room_cgroup *c, const char *dir)
{
	char max[64], current[64], stat[4096];
	uint64_t cache, used, limit;

	if (!room_read(dir, c->limit, max, sizeof(max)) || *max < '0' || *max > '9' ||
	    !room_read(dir, c->used, current, sizeof(current)) ||
	    !room_read(dir, "memory.stat", stat, sizeof(stat)))
		return UINT64_MAX;
	limit = strtoull(max, NULL, 10);
	used = strtoull(current, NULL, 10);
	cache = room_value(stat, c->cache) - room_value(stat, c->shared);
	used -= cache < used ? cache : used;
	return used < limit ? limit - used : 0;
}

/* Least room of the cgroup whose path follows c->line in `text`, and of all above it. */
static uint64_t room_of_path(const struct room_cgroup *c, const char *text)
{
	const char *path = strstr(text, c->line);
	uint64_t least = UINT64_MAX, room;
	char dir[4096 + 32];

	if (!path)
		return UINT64_MAX;
	path += strlen(c->line);
	snprintf(dir, sizeof(dir), "%s%.*s", c->root, (int)strcspn(path, "\n"), path);
	while (strlen(dir) >= strlen(c->root)) {
		room = room_of_cgroup(c, dir);
		least = room < least ? room : least;
		*strrchr(dir, '/') = '\0';
	}
	return least;
}

uint64_t room_in_cgroups(void)
{
	uint64_t least = UINT64_MAX, room;
	char text[4096];

	if (!room_read("/proc/self", "cgroup", text, sizeof(text)))
		return UINT64_MAX;
	for (size_t i = 0; i < sizeof(cgroups) / sizeof(cgroups[0]); i++) {
		room = room_of_path(&cgroups[i], text);
		least = room < least ? room : least;
	}
	return least;
}

uint64_t room_in(const char *dir, uint64_t most)
{
	struct statvfs fs;
	uint64_t bytes;

	if (statvfs(dir, &fs) < 0)
		return 0;
	if (!fs.f_blocks)
		return most;	/* mounted without a limit */
	bytes = (uint64_t)fs.f_bavail * fs.f_frsize;
	return bytes < most ? bytes : most;
}
