/* SPDX-License-Identifier: Apache-2.0 */
#ifndef JUDGE_LATE_SERIES_H
#define JUDGE_LATE_SERIES_H

/*
 * A communicator's function over time: which ranks are late, since when, and how bad it is
 * since then.
 *
 * Sums are kept for each slot of time (a sixth of a window; the last eight windows).  A rank
 * is late since the slot from which on what it costs fits two levels best: it hardly cost
 * anything before (less than half of LATE_COST), or less than half of it, and that is no
 * scatter.  The part of a slot that the levels leave gives the moment.
 *
 *     suspected  for half a slot at least: late_is_late() of all slots since then
 *     found      ... for three windows, and half of LATE_COST in each third of the time
 *     over       less than half of LATE_COST in the last half window; where it is late now
 *                and then, in four times the time from one to the next
 */

#include "judge/late.h"

#define LATE_RANKS	16
#define LATE_SLOTS	48
#define LATE_WINDOW	6	/* slots */

struct late_slot {
	uint64_t from_ns;
	struct late_window sums;
	struct late_tally tally[LATE_RANKS];
};

enum late_grade { LATE_NOT, LATE_SUSPECTED, LATE_FOUND };

/* One rank, as the last look left it. */
struct late_rank {
	enum late_grade grade;
	enum verdict verdict;	/* VERDICT_STEADY or _INTERMITTENT */
	uint64_t since_ns;
	struct late_window window;	/* all since then */
	struct late_tally tally;
	uint64_t mean_ns;	/* late_mean_ns() */
	uint64_t times;		/* late_times() */
	double score;
	double gaps_ns;		/* so long without it, and it is over */
};

/* One grade per window, two bits each: 0, 1 (over half of each limit), 2 (over all). */
struct late_trial {
	uint8_t grades;		/* the newest lowest */
	bool flagged;
	uint64_t since_ns;
};

struct late_series {
	uint32_t n;		/* ranks that are seen */
	int32_t nranks;
	uint32_t nslots;	/* slots that have ended; the one behind them is open */
	struct late_slot slot[LATE_SLOTS + 1];
	struct late_rank rank[LATE_RANKS];
	/* The open slot's figures at the last look. */
	uint64_t looked_ops, looked_ns[LATE_RANKS];
	struct late_trial elsewhere, slower;
};

static inline struct late_slot *late_series_open(struct late_series *s)
{
	return &s->slot[s->nslots];
}

void late_series_begin(struct late_series *s, int32_t nranks, uint64_t now_ns);

/* Brings what is suspected up to date; once a second. */
void late_series_look(struct late_series *s, uint64_t window_ns, uint64_t now_ns);

/* The open slot ends: what was found may be over, what is suspected may be found. */
void late_series_close(struct late_series *s, uint64_t window_ns, uint64_t now_ns);

/* A window ends with the slot that has ended; it began then. */
void late_series_close_window(struct late_series *s, uint64_t from_ns);

/* All slots that began then or later, the open one as far as it has come. */
void late_series_sum(const struct late_series *s, uint64_t from_ns, uint64_t now_ns,
		     struct late_slot *sum);

#endif
