/* SPDX-License-Identifier: Apache-2.0 */
/* Two runs are rarely alike to the last digit: differences are told where chance makes none. */
#include "judge/difference.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tables/stat.h"

#define HISTOGRAM_ERROR	0.008	/* a quantile's (schema: times) */
#define BATCHES		8	/* parts of a run whose means are compared */
#define FREEDOM		28	/* degrees of freedom of the variance that is worked out; even */
#define MOST_LAG	0.95

/* 1.2533: standard error of a median over that of a mean; 1.2816: sigmas to the 90th percentile. */
double difference_median_bound(double p50, double p90, double n)
{
	double sigma = p90 > p50 ? (p90 - p50) / 1.2816 : 0;

	return HISTOGRAM_ERROR * p50 + DIFFERENCE_SIGMAS * 1.2533 * sigma / sqrt(n);
}

const char *difference_test_name(enum difference_test test)
{
	static const char *const names[] = {
		[DIFFERENCE_NONE] = "none", [DIFFERENCE_RANKS] = "Mann-Whitney",
		[DIFFERENCE_RANGES] = "ranges", [DIFFERENCE_LINKS] = "other links",
	};

	return names[test];
}

/* ---- levels ----------------------------------------------------------------------------- */

/* The mean without the tenth at each end; `sorted` has room for all. */
static double side_mean(const struct difference_side *s, double *sorted)
{
	uint32_t cut = s->n / 10;
	double sum = 0;

	memcpy(sorted, s->values, s->n * sizeof(*sorted));
	stat_sort(sorted, s->n);
	for (uint32_t i = cut; i < s->n - cut; i++)
		sum += sorted[i];
	return sum / (s->n - 2 * cut);
}

static double side_median(const struct difference_side *s, double *sorted)
{
	memcpy(sorted, s->values, s->n * sizeof(*sorted));
	return stat_median(sorted, s->n);
}

/* ---- ranks --------------------------------------------------------------------------------- */

static uint32_t values_below(const double *sorted, uint32_t n, double value, bool or_equal)
{
	uint32_t first = 0, end = n;

	while (first < end) {
		uint32_t middle = first + (end - first) / 2;

		if (sorted[middle] < value || (or_equal && sorted[middle] == value))
			first = middle + 1;
		else
			end = middle;
	}
	return first;
}

/* Each value's place among all of both sides; equal ones share the mean of theirs. */
static void side_rank(const struct difference_side *s, const double *all, uint32_t n, double *ranks)
{
	for (uint32_t i = 0; i < s->n; i++)
		ranks[i] = (values_below(all, n, s->values[i], false) +
			    values_below(all, n, s->values[i], true) + 1) / 2.0;
}

static double ranks_mean(const double *ranks, uint32_t n)
{
	double sum = 0;

	for (uint32_t i = 0; i < n; i++)
		sum += ranks[i];
	return sum / n;
}

/*
 * The variance of the mean over that of independent values: by the correlation of neighbours,
 * and by the means of longer parts, which know of slow changes as well.
 */
static double ranks_inflation(const double *ranks, uint32_t n)
{
	double mean = ranks_mean(ranks, n), square = 0, lag = 0, batches = 0, r;
	uint32_t each = n / BATCHES;

	for (uint32_t i = 0; i < n; i++) {
		square += (ranks[i] - mean) * (ranks[i] - mean);
		lag += i ? (ranks[i] - mean) * (ranks[i - 1] - mean) : 0;
	}
	if (square <= 0)
		return 1;
	r = lag / square < MOST_LAG ? lag / square : MOST_LAG;
	for (uint32_t i = 0; i < BATCHES; i++) {
		double d = ranks_mean(&ranks[i * each], each) - mean;

		batches += d * d;
	}
	batches *= each / (BATCHES - 1.0) / (square / (n - 1));
	return fmax(1, fmax((1 + r) / (1 - r), batches));
}

/* The sum of t^3 - t over the groups of equal values. */
static double values_ties(const double *sorted, uint32_t n)
{
	double sum = 0;

	for (uint32_t i = 0, k; i < n; i = k) {
		double t;

		for (k = i + 1; k < n && sorted[k] == sorted[i];)
			k++;
		t = k - i;
		sum += t * t * t - t;
	}
	return sum;
}

/* Standard deviations by which b is above a. */
static double ranks_test(const struct difference_side *a, const struct difference_side *b,
			 double *scratch)
{
	double na = a->n, nb = b->n, n = na + nb, *all = scratch, *of_a = all + a->n + b->n;
	double *of_b = of_a + a->n, variance, u;

	memcpy(all, a->values, a->n * sizeof(*all));
	memcpy(all + a->n, b->values, b->n * sizeof(*all));
	stat_sort(all, a->n + b->n);
	side_rank(a, all, a->n + b->n, of_a);
	side_rank(b, all, a->n + b->n, of_b);
	u = nb * ranks_mean(of_b, b->n) - nb * (nb + 1) / 2;
	variance = na * nb / 12 * (n + 1 - values_ties(all, a->n + b->n) / (n * (n - 1)));
	variance *= fmax(ranks_inflation(of_a, a->n), ranks_inflation(of_b, b->n));
	return variance > 0 ? (u - na * nb / 2) / sqrt(variance) : 0;
}

/* Student's distribution of an even number of degrees of freedom: both tails beyond t. */
static double student_tails(double t)
{
	double angle = atan(fabs(t) / sqrt(FREEDOM)), square = cos(angle) * cos(angle);
	double term = 1, sum = 1;

	for (int i = 2; i <= FREEDOM - 2; i += 2) {
		term *= square * (i - 1) / i;
		sum += term;
	}
	return fmax(0, 1 - sin(angle) * sum);
}

