/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Inotify notices a new file at once; a scan finds those whose notices were lost or too
 * many.
 */
#include "ncclinspd/find/shmdir.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ncclinspd/base/dirs.h"
#include "util/log.h"

/* ---- notices --------------------------------------------------------------- */

void shmwatch_init(struct shmwatch *watch, struct loop *loop, shmdir_see *see, void *arg)
{
	*watch = (struct shmwatch){ .loop = loop, .see = see, .arg = arg, .fd = -1 };
}

void shmwatch_deinit(struct shmwatch *watch)
{
	if (!watch->loop || watch->fd < 0)
		return;
	loop_remove(watch->loop, watch->fd);
	close(watch->fd);
	watch->fd = -1;
}

static void shmwatch_miss_all(struct shmwatch *watch)
{
	for (int i = 0; i < SHMDIR_MOST; i++)
		if (watch->dir[i])
			watch->dir[i]->missed = true;
}

static void shmdir_unwatch(struct shmdir *dir)
{
	for (int i = 0; i < SHMDIR_MOST; i++)
		if (dir->watch->dir[i] == dir)
			dir->watch->dir[i] = NULL;
	if (dir->wd >= 0)
		inotify_rm_watch(dir->watch->fd, dir->wd);
	dir->wd = -1;
}

static void shmwatch_take(struct shmwatch *watch, const struct inotify_event *event,
			  uint64_t now_ns)
{
	struct shmdir *dir = NULL;

	for (int i = 0; i < SHMDIR_MOST && !dir; i++)
		if (watch->dir[i] && watch->dir[i]->wd == event->wd)
			dir = watch->dir[i];
	if (!dir)
		return;		/* one that has just been let go */
	if (event->mask & (IN_DELETE_SELF | IN_IGNORED))
		dir->missed = true;
	else if (event->len)
		watch->see(watch->arg, dir, event->name, 0, now_ns);
	/* A directory where files are made without end has only scans, until the next one. */
	if (++dir->notices < (dir->path ? SHMDIR_NOTICES_OWN : SHMDIR_NOTICES))
		return;
	shmdir_unwatch(dir);
	dir->missed |= !!dir->path;
}

static void shmwatch_on_inotify(void *arg, uint64_t now_ns)
{
	_Alignas(struct inotify_event) char buf[4096];
	struct shmwatch *watch = arg;
	ssize_t n = read(watch->fd, buf, sizeof(buf));

	for (ssize_t at = 0; at < n;) {
		const struct inotify_event *event = (const void *)(buf + at);

		if (event->mask & IN_Q_OVERFLOW)
			shmwatch_miss_all(watch);
		else
			shmwatch_take(watch, event, now_ns);
		at += (ssize_t)(sizeof(*event) + event->len);
	}
}

static int shmwatch_open_inotify(struct shmwatch *watch)
{
	int r;

	if (watch->fd >= 0)
		return 0;
	watch->fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
	if (watch->fd < 0)
		return -errno;
	r = loop_add(watch->loop, watch->fd, shmwatch_on_inotify, watch);
	if (r < 0) {
		close(watch->fd);
		watch->fd = -1;
	}
	return r;
}

static int shmdir_add_watch(struct shmdir *dir)
{
	struct shmwatch *watch = dir->watch;
	char path[32];
	int i = 0, r = shmwatch_open_inotify(watch);

	while (i < SHMDIR_MOST && watch->dir[i])
		i++;
	if (r < 0 || i == SHMDIR_MOST)
		return r < 0 ? r : -ENOSPC;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", dir->fd);
	dir->wd = inotify_add_watch(watch->fd, path,
				    IN_CREATE | IN_MOVED_TO | IN_DELETE_SELF | IN_ONLYDIR);
	if (dir->wd < 0)
		return -errno;
	watch->dir[i] = dir;
	return 0;
}

/* Watches are a scarce good; without one the scan finds everything, a little later. */
static void shmdir_watch(struct shmdir *dir)
{
	int r = shmdir_add_watch(dir);

	if (r < 0)
		log_say(LOG_WARN, "inotify refused, scanning only dir=%s error=\"%s\"",
			dir->path ? dir->path : "of a container", strerror(-r));
}

/* ---- directories ----------------------------------------------------------- */

void shmdir_init(struct shmdir *dir, struct shmwatch *watch, const char *path)
{
	*dir = (struct shmdir){ .watch = watch, .path = path, .fd = -1, .wd = -1 };
}

void shmdir_init_fd(struct shmdir *dir, struct shmwatch *watch, int fd)
{
	*dir = (struct shmdir){ .watch = watch, .fd = fd, .wd = -1, .missed = true };
	shmdir_watch(dir);
}

void shmdir_deinit(struct shmdir *dir)
{
	if (!dir->watch)
		return;
	shmdir_unwatch(dir);
	if (dir->list)
		closedir(dir->list);
	if (dir->fd >= 0)
		close(dir->fd);
	dir->list = NULL;
	dir->fd = -1;
}

static bool shmdir_is_another(const struct shmdir *dir)
{
	struct stat held, named;

	return fstat(dir->fd, &held) < 0 || held.st_nlink == 0 ||
	       stat(dir->path, &named) < 0 || held.st_ino != named.st_ino ||
	       held.st_dev != named.st_dev;
}

static int shmdir_open(struct shmdir *dir)
{
	if (dir->fd >= 0 && dir->path && shmdir_is_another(dir))
		shmdir_deinit(dir);
	if (dir->fd >= 0)
		return 0;
	if (!dir->path)
		return -ENOENT;
	dir->fd = open(dir->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (dir->fd < 0)
		return -errno;
	shmdir_watch(dir);
	return 0;
}

static int shmdir_begin_scan(struct shmdir *dir)
{
	dir->list = dirs_list(dir->fd);
	if (!dir->list)
		return -errno;
	dir->missed = false;
	return 0;
}

static int shmdir_go_on(struct shmdir *dir, uint32_t work, uint64_t now_ns)
{
	const struct dirent *entry;
	uint32_t cost;

	while (work) {
		entry = readdir(dir->list);
		if (!entry) {
			closedir(dir->list);
			dir->list = NULL;
			return 0;
		}
		cost = 1 + dir->watch->see(dir->watch->arg, dir, entry->d_name, entry->d_ino,
					   now_ns);
		work -= cost < work ? cost : work;
	}
	return SHMDIR_MORE;
}

int shmdir_scan(struct shmdir *dir, uint32_t work, uint64_t now_ns)
{
	bool begins;
	int r = shmdir_open(dir);

	begins = !dir->list;
	if (r == 0 && begins)
		r = shmdir_begin_scan(dir);
	if (r < 0)
		return r;
	if (dir->wd < 0 && dir->notices && (begins || dir->path))
		shmdir_watch(dir);
	if (begins || dir->path)
		dir->notices = 0;
	return shmdir_go_on(dir, work, now_ns);
}
