/* SPDX-License-Identifier: Apache-2.0 */
/* The output file: compressed block by block, and renamed into place only when it is complete. */
#include "cli/trace/trace_out.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#define BLOCK	 (128u << 10)
#define GZ_LEVEL "wb1"		/* a trace comes faster than higher ones compress */

struct trace_out {
	int fd;
	char path[PATH_MAX];	/* "": it has no name of its own */
	char part[PATH_MAX];	/* the file's name until it is closed */
	gzFile gz;		/* NULL: not that */
	ZSTD_CCtx *zst;		/* NULL: not that */
	uint64_t bytes;
	int error;
	size_t used;
	char block[BLOCK];	/* bytes to be written, or compressed */
	char packed[BLOCK];
};

static bool path_ends_in(const char *path, const char *suffix)
{
	size_t n = strlen(path), m = strlen(suffix);

	return n > m && !strcmp(path + n - m, suffix);
}

static void out_fail(struct trace_out *o, int error)
{
	if (!o->error)
		o->error = error ? error : -EIO;
}

static void out_write_all(struct trace_out *o, const char *bytes, size_t n)
{
	while (n && !o->error) {
		ssize_t done = write(o->fd, bytes, n);

		if (done < 0 && errno != EINTR)
			out_fail(o, -errno);
		if (done <= 0)
			continue;
		bytes += done;
		n -= (size_t)done;
	}
}

static void out_pack_zst(struct trace_out *o, ZSTD_EndDirective end)
{
	ZSTD_inBuffer in = { o->block, o->used, 0 };
	size_t left;

	do {
		ZSTD_outBuffer out = { o->packed, sizeof(o->packed), 0 };

		left = ZSTD_compressStream2(o->zst, &out, &in, end);
		if (ZSTD_isError(left))
			out_fail(o, -EIO);
		else
			out_write_all(o, o->packed, out.pos);
	} while (!o->error && (in.pos < in.size || (end == ZSTD_e_end && left)));
}

static void out_flush(struct trace_out *o, ZSTD_EndDirective end)
{
	if (o->zst)
		out_pack_zst(o, end);
	else if (!o->gz)
		out_write_all(o, o->block, o->used);
	else if (o->used && gzwrite(o->gz, o->block, (unsigned)o->used) <= 0)
		out_fail(o, -errno);
	o->used = 0;
}

void trace_out_put(struct trace_out *o, const char *text, size_t n)
{
	o->bytes += n;
	while (n && !o->error) {
		size_t room = BLOCK - o->used, part = n < room ? n : room;

		memcpy(o->block + o->used, text, part);
		o->used += part;
		text += part;
		n -= part;
		if (o->used == BLOCK)
			out_flush(o, ZSTD_e_continue);
	}
}

int trace_out_error(const struct trace_out *o)
{
	return o->error;
}

uint64_t trace_out_bytes(const struct trace_out *o)
{
	return o->bytes;
}

/* Nothing may take the place of a device, a pipe, or a link such as /dev/stdout. */
static bool path_is_replaceable(const char *path)
{
	struct stat st;

	return lstat(path, &st) < 0 || S_ISREG(st.st_mode);
}

static int out_open_file(struct trace_out *o, const char *path)
{
	if (!strcmp(path, "-")) {
		o->fd = dup(STDOUT_FILENO);
	} else if (!path_is_replaceable(path)) {
		o->fd = open(path, O_WRONLY | O_TRUNC | O_CLOEXEC);
	} else if (strlen(path) + 20 >= sizeof(o->part)) {
		return -ENAMETOOLONG;
	} else {
		snprintf(o->path, sizeof(o->path), "%s", path);
		snprintf(o->part, sizeof(o->part), "%.*s.%d.part", PATH_MAX - 20, path,
			 (int)getpid());
		o->fd = open(o->part, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0666);
	}
	return o->fd < 0 ? -errno : 0;
}

static int out_open_packer(struct trace_out *o, const char *path)
{
	int fd;

	if (path_ends_in(path, ".zst")) {
		o->zst = ZSTD_createCCtx();
		return o->zst ? 0 : -ENOMEM;
	}
	if (!path_ends_in(path, ".gz"))
		return 0;
	fd = dup(o->fd);	/* gzclose() closes it, and ours is still to be synced */
	o->gz = fd < 0 ? NULL : gzdopen(fd, GZ_LEVEL);
	if (o->gz)
		return 0;
	if (fd >= 0)
		close(fd);
	return -ENOMEM;
}

int trace_out_open(struct trace_out **op, const char *path)
{
	struct trace_out *o = calloc(1, sizeof(*o));
	int r;

	if (!o)
		return -ENOMEM;
	o->fd = -1;
	r = out_open_file(o, path);
	if (r == 0)
		r = out_open_packer(o, path);
	if (r < 0) {
		trace_out_drop(o);
		return r;
	}
	*op = o;
	return 0;
}

static void out_release(struct trace_out *o)
{
	if (o->gz)
		gzclose(o->gz);
	ZSTD_freeCCtx(o->zst);
	if (o->fd >= 0)
		close(o->fd);
	free(o);
}

int trace_out_close(struct trace_out *o)
{
	int error;

	out_flush(o, ZSTD_e_end);
	if (o->gz && gzclose(o->gz) != Z_OK)
		out_fail(o, -EIO);
	o->gz = NULL;
	if (*o->path && !o->error && fsync(o->fd) < 0)
		out_fail(o, -errno);
	if (*o->path && !o->error && rename(o->part, o->path) < 0)
		out_fail(o, -errno);
	error = o->error;
	if (*o->path && error)
		unlink(o->part);
	out_release(o);
	return error;
}

void trace_out_drop(struct trace_out *o)
{
	if (!o)
		return;
	if (*o->path && o->fd >= 0)
		unlink(o->part);
	out_release(o);
}
