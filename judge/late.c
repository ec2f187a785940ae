/* SPDX-License-Identifier: Apache-2.0 */
/* The ranks that came late to an operation, and whether they do so more often than by chance. */
#include "judge/late.h"

#include <math.h>
#include <stdlib.h>

#include "tables/stat.h"

#define WAITED_PERCENT	130		/* percent of c*: longer is waiting */
#define TAIL_PERCENT	30		/* percent of c*: limit of all tails together ... */
#define TAIL_MOST_NS	20000		/* ... unless this is more, ns */
#define TAIL_LEAST_NS	1000		/* the least that GPUs' stamps tell apart */
#define TAILS		4		/* a spread of so many tails is lateness */

#define INHERITED	0.7	/* part of its lateness that must be waiting, or it is its own */

#define FOLLOWED	4	/* so many times less late than the last one: not worth it */

#define QUEUED_NS	50000	/* a launch takes so long, or ... */
#define QUEUED_PART	10	/* ... this part of the lateness: it was not queued */
#define MOST_OF_IT	0.7
#define EVENLY		1.5	/* times the mean distance, at most */

#define LEAST_RATED	20.0
#define LEAST_CHANCE	5e-4
#define LEAST_GAP	1.5	/* times what the others are apart */
#define LEAST_STEADY	(1.0 / 3)	/* part of operations */
#define LEAST_LOOKS	3
#define STEADY_LOOKS	0.5		/* part of looks */
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

/* The last one of the half that comes first; of an odd number the one in the middle counts. */
static uint64_t parts_punctual(const struct late_part *parts, uint32_t n, double *inside)
{
	for (uint32_t i = 0; i < n; i++)
		inside[i] = (double)parts[i].inside_ns;
	stat_sort(inside, n);
	return (uint64_t)inside[n / 2];
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
		op->punctual_ns = parts_punctual(parts, n, scratch);
		op->blame_ns = op->punctual_ns - op->least_ns;
	}
	if (elsewhere)
		op->last = LATE_NOBODY;
}

/* Time behind the last punctual one. */
static double part_behind(const struct late_op *op, uint64_t inside_ns)
{
	return inside_ns < op->punctual_ns ? (double)(op->punctual_ns - inside_ns) : 0;
}

void late_share(const struct late_part *parts, uint32_t n, const struct late_op *op,
		double *shares, double *scratch)
{
	double *behind = scratch, *share = scratch + n, sum = 0, from = 0;

	for (uint32_t i = 0; i < n; i++)
		behind[i] = part_behind(op, parts[i].inside_ns);
	stat_sort(behind, n);
	for (uint32_t i = 0; i < n; i++) {
		sum += (behind[i] - from) / (n - i);
		from = behind[i];
		share[i] = sum;
	}
	for (uint32_t i = 0; i < n; i++) {
		double own = part_behind(op, parts[i].inside_ns);
		const double *at = bsearch(&own, behind, n, sizeof(*behind), stat_compare);

		shares[i] = share[at - behind];
	}
}

bool late_is_worth_following(const struct late_op *op, uint64_t inside_ns)
{
	double behind = part_behind(op, inside_ns);

	return behind > 0 && behind * FOLLOWED >= (double)op->blame_ns;
}

bool late_is_inherited(uint64_t waited_ns, uint64_t late_ns)
{
	return (double)waited_ns >= INHERITED * (double)late_ns;
}

/* ---- sums ------------------------------------------------------------------- */

void late_add(struct late_window *w, const struct late_op *op, uint64_t passed)
{
	w->ops++;
	w->passed += passed;
	w->rated += op->rated;
	w->slow += op->slow;
	w->slow_ns += op->slow_ns;
}

void late_add_judged(struct late_window *w, const struct late_op *op)
{
	w->judged++;
	w->tail_ns += op->tail_ns;
}

void late_add_own(struct late_tally *t, bool last, uint64_t late_ns, uint64_t blame_ns)
{
	t->last += last;
	t->late_ns += late_ns;
	t->late_square += (double)late_ns * (double)late_ns;
	t->blame_ns += blame_ns;
}

void late_add_cause(struct late_tally *t, uint64_t late_ns, uint64_t queued_ns)
{
	if (queued_ns == UNKNOWN_U64)
		return;
	t->timed_ns += late_ns;
	if (queued_ns <= QUEUED_NS || queued_ns <= late_ns / QUEUED_PART)
		t->host_ns += late_ns;
}

void late_add_window(struct late_window *to, const struct late_window *from)
{
	to->wall_ns += from->wall_ns;
	to->ops += from->ops;
	to->passed += from->passed;
	to->judged += from->judged;
	to->rated += from->rated;
	to->slow += from->slow;
	to->slow_ns += from->slow_ns;
	to->tail_ns += from->tail_ns;
	to->looks += from->looks;
}

