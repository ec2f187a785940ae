/* SPDX-License-Identifier: Apache-2.0 */
#ifndef JUDGE_SLOW_COMPUTE_H
#define JUDGE_SLOW_COMPUTE_H

/*
 * Iterations that take longer because all ranks compute longer.  One rank alone that does is a
 * straggler, and operations that take longer are a regression.
 *
 * A job of CUSUM_FIRST windows is judged by its median and spread (cusum.h).  A younger one has
 * neither: it computes longer if the lower quartile of each of its last COMPUTE_LASTS windows is
 * beyond the upper ones of all windows before, COMPUTE_FIRST or more, by as much as the lower
 * ones differ among themselves, and by a tenth at least.  Where nobody timed NCCL's operations
 * then, its whole iterations stand for its computing, which cannot have been more: what is told
 * is a least increase.  How many windows come first tests/test_slow_compute_rates.c measures.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "judge/cusum.h"
#include "util/unknown.h"

#define COMPUTE_RANKS	64	/* medians are over the first of these */
#define COMPUTE_WINDOW_NS UINT64_C(5000000000)
#define COMPUTE_FIRST	4	/* windows, and iterations in them: a start that is quick, as the */
#define COMPUTE_ITERATIONS 24	/* ... input for it is there already, lasts for less */
#define COMPUTE_LASTS	3	/* windows: one long pause is in no more than two */

/* One rank, lately. */
struct compute_row {
	uint64_t step_ns;	/* time of an iteration: their lower quartile, */
	uint64_t most_ns;	/* upper quartile */
	uint64_t inside_ns;	/* the part of it inside NCCL's operations, at most step_ns;
				   UNKNOWN_U64 */
	uint64_t kind;		/* equal: iterations of the same operations */
};

/* A level that too few windows tell of for a spread: their bounds, as logarithms. */
struct compute_level {
	uint32_t windows;	/* number of windows before the last ones */
	double iterations;
	double least, most, upper;	/* least and most lower quartile; most upper one */
	struct compute_quartiles {
		double lower, upper;
	} last[COMPUTE_LASTS + 1];	/* the newest at the end; in the first it may have begun */
	uint32_t nlast;
	bool above;		/* all of the last ones were, and these are not back yet */
	uint64_t since_ns;
};

/* Ranks of one communicator, window by window.  Zeroed storage knows nothing. */
struct compute_series {
	uint64_t kind;		/* kind of its iterations */
	uint32_t windows;
	double iterations;	/* the first COMPUTE_ITERATIONS teach no spread */
	uint32_t others;	/* windows in a row that were of another kind */
	struct compute_level steps, computing;
	struct cusum cusum;	/* watches computing */
	uint32_t slow;		/* windows in a row that the cusum calls slow */
	bool told;		/* there were enough of them once, in this alarm */
	uint64_t since_ns;
};

/* Ranks of one communicator, taken together. */
struct compute_case {
	uint32_t ranks;
	uint64_t step_ns, compute_ns;	/* medians; compute_ns is outside of NCCL, or unknown, */
	uint64_t step_most_ns, compute_most_ns;	/* the same of the ranks' longer iterations */
	uint64_t inside_ns;		/* least of any rank: all of it is NCCL's own */
	uint64_t usual_ns;		/* compute_ns before the change ... */
	bool at_most;			/* usual_ns may be too much */
	double sigma;			/* spread of compute_ns, of its logarithm; < 0: not known */
	const char *comm_name;
	uint64_t since_ns;		/* start of the change */
};

/*
 * Give the ranks' figures of a window that ends now to the series of their communicator; `h` as of
 * cusum_add().  True: all compute longer, by a tenth or more, and by 2 % of an iteration of which
 * it was a twentieth at least; all of `out` is set then, but the name.  From 1 to COMPUTE_RANKS
 * rows.  Iterations of another kind than before are not compared, and are the usual ones when
 * they have lasted for a minute.
 */
bool compute_judge(struct compute_series *s, double h, const struct compute_row *rows, uint32_t n,
		   uint64_t now_ns, struct compute_case *out);

/* Take for the usual what it is now. */
void compute_accept(struct compute_series *s);

void compute_say(const struct compute_case *c, uint64_t now_ns, char *text, size_t size);

#endif
