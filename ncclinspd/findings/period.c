/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Candidates for the lag are the distances between an operation and the next few of
 * its kind, the most frequent distances first: an operation that an iteration has
 * once gives the lag, and one that it has a few times gives it as well.  An operation
 * that comes after a long gap is of another kind than one that does not: where all are
 * alike (gradients in buckets of one size), that tells how many belong together.
 */
#include "ncclinspd/findings/period.h"

#include <math.h>
#include <stdlib.h>

#include "reader/base/pool.h"
#include "tables/stat.h"
#include "util/list.h"

#define LEAST		16	/* operations */
#define HOPS		4	/* to the next few of its kind */
#define CANDIDATES	96
#define ITERATIONS	3	/* to have been seen */
#define SHARE		0.95
#define SHARE_OF_BEST	0.98
#define SHARE_TO_GO_ON	0.8
#define LONG_GAP	3	/* times the median */
#define GAPS_RECUR	0.8
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
	uint32_t held = period_held(p), most = held < PERIOD_SHIFT ? held : PERIOD_SHIFT;
	uint32_t at = p->count % PERIOD_TOKENS, us;

	if (!p->count)
		p->origin_ns = time_ns;
	us = (uint32_t)((int64_t)(time_ns - p->origin_ns) / 1000);	/* may be before */
	if (time_ns > p->last_ns)
		p->last_ns = time_ns;
	p->count++;
	for (uint32_t i = 0; i < most; i++) {
		uint32_t before = (at - 1) % PERIOD_TOKENS;

		if (later_by(p->ring[before].us, us) <= 0)
			break;
		p->ring[at] = p->ring[before];
		at = before;
	}
	p->ring[at].token = (uint32_t)(token ^ token >> 32);
	p->ring[at].us = us;
	p->ring[at].part = part;
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

static uint32_t gap_before(const struct period *p, uint32_t i)
{
	int32_t us = later_by(p->ring[period_place(p, i)].us, p->ring[period_place(p, i + 1)].us);

	return us > 0 ? (uint32_t)us : 0;
}

/* ---- candidates ------------------------------------------------------------- */

struct distance {
	uint32_t lag;
	uint32_t times;
};

/* Room for all that are held. */
struct search {
	uint32_t *kind;
	bool *is_long;		/* the gap before it */
	double *gap;
	struct index newest;	/* kind -> the last one that was met */
	uint32_t *newer;	/* the next newer one of its kind, or POOL_NONE */
	struct distance *distances;
};

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

static double median_gap(const struct period *p, double *scratch)
{
	uint32_t n = period_held(p) - 1;

	for (uint32_t i = 0; i < n; i++)
		scratch[i] = gap_before(p, i);
	stat_sort(scratch, n);
	return n ? scratch[n / 2] : 0;
}

/* Writes the kind of each, the newest first; gaps count, or not. */
static void kinds_of(const struct period *p, bool gaps, struct search *s)
{
	uint32_t n = period_held(p);
	double median = gaps ? median_gap(p, s->gap) : 0;

	for (uint32_t i = 0; i < n; i++) {
		s->kind[i] = p->ring[period_place(p, i)].token;
		s->is_long[i] = gaps && i + 1 < n && gap_before(p, i) > LONG_GAP * median;
		if (s->is_long[i])
			s->kind[i] = ~s->kind[i];
	}
}

static void count_distances(struct search *s, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		uint32_t newer = index_find(&s->newest, s->kind[i]);

		s->newer[i] = newer;
		for (int hop = 0; hop < HOPS && newer != POOL_NONE; hop++) {
			s->distances[i - newer].times++;
			newer = s->newer[newer];
		}
		index_set(&s->newest, s->kind[i], i);
	}
}

/* The most frequent ones, in growing order; how many. */
static uint32_t distances_choose(struct distance *distances, uint32_t n)
{
	uint32_t chosen = 0;

	for (uint32_t lag = 1; lag <= n / ITERATIONS; lag++)
		if (distances[lag].times)
			distances[chosen++] = (struct distance){ lag, distances[lag].times };
	qsort(distances, chosen, sizeof(*distances), distances_by_times);
	chosen = chosen < CANDIDATES ? chosen : CANDIDATES;
	qsort(distances, chosen, sizeof(*distances), distances_by_lag);
	return chosen;
}

