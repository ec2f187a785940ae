/* SPDX-License-Identifier: Apache-2.0 */
/* Whether a rank is late is a matter of when it began: a window that began before hides it. */
#include "judge/late_series.h"

#include <string.h>

#define SLOTS		(LATE_SLOTS + 1)
#define HALF		(LATE_COST / 2)
#define NO_SCATTER	16.0	/* F of two levels against one */
#define GAPS		4	/* times from one lateness to the next: then it is over */
#define NO_WORK		2	/* windows without an operation: then it is over, too */
#define TRIALS		4	/* windows, of which */
#define OVER		3	/* ... so many, to be flagged; */
#define NOT_UNDER	2	/* ... over half, to stay so */

/* The cost of one rank, slot by slot. */
struct late_costs {
	uint32_t n;
	double ns[SLOTS], wall_ns[SLOTS];
};

static struct late_view slot_view(const struct late_series *s, const struct late_slot *slot,
				  double *scratch)
{
	return (struct late_view){ .window = &slot->sums, .tally = slot->tally, .n = s->n,
				   .nranks = s->nranks, .scratch = scratch };
}

static void slot_add(const struct late_series *s, struct late_slot *to,
		     const struct late_slot *from)
{
	late_add_window(&to->sums, &from->sums);
	for (uint32_t i = 0; i < s->n; i++)
		late_add_tally(&to->tally[i], &from->tally[i]);
}

static struct late_slot series_sum(const struct late_series *s, uint32_t from)
{
	struct late_slot sum = { .from_ns = s->slot[from].from_ns };

	for (uint32_t k = from; k <= s->nslots; k++)
		slot_add(s, &sum, &s->slot[k]);
	return sum;
}

static double ratio_of(double part, double whole)
{
	return whole > 0 ? part / whole : 0;
}

static double bounded(double value)
{
	return value < 0 ? 0 : value > 1 ? 1 : value;
}

/* ---- one rank's costs ------------------------------------------------------------- */

/* Costs beyond those of the others that are punctual by the sum of all slots. */
static struct late_costs series_costs(const struct late_series *s, const struct late_slot *all,
				      uint32_t rank)
{
	double scratch[2 * LATE_RANKS];
	const struct late_view v = slot_view(s, all, scratch);
	uint64_t most_ns = late_most_punctual_ns(&v, rank);
	struct late_costs c = { .n = s->nslots + 1 };

	for (uint32_t k = 0; k < c.n; k++) {
		const struct late_slot *slot = &s->slot[k];
		double punctual_ns = 0, n = 0;

		for (uint32_t i = 0; i < s->n; i++) {
			if (i == rank || all->tally[i].late_ns > most_ns)
				continue;
			punctual_ns += (double)slot->tally[i].late_ns;
			n++;
		}
		c.ns[k] = (double)slot->tally[rank].late_ns - ratio_of(punctual_ns, n) +
			  (double)slot->tally[rank].moved_ns;
		c.wall_ns[k] = late_watched_ns(&slot->sums);
	}
	return c;
}

static double costs_between(const struct late_costs *c, uint32_t from, uint32_t to, double *wall_ns)
{
	double ns = 0;

	*wall_ns = 0;
	for (uint32_t k = from; k < to; k++) {
		ns += c->ns[k];
		*wall_ns += c->wall_ns[k];
	}
	return ns;
}

/* A share of the time. */
static double costs_level(const struct late_costs *c, uint32_t from, uint32_t to)
{
	double wall_ns, ns = costs_between(c, from, to, &wall_ns);

	return ratio_of(ns, wall_ns);
}

static bool costs_are_half(const struct late_costs *c, uint32_t from, uint32_t to)
{
	double wall_ns, ns = costs_between(c, from, to, &wall_ns);

	return ns >= HALF * wall_ns;
}

/* The sum of squares about their mean, of shares of the time. */
static double costs_scatter(const struct late_costs *c, uint32_t from, uint32_t to)
{
	double mean = costs_level(c, from, to), sum = 0;

	for (uint32_t k = from; k < to; k++) {
		double apart = ratio_of(c->ns[k], c->wall_ns[k]) - mean;

		sum += c->wall_ns[k] * apart * apart;
	}
	return sum;
}