void late_add_tally(struct late_tally *to, const struct late_tally *from)
{
	to->last += from->last;
	to->late_ns += from->late_ns;
	to->late_square += from->late_square;
	to->looks_square += from->looks_square;
	to->blame_ns += from->blame_ns;
	to->moved_ns += from->moved_ns;
	to->timed_ns += from->timed_ns;
	to->host_ns += from->host_ns;
}

/* ---- statistics ------------------------------------------------------------ */

double late_watched_ns(const struct late_window *w)
{
	return w->passed ? (double)w->wall_ns * (double)w->ops / (double)w->passed : 0;
}

static bool window_costs(const struct late_window *w, double ns, double part)
{
	return ns >= part * LATE_COST * late_watched_ns(w);
}

uint64_t late_most_punctual_ns(const struct late_view *v, uint32_t rank)
{
	uint32_t others = 0;

	for (uint32_t i = 0; i < v->n; i++)
		if (i != rank) {
			v->scratch[others] = (double)v->tally[i].late_ns;
			others++;
		}
	return others ? (uint64_t)stat_quantile(v->scratch, others, 0.5) : 0;
}

/* The mean of the half of the others that is less late. */
static struct late_tally view_punctual(const struct late_view *v, uint32_t rank)
{
	uint64_t most_ns = late_most_punctual_ns(v, rank);
	struct late_tally sum = { 0 };
	double n = 0;

	for (uint32_t i = 0; i < v->n; i++) {
		if (i == rank || v->tally[i].late_ns > most_ns)
			continue;
		late_add_tally(&sum, &v->tally[i]);
		n++;
	}
	if (n > 0) {
		sum.late_ns = (uint64_t)((double)sum.late_ns / n);
		sum.late_square /= n;
		sum.looks_square /= n;
	}
	return sum;
}

double late_lost_ns(const struct late_view *v, uint32_t rank)
{
	const struct late_tally *t = &v->tally[rank];
	const struct late_tally punctual = view_punctual(v, rank);

	return (double)t->late_ns - (double)punctual.late_ns + (double)t->moved_ns;
}

/*
 * The number of `n` that it is late in, were it equally late in each, beyond what is usual: by the
 * sums of its lateness and of its squares, and the same of those that are usual.
 */
static double times_of(double late, double square, double usual, double usual_square, double n)
{
	double more = late - usual, rest;

	if (n <= 0 || more <= 0)
		return 0;
	rest = square - usual_square - 2 * usual / n * more;
	return rest <= 0 || more * more / rest > n ? n : more * more / rest;
}

double late_times(const struct late_view *v, uint32_t rank)
{
	const struct late_tally *t = &v->tally[rank], punctual = view_punctual(v, rank);

	return times_of((double)t->late_ns, t->late_square, (double)punctual.late_ns,
			punctual.late_square, (double)v->window->judged);
}

static bool is_late_in_most_looks(const struct late_view *v, uint32_t rank)
{
	const struct late_tally *t = &v->tally[rank], punctual = view_punctual(v, rank);
	double looks = (double)v->window->looks;

	return looks >= LEAST_LOOKS &&
	       times_of((double)t->late_ns, t->looks_square, (double)punctual.late_ns,
			punctual.looks_square, looks) >= STEADY_LOOKS * looks;
}

/* Late in so many operations that those in which it is not say little. */
static bool is_late_in_most(const struct late_view *v, uint32_t rank)
{
	return late_times(v, rank) >= LEAST_STEADY * (double)v->window->ops;
}

enum verdict late_how_often(const struct late_view *v, uint32_t rank)
{
	return is_late_in_most(v, rank) || is_late_in_most_looks(v, rank) ? VERDICT_STEADY :
									    VERDICT_INTERMITTENT;
}

uint64_t late_mean_ns(const struct late_view *v, uint32_t rank)
{
	const struct late_tally *t = &v->tally[rank];

	if (!v->window->judged || !t->late_ns)
		return 0;
	return is_late_in_most(v, rank) ? t->late_ns / v->window->judged :
					  (uint64_t)(t->late_square / (double)t->late_ns);
}

/* The probability that one of n that are alike has that part of what `tries` gave them. */
static double chance_of(double part, uint32_t n, double tries)
{
	double even = 1.0 / n, apart;

	if (part <= even)
		return 1;
	apart = part * log(part / even);
	if (part < 1)
		apart += (1 - part) * log((1 - part) / (1 - even));
	return exp(-tries * apart);
}

/*
 * The most that those are late that it is compared with: all ranks before the widest gap before
 * it; where there is none and it is the latest, all; < 0: it is one of many.
 */
