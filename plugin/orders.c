/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A control file can make every job of the node slower, so not everybody's is trusted: it
 * must belong to root, to the user of the process or to the owner of its directory, and
 * nobody else may write it.  A descriptor is kept; a file that was removed is looked for
 * again.
 */
#include "plugin/orders.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "shmring/producer.h"

/*
 * A server that does not answer, or a program that serves a file system and hangs, must not
 * hold a callback.  What these types have in common is that nobody has to answer.
 */
static bool orders_is_local(const struct statfs *fs)
{
	static const uint32_t local[] = {
		0x01021994, 0x858458f6,		/* tmpfs, ramfs */
		0xef53, 0x58465342, 0x9123683e,	/* ext2 to ext4, xfs, btrfs */
		0x794c7630,			/* overlayfs, of these in containers */
		0x2fc12fc1, 0xf2f52010,		/* zfs, f2fs */
	};

	for (size_t i = 0; i < sizeof(local) / sizeof(local[0]); i++)
		if ((uint32_t)fs->f_type == local[i])
			return true;
	return false;
}

static bool orders_trusts(const struct stat *file, int dirfd)
{
	struct stat dir;

	return shmring_stat(dirfd, &dir) && S_ISREG(file->st_mode) &&
	       !(file->st_mode & (S_IWGRP | S_IWOTH)) &&
	       (file->st_uid == 0 || file->st_uid == geteuid() || file->st_uid == dir.st_uid);
}

static void orders_open_in(struct orders *c, int dirfd, const char *name)
{
	struct statfs fs;
	struct stat st;
	int fd;

	/* A FIFO must not keep us waiting. */
	fd = openat(dirfd, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	if (fd >= 0)
		fd = shmring_move_up(fd);
	if (fd < 0)
		return;
	if (!shmring_stat(fd, &st) || !orders_trusts(&st, dirfd) || fstatfs(fd, &fs) < 0 ||
	    !orders_is_local(&fs)) {
		close(fd);
		return;
	}
	c->fd = fd;
	c->dev = st.st_dev;
	c->ino = st.st_ino;
}

static void orders_open(struct orders *c)
{
	const char *slash = strrchr(c->path, '/');
	char dir[sizeof(c->path)] = "/";
	struct statfs fs;
	int dirfd;

	c->fd = -1;
	if (!slash)
		return;
	if (slash != c->path) {
		memcpy(dir, c->path, (size_t)(slash - c->path));
		dir[slash - c->path] = '\0';
	}
	if (statfs(dir, &fs) < 0)
		return;
	if (!orders_is_local(&fs)) {
		c->path[0] = '\0';	/* not asked again: even this may take long there */
		return;
	}
	dirfd = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (dirfd < 0)
		return;
	orders_open_in(c, dirfd, slash + 1);
	close(dirfd);
}

void orders_init(struct orders *c, const char *path, const uint8_t *boot_id,
		 uint64_t mono_ns)
{
	if (!path || !*path)
		path = NCI_CONTROL_PATH;
	memset(c, 0, sizeof(*c));
	memcpy(c->boot_id, boot_id, sizeof(c->boot_id));
	if (path[0] == '/' && strlen(path) < sizeof(c->path))
		strcpy(c->path, path);
	orders_open(c);
	c->open_ns = mono_ns;
}

void orders_close(struct orders *c)
{
	struct stat st;

	if (c->fd >= 0 && shmring_is_file(c->fd, c->dev, c->ino, &st))
		close(c->fd);
	c->fd = -1;
}

static void orders_look_for_file(struct orders *c, uint64_t mono_ns)
{
	struct stat st = { .st_nlink = 1 };

	if (c->fd >= 0 && !shmring_is_file(c->fd, c->dev, c->ino, &st))
		c->fd = -1;	/* the job has closed it: the number may be anything now */
	if (mono_ns - c->open_ns < ORDERS_OPEN_NS)
		return;
	c->open_ns = mono_ns;
	if (!st.st_nlink)
		orders_close(c);
	if (c->fd < 0)
		orders_open(c);
}

/* Times of another boot mean nothing in this one.  A container may have an id of its own. */
static bool orders_is_of_this_boot(const struct orders *c, const struct nci_control *file,
				   uint64_t mono_ns)
{
	static const uint8_t unknown[sizeof(c->boot_id)];

	return memcmp(file->boot_id, c->boot_id, sizeof(unknown)) == 0 ||
	       memcmp(file->boot_id, unknown, sizeof(unknown)) == 0 ||
	       memcmp(c->boot_id, unknown, sizeof(unknown)) == 0 ||
	       file->written_mono_ns <= mono_ns;
}

enum orders_read orders_read(struct orders *c, uint64_t mono_ns)
{
	struct nci_control file;

	orders_look_for_file(c, mono_ns);
	if (c->fd < 0)
		return ORDERS_NONE;
	if (pread(c->fd, &file, sizeof(file), 0) != (ssize_t)sizeof(file))
		return ORDERS_REFUSED;
	if (c->file.sequence && file.sequence == c->file.sequence &&
	    file.checksum == c->file.checksum)
		return ORDERS_SAME;
	if (!nci_control_is_whole(&file) || !orders_is_of_this_boot(c, &file, mono_ns))
		return ORDERS_REFUSED;
	c->file = file;
	return ORDERS_NEW;
}

void orders_apply(const struct nci_control *file, uint64_t instance, uint64_t mono_ns,
		  struct orders_result *result)
{
	for (uint32_t i = 0; i < file->entries && i < NCI_CONTROL_ENTRIES; i++) {
		const struct nci_control_entry *e = &file->entry[i];
		bool level = e->level <= NCI_LEVEL_TRACE;
		bool sample = e->sample == NCI_SAMPLE_BUDGET || e->sample == NCI_SAMPLE_ALL;

		if ((e->instance && e->instance != instance) ||
		    (e->until_mono_ns && mono_ns >= e->until_mono_ns))
			continue;
		if (level)
			result->level = e->level;
		if (sample)
			result->sample = e->sample;
		result->asked |= level || sample;
		result->cause = e->cause;
		if (e->until_mono_ns &&
		    (!result->until_mono_ns || e->until_mono_ns < result->until_mono_ns))
			result->until_mono_ns = e->until_mono_ns;
	}
}
