/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Wishes and marks outlive the daemon in files of one make: header, checksum and boot are
 * checked here, for both.
 */
#include "ncclinspd/levels/kept.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "reader/base/pool.h"
#include "util/cleanup.h"
#include "util/log.h"

struct kept_header {
	uint64_t magic;
	uint32_t version;
	uint32_t count;
	uint64_t checksum;
	uint8_t boot_id[16];	/* times of another boot mean nothing */
};
_Static_assert(sizeof(struct kept_header) == 40, "the file has no padding");

static uint64_t kept_checksum_of(const struct kept_kind *kind, const void *rows, uint32_t count)
{
	return index_hash(count, rows, count * kind->row_bytes);
}

int kept_write(int fd, const void *bytes, size_t n, off_t at)
{
	ssize_t done = pwrite(fd, bytes, n, at);

	if (done < 0)
		return -errno;
	return (size_t)done == n ? 0 : -ENOSPC;
}

static int kept_write_file(const char *path, const struct kept_kind *kind,
			   const uint8_t boot_id[16], const void *rows, uint32_t count)
{
	struct kept_header h = { .magic = kind->magic, .version = kind->version, .count = count,
				 .checksum = kept_checksum_of(kind, rows, count) };
	CLEANUP(cleanup_closep) int fd = -1;
	char fresh[KEPT_PATH + sizeof(".new")];
	int r;

	memcpy(h.boot_id, boot_id, sizeof(h.boot_id));
	snprintf(fresh, sizeof(fresh), "%s.new", path);
	unlink(fresh);
	fd = open(fresh, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0)
		return -errno;
	r = kept_write(fd, &h, sizeof(h), 0);
	if (r == 0 && count)
		r = kept_write(fd, rows, count * kind->row_bytes, sizeof(h));
	if (r == 0 && rename(fresh, path) < 0)
		r = -errno;
	if (r < 0)
		unlink(fresh);
	return r;
}

void kept_save(struct kept_state *state, const char *path, const struct kept_kind *kind,
	       const uint8_t boot_id[16], const void *rows, uint32_t count)
{
	uint64_t checksum = kept_checksum_of(kind, rows, count);
	int r;

	if (!state->error && state->checksum == checksum)
		return;
	r = kept_write_file(path, kind, boot_id, rows, count);
	if (r < 0 && r != state->error)
		log_say(LOG_WARN, "%s: will be forgotten at a restart file=%s error=\"%s\"",
			kind->what, path, strerror(-r));
	state->checksum = checksum;
	state->error = r;
}

void kept_restored(struct kept_state *state, const char *path, const struct kept_kind *kind,
		   int error, const void *rows, uint32_t count)
{
	if (error < 0 && error != -ENOENT)
		log_say(LOG_WARN, "%s: what was kept is ignored file=%s error=\"%s\"", kind->what,
			path, strerror(-error));
	state->checksum = kept_checksum_of(kind, rows, error ? 0 : count);
	state->error = error == -ENOENT ? 0 : error;
}

int kept_parse(const void *bytes, size_t n, const struct kept_kind *kind,
	       const uint8_t boot_id[16], void *rows, uint32_t *count)
{
	struct kept_header h;

	if (n < sizeof(h))
		return -EPROTO;
	memcpy(&h, bytes, sizeof(h));
	if (h.magic != kind->magic || h.version != kind->version)
		return -EPROTONOSUPPORT;
	if (h.count > kind->most || n != sizeof(h) + h.count * kind->row_bytes)
		return -EPROTO;
	bytes = (const char *)bytes + sizeof(h);
	if (kept_checksum_of(kind, bytes, h.count) != h.checksum)
		return -EPROTO;
	if (memcmp(h.boot_id, boot_id, sizeof(h.boot_id)) != 0)
		return -ESTALE;
	memcpy(rows, bytes, h.count * kind->row_bytes);
	*count = h.count;
	return 0;
}

int kept_read(const char *path, const struct kept_kind *kind, const uint8_t boot_id[16],
	      void *rows, uint32_t *count)
{
	size_t room = sizeof(struct kept_header) + kind->most * kind->row_bytes;
	CLEANUP(cleanup_freep) char *bytes = NULL;
	CLEANUP(cleanup_closep) int fd = -1;
	struct stat st;
	ssize_t n;

	fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	if (fd < 0 || fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode) || st.st_uid != geteuid() || st.st_mode & (S_IWGRP | S_IWOTH))
		return -EPERM;
	bytes = malloc(room);
	if (!bytes)
		return -ENOMEM;
	n = pread(fd, bytes, room, 0);
	if (n < 0)
		return -errno;
	if (st.st_size != n)
		return -EPROTO;
	return kept_parse(bytes, (size_t)n, kind, boot_id, rows, count);
}
