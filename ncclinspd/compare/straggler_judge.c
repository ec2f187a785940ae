/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The end of a window: which ranks are over the limits, which were often enough, which no
 * longer are.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "ncclinspd/compare/straggler_impl.h"
#include "tables/stat.h"

#define LEAST_JUDGED	20.0
#define LEAST_BURSTS	5.0	/* bursts in one window, and LEAST_JUDGED in all that are kept */
#define LEAST_SCORE	4.7
#define LEAST_COST	0.015	/* part of wall time */
#define LEAST_SHARE	0.5
#define SLOW_SHARE	0.95	/* more than that is everything */
#define OVER		3	/* windows, to be flagged; */
#define NOT_UNDER	2	/* ... over half, to stay so */

/* ---- statistics ------------------------------------------------------------ */

/* Distance of a rank's mean lateness from the others', in robust standard deviations. */
static double score_of(const struct window *w, uint32_t nseats, uint32_t seat)
{
	double mean[OP_RANKS], away[OP_RANKS], middle, mad, tail;

	for (uint32_t i = 0; i < nseats; i++)
		away[i] = mean[i] = (double)w->tally[i].late_ns / (double)w->judged;
	/*
	 * two ranks' median holds half of what is looked for: take the other one's mean
	 */
	middle = nseats == 2 ? mean[1 - seat] : stat_median(away, nseats);
	mad = nseats > 2 ? stat_mad(away, nseats, middle) : 0;
	tail = (double)w->tail_ns / (double)w->judged;
	return 0.6745 * (mean[seat] - middle) / (mad > tail ? mad : tail);
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

/* ---- grades ---------------------------------------------------------------- */

static bool costs(uint64_t ns, const struct window *w, double part)
{
	return (double)ns >= part * LEAST_COST * (double)w->wall_ns;
}

/* It is last in most that was judged; or in many, and what these cost is most of it all. */
static bool is_most(const struct unit *u, const struct window *w, uint32_t seat, double part)
{
	double share = (double)w->tally[seat].last / (double)w->judged;
	double chance = beyond_chance(u->nseats, w->judged), least = worth_telling(u->nseats);
	uint64_t all_ns = 0;

	for (uint32_t i = 0; i < u->nseats; i++)
		all_ns += w->tally[i].blame_ns;
	return share >= part * chance && share >= part * LEAST_SHARE &&
	       (share >= part * least ||
		(double)w->tally[seat].blame_ns >= part * least * (double)all_ns);
}

/* `part` of each limit is reached. */
static bool is_mostly_last(const struct unit *u, const struct window *w, uint32_t seat,
			   double part)
{
	const struct tally *t = &w->tally[seat];
	double judged = (double)w->judged;

	return judged >= part * LEAST_JUDGED && is_most(u, w, seat, part) &&
	       costs(t->blame_ns + t->moved_ns, w, part);
}

static bool is_steady(const struct unit *u, const struct window *w, uint32_t seat, double part)
{
	return is_mostly_last(u, w, seat, part) &&
	       score_of(w, u->nseats, seat) >= part * LEAST_SCORE;
}

/* Once is no pattern (a checkpoint, say): a rank's costliest burst is left out. */
static uint64_t repeated_ns(const struct tally *t)
{
	return t->burst_ns - t->burst_most_ns;
}

static bool is_bursty(const struct unit *u, const struct window *w, uint32_t seat, double part)
{
	const struct tally *t = &w->tally[seat];
	double share = fmax(beyond_chance(u->nseats, w->bursts), worth_telling(u->nseats));
	uint64_t all_ns = 0;

	for (uint32_t i = 0; i < u->nseats; i++)
		all_ns += repeated_ns(&w->tally[i]);
	return (double)t->bursts >= part * LEAST_BURSTS && costs(repeated_ns(t), w, part) &&
	       (double)repeated_ns(t) >= part * share * (double)all_ns;
}

/*
 * The last one is, by chance, not here in (nranks - nseats) of nranks operations; this is
 * half of the way from there to each.  All of them would be slower: whose doing that is
 * cannot be told.
 */
static bool is_elsewhere(const struct unit *u, const struct window *w, uint32_t seat, double part)
{
	double rated = (double)w->rated, slow = (double)w->slow;

	(void)seat;
	return (int32_t)u->nseats < u->nranks && rated >= part * LEAST_JUDGED &&
	       slow >= (1 - 0.5 * u->nseats / u->nranks) * rated && slow < SLOW_SHARE * rated &&
	       costs(w->slow_ns, w, part);
}

static bool is_slower(const struct unit *u, const struct window *w, uint32_t seat, double part)
{
	(void)u;
	(void)seat;
	return (double)w->rated >= part * LEAST_JUDGED &&
	       (double)w->slow >= SLOW_SHARE * (double)w->rated && costs(w->slow_ns, w, part);
}

typedef bool limits_fn(const struct unit *u, const struct window *w, uint32_t seat, double part);

/* The number of windows that have at least that grade. */
static int count_grades(uint8_t grades, unsigned grade)
{
	int n = 0;

	for (int i = 0; i < WINDOWS; i++)
		n += ((grades >> 2 * i) & 3u) >= grade;
	return n;
}

static void try(struct trial *t, limits_fn *limits, const struct unit *u, uint32_t seat,
		uint64_t opened_ns)
{
	const struct window *w = &u->window[u->current];
	unsigned grade = limits(u, w, seat, 1) ? 2 : limits(u, w, seat, 0.5);
	bool before = t->flagged;

	t->grades = (uint8_t)(t->grades << 2 | grade);
	t->flagged = count_grades(t->grades, 2) >= OVER ||
		     (before && count_grades(t->grades, 1) >= NOT_UNDER);
	if (grade && (t->grades >> 2 & 3u) == 0 && !before)
		t->since_ns = opened_ns;
}

static uint64_t all_bursts(const struct unit *u, uint32_t seat)
{
	uint64_t n = 0;

	for (uint32_t i = 0; i < WINDOWS; i++)
		n += u->window[i].tally[seat].bursts;
	return n;
}

static void judge_unit(struct unit *u, uint64_t opened_ns)
{
	for (uint32_t i = 0; i < u->nseats; i++) {
		struct seat *seat = &u->seat[i];

		try(&seat->steady, is_steady, u, i, opened_ns);
		try(&seat->intermittent, is_bursty, u, i, opened_ns);
		if ((double)all_bursts(u, i) < LEAST_JUDGED)
			seat->intermittent.flagged = false;
	}
	try(&u->elsewhere, is_elsewhere, u, 0, opened_ns);
	try(&u->slower, is_slower, u, 0, opened_ns);
}

void straggler_close(struct straggler *s, uint64_t now_ns)
{
	const struct store *st = &s->units;

	for (uint32_t item = st->lru.first; item != POOL_NONE;
	     item = pool_list_next(&st->pool, &st->lru, item)) {
		struct unit *u = unit_at(s, item);

		u->window[u->current].wall_ns = now_ns - s->opened_ns;
		judge_unit(u, s->opened_ns);
		u->current = (u->current + 1) % WINDOWS;
		u->window[u->current] = (struct window){ 0 };
	}
	s->opened_ns = now_ns;
	s->windows++;
}

/* ---- what is flagged --------------------------------------------------------- */

static void add_window(struct window *sum, const struct window *w, uint32_t nseats)
{
	sum->wall_ns += w->wall_ns;
	sum->ops += w->ops;
	sum->judged += w->judged;
	sum->bursts += w->bursts;
	sum->rated += w->rated;
	sum->slow += w->slow;
	sum->slow_ns += w->slow_ns;
	sum->tail_ns += w->tail_ns;
	for (uint32_t k = 0; k < nseats; k++) {
		struct tally *to = &sum->tally[k];

		to->last += w->tally[k].last;
		to->bursts += w->tally[k].bursts;
		to->late_ns += w->tally[k].late_ns;
		to->blame_ns += w->tally[k].blame_ns;
		to->burst_ns += w->tally[k].burst_ns;
		to->moved_ns += w->tally[k].moved_ns;
	}
}

/* The windows that have ended, together. */
static struct window sum_of(const struct unit *u)
{
	struct window sum = { 0 };

	for (uint32_t i = 0; i < WINDOWS; i++)
		if (u->window[i].wall_ns)
			add_window(&sum, &u->window[i], u->nseats);
	return sum;
}

static bool names_one(enum verdict verdict)
{
	return verdict == VERDICT_STEADY || verdict == VERDICT_INTERMITTENT;
}

static struct straggler_case case_of(const struct unit *u, const struct window *sum,
				     uint32_t seat, const struct trial *trial,
				     enum verdict verdict)
{
	return (struct straggler_case){
		.verdict = verdict,
		.key = names_one(verdict) ? u->seat[seat].part.gpu : u->key,
		.func = u->func,
		.nranks = u->nranks,
		.local = u->nseats,
		.who = u->seat[seat].part,
		.since_ns = trial->since_ns,
		.wall_ns = sum->wall_ns,
		.ops = sum->ops,
	};
}

/* All that is judged may still be little where nobody else is ever late. */
static enum verdict how_often(const struct window *sum, const struct tally *t)
{
	return 2 * t->last >= sum->ops ? VERDICT_STEADY : VERDICT_INTERMITTENT;
}

static void tell_seat(const struct unit *u, const struct window *sum, uint32_t i,
		      straggler_case_fn *visit, void *arg)
{
	const struct seat *seat = &u->seat[i];
	const struct tally *t = &sum->tally[i];
	struct straggler_case c;

	if (seat->steady.flagged) {
		c = case_of(u, sum, i, &seat->steady, how_often(sum, t));
		c.judged = sum->judged;
		c.last = t->last;
		c.blame_ns = t->blame_ns + t->moved_ns;
		c.moved_ns = t->moved_ns;
		c.late_ns = sum->judged ? t->late_ns / sum->judged : 0;
		c.score = sum->judged ? score_of(sum, u->nseats, i) : 0;
	} else if (seat->intermittent.flagged) {
		c = case_of(u, sum, i, &seat->intermittent, VERDICT_INTERMITTENT);
		c.judged = sum->bursts;
		c.last = t->bursts;
		c.blame_ns = t->burst_ns;
		c.late_ns = t->bursts ? t->burst_ns / t->bursts : 0;
	} else {
		return;
	}
	visit(&c, arg);
}

static void tell_all(const struct unit *u, const struct window *sum, straggler_case_fn *visit,
		     void *arg)
{
	bool elsewhere = u->elsewhere.flagged;
	const struct trial *trial = elsewhere ? &u->elsewhere : &u->slower;
	struct straggler_case c;

	if (!trial->flagged)
		return;
	c = case_of(u, sum, 0, trial, elsewhere ? VERDICT_ELSEWHERE : VERDICT_SLOWER);
	c.judged = sum->rated;
	c.last = sum->slow;
	c.blame_ns = sum->slow_ns;
	c.late_ns = sum->slow ? sum->slow_ns / sum->slow : 0;
	visit(&c, arg);
}

void straggler_visit(const struct straggler *s, straggler_case_fn *visit, void *arg)
{
	const struct store *st = &s->units;

	for (uint32_t item = st->lru.first; item != POOL_NONE;
	     item = pool_list_next(&st->pool, &st->lru, item)) {
		const struct unit *u = unit_at(s, item);
		struct window sum = sum_of(u);

		for (uint32_t i = 0; i < u->nseats; i++)
			tell_seat(u, &sum, i, visit, arg);
		tell_all(u, &sum, visit, arg);
	}
}

/* ---- what is not, or not yet ------------------------------------------------- */

static uint32_t find_seat(const struct unit *u, uint64_t process_id, uint32_t comm_index)
{
	for (uint32_t i = 0; i < u->nseats; i++)
		if (u->seat[i].part.process_id == process_id &&
		    u->seat[i].part.comm_index == comm_index)
			return i;
	return NOBODY;
}

static void look_at_seat(const struct straggler *s, const struct unit *u, uint32_t seat,
			 struct straggler_lately *out)
{
	struct window sum = sum_of(u), open = u->window[u->current];
	const struct tally *t = &sum.tally[seat];

	open.wall_ns = s->turned_ns - s->opened_ns;
	add_window(&sum, &open, u->nseats);
	if (out->func && t->blame_ns + t->moved_ns <= out->blame_ns)
		return;
	*out = (struct straggler_lately){
		.func = u->func,
		.window_ns = sum.wall_ns,
		.ops = sum.ops,
		.judged = sum.judged,
		.last = t->last,
		.late_ns = sum.judged ? t->late_ns / sum.judged : UNKNOWN_U64,
		.blame_ns = t->blame_ns + t->moved_ns,
		.late = is_mostly_last(u, &sum, seat, 1),
	};
}

bool straggler_lately(const struct straggler *s, uint64_t process_id, uint32_t comm_index,
		      struct straggler_lately *lately)
{
	uint32_t item = index_find(&s->members.index,
				   straggler_member_key(s, process_id, comm_index));
	const struct member *m = item == POOL_NONE ? NULL : member_at(s, item);

	*lately = (struct straggler_lately){ .late_ns = UNKNOWN_U64 };
	for (uint32_t i = 0; m && i < m->nunits; i++) {
		uint32_t unit = index_find(&s->units.index, m->unit_key[i]), seat = NOBODY;

		if (unit != POOL_NONE)
			seat = find_seat(unit_at(s, unit), process_id, comm_index);
		if (seat != NOBODY)
			look_at_seat(s, unit_at(s, unit), seat, lately);
	}
	return lately->func;
}
