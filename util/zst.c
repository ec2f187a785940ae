/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The files that the daemon keeps are compressed, and the command line reads them back: what
 * a hostile file expands to needs a bound, in one place.
 */
#include "util/zst.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#include "util/cleanup.h"

#define LEVEL 3		/* the library's usual one: a few milliseconds per MB */

CLEANUP_DEFINE(ZSTD_freeCCtx, ZSTD_CCtx)

int zst_compress(const char *text, size_t bytes, char **out, size_t *out_bytes)
{
	CLEANUP(ZSTD_freeCCtxp) ZSTD_CCtx *context = ZSTD_createCCtx();
	CLEANUP(cleanup_freep) char *to = malloc(ZSTD_compressBound(bytes));
	size_t n;

	if (!context || !to)
		return -ENOMEM;
	ZSTD_CCtx_setParameter(context, ZSTD_c_compressionLevel, LEVEL);
	ZSTD_CCtx_setParameter(context, ZSTD_c_checksumFlag, 1);
	n = ZSTD_compress2(context, to, ZSTD_compressBound(bytes), text, bytes);
	if (ZSTD_isError(n))
		return -EIO;
	*out = DISOWN(to);
	*out_bytes = n;
	return 0;
}

bool zst_is(const char *bytes, size_t n)
{
	static const unsigned char magic[] = { 0x28, 0xb5, 0x2f, 0xfd };

	return n >= sizeof(magic) && !memcmp(bytes, magic, sizeof(magic));
}

CLEANUP_DEFINE(ZSTD_freeDStream, ZSTD_DStream)

/* Twice the room, or what is allowed; -EFBIG: that is had already. */
static int output_grow(ZSTD_outBuffer *out, size_t max)
{
	size_t room = out->size < max / 2 ? 2 * out->size : max;
	void *more;

	if (out->size == max)
		return -EFBIG;
	more = realloc(out->dst, room);
	if (!more)
		return -ENOMEM;
	out->dst = more;
	out->size = room;
	return 0;
}

static int stream_expand(ZSTD_DStream *stream, ZSTD_inBuffer *in, ZSTD_outBuffer *out, size_t max)
{
	for (;;) {
		size_t left = ZSTD_decompressStream(stream, out, in);
		int r;

		if (ZSTD_isError(left))
			return -EBADMSG;
		if (!left)
			return in->pos == in->size ? 0 : -EBADMSG;
		if (out->pos < out->size)
			return -EBADMSG;	/* it ends in the middle */
		r = output_grow(out, max);
		if (r < 0)
			return r;
	}
}

int zst_expand(const char *bytes, size_t n, size_t max, char **out, size_t *out_bytes)
{
	CLEANUP(ZSTD_freeDStreamp) ZSTD_DStream *stream = ZSTD_createDStream();
	unsigned long long told = ZSTD_getFrameContentSize(bytes, n);	/* two huge ones: errors */
	size_t room = told < max ? (size_t)told + 1 : n < max / 8 ? 8 * n + 1 : max + 1;
	ZSTD_outBuffer to = { malloc(room), room, 0 };
	ZSTD_inBuffer in = { bytes, n, 0 };
	int r = stream && to.dst ? stream_expand(stream, &in, &to, max + 1) : -ENOMEM;

	if (r == 0 && to.pos > max)
		r = -EFBIG;
	if (r < 0) {
		free(to.dst);
		return r;
	}
	*out = to.dst;
	*out_bytes = to.pos;
	return 0;
}
