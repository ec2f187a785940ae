/* SPDX-License-Identifier: Apache-2.0 */
#include "util/zst.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#include "util/cleanup.h"

#define LEVEL 3		/* the library's usual one: a few milliseconds per MB */

static void free_contextp(ZSTD_CCtx **c)
{
	ZSTD_freeCCtx(*c);
}

int zst_compress(const char *text, size_t bytes, char **out, size_t *out_bytes)
{
	CLEANUP(free_contextp) ZSTD_CCtx *context = ZSTD_createCCtx();
	CLEANUP(cleanup_freep) char *to = malloc(ZSTD_compressBound(bytes));
	size_t n;

	if (!context || !to)
		return -ENOMEM;
	ZSTD_CCtx_setParameter(context, ZSTD_c_compressionLevel, LEVEL);
	ZSTD_CCtx_setParameter(context, ZSTD_c_checksumFlag, 1);
	n = ZSTD_compress2(context, to, ZSTD_compressBound(bytes), text, bytes);
	if (ZSTD_isError(n))
		return -EIO;
	*out = to;
	*out_bytes = n;
	to = NULL;
	return 0;
}

bool zst_is(const char *bytes, size_t n)
{
	static const unsigned char magic[] = { 0x28, 0xb5, 0x2f, 0xfd };

	return n >= sizeof(magic) && !memcmp(bytes, magic, sizeof(magic));
}

int zst_expand(const char *bytes, size_t n, size_t max, char **out, size_t *out_bytes)
{
	unsigned long long size = ZSTD_getFrameContentSize(bytes, n);
	CLEANUP(cleanup_freep) char *to = NULL;

	if (size == ZSTD_CONTENTSIZE_ERROR || size == ZSTD_CONTENTSIZE_UNKNOWN)
		return -EBADMSG;
	if (size > max)
		return -EFBIG;
	to = malloc(size + 1);
	if (!to)
		return -ENOMEM;
	if (ZSTD_decompress(to, size, bytes, n) != size)
		return -EBADMSG;
	*out = to;
	*out_bytes = size;
	to = NULL;
	return 0;
}
