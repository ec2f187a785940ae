/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TABLES_HISTOGRAM_H
#define TABLES_HISTOGRAM_H

/*
 * Exponential histograms: 16 buckets per power of two (base 2^(1/16), which is
 * OpenTelemetry's scale 4), so that a quantile is within 2.2 % of the sample.
 * Bucket i of an octave e holds 2^(e + i/16) < v <= 2^(e + (i+1)/16).  Values up
 * to 2^8 and above 2^48 go to the end buckets: 256 ns to three days for times, 256 kB/s and
 * more for rates in kB/s.
 */

#include <stdbool.h>
#include <stdint.h>

#define HISTOGRAM_SUB		16	/* buckets per octave */
#define HISTOGRAM_FIRST		8	/* first octave */
#define HISTOGRAM_OCTAVES	40
#define HISTOGRAM_BUCKETS	(HISTOGRAM_SUB * HISTOGRAM_OCTAVES)

/* Counts that can be merged and asked; a query's result, 5 KiB. */
struct histogram {
	uint64_t total;
	uint64_t count[HISTOGRAM_BUCKETS];
};

/* The bucket that a value falls into: 0 to HISTOGRAM_BUCKETS - 1. */
uint32_t histogram_bucket(uint64_t value);

/* Bounds of a bucket: (lower, upper]. */
double histogram_lower(uint32_t bucket);
double histogram_upper(uint32_t bucket);

/* Add the counts of one octave's buckets: how parts become a whole. */
void histogram_merge_octave(struct histogram *h, uint32_t octave,
			    const uint32_t count[HISTOGRAM_SUB]);

/*
 * The q-quantile (0 <= q <= 1): what stands at rank ceil(q * total) of the sorted
 * values, as the middle of its bucket.  UNKNOWN_U64 (all ones) when empty.
 */
uint64_t histogram_quantile(const struct histogram *h, double q);

#endif
