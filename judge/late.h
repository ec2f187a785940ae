/* SPDX-License-Identifier: Apache-2.0 */
#ifndef JUDGE_LATE_H
#define JUDGE_LATE_H

/*
 * The ranks that make the others wait: pure functions of rows, whoever made them.  The daemon
 * asks about the ranks of its node, operation by operation, `ncclinsp report` about samples of
 * many nodes.
 *
 * The rank inside for the least time came last: each time is of one GPU's clock alone.
 * What that proves is a matter of statistics, per communicator and function:
 *
 *   spread    longest minus shortest time inside
 *   tail      by how much ranks that waited for nobody leave apart: the 10th percentile
 *             of how far apart they left by the host's clock, or of the spread, whichever
 *             is less.  Where the GPUs' clocks are not mapped to half a spread, four tails
 *             are at most 0.3 c* or 20 us: a rank late each time is in every spread.
 *   judged    an operation whose spread is four tails: somebody was late
 *   c*        the transfer alone: the 5th percentile of the shortest time inside
 *   elsewhere not all ranks are seen, and the shortest is more than 1.3 c*: all that
 *             are seen waited for one that is not
 *   late      time behind the first
 *   punctual  the half of the ranks that come first: they hardly wait for each other
 *   blame     what late ranks cost: the waiting of the last punctual one, which all ranks
 *             behind it share (each moment of it those that had not come by then: the
 *             Shapley value; Littlechild and Owen, Management Science 20, 1973), so that
 *             ranks that are late together do not hide each other
 *
 * A rank that was late because it had waited for another in the operation before, on the
 * same GPU, only handed that on: seven tenths of its lateness is waiting.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "judge/gpu.h"
#include "judge/resources.h"
#include "judge/whom.h"
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
	uint64_t tail_ns;	/* 10th percentile */
};