/* Is there a rise at `at`, from as good as nothing, or by more than costs scatter? */
static bool costs_rise(const struct late_costs *c, uint32_t at, double gain, double before,
		       double after)
{
	double scatter;

	if (after < LATE_COST || before >= after / 2)
		return false;
	if (before < HALF)
		return true;
	scatter = costs_scatter(c, 0, at) + costs_scatter(c, at, c->n);
	return c->n > 2 && gain * (c->n - 2) >= NO_SCATTER * scatter;
}

/* The slot since which it costs more than before; 0: the first. */
static uint32_t costs_onset(const struct late_costs *c)
{
	double all_wall, all = costs_between(c, 0, c->n, &all_wall), ns = 0, wall = 0, most = 0;
	uint32_t onset = 0;

	for (uint32_t k = 1; k < c->n; k++) {
		double before, after, gain;

		ns += c->ns[k - 1];
		wall += c->wall_ns[k - 1];
		if (wall <= 0 || wall >= all_wall)
			continue;
		before = ns / wall;
		after = (all - ns) / (all_wall - wall);
		gain = (after - before) * (after - before) * wall * (all_wall - wall) / all_wall;
		if (gain <= most || !costs_rise(c, k, gain, before, after))
			continue;
		most = gain;
		onset = k;
	}
	return onset;
}

/* The slot before may have been late in its last part, and the first one have begun on time. */
static uint64_t costs_onset_ns(const struct late_series *s, const struct late_costs *c,
			       uint32_t onset)
{
	uint64_t from_ns = s->slot[onset].from_ns;
	double before, after, early, missing;

	if (!onset)
		return from_ns;
	before = costs_level(c, 0, onset - 1);
	after = costs_level(c, onset + 1, c->n);
	if (after <= before)
		return from_ns;
	early = costs_level(c, onset - 1, onset);
	missing = costs_level(c, onset, onset + 1);
	early = bounded((early - before) / (after - before)) * c->wall_ns[onset - 1];
	missing = bounded((after - missing) / (after - before)) * c->wall_ns[onset];
	return from_ns + (uint64_t)missing - (uint64_t)early;
}

/* Has it cost something in the last `wall_ns` of work? */
static bool costs_go_on(const struct late_series *s, const struct late_costs *c, uint32_t onset,
			double wall_ns, uint64_t window_ns)
{
	double seen_ns = 0, idle_ns = 0;
	uint32_t from = c->n;

	while (from > onset && seen_ns < wall_ns) {
		from--;
		seen_ns += c->wall_ns[from];
		if (seen_ns <= 0)
			idle_ns += (double)s->slot[from].sums.wall_ns;
	}
	return seen_ns > 0 && idle_ns < NO_WORK * (double)window_ns &&
	       costs_are_half(c, from, c->n);
}

static bool costs_last(const struct late_series *s, const struct late_costs *c, uint32_t onset,
		       uint64_t since_ns, uint64_t window_ns, uint64_t now_ns)
{
	uint64_t lasted_ns = now_ns - since_ns;
	uint32_t from = onset;

	if (lasted_ns + window_ns / LATE_WINDOW < OVER * window_ns || c->n - onset <= OVER)
		return false;
	for (uint32_t third = 1; third <= OVER; third++) {
		uint64_t end_ns = since_ns + lasted_ns / OVER * third;
		uint32_t to = from;

		while (to < c->n && (s->slot[to].from_ns < end_ns || third == OVER))
			to++;
		if (!costs_are_half(c, from, to))
			return false;
		from = to;
	}
	return true;
}

/* ---- one rank ---------------------------------------------------------------------- */

