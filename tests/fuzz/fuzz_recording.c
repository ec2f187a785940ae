/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A file that says it is a recording, of either kind: it is refused with a reason,
 * or everything it says can be shown.
 */
#include "tests/fuzz/fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "tests/sim/recording.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct recording *rec = NULL;
	char err[200] = "", shown[256];
	FILE *f, *to;
	int r;

	if (!size)
		return 0;
	f = fmemopen((void *)data, size, "r");
	to = fmemopen(shown, sizeof(shown), "w");
	if (!f || !to)
		abort();
	r = (data[0] == 'n' ? recording_binary : recording_jsonl)(&rec, f, "fuzz", err,
								   sizeof(err));
	if (!r)
		recording_print(rec, to);
	else if (!*err)
		abort();
	recording_free(rec);
	fclose(f);
	fclose(to);
	return 0;
}
