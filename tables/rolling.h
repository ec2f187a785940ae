/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TABLES_ROLLING_H
#define TABLES_ROLLING_H

/* The last so many values of a series, kept in order: exact quantiles of what is recent. */

#include <stdint.h>

#define ROLLING_VALUES	128

struct rolling {
	uint32_t n;		/* number of values */
	uint32_t next;		/* place in `ring` of the oldest, once it is full */
	uint64_t ring[ROLLING_VALUES];
	uint64_t sorted[ROLLING_VALUES];
};

/* A zeroed one is empty.  The oldest goes when it is full. */
void rolling_add(struct rolling *r, uint64_t value);

/* The smallest value that `percent` of them do not exceed; UNKNOWN_U64: there is none. */
uint64_t rolling_quantile(const struct rolling *r, uint32_t percent);

#endif
