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

/* Point i is new: points left and right of it may have become needless. */
static void hull_mend(struct hull *h, uint32_t i)
{
	struct hull_point *p = h->p, new = p[i];
	uint32_t left = i, right = i + 1;

	while (left > 0 && (p[left - 1].y >= point_line_at(&new, h->min, p[left - 1].x) ||
			    (left > 1 && point_needless(&p[left - 2], &p[left - 1], &new))))
		left--;
	while (right < h->n && (p[right].y >= point_line_at(&new, h->max, p[right].x) ||
				(right + 1 < h->n &&
				 point_needless(&new, &p[right], &p[right + 1]))))
		right++;
	for (p[left++] = new; right < h->n; right++)
		p[left++] = p[right];
	h->n = left;
}

/* Most come late: they are looked for from the right end. */
bool hull_add(struct hull *h, double x, double y)
{
	uint32_t i;

	if (y + h->near >= hull_bound(h, x))
		return false;
	if (h->n == HULL_POINTS)
		hull_thin_out(h);
	for (i = h->n++; i > 0 && h->p[i - 1].x >= x; i--)
		h->p[i] = h->p[i - 1];
	h->p[i] = (struct hull_point){ x, y };
	hull_mend(h, i);
	return true;
}

/* The slope of the edge that ends at point i. */
static double hull_edge(const struct hull *h, uint32_t i)
{
	return (h->p[i].y - h->p[i - 1].y) / (h->p[i].x - h->p[i - 1].x);
}

void hull_narrow(struct hull *h, double min, double max)
{
	uint32_t first = 0;

	h->min = min;
	h->max = max;
	h->near = 1 + (max - min) * HULL_NEAR;
	while (h->n > 1 && hull_edge(h, h->n - 1) >= max)
		h->n--;
	while (h->n - first > 1 && hull_edge(h, first + 1) <= min)
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
	uint32_t i = h->n - 1;

	while (i > 0 && h->p[i - 1].x >= x)
		i--;
	return point_line_at(&h->p[i], i ? hull_edge(h, i) : h->min, x);
}

/* A line of a slope rests on one point of a convex chain: downhill from the last one. */
double hull_touch(const struct hull *h, double slope, struct hull_point *point)
{
	uint32_t i = h->n - 1;
	double here = point_line_at(&h->p[i], slope, 0);

	for (; i > 0; i--) {
		double next = point_line_at(&h->p[i - 1], slope, 0);

		if (next > here)
			break;
		here = next;
	}
	*point = h->p[i];
	return here;
}
