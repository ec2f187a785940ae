/* SPDX-License-Identifier: Apache-2.0 */
#ifndef READER_TIME_HULL_H
#define READER_TIME_HULL_H

/*
 * The lower convex hull of points that come one by one in any order: all that is
 * needed to know every line that runs below all of them.  Lines are no steeper
 * than 1 in HULL_SLOPE, so a point that no such line can touch is not kept.
 */

#include <stdbool.h>
#include <stdint.h>

#define HULL_POINTS	64
#define HULL_SLOPE	5000		/* 200 ppm */
#define HULL_MAX	(INT64_C(1) << 42)	/* coordinates are smaller */

struct hull_point {
	int64_t x, y;
};

/* Zeroed is empty.  Invariant: x ascends strictly, and so do the edges' slopes. */
struct hull {
	struct hull_point p[HULL_POINTS];
	uint32_t n;
};

/*
 * O(1) for a point at the right end, O(log n) for others, amortised.  A full hull
 * forgets every second point, which never makes a bound wrong, only wider.
 * False: no line is kept from anything by it.
 */
bool hull_add(struct hull *h, int64_t x, int64_t y);

/*
 * The height that a line with a slope between `min` and `max` can have at `x`.  The hull
 * has a point.
 */
double hull_bound(const struct hull *h, double x, double min, double max);

/*
 * The height that a line of that slope can have at 0, and the point through which it goes
 * then.
 */
double hull_touch(const struct hull *h, double slope, struct hull_point *point);

#endif