static double rank_edge(const struct late_view *v, uint32_t rank)
{
	double *sorted = v->scratch, own = (double)v->tally[rank].late_ns, widest = 0, edge;

	for (uint32_t i = 0; i < v->n; i++)
		sorted[i] = (double)v->tally[i].late_ns;
	stat_sort(sorted, v->n);
	edge = own >= sorted[v->n - 1] ? own : -1;
	for (uint32_t others = v->n - v->n / 2; others < v->n; others++) {
		double gap = sorted[others] - sorted[others - 1];

		if (own < sorted[others] || gap <= widest ||
		    gap < LEAST_GAP * (sorted[others - 1] - sorted[0]))
			continue;
		widest = gap;
		edge = sorted[others - 1];
	}
	return edge;
}

static bool rank_is_no_chance(const struct late_view *v, uint32_t rank)
{
	double own = (double)v->tally[rank].late_ns, edge = rank_edge(v, rank);
	double sum = 0, square = 0;
	uint32_t n = 0;

	for (uint32_t i = 0; i < v->n && edge >= 0; i++) {
		if (i != rank && (double)v->tally[i].late_ns > edge)
			continue;
		sum += (double)v->tally[i].late_ns;
		square += v->tally[i].late_square;
		n++;
	}
	return sum > 0 && square > 0 && n > 1 &&
	       v->n * chance_of(own / sum, n, sum * sum / square) <= LEAST_CHANCE;
}

bool late_is_late(const struct late_view *v, uint32_t rank)
{
	return v->window->ops >= LATE_KNOWN && v->n > 1 &&
	       window_costs(v->window, late_lost_ns(v, rank), 1) && rank_is_no_chance(v, rank);
}

/* Distance of a rank's mean lateness from the others', in robust standard deviations. */
double late_score(const struct late_view *v, uint32_t rank)
{
	const struct late_window *w = v->window;
	double *mean = v->scratch, *away = v->scratch + v->n, middle, mad, tail;

	for (uint32_t i = 0; i < v->n; i++)
		away[i] = mean[i] = (double)v->tally[i].late_ns / (double)w->judged;
	/* The median of two ranks holds half of what is looked for. */
	middle = v->n == 2 ? mean[1 - rank] : stat_median(away, v->n);
	mad = v->n > 2 ? stat_mad(away, v->n, middle) : 0;
	tail = (double)w->tail_ns / (double)w->judged;
	return 0.6745 * (mean[rank] - middle) / (mad > tail ? mad : tail);
}

/* ---- why --------------------------------------------------------------------- */

enum late_why late_why(const struct late_tally *t)
{
	if (!t->timed_ns || (double)t->timed_ns < (1 - MOST_OF_IT) * (double)t->late_ns)
		return LATE_WHY_UNKNOWN;
	if ((double)t->host_ns >= MOST_OF_IT * (double)t->timed_ns)
		return LATE_WHY_HOST;
	return (double)t->host_ns <= (1 - MOST_OF_IT) * (double)t->timed_ns ? LATE_WHY_GPU :
									      LATE_WHY_UNKNOWN;
}

const char *late_why_text(enum late_why why)
{
	static const char *const text[] = {
#define X(NAME, string) [LATE_WHY_##NAME] = string,
		LATE_WHYS(X)
#undef X
	};

	return text[why];
}

bool late_is_spread(double *late_ns, uint32_t n)
{
	if (n < 3)
		return false;
	stat_sort(late_ns, n);
	for (uint32_t i = 1; i < n; i++)
		if ((late_ns[i] - late_ns[i - 1]) * (n - 1) >
		    EVENLY * (late_ns[n - 1] - late_ns[0]))
			return false;
	return true;
}

/* ---- all that are seen ------------------------------------------------------- */

/*
 * The last one is, by chance, not seen in (nranks - n) of nranks operations; this is
 * half of the way from there to each.  All of them would be slower: whose doing that is
 * cannot be told.
 */
bool late_is_elsewhere(const struct late_view *v, double part)
{
	const struct late_window *w = v->window;
	double rated = (double)w->rated, slow = (double)w->slow;

	return (int32_t)v->n < v->nranks && rated >= part * LEAST_RATED &&
	       slow >= (1 - 0.5 * v->n / v->nranks) * rated && slow < SLOW_SHARE * rated &&
	       window_costs(w, (double)w->slow_ns, part);
}

bool late_is_slower(const struct late_view *v, double part)
{
	const struct late_window *w = v->window;

	return (double)w->rated >= part * LEAST_RATED &&
	       (double)w->slow >= SLOW_SHARE * (double)w->rated &&
	       window_costs(w, (double)w->slow_ns, part);
}
