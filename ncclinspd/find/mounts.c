/* SPDX-License-Identifier: Apache-2.0 */
/* A look at /dev/shm itself may hang, so the kernel's list of mounts is read instead. */
#include "ncclinspd/find/mounts.h"

#include <string.h>
#include <sys/sysmacros.h>

#define LINES	10000	/* lines of one process: no node has more */

/* The places on the way to /dev/shm.  A later mount lies over an earlier one. */
enum place { ROOT, DEV, SHM, PLACES };

struct mount {
	dev_t dev;
	char type[32];		/* "": nothing is mounted there */
};

/* Only this machine has to answer for file systems of these types. */
static bool type_is_local(const char *type)
{
	static const char *const types[] = {
		"tmpfs", "ramfs", "devtmpfs", "rootfs", "overlay", "aufs", "ext2", "ext3", "ext4",
		"xfs", "btrfs", "zfs", "f2fs", "bcachefs", "squashfs", "erofs",
	};

	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
		if (!strcmp(types[i], type))
			return true;
	return false;
}

static void mounts_take_line(const char *line, struct mount at[PLACES])
{
	static const char *const paths[PLACES] = { "/", "/dev", "/dev/shm" };
	const char *type = strstr(line, " - ");
	unsigned int major, minor;
	struct mount m;
	char path[16];

	if (!type || sscanf(line, "%*d %*d %u:%u %*s %15s", &major, &minor, path) != 3 ||
	    sscanf(type, " - %31s", m.type) != 1)
		return;
	m.dev = makedev(major, minor);
	for (int i = 0; i < PLACES; i++)
		if (!strcmp(paths[i], path))
			at[i] = m;
}

bool mounts_find_shm(FILE *mountinfo, dev_t *dev)
{
	struct mount at[PLACES] = { 0 };
	char line[8192];
	bool whole = true;
	int shm;

	for (int n = 0; n < LINES && fgets(line, sizeof(line), mountinfo); n++) {
		if (whole)
			mounts_take_line(line, at);
		whole = strchr(line, '\n');	/* the rest of a long one is none */
	}
	shm = *at[SHM].type ? SHM : DEV;
	if (!type_is_local(at[ROOT].type) || (*at[DEV].type && !type_is_local(at[DEV].type)))
		return false;
	*dev = at[shm].dev;
	return !strcmp(at[shm].type, "tmpfs");
}
