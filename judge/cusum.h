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
 * It learns from CUSUM_LEAST samples on, judges from CUSUM_FIRST, and learns on up to CUSUM_LEARN
 * of them, as long as nothing is wrong.  A level that it began with, as an earlier job left it,
 * and its own samples count by how many they are of.  A level that few samples tell of may be
 * beside the true one by some sigma / sqrt(n), and sigma itself be too small: k and sigma are the
 * larger for it by CUSUM_DOUBT * (1 / sqrt(n) - 1 / sqrt(CUSUM_LEARN)), which
 * tests/test_cusum.c measures.
 *
 * After an alarm the new level is learned once 30 samples in a row are steady; the
 * alarm stays until the series is back.
 */

#include <stdbool.h>
#include <stdint.h>

#define CUSUM_K		0.5	/* sigma: half of the change that is looked for */
#define CUSUM_LEAST	6	/* samples: fewer tell no spread */
#define CUSUM_FIRST	24
#define CUSUM_LEARN	200
#define CUSUM_DOUBT	2.0
#define CUSUM_STEADY	30
#define CUSUM_SIGMA_MIN	0.01	/* sigma of logarithms: one percent */

/* Zeroed storage has learned nothing. */
struct cusum {
	double mean, sigma;	/* sigma 0: nothing is learned */
	uint32_t learned;	/* samples that they are of */
	struct cusum_level {
		double mean, sigma;
		uint32_t learned;
	} start;		/* the level that it began with; the ring's samples come to it */
	double sum[2];		/* S+, S- */
	uint32_t run[2];	/* samples since it left 0 */
	int alarm;		/* 1: up, -1: down, 0: none */
	double before;		/* the mean that the alarm is against */
	double reached;		/* the farthest that `recent` has been from it */
	double recent;		/* the present level of the series: a moving average */
	uint32_t n;		/* samples in the ring: of the level that is being learned */
	float ring[CUSUM_LEARN];
};

/* Begin with what is known from before, of so many samples. */
void cusum_start(struct cusum *c, double mean, double sigma, uint32_t learned);

/* Are there enough samples to judge by? */
bool cusum_is_known(const struct cusum *c);

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
