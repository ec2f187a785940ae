/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_BASE_MUST_H
#define CLI_BASE_MUST_H

#include <stdio.h>
#include <stdlib.h>

/* Memory that was asked for; without it there is nothing left to do but to say so. */
static inline void *must(void *memory)
{
	if (memory)
		return memory;
	fputs("ncclinsp: out of memory\n", stderr);
	exit(EXIT_FAILURE);
}

#endif