/* Share of operations that are of the kind of the one `lag` after; 0: less than SHARE. */
static double kinds_share(const uint32_t *kind, uint32_t lag, uint32_t n)
{
	uint32_t others = 0, most = (uint32_t)((1 - SHARE) * (n - lag)) + 1;

	for (uint32_t i = 0; i + lag < n && others <= most; i++)
		others += kind[i] != kind[i + lag];
	return others <= most ? 1 - (double)others / (n - lag) : 0;
}

/* Do long gaps come again after as many operations, and not anywhere? */
static bool gaps_recur(const struct search *s, uint32_t lag, uint32_t n)
{
	uint32_t both = 0, any = 0;

	for (uint32_t i = 0; i + lag < n; i++) {
		both += s->is_long[i] && s->is_long[i + lag];
		any += s->is_long[i] || s->is_long[i + lag];
	}
	return both >= ITERATIONS && both >= GAPS_RECUR * any;
}

static uint32_t best_lag(const struct search *s, uint32_t candidates, uint32_t n)
{
	double share[CANDIDATES], most = 0;

	for (uint32_t i = 0; i < candidates; i++) {
		share[i] = kinds_share(s->kind, s->distances[i].lag, n);
		if (share[i] > most)
			most = share[i];
	}
	for (uint32_t i = 0; i < candidates; i++)
		if (share[i] >= SHARE && share[i] >= SHARE_OF_BEST * most)
			return s->distances[i].lag;
	return 0;
}

/* 0: there is none, or no memory to find it. */
static uint32_t find_lag(const struct period *p, bool gaps)
{
	uint32_t n = period_held(p), lag = 0;
	struct search s = {
		.kind = malloc(n * sizeof(*s.kind)),
		.is_long = malloc(n * sizeof(*s.is_long)),
		.gap = malloc(n * sizeof(*s.gap)),
		.newer = malloc(n * sizeof(*s.newer)),
		.distances = calloc(n, sizeof(*s.distances)),
	};

	/* The seed is an address: jobs cannot know it. */
	if (!index_init(&s.newest, n, (uintptr_t)p) && s.kind && s.is_long && s.gap && s.newer &&
	    s.distances) {
		kinds_of(p, gaps, &s);
		count_distances(&s, n);
		lag = best_lag(&s, distances_choose(s.distances, n), n);
		if (gaps && lag && !gaps_recur(&s, lag, n))
			lag = 0;
	}
	free(s.kind);
	free(s.is_long);
	free(s.gap);
	index_deinit(&s.newest);
	free(s.newer);
	free(s.distances);
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

/*
 * Again when there is a good deal more to look at than the last time, or all that there is.
 * Gaps may tell more of one that is known, where there is twice as much.
 */
static bool is_worth_a_try(const struct period *p, bool rests)
{
	uint32_t before = p->tried < PERIOD_TOKENS ? (uint32_t)p->tried : PERIOD_TOKENS;

	if (p->lag)
		return p->count >= 2 * p->tried;
	return p->count >= LEAST && p->count - p->tried >= (rests ? 1 : LEAST + before / 4);
}

/* Takes the newest iteration but one: the newest may lack operations that end late. */
static uint64_t period_kind(const struct period *p)
{
	uint64_t kind = p->lag;

	for (uint32_t i = p->lag; i < 2 * p->lag; i++)
		kind += index_mix(p->ring[period_place(p, i)].token, p->lag);
	return kind;
}

static void period_look(struct period *p)
{
	uint32_t lag = find_lag(p, true);

	if (!lag && !p->lag)	/* the known period goes on, however uneven its gaps are now */
		lag = find_lag(p, false);
	p->tried = p->checked = p->count;
	if (!lag || lag == p->lag)	/* a period that goes on may have begun lately */
		return;
	p->lag = lag;
	if (!period_measure(p))
		p->lag = 0;
	p->kind = period_kind(p);
}

bool period_find(struct period *p, bool rests)
{
	if (p->lag && !period_goes_on(p))
		p->lag = 0;
	if (is_worth_a_try(p, rests))
		period_look(p);
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
