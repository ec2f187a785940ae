/* SPDX-License-Identifier: Apache-2.0 */
/* Values are kept as they came and in order: the oldest can go, and a quantile is one look. */
#include "tables/rolling.h"

#include <string.h>

#include "reader/base/model.h"

/* Place of the first that is not smaller. */
static uint32_t rolling_place(const struct rolling *r, uint64_t value)
{
	uint32_t low = 0, high = r->n;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (r->sorted[middle] < value)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* The oldest's place, or that behind all, is free: those between it and the new one's move up. */
void rolling_add(struct rolling *r, uint64_t value)
{
	uint32_t hole = r->n < ROLLING_VALUES ? r->n : rolling_place(r, r->ring[r->next]);
	uint32_t at = rolling_place(r, value);

	if (at > hole) {
		at--;
		memmove(&r->sorted[hole], &r->sorted[hole + 1],
			(at - hole) * sizeof(r->sorted[0]));
	} else {
		memmove(&r->sorted[at + 1], &r->sorted[at], (hole - at) * sizeof(r->sorted[0]));
	}
	r->n += r->n < ROLLING_VALUES;
	r->sorted[at] = value;
	r->ring[r->next] = value;
	r->next = (r->next + 1) % ROLLING_VALUES;
}

uint64_t rolling_quantile(const struct rolling *r, uint32_t percent)
{
	uint32_t rank = (r->n * percent + 99) / 100;

	return r->n ? r->sorted[rank ? rank - 1 : 0] : UNKNOWN_U64;
}
