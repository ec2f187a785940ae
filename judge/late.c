/* SPDX-License-Identifier: Apache-2.0 */
/* The rank that came last in an operation, and whether it does so more often than by chance. */
#include "judge/late.h"

#include <math.h>

#include "tables/stat.h"

#define WAITED_PERCENT	130		/* percent of c*: longer is waiting */
#define TAIL_PERCENT	30		/* percent of c*: limit of all tails together ... */
#define TAIL_MOST_NS	20000		/* ... unless this is more, ns */
#define TAIL_LEAST_NS	1000		/* the least that GPUs' stamps tell apart */
#define TAILS		4		/* a spread of so many tails is lateness */

#define INHERITED	0.7	/* part of its lateness that must be waiting, or it is its own */

#define LEAST_JUDGED	20.0
#define LEAST_BURSTS	5.0	/* in one window, and LATE_BURSTS in all that are kept */
#define LEAST_SCORE	4.7
#define LEAST_COST	0.015	/* part of wall time */
#define LEAST_SHARE	0.5
#define SLOW_SHARE	0.95	/* more than that is everything */

/* ---- one operation --------------------------------------------------------- */

/*
 * The time from the first rank that left to the last; UNKNOWN_U64: the GPUs' clocks are
 * not mapped well enough to tell, or wrongly, since nobody leaves before all others have
 * come.
 */
static uint64_t leaving_apart(const struct late_part *parts, uint32_t n, uint64_t spread,
			      uint64_t most)
{
	uint64_t from = UINT64_MAX, to = 0;

	for (uint32_t i = 0; i < n; i++) {
		const struct late_part *p = &parts[i];

		if (!p->end_ns || p->end_error_ns > spread / 2)
			return UNKNOWN_U64;
		from = p->end_ns < from ? p->end_ns : from;
		to = p->end_ns > to ? p->end_ns : to;
	}
	return to - from <= most ? to - from : UNKNOWN_U64;
}

void late_measure(const struct late_part *parts, uint32_t n, struct late_op *op)
{
	*op = (struct late_op){ .least_ns = UINT64_MAX };
	for (uint32_t i = 0; i < n; i++) {
		const struct late_part *p = &parts[i];

		if (i == 0 || p->inside_ns > op->most_ns) {
			op->most_ns = p->inside_ns;
			op->first = i;
		}
		if (p->inside_ns < op->least_ns) {
			op->least_ns = p->inside_ns;
			op->last = i;
		}
	}
	op->apart_ns = leaving_apart(parts, n, op->most_ns - op->least_ns, op->most_ns);
}

/* The most that can be tail where no clock tells when ranks left. */
static uint64_t most_tail(uint64_t transfer)
{
	uint64_t most = transfer == UNKNOWN_U64 ? 0 : transfer * TAIL_PERCENT / 100;

	return (most > TAIL_MOST_NS ? most : TAIL_MOST_NS) / TAILS;
}

uint64_t late_tail(const struct late_op *op, uint64_t transfer_ns)
{
	uint64_t tail = op->apart_ns, spread = op->most_ns - op->least_ns;

	if (tail == UNKNOWN_U64)
		tail = most_tail(transfer_ns);
	return tail < spread ? tail : spread;
}

/* The median waiting of all but the last one; of an even number the lower one. */
static uint64_t parts_blame(const struct late_part *parts, uint32_t n, const struct late_op *op,
			    double *waits)
{
	uint32_t others = 0;

	for (uint32_t i = 0; i < n; i++)
		if (i != op->last) {
			waits[others] = (double)(parts[i].inside_ns - op->least_ns);
			others++;
		}
	return others ? (uint64_t)stat_quantile(waits, others, 0.5) : 0;
}

void late_rate(const struct late_part *parts, uint32_t n, int32_t nranks,
	       const struct late_usual *usual, struct late_op *op, double *scratch)
{
	uint64_t spread = op->most_ns - op->least_ns;
	bool elsewhere;

	op->rated = usual->transfer_ns != UNKNOWN_U64;
	op->slow = op->rated && (double)op->least_ns * 100 >
				(double)usual->transfer_ns * WAITED_PERCENT;
	op->slow_ns = op->slow ? op->least_ns - usual->transfer_ns : 0;
	elsewhere = (int32_t)n < nranks && op->slow;
	if (n > 1) {
		op->tail_ns = usual->tail_ns > TAIL_LEAST_NS ? usual->tail_ns : TAIL_LEAST_NS;
		op->judged = !elsewhere && usual->known && spread >= TAILS * op->tail_ns;
		op->burst = op->judged && spread >= TAILS * usual->spread_ns;
		op->blame_ns = parts_blame(parts, n, op, scratch);
	}
	if (elsewhere)
		op->last = LATE_NOBODY;
}

bool late_is_inherited(uint64_t waited_ns, uint64_t late_ns)
{
	return (double)waited_ns >= INHERITED * (double)late_ns;
}

/* ---- statistics ------------------------------------------------------------ */

