/* SPDX-License-Identifier: Apache-2.0 */
/* A file of baselines: refused, or everything in it can be used. */
#include "tests/fuzz/fuzz.h"

#include <math.h>
#include <stdlib.h>

#include "ncclinspd/findings/baseline.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct baseline at[BASELINES];
	int n = baselines_parse(data, size, at);

	for (int i = 0; i < n; i++)
		if (!isfinite(at[i].mean) || !(at[i].sigma > 0))
			abort();
	return 0;
}
