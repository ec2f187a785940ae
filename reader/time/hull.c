/* SPDX-License-Identifier: Apache-2.0 */
/* Points that no line can touch are dropped, so that few of many stamps are kept. */
#include "reader/time/hull.h"

#include <string.h>

static double point_line_at(const struct hull_point *p, double slope, double x)
{
	return p->y + slope * (x - p->x);
}

/* b lies on or above the straight line from a to c; x ascends. */
static bool point_needless(const struct hull_point *a, const struct hull_point *b,
			   const struct hull_point *c)
{
	return (b->x - a->x) * (c->y - a->y) <= (b->y - a->y) * (c->x - a->x);
}

static void hull_thin_out(struct hull *h)
{
	for (uint32_t i = 1; i < h->n / 2; i++)
		h->p[i] = h->p[2 * i];
	h->p[h->n / 2] = h->p[h->n - 1];
	h->n = h->n / 2 + 1;
}

/* Most points come late: they are looked for, and take others' places, at the right end. */
bool hull_add(struct hull *h, double x, double y)
{
	const struct hull_point new = { x, y };
	struct hull_point *p = h->p;
	uint32_t right, left;

	if (y + h->near >= hull_bound(h, x))
		return false;
	if (h->n == HULL_POINTS)
		hull_thin_out(h);
	for (right = 0; right < h->n && p[right].x > x; right++)
		;
	left = right;
	/* points on both sides of it may have become needless */
	while (right > 0 && (p[right - 1].y >= point_line_at(&new, h->max, p[right - 1].x) ||
			     (right > 1 && point_needless(&new, &p[right - 1], &p[right - 2]))))
		right--;
	while (left < h->n && (p[left].y >= point_line_at(&new, h->min, p[left].x) ||
			       (left + 1 < h->n && point_needless(&p[left + 1], &p[left], &new))))
		left++;
	if (left != right + 1)
		memmove(&p[right + 1], &p[left], (h->n - left) * sizeof(*p));
	p[right] = new;
	h->n = h->n + right + 1 - left;
	return true;
}

/* The slope of the edge from point i to the left. */
static double hull_edge(const struct hull *h, uint32_t i)
{
	return (h->p[i].y - h->p[i + 1].y) / (h->p[i].x - h->p[i + 1].x);
}

void hull_narrow(struct hull *h, double min, double max)
{
	uint32_t first = 0;

	h->min = min;
	h->max = max;
	h->near = 1 + (max - min) * HULL_NEAR;
	while (h->n > 1 && hull_edge(h, h->n - 2) <= min)
		h->n--;
	while (h->n - first > 1 && hull_edge(h, first) >= max)
		first++;
	h->n -= first;
	memmove(h->p, h->p + first, h->n * sizeof(h->p[0]));
}

void hull_begin(struct hull *h)
{
	h->n = 1;
	h->p[0] = (struct hull_point){ 0, HUGE_VAL };
	hull_narrow(h, -1.0 / HULL_SLOPE, 1.0 / HULL_SLOPE);
}

double hull_bound_between(const struct hull *h, double x)
{
	uint32_t i = 0;

	while (i + 1 < h->n && h->p[i + 1].x >= x)
		i++;
	return point_line_at(&h->p[i], i + 1 < h->n ? hull_edge(h, i) : h->min, x);
}

/* A line of a slope rests on one point of a convex chain: downhill from the right end. */
double hull_touch(const struct hull *h, double slope, struct hull_point *point)
{
	double here = point_line_at(&h->p[0], slope, 0);
	uint32_t i;

	for (i = 0; i + 1 < h->n; i++) {
		double next = point_line_at(&h->p[i + 1], slope, 0);

		if (next > here)
			break;
		here = next;
	}
	*point = h->p[i];
	return here;
}
