/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_SIM_INJECTED_H
#define TESTS_SIM_INJECTED_H

/* What went wrong and when, for tests to compare with what was found. */

#include <stdint.h>
#include <stdio.h>

#include "tests/sim/pace.h"
#include "tests/sim/scenario.h"

/* The word of a fault's kind. */
const char *injected_kind(enum sim_fault_kind kind);

/*
 * Write one JSON line per fault and operation that it hits, in the program's
 * order (README.md has the fields).  `pace` maps to CLOCK_MONOTONIC (NULL, or one
 * that does not wait: unknown); `limit` bounds the launches of an endless
 * scenario.  Returns the lines written, or -ENOMEM or -EIO.
 */
int64_t injected_write(FILE *out, const struct scenario *scn, const struct pace *pace,
		       uint64_t limit);

#endif
