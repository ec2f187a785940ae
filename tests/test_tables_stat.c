/* SPDX-License-Identifier: Apache-2.0 */
/* Each figure against its definition, by counting, over values that no test has seen before. */
#include "tables/stat.h"

#include <math.h>
#include <string.h>

#include "tests/fixture.h"

#define MOST	40

static double values[MOST], sorted[MOST];
static size_t n;

/* Few different values, so that many are equal. */
static void make_values(int nth)
{
	fx_seed((uint64_t)nth);
	n = 1 + fx_random() % MOST;
	for (size_t i = 0; i < n; i++)
		sorted[i] = values[i] = (double)(fx_random() % 50) - 25;
}

static size_t below(double x, bool or_equal)
{
	size_t sum = 0;

	for (size_t i = 0; i < n; i++)
		sum += values[i] < x || (or_equal && !(values[i] > x));
	return sum;
}

TEST_LOOP(median_has_half_of_the_values_on_either_side, 0, 50)
{
	double median;

	make_values(_i);
	median = stat_median(sorted, n);

	ck_assert_uint_le(2 * below(median, false), n);
	ck_assert_uint_ge(2 * below(median, true), n);
	if (n % 2 == 0)
		ck_assert_double_eq(2 * median, sorted[n / 2 - 1] + sorted[n / 2]);
}

TEST_LOOP(quantile_is_the_least_value_that_its_part_does_not_exceed, 0, 50)
{
	make_values(_i);
	for (int percent = 0; percent <= 100; percent++) {
		double x = stat_quantile(sorted, n, percent / 100.0);

		ck_assert_uint_lt(below(x, false), below(x, true));	/* one of the values */
		ck_assert_double_ge((double)below(x, true), percent / 100.0 * (double)n - 1e-9);
		if (percent)
			ck_assert_double_lt((double)below(x, false),
					    percent / 100.0 * (double)n + 1e-9);
	}
}

TEST(of_two_in_the_middle_a_quantile_is_the_lower_and_a_median_their_mean)
{
	double four[] = { 8, 1, 4, 2 };

	ck_assert_double_eq(stat_quantile(four, 4, 0.5), 2);
	ck_assert_double_eq(stat_median(four, 4), 3);
}

TEST_LOOP(half_of_the_distances_are_no_more_than_the_mad, 0, 50)
{
	double middle, mad;
	size_t nearer = 0, no_farther = 0;

	make_values(_i);
	middle = stat_median(sorted, n);
	mad = stat_mad(sorted, n, middle);
	for (size_t i = 0; i < n; i++) {
		nearer += fabs(values[i] - middle) < mad;
		no_farther += fabs(values[i] - middle) <= mad;
	}
	ck_assert_uint_le(2 * nearer, n);
	ck_assert_uint_ge(2 * no_farther, n);
}

/* Two of seven points are wild: the line goes through the others. */
TEST_LOOP(wild_points_do_not_move_the_line, 0, 20)
{
	double x[7], y[7], scratch[STAT_PAIRS(7)], slope, at_zero;
	double want_slope, want_zero;

	make_values(_i);
	want_slope = values[0];
	want_zero = values[n - 1];
	for (int i = 0; i < 7; i++) {
		x[i] = i * i + 1;
		y[i] = want_slope * x[i] + want_zero;
	}
	y[1] += 1e6;
	y[5] -= 1e7;
	stat_theil_sen(x, y, 7, scratch, &slope, &at_zero);
	ck_assert_double_eq_tol(slope, want_slope, 1e-9);
	ck_assert_double_eq_tol(at_zero, want_zero, 1e-9);
}

int main(void)
{
	fx_seed_anew();
	return fx_run(NULL, NULL);
}
