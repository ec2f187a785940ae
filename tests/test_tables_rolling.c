/* SPDX-License-Identifier: Apache-2.0 */
/* Quantiles of the last values, against sorting them anew each time. */
#include "tables/rolling.h"

#include <stdlib.h>
#include <string.h>

#include "reader/base/model.h"
#include "tests/fixture.h"

static int by_value(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

/* The smallest of `values` that at least `percent` of them do not exceed. */
static uint64_t slow_quantile(const uint64_t *values, uint32_t n, uint32_t percent)
{
	uint64_t sorted[ROLLING_VALUES];

	memcpy(sorted, values, n * sizeof(*values));
	qsort(sorted, n, sizeof(*sorted), by_value);
	for (uint32_t i = 0; i < n; i++)
		if ((i + 1) * 100 >= percent * n)
			return sorted[i];
	return UNKNOWN_U64;
}

TEST_LOOP(quantiles_are_those_of_the_last_values, 0, 10)
{
	uint64_t all[1000];
	struct rolling r = { 0 };

	fx_seed((uint64_t)_i);
	for (uint32_t i = 0; i < 1000; i++) {
		uint32_t n = i + 1 < ROLLING_VALUES ? i + 1 : ROLLING_VALUES;

		all[i] = fx_random() % (_i % 2 ? 10 : UINT64_MAX);
		rolling_add(&r, all[i]);
		ck_assert_uint_eq(r.n, n);
		for (uint32_t percent = 0; percent <= 100; percent += 5)
			ck_assert_uint_eq(rolling_quantile(&r, percent),
					  slow_quantile(&all[i + 1 - n], n, percent));
	}
}

TEST(of_no_values_there_is_no_quantile)
{
	struct rolling r = { 0 };

	ck_assert_uint_eq(rolling_quantile(&r, 50), UNKNOWN_U64);
}

int main(void)
{
	return fx_run(NULL, NULL);
}
