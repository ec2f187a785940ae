/* SPDX-License-Identifier: Apache-2.0 */
/* A bucket is found by comparing integers: every machine puts a value into the same one. */
#include "tables/histogram.h"

#include <math.h>

#include "reader/base/model.h"

/* 2^(i/16) as a fraction of 2^63: what the top 64 bits of a value are compared with. */
static const uint64_t bounds[HISTOGRAM_SUB] = {
	UINT64_C(0x8000000000000000), UINT64_C(0x85aac367cc487b14),
	UINT64_C(0x8b95c1e3ea8bd6e6), UINT64_C(0x91c3d373ab11c336),
	UINT64_C(0x9837f0518db8a96f), UINT64_C(0x9ef5326091a111ad),
	UINT64_C(0xa5fed6a9b15138ea), UINT64_C(0xad583eea42a14ac6),
	UINT64_C(0xb504f333f9de6484), UINT64_C(0xbd08a39f580c36be),
	UINT64_C(0xc5672a115506dadd), UINT64_C(0xce248c151f8480e3),
	UINT64_C(0xd744fccad69d6af4), UINT64_C(0xe0ccdeec2a94e111),
	UINT64_C(0xeac0c6e7dd24392e), UINT64_C(0xf5257d152486cc2c),
};

/* The last i with bounds[i] < mantissa; -1 for a power of two, which has none. */
static int sub_bucket(uint64_t mantissa)
{
	int i = 0;

	if (mantissa == bounds[0])
		return -1;
	for (int step = HISTOGRAM_SUB / 2; step; step /= 2)
		if (bounds[i + step] < mantissa)
			i += step;
	return i;
}

uint32_t histogram_bucket(uint64_t value)
{
	int exponent, bucket;

	if (value <= UINT64_C(1) << HISTOGRAM_FIRST)
		return 0;
	exponent = 63 - __builtin_clzll(value);
	bucket = (exponent - HISTOGRAM_FIRST) * HISTOGRAM_SUB +
		 sub_bucket(value << (63 - exponent));
	return bucket < HISTOGRAM_BUCKETS ? (uint32_t)bucket : HISTOGRAM_BUCKETS - 1;
}

double histogram_lower(uint32_t bucket)
{
	return exp2(HISTOGRAM_FIRST + bucket / (double)HISTOGRAM_SUB);
}

double histogram_upper(uint32_t bucket)
{
	return histogram_lower(bucket + 1);
}

void histogram_merge_octave(struct histogram *h, uint32_t octave,
			    const uint32_t count[HISTOGRAM_SUB])
{
	for (uint32_t i = 0; i < HISTOGRAM_SUB; i++) {
		h->count[octave * HISTOGRAM_SUB + i] += count[i];
		h->total += count[i];
	}
}

uint64_t histogram_quantile(const struct histogram *h, double q)
{
	uint64_t rank = (uint64_t)ceil(q * (double)h->total), sum = 0;
	uint32_t i = 0;

	if (!h->total)
		return UNKNOWN_U64;
	if (!rank)
		rank = 1;
	while (i < HISTOGRAM_BUCKETS - 1 && sum + h->count[i] < rank)
		sum += h->count[i++];
	return (uint64_t)llround(exp2(HISTOGRAM_FIRST + (i + 0.5) / HISTOGRAM_SUB));
}
