/* SPDX-License-Identifier: Apache-2.0 */
#ifndef READER_TIME_HULL_H
#define READER_TIME_HULL_H

/*
 * The lower convex hull of points that come one by one in any order: all that is
 * needed to know every line that runs below all of them.  Lines are no steeper than
 * 1 in HULL_SLOPE, and their slopes get known better.
 *
 * A point that keeps lines lower by no more than a nanosecond and what slopes leave open
 * over HULL_NEAR is not kept: most points cost one comparison, and no bound is higher than
 * that of all points by more.  That is 41 ns while nothing is known of the slopes, and two
 * once they are known to 10 ppm.
 */

#include <math.h>
#include <stdbool.h>
#include <stdint.h>

#define HULL_POINTS	64
#define HULL_SLOPE	5000		/* 200 ppm */
#define HULL_NEAR	100000		/* 0.1 ms */

struct hull_point {
	double x, y;
};

/*
 * Invariant: x descends strictly, and so do the slopes from `max` over the edges to `min`:
 * some line touches each point.  While there is none, one at an infinite height stands for it.
 */
struct hull {
	double min, max;		/* slopes that lines may have */
	double near;			/* lower by so much is not worth a point */
	uint32_t n;
	struct hull_point p[HULL_POINTS];
};

/* It has no points yet. */
void hull_begin(struct hull *h);

static inline bool hull_is_empty(const struct hull *h)
{
	return h->p[0].y == HUGE_VAL;
}

/*
 * A full hull forgets every second point, which never makes a bound wrong, only wider.
 * False: it keeps no line lower, or by too little.
 */
bool hull_add(struct hull *h, double x, double y);

/* Lines are known to have slopes between these, which are no wider than those before. */
void hull_narrow(struct hull *h, double min, double max);

/* The height that a line can have at `x`, which is not right of all points. */
double hull_bound_between(const struct hull *h, double x);

/* The height that a line can have at `x`; HUGE_VAL without points. */
static inline double hull_bound(const struct hull *h, double x)
{
	const struct hull_point *p = &h->p[0];

	return x < p->x ? hull_bound_between(h, x) : p->y + h->max * (x - p->x);
}

/*
 * The height that a line of that slope can have at 0, and the point through which it goes
 * then.  The hull has a point.
 */
double hull_touch(const struct hull *h, double slope, struct hull_point *point);

#endif
