/* SPDX-License-Identifier: Apache-2.0 */
#ifndef JUDGE_DIFFERENCE_H
#define JUDGE_DIFFERENCE_H

/*
 * Does a figure differ between two runs, beyond noise?  Pure functions of values, whoever made
 * them.  Both tests need DIFFERENCE_LEAST_CHANGE as well: with very many values anything differs.
 *
 *   ranks    values of single operations: the rank-sum test of Mann and Whitney (Annals of
 *            Mathematical Statistics 18, 1947), two-sided, with its variance inflated by what the
 *            values of a run depend on those before; over all such rows the false discovery rate
 *            is DIFFERENCE_RATE (Benjamini and Hochberg, JRSS B 57, 1995), which for runs that
 *            do not differ is the chance that any row says so
 *   ranges   quantiles, each with a bound: the ranges of both runs, widened by the bounds, do
 *            not meet
 *   links    figures of all links of a communicator, of which a busy host makes all longer: a
 *            link has changed by more than the others are apart, by itself and against them
 */

#include <stdbool.h>
#include <stdint.h>

#define DIFFERENCE_VALUES	16	/* single operations on each side, at least */
#define DIFFERENCE_RATE		0.01
#define DIFFERENCE_LEAST_CHANGE	0.05
#define DIFFERENCE_LINKS_LEAST	0.25	/* the same of a link */
#define DIFFERENCE_OTHERS	2	/* links beside it, at least */
#define DIFFERENCE_SIGMAS	4.0	/* a quantile's own errors within its bound */

enum difference_test {
	DIFFERENCE_NONE,	/* too little to compare */
	DIFFERENCE_RANKS,
	DIFFERENCE_RANGES,
	DIFFERENCE_LINKS,
};

/* One run's values, in the order of time.  `bounds`: of each value; NULL: single operations. */
struct difference_side {
	const double *values, *bounds;
	uint32_t n;
};

struct difference {
	double scale;		/* `change` is relative to it; 0: to the level of a */
	double least;		/* least change in the values' unit, besides the relative one */
	enum difference_test test;
	double a, b;		/* levels: means without the tenth at each end; or medians */
	double change;		/* b - a over the scale */
	double p;		/* 0 unless the test is DIFFERENCE_RANKS */
	bool apart;		/* the least change, in one direction by level and test */
	bool differs;
};

/* Fill in all but `differs`, from scale and least; `scratch` has room for twice their values. */
void difference_measure(struct difference *d, const struct difference_side *a,
			const struct difference_side *b, double *scratch);

/*
 * The links that both runs have of a communicator, whose `a` and `b` are their times for a byte.
 * `scratch` has room for twice as many.
 */
void difference_measure_links(struct difference *d, uint32_t n, double *scratch);

/* Decide which rows differ, of all that were compared together; `order` has room for n. */
void difference_judge(struct difference *rows, uint32_t n, uint32_t *order);

/* The bound of a median of n values whose 90th percentile is known, from a histogram. */
double difference_median_bound(double p50, double p90, double n);

/* "Mann-Whitney" and so on. */
const char *difference_test_name(enum difference_test test);

#endif
