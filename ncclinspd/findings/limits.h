/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NCCLINSPD_FINDINGS_LIMITS_H
#define NCCLINSPD_FINDINGS_LIMITS_H

/*
 * The time for which an operation may be in flight before it counts as stalled, from the
 * times of others of its kind: communicator, function and size class.  A time goes from
 * posting to completion, as the daemon saw it, so that the age of one in flight compares.
 */

#include "reader/base/model.h"

struct limits;

/* The origin of a limit; the texts of evidence.limit_reason. */
#define LIMIT_REASONS(X)		\
	X(MINIMUM,    "minimum")	\
	X(HISTORY,    "history")	\
	X(PERIOD,     "period")		\
	X(NO_HISTORY, "no_history")	\
	X(FIRST,      "first_operation")\
	X(MAXIMUM,    "maximum")	\
	X(ABSENCE,    "absence")	\
	X(PROOF,      "proof")

enum limit_reason {
#define X(NAME, text) LIMIT_##NAME,
	LIMIT_REASONS(X)
#undef X
	LIMIT_END
};

struct limit {
	uint64_t ns;
	enum limit_reason reason;
	uint64_t ops;		/* operations in the history */
	uint64_t p99_ns;	/* percentile without the two longest; UNKNOWN_U64: no history */
	uint64_t p999_ns;	/* percentile of all; both are at most 41 % too high */
};

/* Makes it longer, if it is shorter, for that reason. */
static inline void limit_raise(struct limit *limit, uint64_t ns, enum limit_reason reason)
{
	if (ns <= limit->ns)
		return;
	limit->ns = ns;
	limit->reason = reason;
}

/* `min_ns`, `max_ns`: no limit is below, none above.  0 or -ENOMEM. */
int limits_new(struct limits **lp, uint64_t min_ns, uint64_t max_ns);
void limits_free(struct limits *l);
void limits_set(struct limits *l, uint64_t min_ns, uint64_t max_ns);

name_t limit_reason_name(enum limit_reason reason);

/*
 * A finished operation, `alike`: of the kind of the one that was given before.  What says nothing
 * (no end was watched) is left out.
 */
void limits_add(struct limits *l, const struct op *op, bool alike);

/*
 * max(min, 8 * P99, 3 * period); without a history 6 * min, for the first operation on a
 * communicator, which sets up connections, 12 * min.  None is above max, 3 * P50 or
 * 2 * period, whichever is longest.  `period_ns` 0: none.
 */
void limits_of(struct limits *l, const struct op *op, uint64_t period_ns, struct limit *out);

/* The limit where no end is watched: of such operations there is no history. */
void limits_of_unwatched(const struct limits *l, uint64_t period_ns, struct limit *out);

#endif
