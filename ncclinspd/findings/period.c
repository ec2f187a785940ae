/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Candidates for the lag are the distances between an operation and the next few of
 * its kind, the most frequent distances first: an operation that an iteration has
 * once gives the lag, and one that it has a few times gives it as well.  Where all are of
 * one kind (gradients in buckets of one size), the gaps between them tell how many belong
 * together.
 */
#include "ncclinspd/findings/period.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "reader/base/pool.h"
#include "tables/stat.h"
#include "util/list.h"

#define HOPS		4	/* to the next few of its kind */
#define CANDIDATES	96
#define ITERATIONS	3	/* to have been seen */
#define SHARE		0.95
#define SHARE_OF_BEST	0.98
#define SHARE_TO_GO_ON	0.8
#define LAG_BY_GAPS	64	/* at most, */
#define GAPS_MOST	1024	/* by the newest of them, */
#define GAPS_ITERATIONS	6	/* of so many iterations at least, */
#define GAPS_EXPLAINED	0.9	/* the part of their variance that it explains, */
#define GAPS_UNEXPLAINED 0.5	/* and the kinds of operations do not */
#define GAPS_LONGEST	3	/* times the median gap of an iteration */
#define SINCE_MOST	128	/* iterations that a quartile is of */

static uint32_t period_held(const struct period *p)
{
	return p->count < PERIOD_TOKENS ? (uint32_t)p->count : PERIOD_TOKENS;
}

/* The i-th newest place, from 0. */
static uint32_t period_place(const struct period *p, uint32_t i)
{
	return (uint32_t)((p->count - 1 - i) % PERIOD_TOKENS);
}

static int32_t later_by(uint32_t a, uint32_t b)
{
	return (int32_t)(a - b);
}

/* Operations come in the order in which they end; here they stand as they were posted. */
void period_add(struct period *p, uint64_t token, uint64_t time_ns, struct period_part part)
{
	uint32_t us, i = 0;

	if (!p->count)
		p->origin_ns = time_ns;
	us = (uint32_t)((int64_t)(time_ns - p->origin_ns) / 1000);	/* may be before */
	if (time_ns > p->last_ns)
		p->last_ns = time_ns;
	p->count++;
	while (i < PERIOD_SHIFT && i + 1 < period_held(p) &&
	       later_by(p->ring[period_place(p, i + 1)].us, us) > 0) {
		p->ring[period_place(p, i)] = p->ring[period_place(p, i + 1)];
		i++;
	}
	p->ring[period_place(p, i)].token = (uint32_t)(token ^ token >> 32);
	p->ring[period_place(p, i)].us = us;
	p->ring[period_place(p, i)].part = part;
}

/* Share of operations that are the same as the one `lag` before, over the newest `n`. */
static double period_share(const struct period *p, uint32_t lag, uint32_t n)
{
	uint32_t same = 0;

	for (uint32_t i = 0; i < n; i++)
		same += p->ring[period_place(p, i)].token == p->ring[period_place(p,
										  i + lag)].token;
	return n ? (double)same / n : 0;
}

/* ---- candidates ------------------------------------------------------------- */

struct occurrence {
	uint32_t token;
	uint32_t age;		/* i of period_place() */
};

struct distance {
	uint32_t lag;
	uint32_t times;
};

static int calls_by_token(const void *one, const void *two)
{
	const struct occurrence *a = one, *b = two;

	if (a->token != b->token)
		return a->token < b->token ? -1 : 1;
	return a->age < b->age ? -1 : a->age > b->age;
}

static int distances_by_times(const void *one, const void *two)
{
	const struct distance *a = one, *b = two;

	if (a->times != b->times)
		return a->times > b->times ? -1 : 1;
	return a->lag < b->lag ? -1 : a->lag > b->lag;
}

static int distances_by_lag(const void *one, const void *two)
{
	const struct distance *a = one, *b = two;

	return a->lag < b->lag ? -1 : a->lag > b->lag;
}

static void sort_by_token(const struct period *p, struct occurrence *at, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		at[i] = (struct occurrence){ p->ring[period_place(p, i)].token, i };
	qsort(at, n, sizeof(*at), calls_by_token);
}

static void count_distances(const struct occurrence *at, uint32_t n, struct distance *distances)
{
	for (uint32_t i = 0; i < n; i++)
		distances[i].lag = i;
	for (uint32_t i = 0; i < n; i++)
		for (uint32_t k = i + 1; k <= i + HOPS && k < n && at[k].token == at[i].token; k++)
			distances[at[k].age - at[i].age].times++;
}

