/* SPDX-License-Identifier: Apache-2.0 */
#ifndef JUDGE_CUSUM_H
#define JUDGE_CUSUM_H

/*
 * Has a series changed its level?  Two one-sided cumulative sums (Page, Biometrika 41,
 * 1954) of how far each sample lies from what was learned, in standard deviations:
 *
 *     S+ <- max(0, S+ + (x - mean) / sigma - k)        S- likewise, downwards
 *
 * and an alarm when one of them passes h.  The mean is a median and sigma 1.4826 times
 * the median deviation from it, so that a few wild samples do not spoil them.
 *
 * After an alarm the new level is learned once 30 samples in a row are steady; the
 * alarm stays until the series is back.
 */

#include <stdbool.h>
#include <stdint.h>

#define CUSUM_K		0.5	/* sigma: half of the change that is looked for */
#define CUSUM_LEARN	200	/* samples */
#define CUSUM_STEADY	30
#define CUSUM_SIGMA_MIN	0.01	/* sigma of logarithms: one percent */

/* Zeroed storage has learned nothing. */
struct cusum {
	double mean, sigma;	/* sigma 0: still learning */
	double sum[2];		/* S+, S- */
	uint32_t run[2];	/* samples since it left 0 */
	int alarm;		/* 1: up, -1: down, 0: none */
	double before;		/* the mean that the alarm is against */
	double recent;		/* the present level of the series: a moving average */
	uint32_t n;		/* samples in the ring, while learning or after an alarm */
	float ring[CUSUM_LEARN];
};

/* Begin with what is known from before. */
void cusum_start(struct cusum *c, double mean, double sigma);

/* The alarm after this sample; NaN and infinity are ignored. */
int cusum_add(struct cusum *c, double x, double h);

/* Distance of the series from its former level, by its moving average. */
double cusum_change(const struct cusum *c);

/* Samples ago that the change in that direction (1, -1) began; 0: none is under way. */
uint32_t cusum_onset(const struct cusum *c, int direction);

/*
 * Mean number of samples to a false alarm of one side: (e^(2kd) - 2kd - 1) / (2k^2) with
 * d = h + 1.166 (Siegmund, Sequential Analysis, 1985); and the h for such a number.
 */
double cusum_run_length(double h);
double cusum_limit(double run_length);

#endif
