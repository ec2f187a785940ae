/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TABLES_HISTOGRAM_H
#define TABLES_HISTOGRAM_H

/*
 * Histograms of 64 equal buckets per power of two, so that a quantile is within 0.8 % of the
 * sample.  Bucket i of an octave e holds 2^e (1 + i/64) <= v < 2^e (1 + (i+1)/64).  Values below
 * 2^8 and from 2^48 on go to the end buckets: 256 ns to three days for times, 256 kB/s and more
 * for rates in kB/s.
 */

#include <stdbool.h>
#include <stdint.h>

#define HISTOGRAM_SUB_BITS	6
#define HISTOGRAM_SUB		(1 << HISTOGRAM_SUB_BITS)	/* buckets per octave */
#define HISTOGRAM_PART		16	/* buckets that are kept together */
#define HISTOGRAM_FIRST		8	/* first octave */
#define HISTOGRAM_OCTAVES	40
#define HISTOGRAM_BUCKETS	(HISTOGRAM_SUB * HISTOGRAM_OCTAVES)

#define HISTOGRAM_PARTS		(HISTOGRAM_BUCKETS / HISTOGRAM_PART)

/*
 * Counts that can be merged and asked; a query's result, 21 KiB.  Few parts have any: the
 * counts of one that has none are anything, so that nobody clears or walks them.
 */
struct histogram {
	uint64_t total;
	uint64_t in_part[HISTOGRAM_PARTS];
	uint64_t count[HISTOGRAM_BUCKETS];
};

/*
 * The bucket that a value falls into, 0 to HISTOGRAM_BUCKETS - 1: the octave above the leading
 * bit's place, and the bits that follow that bit.
 */
static inline uint32_t histogram_bucket(uint64_t value)
{
	uint32_t exponent, bucket;

	if (value < UINT64_C(1) << HISTOGRAM_FIRST)
		return 0;
	exponent = 63 - (uint32_t)__builtin_clzll(value);
	bucket = (exponent - HISTOGRAM_FIRST) * HISTOGRAM_SUB +
		 (value >> (exponent - HISTOGRAM_SUB_BITS)) % HISTOGRAM_SUB;
	return bucket < HISTOGRAM_BUCKETS ? bucket : HISTOGRAM_BUCKETS - 1;
}

/* Bounds of a bucket: [lower, upper). */
uint64_t histogram_lower(uint32_t bucket);
uint64_t histogram_upper(uint32_t bucket);

/* Make it empty, whatever it holds. */
void histogram_clear(struct histogram *h);

/* Add the counts of the buckets from part * HISTOGRAM_PART on: how parts become a whole. */
void histogram_merge_part(struct histogram *h, uint32_t part,
			  const uint32_t count[HISTOGRAM_PART]);

/*
 * The q-quantile (0 <= q <= 1): what stands at rank ceil(q * total) of the sorted
 * values, as the middle of its bucket.  UNKNOWN_U64 (all ones) when empty.
 */
uint64_t histogram_quantile(const struct histogram *h, double q);

#endif
