/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as a compressed file, and any text through both ways. */
#include "tests/fuzz/fuzz.h"

#include <string.h>

#include "util/zst.h"

#define MOST	(1u << 20)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *bytes = (const char *)data;
	char *packed, *text;
	size_t n;

	zst_is(bytes, size);
	if (zst_expand(bytes, size, MOST, &text, &n) == 0) {
		demand(n <= MOST);
		free(text);
	}
	demand(zst_compress(bytes, size, &packed, &n) == 0 && zst_is(packed, n));
	demand(zst_expand(packed, n, size, &text, &n) == 0 && n == size);
	demand(!memcmp(text, bytes, n));
	free(packed);
	free(text);
	return 0;
}
