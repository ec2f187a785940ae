/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One series by itself: learning, the sums, the alarm, and the limit h for a number of
 * samples to a false alarm.  Pure arithmetic, for any series of logarithms.
 */
#include "judge/cusum.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tables/stat.h"
#include "util/list.h"

#define RECENT		0.2	/* weight of the newest sample */
#define STEADY_TIMES	2	/* sigma of a steady series, against the learned one */
#define BACK		0.5	/* part of the change: nearer to the old level than to the new */
#define OVERSHOOT	1.166
#define CALM		4	/* sums beyond which a change may be under way: it is not learned */

/* Median and deviation of the ring's samples. */
static void cusum_learn(const struct cusum *c, double *mean, double *sigma)
{
	double values[CUSUM_LEARN];

	for (uint32_t i = 0; i < c->n; i++)
		values[i] = (double)c->ring[i];
	*mean = stat_median(values, c->n);
	*sigma = fmax(CUSUM_SIGMA_MIN, STAT_MAD_TO_SIGMA * stat_mad(values, c->n, *mean));
}

static void cusum_set_level(struct cusum *c, double mean, double sigma, uint32_t learned)
{
	c->mean = mean;
	c->sigma = sigma;
	c->learned = learned;
}

static void cusum_restart(struct cusum *c, double mean, double sigma)
{
	cusum_set_level(c, mean, sigma, c->learned);
	c->start = (struct cusum_level){ mean, sigma, c->learned };
	memset(c->sum, 0, sizeof(c->sum));
	memset(c->run, 0, sizeof(c->run));
	c->n = 0;
}

void cusum_start(struct cusum *c, double mean, double sigma, uint32_t learned)
{
	*c = (struct cusum){
		.recent = mean, .learned = learned < CUSUM_LEARN ? learned : CUSUM_LEARN,
	};
	cusum_restart(c, mean, fmax(CUSUM_SIGMA_MIN, sigma));
}

static void cusum_add_up(struct cusum *c, double x)
{
	double doubt = CUSUM_DOUBT * (1 / sqrt(c->learned) - 1 / sqrt(CUSUM_LEARN));
	double away = (x - c->mean) / (c->sigma * (1 + doubt));

	for (int side = 0; side < 2; side++) {
		c->sum[side] += (side ? -away : away) - CUSUM_K - doubt;
		c->run[side]++;
		if (c->sum[side] > 0)
			continue;
		c->sum[side] = 0;
		c->run[side] = 0;
	}
}

/* More samples make a better level; what is known of sums stays. */
static void learn_more(struct cusum *c, double x)
{
	double mean, sigma, old;

	*array_must_add(c->ring, &c->n) = (float)x;
	if (c->n < CUSUM_LEAST)
		return;
	cusum_learn(c, &mean, &sigma);
	old = (double)c->start.learned / (c->start.learned + c->n);
	cusum_set_level(c, mean + old * (c->start.mean - mean),
			sigma + old * (c->start.sigma - sigma), c->start.learned + c->n);
}

/* Enough steady samples are the new level, after an alarm. */
static void learn_anew(struct cusum *c, double x)
{
	double mean, sigma;

	*array_must_add(c->ring, &c->n) = (float)x;
	if (c->n < CUSUM_STEADY)
		return;
	cusum_learn(c, &mean, &sigma);
	if (sigma <= STEADY_TIMES * c->sigma)
		cusum_restart(c, mean, c->sigma);
	else
		memmove(c->ring, c->ring + 1, --c->n * sizeof(*c->ring));
}

static void look_whether_back(struct cusum *c)
{
	double away = (c->recent - c->before) * c->alarm;
	double reached = fabs(c->mean - c->before);

	c->reached = fmax(c->reached, away);
	if (!(reached > 0))	/* the new level is not learned yet */
		reached = c->reached;
	if (away > BACK * fmax(reached, 2 * c->sigma))
		return;
	c->alarm = 0;
	cusum_restart(c, c->before, c->sigma);
}

/* A new alarm in the other direction is the way back, or to beyond: it begins anew. */
static void raise_alarm(struct cusum *c, int direction)
{
	if (!c->alarm)
		c->before = c->mean;
	c->alarm = direction;
	c->reached = 0;
	c->n = 0;
	memset(c->sum, 0, sizeof(c->sum));
}

/* During an alarm the way back ends at the old level, so that one wild sample is no way back. */
static double cusum_bound(const struct cusum *c, double x)
{
	return c->alarm > 0 ? fmax(x, c->before) : c->alarm < 0 ? fmin(x, c->before) : x;
}

bool cusum_is_known(const struct cusum *c)
{
	return c->learned >= CUSUM_FIRST;
}

int cusum_add(struct cusum *c, double x, double h)
{
	bool known = cusum_is_known(c);

	if (!isfinite(x))
		return c->alarm;
	c->recent = c->learned || c->n ? c->recent + RECENT * (cusum_bound(c, x) - c->recent) : x;
	if (known)
		cusum_add_up(c, x);
	if (c->alarm)
		learn_anew(c, x);
	else if (c->learned < CUSUM_LEARN && fmax(c->sum[0], c->sum[1]) < CALM)
		learn_more(c, x);
	if (!known)
		return 0;
	if (c->alarm)
		look_whether_back(c);
	else if (c->sum[0] > h || c->sum[1] > h)
		raise_alarm(c, c->sum[0] > h ? 1 : -1);
	return c->alarm;
}

double cusum_change(const struct cusum *c)
{
	return c->recent - (c->alarm ? c->before : c->mean);
}

uint32_t cusum_onset(const struct cusum *c, int direction)
{
	return c->run[direction < 0];
}

double cusum_run_length(double h)
{
	double exponent = 2 * CUSUM_K * (h + OVERSHOOT);

	return (exp(exponent) - exponent - 1) / (2 * CUSUM_K * CUSUM_K);
}

/* The length grows with h: halving finds it. */
double cusum_limit(double run_length)
{
	double low = 0, high = 40;

	while (high - low > 1e-6) {
		double h = (low + high) / 2;

		if (cusum_run_length(h) < run_length)
			low = h;
		else
			high = h;
	}
	return high;
}