/* ---- ranges --------------------------------------------------------------------------------- */

static void side_range(const struct difference_side *s, double *low, double *high)
{
	*low = INFINITY;
	*high = -INFINITY;
	for (uint32_t i = 0; i < s->n; i++) {
		*low = fmin(*low, s->values[i] - s->bounds[i]);
		*high = fmax(*high, s->values[i] + s->bounds[i]);
	}
}

static bool ranges_meet(const struct difference_side *a, const struct difference_side *b)
{
	double a_low, a_high, b_low, b_high;

	side_range(a, &a_low, &a_high);
	side_range(b, &b_low, &b_high);
	return a_low <= b_high && b_low <= a_high;
}

/* ---- links ----------------------------------------------------------------------------------- */

/* The links beside one of that time: their largest over their least, and the one in the middle. */
static double others_spread(const double *sorted, uint32_t n, double time, double *middle)
{
	uint32_t own = values_below(sorted, n, time, false), others = n - 1;
#define OTHER(i) sorted[(i) + ((i) >= own)]

	*middle = (OTHER((others - 1) / 2) + OTHER(others / 2)) / 2;
	return OTHER(others - 1) / OTHER(0);
#undef OTHER
}

static void link_measure(struct difference *d, const double *a, const double *b, uint32_t n)
{
	double spread, a_middle, b_middle, alone, beside, least;

	spread = others_spread(a, n, d->a, &a_middle) * others_spread(b, n, d->b, &b_middle);
	d->change = (d->b - d->a) / d->a;
	alone = log(d->b / d->a);
	beside = alone - log(b_middle / a_middle);
	least = log(fmax(spread, 1 + DIFFERENCE_LINKS_LEAST));
	d->apart = fabs(alone) >= least && fabs(beside) >= least && alone * beside > 0;
}

void difference_measure_links(struct difference *d, uint32_t n, double *scratch)
{
	double *a = scratch, *b = scratch + n;

	for (uint32_t i = 0; i < n; i++) {
		d[i] = (struct difference){ .a = a[i] = d[i].a, .b = b[i] = d[i].b,
					    .test = n > DIFFERENCE_OTHERS ? DIFFERENCE_LINKS :
									    DIFFERENCE_NONE };
	}
	stat_sort(a, n);
	stat_sort(b, n);
	for (uint32_t i = 0; i < n && n > DIFFERENCE_OTHERS; i++)
		link_measure(&d[i], a, b, n);
}

/* ---- judgement ------------------------------------------------------------------------------ */

static enum difference_test sides_test(const struct difference_side *a,
				       const struct difference_side *b)
{
	if (a->bounds && b->bounds)
		return a->n && b->n ? DIFFERENCE_RANGES : DIFFERENCE_NONE;
	return !a->bounds && !b->bounds && a->n >= DIFFERENCE_VALUES && b->n >= DIFFERENCE_VALUES ?
	       DIFFERENCE_RANKS : DIFFERENCE_NONE;
}

void difference_measure(struct difference *d, const struct difference_side *a,
			const struct difference_side *b, double *scratch)
{
	double z = 0, scale;

	d->test = sides_test(a, b);
	d->p = d->test == DIFFERENCE_RANKS ? 1 : 0;
	d->apart = d->differs = false;
	if (d->test == DIFFERENCE_NONE)
		return;
	d->a = d->test == DIFFERENCE_RANKS ? side_mean(a, scratch) : side_median(a, scratch);
	d->b = d->test == DIFFERENCE_RANKS ? side_mean(b, scratch) : side_median(b, scratch);
	scale = d->scale > 0 ? d->scale : d->a;
	d->change = scale > 0 ? (d->b - d->a) / scale : 0;
	if (d->test == DIFFERENCE_RANKS) {
		z = ranks_test(a, b, scratch);
		d->p = student_tails(z);
		d->apart = z * d->change > 0;
	} else {
		d->apart = !ranges_meet(a, b);
	}
	d->apart &= fabs(d->change) >= DIFFERENCE_LEAST_CHANGE && fabs(d->b - d->a) >= d->least;
}

static int rows_by_p(const void *left, const void *right, void *rows)
{
	double a = ((const struct difference *)rows)[*(const uint32_t *)left].p;
	double b = ((const struct difference *)rows)[*(const uint32_t *)right].p;

	return (a > b) - (a < b);
}

/* The largest p that is within the rate, by its place among all; below 0: none is. */
static double rows_limit(const struct difference *rows, const uint32_t *order, uint32_t n)
{
	for (uint32_t i = n; i; i--)
		if (rows[order[i - 1]].p <= DIFFERENCE_RATE * i / n)
			return rows[order[i - 1]].p;
	return -1;
}

void difference_judge(struct difference *rows, uint32_t n, uint32_t *order)
{
	uint32_t tested = 0;
	double limit;

	for (uint32_t i = 0; i < n; i++)
		if (rows[i].test == DIFFERENCE_RANKS)
			order[tested++] = i;
	if (tested)
		qsort_r(order, tested, sizeof(*order), rows_by_p, rows);
	limit = rows_limit(rows, order, tested);
	for (uint32_t i = 0; i < n; i++)
		rows[i].differs = rows[i].apart &&
			(rows[i].test != DIFFERENCE_RANKS || rows[i].p <= limit);
}
