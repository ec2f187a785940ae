/* SPDX-License-Identifier: Apache-2.0 */
#include "ncclinspd/shmdir.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include "util/log.h"

void shmdir_init(struct shmdir *dir, struct loop *loop, const char *path, shmdir_see *see,
		 void *arg)
{
	*dir = (struct shmdir){
		.loop = loop, .path = path, .see = see, .arg = arg, .fd = -1, .inotify = -1,
	};
}

void shmdir_deinit(struct shmdir *dir)
{
	if (!dir->path)
		return;
	if (dir->inotify >= 0) {
		loop_remove(dir->loop, dir->inotify);
		close(dir->inotify);
	}
	if (dir->fd >= 0)
		close(dir->fd);
	dir->inotify = dir->fd = -1;
}

static void on_inotify(void *arg, uint64_t now_ns)
{
	_Alignas(struct inotify_event) char buf[4096];
	struct shmdir *dir = arg;
	ssize_t n = read(dir->inotify, buf, sizeof(buf));

	for (ssize_t at = 0; at < n;) {
		const struct inotify_event *event = (const void *)(buf + at);

		if (event->mask & (IN_Q_OVERFLOW | IN_DELETE_SELF | IN_IGNORED))
			dir->missed = true;
		else if (event->len)
			dir->see(dir->arg, event->name, now_ns);
		at += (ssize_t)(sizeof(*event) + event->len);
	}
}

/* Watches are a scarce good; without one the scan finds everything, a little later. */
static void watch(struct shmdir *dir)
{
	int r = 0;

	dir->inotify = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
	if (dir->inotify < 0 || inotify_add_watch(dir->inotify, dir->path,
						  IN_CREATE | IN_MOVED_TO | IN_DELETE_SELF |
						  IN_ONLYDIR) < 0)
		r = -errno;
	if (r == 0)
		r = loop_add(dir->loop, dir->inotify, on_inotify, dir);
	if (r == 0)
		return;
	log_say(LOG_WARN, "inotify refused, scanning only dir=%s error=\"%s\"", dir->path,
		strerror(-r));
	if (dir->inotify >= 0)
		close(dir->inotify);
	dir->inotify = -1;
}

static bool is_another(const struct shmdir *dir)
{
	struct stat held, named;

	return fstat(dir->fd, &held) < 0 || held.st_nlink == 0 ||
	       stat(dir->path, &named) < 0 || held.st_ino != named.st_ino ||
	       held.st_dev != named.st_dev;
}

static int open_it(struct shmdir *dir)
{
	if (dir->fd >= 0 && is_another(dir))
		shmdir_deinit(dir);
	if (dir->fd >= 0)
		return 0;
	dir->fd = open(dir->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (dir->fd < 0)
		return -errno;
	watch(dir);
	return 0;
}

int shmdir_scan(struct shmdir *dir, uint64_t now_ns)
{
	const struct dirent *entry;
	int fd, r = open_it(dir);
	DIR *list;

	if (r < 0)
		return r;
	fd = openat(dir->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	list = fd < 0 ? NULL : fdopendir(fd);
	if (!list) {
		r = -errno;
		if (fd >= 0)
			close(fd);
		return r;
	}
	dir->missed = false;
	while ((entry = readdir(list)))
		dir->see(dir->arg, entry->d_name, now_ns);
	closedir(list);
	return 0;
}
