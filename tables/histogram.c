/* SPDX-License-Identifier: Apache-2.0 */
/* A bucket is found with integers alone: every machine puts a value into the same one. */
#include "tables/histogram.h"

#include <math.h>
#include <string.h>

#include "reader/base/model.h"

uint64_t histogram_lower(uint32_t bucket)
{
	return (uint64_t)(HISTOGRAM_SUB + bucket % HISTOGRAM_SUB)
	       << (bucket / HISTOGRAM_SUB + HISTOGRAM_FIRST - HISTOGRAM_SUB_BITS);
}

uint64_t histogram_upper(uint32_t bucket)
{
	return histogram_lower(bucket + 1);
}

void histogram_clear(struct histogram *h)
{
	h->total = 0;
	memset(h->in_part, 0, sizeof(h->in_part));
}

void histogram_merge_part(struct histogram *h, uint32_t part, const uint32_t count[HISTOGRAM_PART])
{
	uint64_t *into = &h->count[part * HISTOGRAM_PART], sum = 0;

	if (!h->in_part[part])
		memset(into, 0, HISTOGRAM_PART * sizeof(*into));
	for (uint32_t i = 0; i < HISTOGRAM_PART; i++) {
		into[i] += count[i];
		sum += count[i];
	}
	h->in_part[part] += sum;
	h->total += sum;
}

uint64_t histogram_quantile(const struct histogram *h, double q)
{
	uint64_t rank = (uint64_t)ceil(q * (double)h->total), sum = 0;
	uint32_t part = 0, i;

	if (!h->total)
		return UNKNOWN_U64;
	if (!rank)
		rank = 1;
	while (part < HISTOGRAM_PARTS - 1 && sum + h->in_part[part] < rank)
		sum += h->in_part[part++];
	i = part * HISTOGRAM_PART;
	while (i < (part + 1) * HISTOGRAM_PART - 1 && sum + h->count[i] < rank)
		sum += h->count[i++];
	return (histogram_lower(i) + histogram_upper(i)) / 2;
}