/* Sums of the rank over the slots since it began. */
static void rank_describe(struct late_rank *r, const struct late_view *v, uint32_t rank,
			  uint64_t window_ns)
{
	double times = late_times(v, rank);
	double gaps_ns = GAPS * ratio_of((double)v->window->wall_ns, times);

	r->verdict = late_how_often(v, rank);
	r->mean_ns = late_mean_ns(v, rank);
	times *= ratio_of((double)r->window.ops, (double)v->window->ops);
	r->times = (uint64_t)(times + 0.5);
	r->score = v->window->judged ? late_score(v, rank) : 0;
	r->gaps_ns = gaps_ns > (double)window_ns / 2 ? gaps_ns : (double)window_ns / 2;
}

/* Is what was found still so?  Then the slot that has ended adds to it. */
static void rank_go_on(struct late_series *s, struct late_rank *r, const struct late_costs *c,
		       uint64_t window_ns)
{
	const struct late_slot *ended = &s->slot[s->nslots - 1];
	uint32_t rank = (uint32_t)(r - s->rank), onset = 0;
	double scratch[2 * LATE_RANKS];
	struct late_slot since;
	struct late_view v;

	while (onset + 1 < c->n && s->slot[onset + 1].from_ns <= r->since_ns)
		onset++;
	if (!costs_go_on(s, c, onset, r->gaps_ns, window_ns)) {
		*r = (struct late_rank){ 0 };
		return;
	}
	late_add_window(&r->window, &ended->sums);
	late_add_tally(&r->tally, &ended->tally[rank]);
	if (!costs_are_half(c, s->nslots - 1, s->nslots))
		return;
	since = series_sum(s, onset);
	v = slot_view(s, &since, scratch);
	rank_describe(r, &v, rank, window_ns);
}

static struct late_rank rank_suspect(const struct late_series *s, uint32_t rank,
				     const struct late_costs *c, bool ended, uint64_t window_ns,
				     uint64_t now_ns)
{
	uint32_t onset = costs_onset(c);
	uint64_t since_ns = costs_onset_ns(s, c, onset);
	struct late_rank r = { .since_ns = since_ns };
	double scratch[2 * LATE_RANKS];
	struct late_slot since;
	struct late_view v;

	if (now_ns - since_ns < window_ns / LATE_SUSPECT || costs_level(c, onset, c->n) < LATE_COST)
		return r;
	since = series_sum(s, onset);
	v = slot_view(s, &since, scratch);
	if (!late_is_late(&v, rank))
		return r;
	r.window = since.sums;
	r.window.wall_ns = now_ns - since_ns;
	r.tally = since.tally[rank];
	rank_describe(&r, &v, rank, window_ns);
	if (!costs_go_on(s, c, onset, r.gaps_ns, window_ns))
		return r;
	r.grade = ended && costs_last(s, c, onset, since_ns, window_ns, now_ns) ?
		  LATE_FOUND : LATE_SUSPECTED;
	if (r.grade == LATE_SUSPECTED && since_ns < s->slot[onset].from_ns)
		r.since_ns = s->slot[onset].from_ns;	/* better late: the earliest is kept */
	return r;
}

/* May it be late, by the open slot alone? */
static bool rank_is_worth_a_look(const struct late_series *s, uint32_t rank)
{
	const struct late_slot *open = &s->slot[s->nslots];
	const struct late_tally *t = &open->tally[rank];
	uint64_t least_ns = t->late_ns;

	for (uint32_t i = 0; i < s->n; i++)
		if (open->tally[i].late_ns < least_ns)
			least_ns = open->tally[i].late_ns;
	return (double)(t->late_ns - least_ns + t->moved_ns) >=
	       HALF * late_watched_ns(&open->sums);
}

static void series_look(struct late_series *s, bool ended, uint64_t window_ns, uint64_t now_ns)
{
	bool worth[LATE_RANKS], any = false;
	struct late_slot all;

	for (uint32_t i = 0; i < s->n; i++) {
		worth[i] = ended || (s->rank[i].grade != LATE_FOUND && rank_is_worth_a_look(s, i));
		any = any || worth[i];
	}
	if (s->n < 2 || !any)
		return;
	all = series_sum(s, 0);
	for (uint32_t i = 0; i < s->n; i++) {
		struct late_rank *r = &s->rank[i];
		struct late_costs c;

		if (!worth[i])
			continue;
		c = series_costs(s, &all, i);
		if (r->grade == LATE_FOUND)
			rank_go_on(s, r, &c, window_ns);
		else
			*r = rank_suspect(s, i, &c, ended, window_ns, now_ns);
	}
}

