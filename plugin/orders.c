/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who may write a control file may make every job of the node slower: it must belong
 * to root, to the user of the process or to whom its directory belongs to, and nobody
 * else may write it.  A descriptor is kept; a file that was removed is looked for again.
 */
#include "plugin/orders.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define MOST_COST_NS	UINT32_C(1000000000)
#define MOST_PPM	UINT32_C(1000000)

/* The C library's fstat() has a new version; the kernel's has not. */
static bool look_at(int fd, struct stat *st)
{
	return syscall(SYS_fstat, fd, st) == 0;
}

static bool is_trusted(int fd, int dirfd)
{
	struct stat file, dir;

	return look_at(fd, &file) && look_at(dirfd, &dir) && S_ISREG(file.st_mode) &&
	       !(file.st_mode & (S_IWGRP | S_IWOTH)) &&
	       (file.st_uid == 0 || file.st_uid == geteuid() || file.st_uid == dir.st_uid);
}

static int open_in(int dirfd, const char *name)
{
	/* A FIFO must not keep us waiting. */
	int fd = openat(dirfd, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);

	if (fd >= 0 && !is_trusted(fd, dirfd)) {
		close(fd);
		fd = -1;
	}
	return fd;
}

static int open_file(const char *path)
{
	const char *slash = strrchr(path, '/');
	char dir[sizeof(((struct orders *)0)->path)] = "/";
	int dirfd, fd;

	if (!slash)
		return -1;
	if (slash != path) {
		memcpy(dir, path, (size_t)(slash - path));
		dir[slash - path] = '\0';
	}
	dirfd = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (dirfd < 0)
		return -1;
	fd = open_in(dirfd, slash + 1);
	close(dirfd);
	return fd;
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
	c->fd = open_file(c->path);
	c->open_ns = mono_ns;
}

void orders_close(struct orders *c)
{
	if (c->fd >= 0)
		close(c->fd);
	c->fd = -1;
}

static bool is_removed(int fd)
{
	struct stat st;

	return !look_at(fd, &st) || !st.st_nlink;
}

static void look_for_file(struct orders *c, uint64_t mono_ns)
{
	if (mono_ns - c->open_ns < ORDERS_OPEN_NS)
		return;
	c->open_ns = mono_ns;
	if (c->fd >= 0 && is_removed(c->fd))
		orders_close(c);
	if (c->fd < 0)
		c->fd = open_file(c->path);
}

/* Times of another boot mean nothing in this one.  A container may have an id of its own. */
static bool is_of_this_boot(const struct orders *c, const struct nci_control *file,
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

	look_for_file(c, mono_ns);
	if (c->fd < 0)
		return ORDERS_NONE;
	if (pread(c->fd, &file, sizeof(file), 0) != (ssize_t)sizeof(file))
		return ORDERS_REFUSED;
	if (c->file.sequence && file.sequence == c->file.sequence &&
	    file.checksum == c->file.checksum)
		return ORDERS_SAME;
	if (!nci_control_is_whole(&file) || !is_of_this_boot(c, &file, mono_ns))
		return ORDERS_REFUSED;
	c->file = file;
	return ORDERS_NEW;
}

static void apply_entry(const struct nci_control_entry *e, struct orders_wish *wish)
{
	if (e->level <= NCI_LEVEL_TRACE) {
		wish->level = e->level;
		wish->asked = true;
	}
	if (e->sample == NCI_SAMPLE_BUDGET || e->sample == NCI_SAMPLE_ALL) {
		wish->sample = e->sample;
		wish->asked = true;
	}
	if (e->budget_ppm && e->budget_ppm <= MOST_PPM)
		wish->budget_ppm = e->budget_ppm;
	if (e->kernel_cost_ns && e->kernel_cost_ns <= MOST_COST_NS)
		wish->kernel_cost_ns = e->kernel_cost_ns;
	wish->wish = e->wish;
	if (e->until_mono_ns &&
	    (!wish->until_mono_ns || e->until_mono_ns < wish->until_mono_ns))
		wish->until_mono_ns = e->until_mono_ns;
}

void orders_apply(const struct nci_control *file, uint64_t instance, uint64_t mono_ns,
		   struct orders_wish *wish)
{
	for (uint32_t i = 0; i < file->entries && i < NCI_CONTROL_ENTRIES; i++) {
		const struct nci_control_entry *e = &file->entry[i];

		if ((!e->instance || e->instance == instance) &&
		    (!e->until_mono_ns || mono_ns < e->until_mono_ns))
			apply_entry(e, wish);
	}
}
