/* SPDX-License-Identifier: Apache-2.0 */
/* A median that each stage writes for itself is another one each time: here is the one. */
#include "tables/stat.h"

#include <math.h>
#include <stdlib.h>

int stat_compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

#define FEW	16	/* are sorted faster than by qsort() */

void stat_sort(double *values, size_t n)
{
	if (n > FEW) {
		qsort(values, n, sizeof(*values), stat_compare);
		return;
	}
	for (size_t i = 1; i < n; i++) {
		double value = values[i];
		size_t at = i;

		for (; at && values[at - 1] > value; at--)
			values[at] = values[at - 1];
		values[at] = value;
	}
}

double stat_median(double *values, size_t n)
{
	stat_sort(values, n);
	return n % 2 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
}

double stat_quantile(double *values, size_t n, double q)
{
	size_t rank = (size_t)ceil(q * (double)n);

	stat_sort(values, n);
	return values[rank ? rank - 1 : 0];
}

double stat_mad(double *values, size_t n, double middle)
{
	for (size_t i = 0; i < n; i++)
		values[i] = fabs(values[i] - middle);
	return stat_median(values, n);
}

void stat_theil_sen(const double *x, const double *y, size_t n, double *scratch,
		    double *slope, double *at_zero)
{
	double *next = scratch;

	for (size_t i = 0; i < n; i++)
		for (size_t k = i + 1; k < n; k++)
			*next++ = (y[k] - y[i]) / (x[k] - x[i]);
	*slope = stat_median(scratch, STAT_PAIRS(n));
	for (size_t i = 0; i < n; i++)
		scratch[i] = y[i] - *slope * x[i];
	*at_zero = stat_median(scratch, n);
}
