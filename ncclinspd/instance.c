/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A lock beside the socket tells a live daemon from one that died: the socket that a dead
 * one left may be replaced, that of a live one never is.
 */
#include "ncclinspd/instance.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "ncclinspd/base/dirs.h"
#include "util/log.h"

#define BACKLOG 4096	/* long, so that a client too many is told so */

static void instance_tell_holder(int fd, const char *socket)
{
	char pid[32] = "";
	ssize_t n = pread(fd, pid, sizeof(pid) - 1, 0);

	pid[n > 0 ? strcspn(pid, "\n") : 0] = '\0';
	log_say(LOG_ERROR, "already running socket=%s pid=%s", socket, *pid ? pid : "unknown");
}

/* The lock's file stays for ever: removing it would let two daemons hold two of them. */
static int instance_take_lock(struct instance *in, const char *socket)
{
	char path[PATH_MAX + 8];
	int fd, r;

	snprintf(path, sizeof(path), "%s.lock", socket);
	fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644);
	if (fd < 0) {
		r = -errno;
		log_say(LOG_ERROR, "cannot open lock path=%s error=\"%s\"", path, strerror(-r));
		return r;
	}
	if (flock(fd, LOCK_EX | LOCK_NB) < 0) {
		r = errno == EWOULDBLOCK ? -EALREADY : -errno;
		instance_tell_holder(fd, socket);
		close(fd);
		return r;
	}
	if (ftruncate(fd, 0) < 0 || dprintf(fd, "%d\n", (int)getpid()) < 0)
		log_say(LOG_WARN, "cannot write pid path=%s error=\"%s\"", path, strerror(errno));
	in->lock = fd;
	return 0;
}

/* Only a socket is ours to remove. */
static int socket_remove_stale(const char *path)
{
	struct stat st;

	if (lstat(path, &st) < 0)
		return errno == ENOENT ? 0 : -errno;
	if (!S_ISSOCK(st.st_mode))
		return -EEXIST;
	return unlink(path) < 0 ? -errno : 0;
}

/* Any user that may connect may ask; the answer depends on the user. */
static int socket_listen_on(const char *socket_path)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int fd, r = socket_remove_stale(socket_path);

	if (r < 0)
		return r;
	strcpy(address.sun_path, socket_path);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	if (bind(fd, (struct sockaddr *)&address, sizeof(address)) == 0 &&
	    chmod(socket_path, 0666) == 0 && listen(fd, BACKLOG) == 0)
		return fd;
	r = -errno;
	close(fd);
	return r;
}

int instance_open(struct instance *in, const char *socket, int given)
{
	int r;

	if (strlen(socket) >= sizeof(((struct sockaddr_un *)0)->sun_path)) {
		log_say(LOG_ERROR, "socket path too long limit=107 socket=%s", socket);
		return -ENAMETOOLONG;
	}
	r = dirs_make_parent(socket);
	if (r < 0) {
		log_say(LOG_ERROR, "cannot make directory of socket=%s error=\"%s\"", socket,
			strerror(-r));
		return r;
	}
	r = instance_take_lock(in, socket);
	if (r < 0)
		return r;
	if (given >= 0)
		return given;
	r = socket_listen_on(socket);
	if (r < 0)
		log_say(LOG_ERROR, "cannot listen socket=%s error=\"%s\"", socket, strerror(-r));
	else
		strcpy(in->socket, socket);
	return r;
}

void instance_close(struct instance *in)
{
	if (in->socket[0])
		unlink(in->socket);
	in->socket[0] = '\0';
	if (in->lock >= 0)
		close(in->lock);
	in->lock = -1;
}
