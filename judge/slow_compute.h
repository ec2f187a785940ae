/* SPDX-License-Identifier: Apache-2.0 */
#ifndef JUDGE_SLOW_COMPUTE_H
#define JUDGE_SLOW_COMPUTE_H

/*
 * Iterations that take longer because all ranks compute longer.  One rank alone that does is a
 * straggler, and operations that take longer are a regression.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "judge/cusum.h"

#define COMPUTE_RANKS	64	/* medians are over the first of these */

/* One rank, lately. */
struct compute_row {
	uint64_t step_ns;	/* time of an iteration */
	uint64_t inside_ns;	/* the part of it inside NCCL's operations, at most step_ns */
};

/* Ranks of one communicator, taken together. */
struct compute_case {
	uint32_t ranks;
	uint64_t step_ns, compute_ns;	/* medians; compute_ns is outside of NCCL */
	uint64_t inside_ns;		/* of the rank that has least: all of it is NCCL's own */
	uint64_t usual_ns;		/* compute_ns before the change */
	double sigma;			/* spread of compute_ns, of its logarithm */
	const char *comm_name;
	uint64_t since_ns;		/* start of the change */
};

/*
 * Give the ranks' figures to the series of their communicator; `h` as of cusum_add().  True: all
 * compute longer, by a tenth or more, and by 2 % of an iteration of which it was a twentieth at
 * least.  The first five members of `out` are set; since_ns is kept from one call to the next.
 * From 1 to COMPUTE_RANKS rows.
 */
bool compute_judge(struct cusum *series, double h, const struct compute_row *rows, uint32_t n,
		   struct compute_case *out);

void compute_say(const struct compute_case *c, uint64_t now_ns, char *text, size_t size);

#endif
