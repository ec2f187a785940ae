/* SPDX-License-Identifier: Apache-2.0 */
#ifndef JUDGE_LATE_H
#define JUDGE_LATE_H

/*
 * The rank that makes the others wait: pure functions of rows, whoever made them.  The daemon
 * asks about the ranks of its node, operation by operation, `ncclinsp report` about samples of
 * many nodes.
 *
 * The rank inside for the least time came last: each time is of one GPU's clock alone.
 * What that proves is a matter of statistics, per communicator and function, over windows of
 * time:
 *
 *   spread    longest minus shortest time inside
 *   tail      by how much ranks that waited for nobody leave apart: the 10th percentile
 *             of how far apart they left by the host's clock, or of the spread, whichever
 *             is less.  Where the GPUs' clocks are not mapped to half a spread, four tails
 *             are at most 0.3 c* or 20 us: a rank late each time is in every spread.
 *   judged    an operation whose spread is four tails: somebody was late
 *   burst     ... and four times the usual (10th percentile) spread
 *   c*        the transfer alone: the 5th percentile of the shortest time inside
 *   elsewhere not all ranks are seen, and the shortest is more than 1.3 c*: all that
 *             are seen waited for one that is not
 *   blame     what the last one cost: the median waiting of the others
 *
 * A rank that was late because it had waited for another in the operation before, on the
 * same GPU, only handed that on: seven tenths of its lateness is waiting.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "util/unknown.h"
#include "util/words.h"

#define LATE_KNOWN	20		/* operations, before they say what is usual */
#define LATE_NOBODY	UINT32_MAX

/* ---- one operation ------------------------------------------------------------------ */

/* One rank's part in it. */
struct late_part {
	uint64_t inside_ns;
	uint64_t end_ns;	/* on the host's clock; 0: not known */
	uint64_t end_error_ns;	/* UNKNOWN_U64 */
};

/* Usual figures of operations like it. */
struct late_usual {
	bool known;		/* LATE_KNOWN of them were seen */
	uint64_t transfer_ns;	/* c*; UNKNOWN_U64 */
	uint64_t spread_ns;	/* 10th percentiles */
	uint64_t tail_ns;
};

struct late_op {
	uint64_t least_ns, most_ns;	/* inside */
	uint64_t apart_ns;	/* time from the first that left to the last; UNKNOWN_U64 */
	uint32_t first, last;	/* places of parts; last LATE_NOBODY: it is elsewhere */
	bool judged, burst;
	bool rated, slow;	/* c* is known; ... and it took all that are seen over 1.3 c* */
	uint64_t slow_ns;
	uint64_t blame_ns;
	uint64_t tail_ns;
};

/* Sets the first four members, and the last one as far as it is seen. */
void late_measure(const struct late_part *parts, uint32_t n, struct late_op *op);

/* The tail that an operation shows, from which late_usual.tail_ns is learned. */
uint64_t late_tail(const struct late_op *op, uint64_t transfer_ns);

/* Sets the rest; `scratch` has room for n. */
void late_rate(const struct late_part *parts, uint32_t n, int32_t nranks,
	       const struct late_usual *usual, struct late_op *op, double *scratch);

/* Was so much of its lateness waiting that it is not its own doing? */
bool late_is_inherited(uint64_t waited_ns, uint64_t late_ns);

/* ---- windows ------------------------------------------------------------------------ */

/* One rank in a window. */
struct late_tally {
	uint64_t last, bursts;	/* operations: it was last; ... and it was a burst */
	uint64_t late_ns;	/* sum over what was judged */
	uint64_t blame_ns, burst_ns;
	uint64_t burst_most_ns;	/* cost of the costliest burst */
	uint64_t moved_ns;	/* blame from elsewhere, not in blame_ns */
};

struct late_window {
	uint64_t wall_ns;	/* 0: still open */
	uint64_t ops, judged, bursts;
	uint64_t rated;		/* operations whose c* was known */
	uint64_t slow;		/* rated ones that took all that are seen over 1.3 c* */
	uint64_t slow_ns;	/* sum over these: the shortest time inside beyond c* */
	uint64_t tail_ns;	/* sum over what was judged */
};

/* A window and its ranks: n that are seen of nranks. */
struct late_view {
	const struct late_window *window;
	const struct late_tally *tally;
	uint32_t n;
	int32_t nranks;
	double *scratch;	/* room for 2 n */
};

/* An operation counts; blame_ns is the last one's own part, of which the sums are made. */
void late_add(struct late_window *w, const struct late_op *op);
void late_add_own(struct late_window *w, struct late_tally *last, const struct late_op *op,
		  uint64_t blame_ns);

/*
 * Is `part` of each limit reached?  Steady: the rank was last in most that was judged (half
 * of at least 20, 1.5/n or 1.5/n of what all cost, and 4 standard deviations more than
 * chance), costs 1.5 % of the time, and stands out (0.6745 (x - median) / MAD of the mean
 * lateness over 4.7: one false alarm a day in 512 ranks; of two ranks, the other one takes
 * the place of the median and tails that of the MAD).  Bursty: most of what bursts cost is
 * its doing, again and again.  Elsewhere, slower: all that are seen.
 */
typedef bool late_limits_fn(const struct late_view *v, uint32_t rank, double part);
late_limits_fn late_is_mostly_last, late_is_steady, late_is_bursty, late_is_elsewhere,
	late_is_slower;

#define LATE_BURSTS	20	/* bursts of a rank in all windows, or it is not told */

double late_score(const struct late_view *v, uint32_t rank);

/* All that is judged may still be little where nobody else is ever late. */
static inline enum verdict late_how_often(const struct late_window *w, const struct late_tally *t)
{
	return 2 * t->last >= w->ops ? VERDICT_STEADY : VERDICT_INTERMITTENT;
}

/* ---- words --------------------------------------------------------------------------- */

struct late_case {
	enum verdict verdict;	/* VERDICT_STEADY, _INTERMITTENT, _ELSEWHERE or _SLOWER */
	name_t func;
	const char *comm_name;	/* "": none */
	uint64_t comm_id;
	int32_t nranks;
	uint32_t seen;		/* ranks that are seen */
	const char *here;	/* "this node" */
	int32_t rank;
	int32_t pid;
	int32_t world_rank;	/* UNKNOWN_I32 */
	const char *host;	/* NULL: this one */
	const char *pci_bus_id;	/* NULL or "": not told */
	uint64_t wall_ns, ops, judged, last, late_ns, blame_ns, moved_ns;
	uint64_t suspected_window_ns;	/* the windows of which three find it; 0: it is found */
};

void late_say(const struct late_case *c, char *text, size_t size);

#endif