/* The most frequent ones, in growing order; how many. */
static uint32_t distances_choose(struct distance *distances, uint32_t n)
{
	uint32_t chosen = 0, longest = n / ITERATIONS;

	qsort(distances, longest + 1, sizeof(*distances), distances_by_times);
	while (chosen < CANDIDATES && chosen <= longest && distances[chosen].times)
		chosen++;
	qsort(distances, chosen, sizeof(*distances), distances_by_lag);
	return chosen;
}

static uint32_t best_lag(const struct period *p, const struct distance *candidates, uint32_t n)
{
	double share[CANDIDATES], most = 0;

	for (uint32_t i = 0; i < n; i++) {
		share[i] = period_share(p, candidates[i].lag, period_held(p) - candidates[i].lag);
		if (share[i] > most)
			most = share[i];
	}
	for (uint32_t i = 0; i < n; i++)
		if (share[i] >= SHARE && share[i] >= SHARE_OF_BEST * most)
			return candidates[i].lag;
	return 0;
}

/* 0: there is none, or no memory to find it. */
static uint32_t find_lag(const struct period *p)
{
	uint32_t n = period_held(p), lag = 0;
	struct occurrence *at = malloc(n * sizeof(*at));
	struct distance *distances = calloc(n, sizeof(*distances));

	if (at && distances) {
		sort_by_token(p, at, n);
		count_distances(at, n, distances);
		lag = best_lag(p, distances, distances_choose(distances, n));
	}
	free(at);
	free(distances);
	return lag;
}

/* ---- by gaps ----------------------------------------------------------------- */

static uint32_t gap_before(const struct period *p, uint32_t i)
{
	int32_t us = later_by(p->ring[period_place(p, i)].us, p->ring[period_place(p, i + 1)].us);

	return us > 0 ? (uint32_t)us : 0;
}

/* The part of the variance of `n` gaps that lies between the places of an iteration. */
static double gaps_explained(const struct period *p, uint32_t lag, uint32_t n, double mean[])
{
	double sum = 0, square = 0, between = 0;

	memset(mean, 0, lag * sizeof(*mean));
	for (uint32_t i = 0; i < n; i++) {
		double gap = gap_before(p, i);

		mean[i % lag] += gap;
		sum += gap;
		square += gap * gap;
	}
	for (uint32_t k = 0; k < lag; k++) {
		uint32_t times = n / lag + (k < n % lag);

		between += mean[k] * mean[k] / times;
		mean[k] /= times;
	}
	square -= sum * sum / n;
	return square > 0 ? (between - sum * sum / n) / square : 0;
}

/* One gap stands out: what is between two others is no iteration. */
static bool gaps_have_a_longest(double mean[], uint32_t lag)
{
	stat_sort(mean, lag);
	return mean[lag - 1] >= GAPS_LONGEST * mean[lag / 2];
}

/* Iterations of one kind of operations are several that the kinds make. */
static uint32_t lag_by_gaps(const struct period *p, uint32_t lag)
{
	uint32_t n = period_held(p) - 1 < GAPS_MOST ? period_held(p) - 1 : GAPS_MOST;
	double mean[LAG_BY_GAPS];

	if (lag > LAG_BY_GAPS / 2 || gaps_explained(p, lag, n, mean) > GAPS_UNEXPLAINED)
		return lag;
	for (uint32_t more = 2 * lag; more <= LAG_BY_GAPS && more * GAPS_ITERATIONS <= n;
	     more += lag)
		if (gaps_explained(p, more, n, mean) >= GAPS_EXPLAINED &&
		    gaps_have_a_longest(mean, more))
			return more;
	return lag;
}

/* ---- how long ---------------------------------------------------------------- */

/* An iteration begins with the operation that comes after the longest gaps. */
static uint32_t find_anchor(const struct period *p)
{
	uint64_t longest = 0;
	uint32_t anchor = 0, n = period_held(p) - 1;

	for (uint32_t residue = 0; residue < p->lag; residue++) {
		uint64_t sum = 0, times = 0;

		for (uint32_t i = residue; i < n; i += p->lag, times++)
			sum += gap_before(p, i);
		if (times && sum / times > longest) {
			longest = sum / times;
			anchor = residue;
		}
	}
	return anchor;
}

static bool period_measure(struct period *p)
{
	uint32_t end = period_held(p);
	LIST(double) us;

	if (list_init(&us, end / p->lag) < 0)
		return false;
	for (uint32_t i = find_anchor(p); i + p->lag < end; i += p->lag)
		*list_must_add(&us) = p->ring[period_place(p, i)].us -
				      p->ring[period_place(p, i + p->lag)].us;
	stat_sort(us.at, us.n);
	p->median_ns = (uint64_t)us.at[us.n / 2] * 1000;
	p->p95_ns = (uint64_t)us.at[us.n - 1 - us.n / 20] * 1000;
	list_deinit(&us);
	return true;
}

/* ---- when to look -------------------------------------------------------------- */

