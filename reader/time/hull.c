/* SPDX-License-Identifier: Apache-2.0 */
/* Points that no line can touch are dropped, so that few of many stamps are kept. */
#include "reader/time/hull.h"

#include <string.h>

__extension__ typedef __int128 wide;

/* Too steep below `a` for any line: whoever stays below `a` stays below `b`. */
static bool point_shadows(const struct hull_point *a, const struct hull_point *b)
{
	int64_t dx = b->x > a->x ? b->x - a->x : a->x - b->x;

	return (b->y - a->y) * HULL_SLOPE >= dx;	/* 2^43 times 2^13 is room enough */
}

/* b lies on or above the straight line from a to c; x ascends. */
static bool point_needless(const struct hull_point *a, const struct hull_point *b,
			   const struct hull_point *c)
{
	return (wide)(b->x - a->x) * (c->y - a->y) <= (wide)(b->y - a->y) * (c->x - a->x);
}

/* The first point at or right of x: h->n if there is none. */
static uint32_t hull_find(const struct hull *h, double x)
{
	uint32_t low = 0, high = h->n;

	if (h->n && (double)h->p[h->n - 1].x < x)
		return h->n;
	if (h->n > 1 && (double)h->p[h->n - 2].x < x)
		return h->n - 1;
	while (low < high) {
		uint32_t middle = (low + high) / 2;

		if ((double)h->p[middle].x < x)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static void hull_take_out(struct hull *h, uint32_t i)
{
	h->n--;
	memmove(&h->p[i], &h->p[i + 1], (h->n - i) * sizeof(h->p[0]));
}

static void hull_thin_out(struct hull *h)
{
	for (uint32_t i = 1; i < h->n / 2; i++)
		h->p[i] = h->p[2 * i];
	h->p[h->n / 2] = h->p[h->n - 1];
	h->n = h->n / 2 + 1;
}

/* Its neighbours keep lines from more than it does. */
static bool hull_is_needless(const struct hull *h, uint32_t i, const struct hull_point *p)
{
	if (i < h->n && point_shadows(&h->p[i], p))
		return true;
	if (i > 0 && point_shadows(&h->p[i - 1], p))
		return true;
	return i > 0 && i < h->n && point_needless(&h->p[i - 1], p, &h->p[i]);
}

/* Point i is new: points right of it, then left of it, may have become needless. */
static void hull_mend(struct hull *h, uint32_t i)
{
	while (i + 1 < h->n && (point_shadows(&h->p[i], &h->p[i + 1]) ||
				(i + 2 < h->n &&
				 point_needless(&h->p[i], &h->p[i + 1], &h->p[i + 2]))))
		hull_take_out(h, i + 1);
	while (i > 0 && (point_shadows(&h->p[i], &h->p[i - 1]) ||
			 (i > 1 && point_needless(&h->p[i - 2], &h->p[i - 1], &h->p[i]))))
		hull_take_out(h, --i);
}

/* Right of all others, and not needless: points left of it may have become so. */
static void hull_append(struct hull *h, const struct hull_point *p)
{
	uint32_t n;

	if (h->n == HULL_POINTS)
		hull_thin_out(h);
	n = h->n;
	while (n && point_shadows(p, &h->p[n - 1]))
		n--;
	/* It lies too high to shadow what is left of a point that it does not shadow. */
	while (n > 1 && point_needless(&h->p[n - 2], &h->p[n - 1], p))
		n--;
	h->p[n] = *p;
	h->n = n + 1;
}

static __attribute__((noinline)) bool hull_insert(struct hull *h, const struct hull_point *p)
{
	uint32_t i = hull_find(h, (double)p->x);

	if (hull_is_needless(h, i, p))
		return false;
	if (h->n == HULL_POINTS) {
		hull_thin_out(h);
		i = hull_find(h, (double)p->x);
	}
	memmove(&h->p[i + 1], &h->p[i], (h->n - i) * sizeof(h->p[0]));
	h->p[i] = *p;
	h->n++;
	hull_mend(h, i);
	return true;
}

bool hull_add(struct hull *h, int64_t x, int64_t y)
{
	struct hull_point p = { x, y };

	/* Most come late, near the right end: whatever shadows them, no line is kept by them. */
	if (h->n && point_shadows(&h->p[h->n - 1], &p))
		return false;
	if (h->n && h->p[h->n - 1].x >= x)
		return hull_insert(h, &p);
	hull_append(h, &p);
	return true;
}

static double hull_line_at(const struct hull_point *p, double slope, double x)
{
	return (double)p->y + slope * (x - (double)p->x);
}

/* Walks downhill from point i: a line of that slope rests on one point of a convex chain. */
static uint32_t hull_descend(const struct hull *h, uint32_t i, double slope)
{
	double here = hull_line_at(&h->p[i], slope, 0);
	uint32_t from = i;

	for (; i > 0; i--) {
		double next = hull_line_at(&h->p[i - 1], slope, 0);

		if (next > here)
			break;
		here = next;
	}
	if (i < from)
		return i;
	for (; i + 1 < h->n; i++) {
		double next = hull_line_at(&h->p[i + 1], slope, 0);

		if (next >= here)
			break;
		here = next;
	}
	return i;
}

/* The line that gets highest at x lies along the edge there, if it may be so steep. */
static double hull_best_slope(const struct hull *h, uint32_t i, double min, double max)
{
	const struct hull_point *a, *b;
	double slope;

	if (i == 0 || i == h->n)
		return i ? max : min;
	a = &h->p[i - 1];
	b = &h->p[i];
	slope = (double)(b->y - a->y) / (double)(b->x - a->x);
	return slope < min ? min : slope > max ? max : slope;
}

double hull_bound(const struct hull *h, double x, double min, double max)
{
	uint32_t i = hull_find(h, x);
	double slope = hull_best_slope(h, i, min, max);

	i = hull_descend(h, i == h->n ? i - 1 : i, slope);
	return hull_line_at(&h->p[i], slope, x);
}

double hull_touch(const struct hull *h, double slope, struct hull_point *point)
{
	uint32_t i = hull_descend(h, h->n - 1, slope);

	*point = h->p[i];
	return hull_line_at(point, slope, 0);
}
