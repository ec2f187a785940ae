/* SPDX-License-Identifier: Apache-2.0 */
#ifndef JUDGE_REGRESSION_H
#define JUDGE_REGRESSION_H

/*
 * Operations that take longer than they used to: each kind (communicator, function, bytes,
 * algorithm, protocol) against its own baseline, as cusum.h follows it.  What else changed
 * decides what is said: one kind alone, all of a communicator, or all that runs here.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "util/unknown.h"

/* One kind of operation. */
struct regression_row {
	uint64_t comm;		/* equal: one communicator */
	name_t func, algo;
	name_t comm_name, proto;	/* NULL: none */
	uint64_t bytes;
	bool rated;		/* its baseline is known, and it ran a moment ago */
	int alarm;		/* 1: slower, -1: faster, 0: as ever */
	double change;		/* difference of logarithms */
	double usual_ns, recent_ns;
	double sigma;		/* spread of the times, of their logarithms */
	bool from_before;	/* its baseline is of an earlier job */
	uint64_t since_ns;	/* start of the change behind the alarm */
};

struct regression_tally {
	uint32_t all, changed;
};

/* The kinds that changed. */
enum regression_scope {
	REGRESSION_KIND,		/* this one, and few others */
	REGRESSION_COMMUNICATOR,	/* most of its communicator */
	REGRESSION_NODE,		/* most of several communicators */
};

struct regression_case {
	const struct regression_row *row;
	struct regression_tally comm, node;	/* kinds of its communicator; all that run here */
	enum regression_scope scope;
};

/* Is this row told: slower, and by more than any other of its communicator? */
bool regression_judge(const struct regression_row *rows, size_t n, size_t place,
		      struct regression_case *out);

void regression_say(const struct regression_case *c, uint64_t now_ns, char *text, size_t size);

#endif