static bool period_goes_on(struct period *p)
{
	uint32_t n = 2 * p->lag;

	if (p->count - p->checked < p->lag)
		return true;
	p->checked = p->count;
	if (n + p->lag > period_held(p))
		n = period_held(p) - p->lag;
	return period_share(p, p->lag, n) >= SHARE_TO_GO_ON && period_measure(p);
}

/* Again when there is a good deal more to look at than the last time, or all that there is. */
static bool is_worth_a_try(const struct period *p, bool rests)
{
	uint32_t before = p->tried < PERIOD_TOKENS ? (uint32_t)p->tried : PERIOD_TOKENS;

	return p->count - p->tried >= (rests ? 1 : 16 + before / 4);
}

/* Of the newest iteration but one: of the newest, operations may be missing that end late. */
static uint64_t period_kind(const struct period *p)
{
	uint64_t kind = p->lag;

	for (uint32_t i = p->lag; i < 2 * p->lag; i++)
		kind += index_mix(p->ring[period_place(p, i)].token, p->lag);
	return kind;
}

bool period_find(struct period *p, bool rests)
{
	if (p->lag && period_goes_on(p))
		return true;
	p->lag = 0;
	if (!is_worth_a_try(p, rests))
		return false;
	p->tried = p->count;
	p->checked = p->count;
	p->lag = find_lag(p);
	if (p->lag)
		p->lag = lag_by_gaps(p, p->lag);
	if (p->lag && !period_measure(p))
		p->lag = 0;
	p->kind = period_kind(p);
	return p->lag;
}

struct period_quartiles period_since(const struct period *p, uint64_t from_ns)
{
	uint32_t from_us = from_ns > p->origin_ns ? (uint32_t)((from_ns - p->origin_ns) / 1000) : 0;
	struct { double at[SINCE_MOST]; uint32_t n; } us = { .n = 0 };
	uint32_t held = period_held(p), n = 0, stride;

	while (n + p->lag < held && later_by(p->ring[period_place(p, n)].us, from_us) > 0)
		n++;
	stride = n / SINCE_MOST + 1;
	for (uint32_t i = 0; i < n; i += stride)
		*array_must_add(us.at, &us.n) = p->ring[period_place(p, i)].us -
						p->ring[period_place(p, i + p->lag)].us;
	if (!us.n)
		return (struct period_quartiles){ 0, 0 };
	stat_sort(us.at, us.n);
	return (struct period_quartiles){
		.lower_ns = (uint64_t)us.at[us.n / 4] * 1000,
		.upper_ns = (uint64_t)us.at[us.n - 1 - us.n / 4] * 1000,
	};
}

/* ---- what is in one ------------------------------------------------------------ */

/* One place of an iteration, over several of them. */
struct period_sum {
	double inside_ns, moving_ns;
	uint32_t n;
};

/* The newest `n`, and before these as far as it takes to know each place; how many are not. */
static uint32_t period_sum_up(const struct period *p, uint32_t n, struct period_sum *at)
{
	uint32_t unknown = p->lag;

	for (uint32_t i = 0; i < period_held(p) && (i < n || unknown); i++) {
		struct period_part part = p->ring[period_place(p, i)].part;
		struct period_sum *sum = &at[i % p->lag];

		if (isnan(part.inside_ns))
			continue;
		unknown -= !sum->n++;
		sum->inside_ns += (double)part.inside_ns;
		sum->moving_ns += (double)part.moving_ns;
	}
	return unknown;
}

/* Operations in whole iterations within the window, one at least. */
static uint32_t period_whole(const struct period *p, uint64_t window_ns)
{
	uint32_t newest = p->ring[period_place(p, 0)].us, n = 0;

	while (n + p->lag < period_held(p) &&
	       (uint64_t)(newest - p->ring[period_place(p, n)].us) * 1000 < window_ns)
		n++;
	return n < p->lag ? p->lag : n - n % p->lag;
}

struct period_step period_step(const struct period *p, uint64_t window_ns)
{
	uint32_t n = period_whole(p, window_ns);
	struct period_sum *at = calloc(p->lag, sizeof(*at));
	struct period_step step = {
		.step_ns = (uint64_t)(p->ring[period_place(p, 0)].us -
				      p->ring[period_place(p, n)].us) * 1000 / (n / p->lag),
		.inside_ns = -1, .moving_ns = -1, .kind = p->kind,
	};

	if (at && !period_sum_up(p, n, at)) {
		step.inside_ns = step.moving_ns = 0;
		for (uint32_t i = 0; i < p->lag; i++) {
			step.inside_ns += at[i].inside_ns / at[i].n;
			step.moving_ns += at[i].moving_ns / at[i].n;
		}
	}
	free(at);
	return step;
}
