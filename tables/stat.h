/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TABLES_STAT_H
#define TABLES_STAT_H

/*
 * The usual among some values, whatever a few of them say.  Values are the caller's,
 * finite, one at least, and sorted by the call.
 *
 *   median     the one in the middle, of an even number the mean of both
 *   mad        the median absolute deviation (Hampel, JASA 69, 1974): 1.4826 of it are a
 *              standard deviation of values that are normally distributed
 *   quantile   the value at rank ceil(q * n), from 1 (Hyndman and Fan, The American
 *              Statistician 50, 1996: type 1): always one of the values; with q = 0.5 of an
 *              even number the lower one in the middle
 *   theil_sen  the median of the slopes of all pairs, and the median of what that leaves
 *              (Theil, Indagationes Mathematicae 12, 1950; Sen, JASA 63, 1968)
 */

#include <stddef.h>

#define STAT_MAD_TO_SIGMA	1.4826
#define STAT_PAIRS(n)		((n) * ((n) - 1) / 2)

int stat_compare(const void *value, const void *other);	/* doubles, for bsearch() */
void stat_sort(double *values, size_t n);
double stat_median(double *values, size_t n);
double stat_quantile(double *values, size_t n, double q);

/* The median distance from `middle`; the values become their distances. */
double stat_mad(double *values, size_t n, double middle);

/*
 * The line through three points at least, no two of one x.  `scratch` has room for
 * STAT_PAIRS(n); the points stay as they are.
 */
void stat_theil_sen(const double *x, const double *y, size_t n, double *scratch,
		    double *slope, double *at_zero);

#endif
