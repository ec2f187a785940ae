/* SPDX-License-Identifier: Apache-2.0 */
#include "tables/histogram.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "reader/base/model.h"
#include "tests/fixture.h"

#define ERROR 0.0079	/* 1/128, and rounding to whole ns */

/* Evenly over the octaves from 1 us to about two days. */
static uint64_t random_duration(void)
{
	return (uint64_t)(1000 * exp2((double)(fx_random() >> 11) / 9007199254740992.0 * 37.4));
}

static void add(struct histogram *h, uint64_t value)
{
	uint32_t bucket = histogram_bucket(value), count[HISTOGRAM_PART] = { 0 };

	count[bucket % HISTOGRAM_PART] = 1;
	histogram_merge_part(h, bucket / HISTOGRAM_PART, count);
}

static int by_value(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

TEST(every_value_lies_within_the_bounds_of_its_bucket)
{
	for (int i = 0; i < 100000; i++) {
		uint64_t value = random_duration();
		uint32_t bucket = histogram_bucket(value);

		ck_assert_uint_le(histogram_lower(bucket), value);
		ck_assert_uint_lt(value, histogram_upper(bucket));
	}
}

TEST(power_of_two_is_the_first_value_of_its_bucket)
{
	for (int e = HISTOGRAM_FIRST + 1; e < HISTOGRAM_FIRST + HISTOGRAM_OCTAVES; e++) {
		uint64_t value = UINT64_C(1) << e;

		ck_assert_uint_eq(histogram_bucket(value - 1) + 1, histogram_bucket(value));
		ck_assert_uint_eq(histogram_lower(histogram_bucket(value)), value);
	}
}

TEST(values_out_of_range_go_to_the_end_buckets)
{
	ck_assert_uint_eq(histogram_bucket(0), 0);
	ck_assert_uint_eq(histogram_bucket(256), 0);
	ck_assert_uint_eq(histogram_bucket(UINT64_MAX), HISTOGRAM_BUCKETS - 1);
	ck_assert_uint_eq(histogram_bucket(UINT64_C(1) << 48), HISTOGRAM_BUCKETS - 1);
	ck_assert_uint_eq(histogram_bucket(UINT64_C(1) << 49), HISTOGRAM_BUCKETS - 1);
}

TEST_LOOP(quantiles_are_close_to_those_of_the_sorted_values, 0, 20)
{
	static const double quantiles[] = { 0, 0.1, 0.5, 0.9, 0.99, 0.999, 1 };
	enum { N = 4000 };
	static uint64_t values[N];
	static struct histogram h;
	uint32_t n;

	fx_seed((uint64_t)_i);
	n = 1 + (uint32_t)(fx_random() % N);
	memset(&h, 0xa5, sizeof(h));	/* what was there before is no count */
	histogram_clear(&h);
	for (uint32_t i = 0; i < n; i++)
		add(&h, values[i] = random_duration());
	qsort(values, n, sizeof(*values), by_value);
	for (int i = 0; i < FX_COUNT(quantiles); i++) {
		uint32_t rank = (uint32_t)ceil(quantiles[i] * n);
		double exact = (double)values[rank ? rank - 1 : 0];
		double got = (double)histogram_quantile(&h, quantiles[i]);

		ck_assert_double_le(fabs(got - exact), ERROR * exact);
	}
}

TEST(parts_make_the_histogram_of_all_values)
{
	static uint32_t part[2][HISTOGRAM_PARTS][HISTOGRAM_PART];
	static struct histogram merged, all;

	for (int i = 0; i < 10000; i++) {
		uint64_t value = random_duration();
		uint32_t bucket = histogram_bucket(value);

		part[i % 3 == 0][bucket / HISTOGRAM_PART][bucket % HISTOGRAM_PART]++;
		add(&all, value);
	}
	for (uint32_t i = 0; i < 2 * HISTOGRAM_PARTS; i++)
		histogram_merge_part(&merged, i % HISTOGRAM_PARTS,
				     part[i / HISTOGRAM_PARTS][i % HISTOGRAM_PARTS]);
	ck_assert_mem_eq(&merged, &all, sizeof(all));
}

TEST(empty_histogram_has_no_quantile)
{
	static struct histogram h;

	ck_assert_uint_eq(histogram_quantile(&h, 0.5), UNKNOWN_U64);
}

int main(void)
{
	fx_seed_anew();
	return fx_run(NULL, NULL);
}