struct late_op {
	uint64_t least_ns, most_ns;	/* inside */
	uint64_t apart_ns;	/* time from the first that left to the last; UNKNOWN_U64 */
	uint32_t first, last;	/* places of parts; last LATE_NOBODY: it is elsewhere */
	bool judged;
	bool rated, slow;	/* c* is known; ... and it took all that are seen over 1.3 c* */
	uint64_t slow_ns;
	uint64_t punctual_ns;	/* inside, of the last punctual one */
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

/* Each part's share of blame_ns, of which they are the sum; `scratch` has room for 2 n. */
void late_share(const struct late_part *parts, uint32_t n, const struct late_op *op,
		double *shares, double *scratch);

/* Was it so late that it matters in this operation whose doing that was? */
bool late_is_worth_following(const struct late_op *op, uint64_t inside_ns);

/* Was so much of its lateness waiting that it is not its own doing? */
bool late_is_inherited(uint64_t waited_ns, uint64_t late_ns);

/* ---- windows ------------------------------------------------------------------------ */

/* One rank in a window. */
struct late_tally {
	uint64_t last;		/* operations that it was last in by its own doing */
	uint64_t late_ns;	/* sum over what was judged, without what others handed on */
	double late_square;	/* sum of the squares of the same */
	double looks_square;	/* sum of the squares of what each look found (late_window.looks) */
	uint64_t blame_ns;
	uint64_t moved_ns;	/* blame from elsewhere, not in blame_ns */
	uint64_t timed_ns;	/* part of late_ns: known is how long its kernel was queued ... */
	uint64_t host_ns;	/* the part that was no time on the GPU: it was posted late */
};

struct late_window {
	uint64_t wall_ns;	/* 0: still open */
	uint64_t ops, judged;
	uint64_t passed;	/* operations that there were, also those that nobody timed */
	uint64_t rated;		/* operations whose c* was known */
	uint64_t slow;		/* rated ones that took all that are seen over 1.3 c* */
	uint64_t slow_ns;	/* sum over these: the shortest time inside beyond c* */
	uint64_t tail_ns;	/* sum over what was judged */
	uint64_t looks;		/* looks at new operations, one a second; 0: nobody looked */
};

/* A window and its ranks: n that are seen of nranks. */
struct late_view {
	const struct late_window *window;
	const struct late_tally *tally;
	uint32_t n;
	int32_t nranks;
	double *scratch;	/* room for 2 n */
};

/*
 * An operation counts for all that passed since the one before; and, where somebody was late by
 * its own doing, each rank's part in it.
 */
void late_add(struct late_window *w, const struct late_op *op, uint64_t passed);
void late_add_judged(struct late_window *w, const struct late_op *op);
void late_add_own(struct late_tally *t, bool last, uint64_t late_ns, uint64_t blame_ns);
/* It was late by its own doing; its kernel started so long after it was posted, UNKNOWN_U64. */
void late_add_cause(struct late_tally *t, uint64_t late_ns, uint64_t queued_ns);
void late_add_window(struct late_window *to, const struct late_window *from);
void late_add_tally(struct late_tally *to, const struct late_tally *from);

/* The most that those of the others are late that come first: half of them. */
uint64_t late_most_punctual_ns(const struct late_view *v, uint32_t rank);

/* The time that the others would save if it came as the punctual half does, and they all did. */
double late_lost_ns(const struct late_view *v, uint32_t rank);

/* The part of the time that its operations stand for. */
double late_watched_ns(const struct late_window *w);

#define LATE_STAGES	"Send and Recv"	/* the function of a stage of a pipeline */
#define LATE_COST	0.015	/* part of the time that a late rank costs at least */
#define LATE_SUSPECT	12	/* part of a window before which nobody is suspected */

/*
 * Does it cost LATE_COST, and is that no chance?  Of ranks that are alike any would be as late as
 * the others: its part in the lateness of these and its own is held against that (Chernoff's
 * bound for as many tries as there were late ones of weight, at one in 2000).  It is compared
 * with the ranks before a gap of 1.5 times what they are apart, half of all at least: late ones
 * behind it do not hide each other.  Where there is no gap, only the latest rank is judged,
 * against all.
 */
bool late_is_late(const struct late_view *v, uint32_t rank);

/* The number of operations that it was late in, were it equally late in each. */
double late_times(const struct late_view *v, uint32_t rank);

/*
 * STEADY: late in a third of the operations at least, or, of three looks and more, in half: one
 * of the operations of each iteration says as much as all.
 */
enum verdict late_how_often(const struct late_view *v, uint32_t rank);

/* The mean time behind the first: of what was judged; of one late now and then, when it was. */
uint64_t late_mean_ns(const struct late_view *v, uint32_t rank);

/*
 * The reason: a kernel that starts when it is posted was posted late; one that was queued had
 * to wait for its GPU's other work; the ranks of one process that come one after another, all
 * as far apart, are launched so.
 */
#define LATE_WHYS(X)			\
	X(UNKNOWN,  NULL)		\
	X(GPU,      "gpu")		\
	X(HOST,     "host")		\
	X(LAUNCHES, "launches")

enum late_why {
#define X(NAME, text) LATE_WHY_##NAME,
	LATE_WHYS(X)
#undef X
	LATE_WHY_END
};

enum late_why late_why(const struct late_tally *t);
const char *late_why_text(enum late_why why);

/* Are these, of one process, spread evenly?  They are sorted; of two nobody can tell. */
bool late_is_spread(double *late_ns, uint32_t n);

/*
 * Is `part` of each limit reached, by all that are seen?  Elsewhere: they wait for one that is
 * not, in more operations than by chance; slower: in nearly all; both at 1.5 % of the time.
 */
typedef bool late_limits_fn(const struct late_view *v, double part);
late_limits_fn late_is_elsewhere, late_is_slower;

/* Distance of a rank's mean lateness from the others', in robust standard deviations. */
double late_score(const struct late_view *v, uint32_t rank);

/* ---- words --------------------------------------------------------------------------- */

/*
 * The thread of a rank that calls NCCL: its parts of the time, lately.  The rest of it that
 * thread slept.
 */
struct late_caller {
	int32_t tid;		/* its number on the node */
	double ran, waited;	/* it had a CPU; it could have run and had none */
	int32_t taker;		/* a process, which had its CPU for longest; 0: not known */
	const char *taker_command;
	double taker_share;	/* the part of the wait; < 0: not known */
};

struct late_case {
	enum verdict verdict;	/* VERDICT_STEADY, _INTERMITTENT, _ELSEWHERE or _SLOWER */
	name_t func;
	const char *comm_name;	/* "": none */
	uint64_t comm_id;
	int32_t nranks;
	uint32_t seen;		/* ranks that are seen */
	const char *here;	/* "this node" */
	struct whom who;
	uint64_t wall_ns, ops, judged, last, times, late_ns, blame_ns, moved_ns;
	uint32_t others;	/* more ranks that are late */
	bool stage;		/* judged by its sends and receives, second by second */
	enum late_why why;
	uint32_t launched;	/* LATE_WHY_LAUNCHES: ranks of its process */
	const struct gpu_cause *gpu;	/* its GPU is slow; NULL: it is not, or nobody knows */
	const struct late_caller *caller;	/* NULL: nothing is known of it */
	const struct resources *resources;	/* resources of its process; NULL: not known */
	uint64_t suspected_window_ns;	/* the windows of which three find it; 0: it is found */
};

void late_say(const struct late_case *c, char *text, size_t size);

#endif
