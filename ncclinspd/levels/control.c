/* SPDX-License-Identifier: Apache-2.0 */
#include "ncclinspd/levels/control.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ncclinspd/boot.h"
#include "ncclinspd/instance.h"
#include "ncclinspd/pool.h"
#include "util/cleanup.h"
#include "util/log.h"

#define WISHES_MAGIC	UINT64_C(0x0a73656873697763)	/* "cwishes\n", little-endian */
#define WISHES_VERSION	1
#define MODE		0644	/* every job must be able to read it */

/* ---- the control file ---------------------------------------------------------- */

const char *control_error_text(const struct control *c)
{
	if (c->error == -EALREADY)
		return "another daemon writes it";
	return c->error ? strerror(-c->error) : NULL;
}

static void tell(struct control *c)
{
	if (c->error && c->error != c->told)
		log_say(LOG_WARN, "levels cannot be changed control=%s error=\"%s\"", c->path,
			control_error_text(c));
	else if (!c->error && c->told)
		log_say(LOG_INFO, "levels can be changed again control=%s", c->path);
	c->told = c->error;
}

/* Plugins believe only what nobody but its owner can write. */
static int check_file(int fd, ino_t *ino)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode) || st.st_nlink != 1)
		return -EINVAL;
	if (st.st_uid != geteuid())
		return -EPERM;
	if ((st.st_mode & 07777) != MODE && fchmod(fd, MODE) < 0)
		return -errno;
	*ino = st.st_ino;
	return 0;
}

/* Two daemons on one file would undo each other's work without end. */
static int open_file(const char *path, ino_t *ino)
{
	int r, fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, MODE);

	if (fd < 0)
		return -errno;
	r = check_file(fd, ino);
	if (r == 0 && flock(fd, LOCK_EX | LOCK_NB) < 0)
		r = errno == EWOULDBLOCK ? -EALREADY : -errno;
	if (r == 0)
		return fd;
	close(fd);
	return r;
}

static void reopen(struct control *c)
{
	int r = instance_make_parent(c->path);

	if (r == 0)
		r = open_file(c->path, &c->ino);
	c->error = r < 0 ? r : 0;
	c->fd = r < 0 ? -1 : r;
	c->stale = true;
}

void control_open(struct control *c, const char *path)
{
	struct nci_control found;

	*c = (struct control){ .fd = -1 };
	snprintf(c->path, sizeof(c->path), "%s", path);
	boot_id_read(c->boot_id);
	reopen(c);
	if (c->fd >= 0 && pread(c->fd, &found, sizeof(found), 0) == sizeof(found) &&
	    nci_control_is_whole(&found))
		c->image.sequence = found.sequence;
	tell(c);
}

void control_close(struct control *c)
{
	if (c->fd >= 0)
		close(c->fd);
	c->fd = -1;
}

/* Somebody may have removed the file, or put another one in its place. */
static void watch_file(struct control *c)
{
	struct stat st;

	if (c->fd >= 0 && lstat(c->path, &st) == 0 && st.st_ino == c->ino)
		return;
	control_close(c);
	reopen(c);
}

static int write_whole(int fd, const void *bytes, size_t n)
{
	ssize_t done = pwrite(fd, bytes, n, 0);

	if (done < 0)
		return -errno;
	return (size_t)done == n ? 0 : -ENOSPC;
}

static bool differs(const struct control *c, const struct nci_control_entry *entry, uint32_t n)
{
	return c->image.entries != n || memcmp(c->image.entry, entry, n * sizeof(*entry)) != 0;
}

static void write_image(struct control *c, uint64_t now_ns)
{
	c->image.magic = NCI_CONTROL_MAGIC;
	c->image.version = NCI_CONTROL_VERSION;
	c->image.sequence++;
	c->image.written_mono_ns = now_ns;
	memcpy(c->image.boot_id, c->boot_id, sizeof(c->boot_id));
	c->image.checksum = nci_control_checksum(&c->image);
	c->error = write_whole(c->fd, &c->image, sizeof(c->image));
	c->stale = c->error;
	c->writes += !c->error;
}

void control_publish(struct control *c, const struct nci_control_entry *entry, uint32_t n,
		     uint64_t now_ns)
{
	watch_file(c);
	if (differs(c, entry, n)) {
		memset(c->image.entry, 0, sizeof(c->image.entry));
		memcpy(c->image.entry, entry, n * sizeof(*entry));
		c->image.entries = n;
		c->stale = true;
	}
	if (c->fd >= 0 && c->stale)
		write_image(c, now_ns);
	tell(c);
}

/* ---- the wishes ------------------------------------------------------------------ */

struct wishes_header {
	uint64_t magic;
	uint32_t version;
	uint32_t count;
	uint64_t checksum;
	uint8_t boot_id[16];	/* times of another boot mean nothing */
};
_Static_assert(sizeof(struct wishes_header) == 40, "the file has no padding");