/* ---- all ranks that are seen --------------------------------------------------------- */

/* The number of windows that have at least that grade. */
static int trial_count(const struct late_trial *t, unsigned grade)
{
	int n = 0;

	for (int i = 0; i < TRIALS; i++)
		n += ((t->grades >> 2 * i) & 3u) >= grade;
	return n;
}

static void trial_add(struct late_trial *t, late_limits_fn *limits, const struct late_view *v,
		      uint64_t from_ns)
{
	unsigned grade = limits(v, 1) ? 2 : limits(v, 0.5);
	bool before = t->flagged;

	t->grades = (uint8_t)(t->grades << 2 | grade);
	t->flagged = trial_count(t, 2) >= OVER || (before && trial_count(t, 1) >= NOT_UNDER);
	if (grade && (t->grades >> 2 & 3u) == 0 && !before)
		t->since_ns = from_ns;
}

/* ---- from outside -------------------------------------------------------------------- */

void late_series_begin(struct late_series *s, int32_t nranks, uint64_t now_ns)
{
	s->nranks = nranks;
	s->slot[0].from_ns = now_ns;
}

/* The spread over time: what each rank has come late since the last look, if there is work. */
static void slot_note_look(struct late_series *s, struct late_slot *open)
{
	if (open->sums.ops == s->looked_ops)
		return;
	s->looked_ops = open->sums.ops;
	open->sums.looks++;
	for (uint32_t i = 0; i < s->n; i++) {
		double more = (double)(open->tally[i].late_ns - s->looked_ns[i]);

		open->tally[i].looks_square += more * more;
		s->looked_ns[i] = open->tally[i].late_ns;
	}
}

void late_series_look(struct late_series *s, uint64_t window_ns, uint64_t now_ns)
{
	struct late_slot *open = late_series_open(s);

	open->sums.wall_ns = now_ns - open->from_ns;
	slot_note_look(s, open);
	series_look(s, false, window_ns, now_ns);
}

void late_series_close(struct late_series *s, uint64_t window_ns, uint64_t now_ns)
{
	struct late_slot *open = late_series_open(s);

	open->sums.wall_ns = now_ns - open->from_ns;
	slot_note_look(s, open);
	s->looked_ops = 0;
	memset(s->looked_ns, 0, sizeof(s->looked_ns));
	if (s->nslots == LATE_SLOTS)
		memmove(s->slot, s->slot + 1, LATE_SLOTS * sizeof(s->slot[0]));
	else
		s->nslots++;
	*late_series_open(s) = (struct late_slot){ .from_ns = now_ns };
	series_look(s, true, window_ns, now_ns);
}

void late_series_close_window(struct late_series *s, uint64_t from_ns)
{
	double scratch[2 * LATE_RANKS];
	struct late_slot sum;
	struct late_view v;

	late_series_sum(s, from_ns, 0, &sum);
	v = slot_view(s, &sum, scratch);
	trial_add(&s->elsewhere, late_is_elsewhere, &v, from_ns);
	trial_add(&s->slower, late_is_slower, &v, from_ns);
}

void late_series_sum(const struct late_series *s, uint64_t from_ns, uint64_t now_ns,
		     struct late_slot *sum)
{
	*sum = (struct late_slot){ .from_ns = from_ns };
	for (uint32_t k = 0; k <= s->nslots; k++) {
		struct late_slot slot;

		if (s->slot[k].from_ns < from_ns)
			continue;
		slot = s->slot[k];
		if (k == s->nslots && now_ns > slot.from_ns)
			slot.sums.wall_ns = now_ns - slot.from_ns;
		slot_add(s, sum, &slot);
	}
}
