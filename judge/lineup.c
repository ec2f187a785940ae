/* SPDX-License-Identifier: Apache-2.0 */
/*
 * All ranks make the same calls in the same order, so that the last calls of two fit where one is
 * shifted against the other.  A training step repeats: among several shifts that fit, the true one
 * has the calls nearest in time, as hosts run ahead of each other by much less than a step.
 */
#include "judge/lineup.h"

#define OVERLAP_LEAST	8	/* calls that must fit, or half of what there is */
#define CLEARLY		4	/* times nearer than the second best shift */

static uint64_t first_kept(const struct lineup_rank *r)
{
	return r->calls - r->n;
}

/* The mean distance in time of calls that stand for each other; < 0: the shift does not fit. */
static double shift_distance(const struct lineup_rank *a, const struct lineup_rank *b,
			     int64_t shift)
{
	uint32_t least = (a->n < b->n ? a->n : b->n) / 2, n = 0;
	double sum = 0;

	if (least > OVERLAP_LEAST)
		least = OVERLAP_LEAST;
	for (uint32_t k = 0; k < b->n; k++) {
		int64_t i = (int64_t)(first_kept(b) + k) + shift - (int64_t)first_kept(a);
		double apart;

		if (i < 0 || i >= (int64_t)a->n)
			continue;
		if (a->last[i].what != b->last[k].what)
			return -1;
		apart = (double)(int64_t)(a->last[i].at_ns - b->last[k].at_ns);
		sum += apart < 0 ? -apart : apart;
		n++;
	}
	return n && n >= least ? sum / n : -1;
}

/* Shifts with which what is kept of both overlaps. */
static void rank_line_up(const struct lineup_rank *a, struct lineup_rank *b)
{
	int64_t middle = (int64_t)(first_kept(a) - first_kept(b));
	double best = -1, second = -1;

	for (int64_t s = middle - (int64_t)b->n + 1; s < middle + (int64_t)a->n; s++) {
		double distance = shift_distance(a, b, s);

		if (distance < 0)
			continue;
		if (best < 0 || distance < best) {
			second = best;
			best = distance;
			b->shift = s;
		} else if (second < 0 || distance < second) {
			second = distance;
		}
	}
	b->by = best < 0 ? LINEUP_NOT :
		second < 0 || second > CLEARLY * best ? LINEUP_CALLS : LINEUP_TIME;
}

void lineup(struct lineup_rank *ranks, uint32_t n)
{
	for (uint32_t i = 1; i < n; i++)
		rank_line_up(&ranks[0], &ranks[i]);
	if (n) {
		ranks[0].by = ranks[0].n ? LINEUP_CALLS : LINEUP_NOT;
		ranks[0].shift = 0;
	}
}

/* Numbers count calls from 0 on, as ranks[0] does. */
static bool rank_has_called(const struct lineup_rank *r, int64_t number, uint32_t *call)
{
	int64_t i = number - r->shift - (int64_t)first_kept(r);

	if (r->by == LINEUP_NOT || i < 0 || i >= (int64_t)r->n)
		return false;
	*call = (uint32_t)i;
	return true;
}

bool lineup_lacks(const struct lineup_rank *ranks, uint32_t n, uint32_t i, uint64_t now_ns,
		  struct lineup_lack *lack)
{
	int64_t number = (int64_t)ranks[i].calls + ranks[i].shift;
	struct lineup_lack found = { .number = number + 1 };
	uint64_t first_ns = UINT64_MAX;

	if (ranks[i].by == LINEUP_NOT)
		return false;
	for (uint32_t k = 0; k < n; k++) {
		int64_t made = (int64_t)ranks[k].calls + ranks[k].shift - number;
		uint32_t call;

		if (k == i || !rank_has_called(&ranks[k], number, &call))
			continue;
		found.others++;
		if ((uint64_t)made - 1 > found.behind)
			found.behind = (uint64_t)made - 1;
		if (ranks[k].last[call].at_ns < first_ns) {
			first_ns = ranks[k].last[call].at_ns;
			found.first = k;
			found.call = call;
		}
	}
	if (!found.others || first_ns > now_ns || now_ns - first_ns < LINEUP_LATE_NS)
		return false;
	*lack = found;
	return true;
}