/* Distance of a rank's mean lateness from the others', in robust standard deviations. */
double late_score(const struct late_view *v, uint32_t rank)
{
	const struct late_window *w = v->window;
	double *mean = v->scratch, *away = v->scratch + v->n, middle, mad, tail;

	for (uint32_t i = 0; i < v->n; i++)
		away[i] = mean[i] = (double)v->tally[i].late_ns / (double)w->judged;
	/*
	 * two ranks' median holds half of what is looked for: take the other one's mean
	 */
	middle = v->n == 2 ? mean[1 - rank] : stat_median(away, v->n);
	mad = v->n > 2 ? stat_mad(away, v->n, middle) : 0;
	tail = (double)w->tail_ns / (double)w->judged;
	return 0.6745 * (mean[rank] - middle) / (mad > tail ? mad : tail);
}

/* So much of `count` events is no chance: four standard deviations more than its share. */
static double beyond_chance(uint32_t ranks, uint64_t count)
{
	double even = 1.0 / ranks;

	return even + 4 * sqrt(even * (1 - even) / (double)count);
}

/* So much must be of one of `ranks` that it matters. */
static double worth_telling(uint32_t ranks)
{
	double even = 1.0 / ranks;

	return even * 1.5 > LEAST_SHARE ? even * 1.5 : LEAST_SHARE;
}

/* ---- limits ---------------------------------------------------------------- */

static bool window_costs(const struct late_window *w, uint64_t ns, double part)
{
	return (double)ns >= part * LEAST_COST * (double)w->wall_ns;
}

/* It is last in most that was judged; or in many, and what these cost is most of it all. */
static bool rank_is_most(const struct late_view *v, uint32_t rank, double part)
{
	const struct late_window *w = v->window;
	const struct late_tally *t = &v->tally[rank];
	double share = (double)t->last / (double)w->judged;
	double chance = beyond_chance(v->n, w->judged), least = worth_telling(v->n);
	uint64_t all_ns = 0;

	for (uint32_t i = 0; i < v->n; i++)
		all_ns += v->tally[i].blame_ns;
	return share >= part * chance && share >= part * LEAST_SHARE &&
	       (share >= part * least || (double)t->blame_ns >= part * least * (double)all_ns);
}

bool late_is_mostly_last(const struct late_view *v, uint32_t rank, double part)
{
	const struct late_tally *t = &v->tally[rank];

	return (double)v->window->judged >= part * LEAST_JUDGED && rank_is_most(v, rank, part) &&
	       window_costs(v->window, t->blame_ns + t->moved_ns, part);
}

bool late_is_steady(const struct late_view *v, uint32_t rank, double part)
{
	return late_is_mostly_last(v, rank, part) && late_score(v, rank) >= part * LEAST_SCORE;
}

/* Once is no pattern (a checkpoint, say): a rank's costliest burst is left out. */
static uint64_t tally_repeated_ns(const struct late_tally *t)
{
	return t->burst_ns - t->burst_most_ns;
}

bool late_is_bursty(const struct late_view *v, uint32_t rank, double part)
{
	const struct late_window *w = v->window;
	const struct late_tally *t = &v->tally[rank];
	double share = fmax(beyond_chance(v->n, w->bursts), worth_telling(v->n));
	uint64_t all_ns = 0;

	for (uint32_t i = 0; i < v->n; i++)
		all_ns += tally_repeated_ns(&v->tally[i]);
	return (double)t->bursts >= part * LEAST_BURSTS &&
	       window_costs(w, tally_repeated_ns(t), part) &&
	       (double)tally_repeated_ns(t) >= part * share * (double)all_ns;
}

/*
 * The last one is, by chance, not seen in (nranks - n) of nranks operations; this is
 * half of the way from there to each.  All of them would be slower: whose doing that is
 * cannot be told.
 */
bool late_is_elsewhere(const struct late_view *v, uint32_t rank, double part)
{
	const struct late_window *w = v->window;
	double rated = (double)w->rated, slow = (double)w->slow;

	(void)rank;
	return (int32_t)v->n < v->nranks && rated >= part * LEAST_JUDGED &&
	       slow >= (1 - 0.5 * v->n / v->nranks) * rated && slow < SLOW_SHARE * rated &&
	       window_costs(w, w->slow_ns, part);
}

bool late_is_slower(const struct late_view *v, uint32_t rank, double part)
{
	const struct late_window *w = v->window;

	(void)rank;
	return (double)w->rated >= part * LEAST_JUDGED &&
	       (double)w->slow >= SLOW_SHARE * (double)w->rated &&
	       window_costs(w, w->slow_ns, part);
}

/* ---- sums ------------------------------------------------------------------- */

void late_add(struct late_window *w, const struct late_op *op)
{
	w->ops++;
	w->rated += op->rated;
	w->slow += op->slow;
	w->slow_ns += op->slow_ns;
}

void late_add_own(struct late_window *w, struct late_tally *last, const struct late_op *op,
		  uint64_t blame_ns)
{
	w->judged++;
	w->bursts += op->burst;
	w->tail_ns += op->tail_ns;
	last->last++;
	last->bursts += op->burst;
	last->blame_ns += blame_ns;
	last->burst_ns += op->burst ? blame_ns : 0;
	if (op->burst && blame_ns > last->burst_most_ns)
		last->burst_most_ns = blame_ns;
}
