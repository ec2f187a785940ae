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

static void rolling_take_out(struct rolling *r, uint64_t value)
{
	uint32_t at = rolling_place(r, value);

	r->n--;
	memmove(&r->sorted[at], &r->sorted[at + 1], (r->n - at) * sizeof(r->sorted[0]));
}

void rolling_add(struct rolling *r, uint64_t value)
{
	uint32_t at;

	if (r->n == ROLLING_VALUES)
		rolling_take_out(r, r->ring[r->next]);
	at = rolling_place(r, value);
	memmove(&r->sorted[at + 1], &r->sorted[at], (r->n - at) * sizeof(r->sorted[0]));
	r->sorted[at] = value;
	r->n++;
	r->ring[r->next] = value;
	r->next = (r->next + 1) % ROLLING_VALUES;
}

uint64_t rolling_quantile(const struct rolling *r, uint32_t percent)
{
	uint32_t rank = (r->n * percent + 99) / 100;

	return r->n ? r->sorted[rank ? rank - 1 : 0] : UNKNOWN_U64;
}
