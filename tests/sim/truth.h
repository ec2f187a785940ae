/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_SIM_TRUTH_H
#define TESTS_SIM_TRUTH_H

/* What really happened, for tests to compare with what was observed. */

#include <stdint.h>
#include <stdio.h>

#include "tests/sim/pace.h"
#include "tests/sim/plan.h"

/*
 * Write one JSON line per operation and rank, in the program's order (README.md
 * has the fields).  It is worked out from the scenario alone: the same scenario
 * and seed give the same bytes, but for CLOCK_MONOTONIC, which `pace` maps to
 * (NULL, or one that does not wait: unknown).  `limit` bounds the launches of an
 * endless scenario.  Returns the lines written, or -ENOMEM or -EIO.
 */
int64_t truth_write(FILE *out, const struct scenario *scn, const struct pace *pace,
		    uint64_t limit);

/* What a step is in the file; returns the lines written. */
typedef int64_t truth_step_fn(FILE *out, const struct scenario *scn, const struct pace *pace,
			      const struct plan_step *step);

/* truth_write() of something else about each launch and replay. */
int64_t truth_write_steps(FILE *out, const struct scenario *scn, const struct pace *pace,
			  uint64_t limit, truth_step_fn *write_step);

#endif
