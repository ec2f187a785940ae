/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A pid is used again: it names one process only together with the start time, which lies
 * behind a command that may hold anything.
 */
#include "util/procstat.h"

#include <stdio.h>
#include <string.h>

uint64_t procstat_start_time(const char *text, char *state)
{
	const char *at = strrchr(text, ')');	/* the command may hold anything */
	unsigned long long start;

	if (!at || sscanf(at + 1, " %c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u"
			  " %*d %*d %*d %*d %*d %*d %llu", state, &start) != 2)
		return 0;
	return start;
}