struct wishes_file {
	struct wishes_header header;
	struct wish at[WISHES];
};
_Static_assert(sizeof(struct wishes_file) ==
	       sizeof(struct wishes_header) + WISHES * sizeof(struct wish), "nor behind it");

static uint64_t checksum(const struct wish *at, uint32_t count)
{
	return index_hash(count, at, count * sizeof(*at));
}

#define WISHES_PATH	(PATH_MAX + sizeof(".wishes.new"))

static void wishes_path(const struct control *c, char path[WISHES_PATH], const char *end)
{
	snprintf(path, WISHES_PATH, "%s.wishes%s", c->path, end);
}

/* Renamed, not written in place: whoever is killed meanwhile leaves the old one. */
static int replace_wishes(const struct control *c, const struct wishes_file *file, size_t bytes)
{
	CLEANUP(cleanup_closep) int fd = -1;
	char path[WISHES_PATH], fresh[WISHES_PATH];
	int r;

	wishes_path(c, path, "");
	wishes_path(c, fresh, ".new");
	unlink(fresh);
	fd = open(fresh, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0)
		return -errno;
	r = write_whole(fd, file, bytes);
	if (r == 0 && rename(fresh, path) < 0)
		r = -errno;
	if (r < 0)
		unlink(fresh);
	return r;
}

static uint32_t fill_file(const struct control *c, const struct wishes *ws,
			  struct wishes_file *file)
{
	uint32_t n = 0;

	*file = (struct wishes_file){ .header = {
		.magic = WISHES_MAGIC, .version = WISHES_VERSION,
	} };
	for (uint32_t i = 0; i < WISHES; i++) {
		if (!ws->at[i].serial)
			continue;
		file->at[n] = ws->at[i];
		file->at[n++].seen_ns = 0;	/* changes all the time, and is not needed */
	}
	file->header.count = n;
	file->header.checksum = checksum(file->at, n);
	memcpy(file->header.boot_id, c->boot_id, sizeof(c->boot_id));
	return n;
}

void control_save(struct control *c, const struct wishes *ws)
{
	struct wishes_file file;
	uint32_t n = fill_file(c, ws, &file);
	int r;

	if (c->fd < 0 || (!c->kept_error && c->kept == file.header.checksum))
		return;
	r = replace_wishes(c, &file, sizeof(file.header) + n * sizeof(file.at[0]));
	if (r < 0 && r != c->kept_error)
		log_say(LOG_WARN, "levels will be forgotten at a restart control=%s error=\"%s\"",
			c->path, strerror(-r));
	c->kept = file.header.checksum;
	c->kept_error = r;
}

int control_parse_wishes(const void *bytes, size_t n, const uint8_t boot_id[16],
			 struct wishes *ws)
{
	struct wishes_header h;
	struct wishes found = { 0 };

	if (n < sizeof(h))
		return -EPROTO;
	memcpy(&h, bytes, sizeof(h));
	if (h.magic != WISHES_MAGIC || h.version != WISHES_VERSION)
		return -EPROTONOSUPPORT;
	if (h.count > WISHES || n != sizeof(h) + h.count * sizeof(found.at[0]))
		return -EPROTO;
	memcpy(found.at, (const char *)bytes + sizeof(h), n - sizeof(h));
	if (checksum(found.at, h.count) != h.checksum)
		return -EPROTO;
	if (memcmp(h.boot_id, boot_id, sizeof(h.boot_id)) != 0)
		return -ESTALE;
	for (uint32_t i = 0; i < h.count; i++) {
		if (!wish_is_sound(&found.at[i]) || !found.at[i].serial)
			return -EPROTO;
		if (found.at[i].serial > found.serial)
			found.serial = found.at[i].serial;
	}
	*ws = found;
	return 0;
}

/* -ENOENT: there is none. */
static int read_wishes(const struct control *c, struct wishes *ws)
{
	CLEANUP(cleanup_closep) int fd = -1;
	char path[WISHES_PATH];
	struct wishes_file file;
	struct stat st;
	ssize_t n;

	wishes_path(c, path, "");
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	if (fd < 0 || fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode) || st.st_uid != geteuid() || st.st_mode & (S_IWGRP | S_IWOTH))
		return -EPERM;
	n = pread(fd, &file, sizeof(file), 0);
	if (n < 0)
		return -errno;
	if (st.st_size != n)
		return -EPROTO;
	return control_parse_wishes(&file, (size_t)n, c->boot_id, ws);
}

void control_restore(struct control *c, struct wishes *ws, uint64_t now_ns)
{
	struct wishes_file file;
	int r = read_wishes(c, ws);

	if (r < 0 && r != -ENOENT)
		log_say(LOG_WARN, "levels wanted before are ignored file=%s.wishes error=\"%s\"",
			c->path, strerror(-r));
	for (uint32_t i = 0; i < WISHES; i++)
		if (ws->at[i].serial)
			ws->at[i].seen_ns = now_ns;
	fill_file(c, ws, &file);
	c->kept = file.header.checksum;
	c->kept_error = r == -ENOENT ? 0 : r;
}
