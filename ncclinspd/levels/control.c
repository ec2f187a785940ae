/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Plugins look for orders in a file that nobody but its owner can write: one daemon holds
 * its lock, writes it, and makes it again when it was removed or replaced.
 */
#include "ncclinspd/levels/control.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ncclinspd/base/dirs.h"
#include "ncclinspd/levels/kept.h"
#include "reader/base/boot.h"
#include "util/log.h"

#define MODE		0644	/* every job must be able to read it */
#define PLAN_NS		(UINT64_C(60) * 1000000000)	/* ns that a plan of bursts holds */

/* ---- the control file ---------------------------------------------------------- */

const char *control_error_text(const struct control *c)
{
	if (c->error == -EALREADY)
		return "another daemon writes it";
	return c->error ? strerror(-c->error) : NULL;
}

static void control_tell(struct control *c)
{
	if (c->error && c->error != c->told)
		log_say(LOG_WARN, "levels cannot be changed control=%s error=\"%s\"", c->path,
			control_error_text(c));
	else if (!c->error && c->told)
		log_say(LOG_INFO, "levels can be changed again control=%s", c->path);
	c->told = c->error;
}

/* Plugins believe only what nobody but its owner can write. */
static int file_check(int fd, ino_t *ino)
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
static int file_open_checked(const char *path, ino_t *ino)
{
	int r, fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, MODE);

	if (fd < 0)
		return -errno;
	r = file_check(fd, ino);
	if (r == 0 && flock(fd, LOCK_EX | LOCK_NB) < 0)
		r = errno == EWOULDBLOCK ? -EALREADY : -errno;
	if (r == 0)
		return fd;
	close(fd);
	return r;
}

static void control_reopen(struct control *c)
{
	int r = dirs_make_parent(c->path);

	if (r == 0)
		r = file_open_checked(c->path, &c->ino);
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
	control_reopen(c);
	if (c->fd >= 0 && pread(c->fd, &found, sizeof(found), 0) == sizeof(found) &&
	    nci_control_is_whole(&found))
		c->image.sequence = found.sequence;
	control_tell(c);
}

void control_close(struct control *c)
{
	if (c->fd >= 0)
		close(c->fd);
	c->fd = -1;
}

/* Somebody may have removed the file, or put another one in its place. */
static void file_watch(struct control *c)
{
	struct stat st;

	if (c->fd >= 0 && lstat(c->path, &st) == 0 && st.st_ino == c->ino)
		return;
	control_close(c);
	control_reopen(c);
}

static bool image_differs(const struct control *c, const struct nci_control_entry *entry,
			  uint32_t n)
{
	return c->image.entries != n || memcmp(c->image.entry, entry, n * sizeof(*entry)) != 0;
}

static void image_write(struct control *c, uint64_t now_ns)
{
	c->image.magic = NCI_CONTROL_MAGIC;
	c->image.version = NCI_CONTROL_VERSION;
	c->image.sequence++;
	c->image.written_mono_ns = now_ns;
	memcpy(c->image.boot_id, c->boot_id, sizeof(c->boot_id));
	c->image.checksum = nci_control_checksum(&c->image);
	c->error = kept_write(c->fd, &c->image, sizeof(c->image), 0);
	c->stale = c->error;
	c->writes += !c->error;
}

/* A plan is given more time when half of it has passed: jobs outlive a daemon, it does not. */
static bool plan_differs(const struct control *c, const struct control_node *node, uint64_t now_ns)
{
	return c->image.burst_period_ms != node->plan.period_ms ||
	       c->image.burst_length_us != node->plan.length_us ||
	       c->image.mode != node->mode || c->image.mode_s != node->mode_s ||
	       (node->plan.period_ms && c->image.burst_until_mono_ns < now_ns + PLAN_NS / 2);
}

void control_publish(struct control *c, const struct nci_control_entry *entry, uint32_t n,
		     const struct control_node *node, uint64_t now_ns)
{
	file_watch(c);
	if (plan_differs(c, node, now_ns)) {
		c->image.burst_period_ms = node->plan.period_ms;
		c->image.burst_length_us = node->plan.length_us;
		c->image.burst_until_mono_ns = node->plan.period_ms ? now_ns + PLAN_NS : 0;
		c->image.mode = node->mode;
		c->image.mode_s = node->mode_s;
		c->stale = true;
	}
	if (image_differs(c, entry, n)) {
		memset(c->image.entry, 0, sizeof(c->image.entry));
		memcpy(c->image.entry, entry, n * sizeof(*entry));
		c->image.entries = n;
		c->stale = true;
	}
	if (c->fd >= 0 && c->stale)
		image_write(c, now_ns);
	control_tell(c);
}

/* ---- the wishes ------------------------------------------------------------------ */

static const struct kept_kind wishes_kind = {
	.magic = UINT64_C(0x0a73656873697763),	/* "cwishes\n", little-endian */
	.version = 1, .most = WISHES, .row_bytes = sizeof(struct wish), .what = "levels",
};

static void wishes_path(const struct control *c, char path[KEPT_PATH])
{
	snprintf(path, KEPT_PATH, "%s.wishes", c->path);
}

static uint32_t wishes_fill(const struct wishes *ws, struct wish rows[WISHES])
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < WISHES; i++) {
		if (!ws->at[i].serial)
			continue;
		rows[n] = ws->at[i];
		rows[n++].seen_ns = 0;	/* changes all the time, and is not needed */
	}
	return n;
}

void control_save(struct control *c, const struct wishes *ws)
{
	struct wish rows[WISHES];
	char path[KEPT_PATH];

	if (c->fd < 0)
		return;
	wishes_path(c, path);
	kept_save(&c->kept, path, &wishes_kind, c->boot_id, rows, wishes_fill(ws, rows));
}

/* All of them, or none. */
static int wishes_take(struct wishes *ws, const struct wish *rows, uint32_t count)
{
	struct wishes found = { .accounts = ws->accounts };

	for (uint32_t i = 0; i < count; i++) {
		if (!wish_is_sound(&rows[i]) || !rows[i].serial)
			return -EPROTO;
		found.at[i] = rows[i];
		if (rows[i].serial > found.serial)
			found.serial = rows[i].serial;
	}
	*ws = found;
	return 0;
}

int control_parse_wishes(const void *bytes, size_t n, const uint8_t boot_id[16],
			 struct wishes *ws)
{
	struct wish rows[WISHES];
	uint32_t count;
	int r = kept_parse(bytes, n, &wishes_kind, boot_id, rows, &count);

	return r < 0 ? r : wishes_take(ws, rows, count);
}

void control_restore(struct control *c, struct wishes *ws, uint64_t now_ns)
{
	struct wish rows[WISHES];
	char path[KEPT_PATH];
	uint32_t count;
	int r;

	wishes_path(c, path);
	r = kept_read(path, &wishes_kind, c->boot_id, rows, &count);
	if (r == 0)
		r = wishes_take(ws, rows, count);
	for (uint32_t i = 0; i < WISHES; i++)
		if (ws->at[i].serial)
			ws->at[i].seen_ns = now_ns;
	kept_restored(&c->kept, path, &wishes_kind, r, rows, wishes_fill(ws, rows));
}
