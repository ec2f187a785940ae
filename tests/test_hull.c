/* SPDX-License-Identifier: Apache-2.0 */
/* Against every line through every pair of points, and every steepest one through one. */
#include "reader/time/hull.h"

#include <math.h>
#include <string.h>

#include "tests/fixture.h"

#define POINTS 40
#define STEEP (1.0 / HULL_SLOPE)

static struct hull h;
static struct hull_point all[POINTS];
static uint64_t seed;

static uint64_t random_below(uint64_t n)
{
	seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407u;
	return (seed >> 33) % n;
}

static double height(const struct hull_point *p, double slope, double x)
{
	return (double)p->y + slope * (x - (double)p->x);
}

/* The highest that a line of this slope below all points is at x. */
static double rest(int n, double slope, double x)
{
	double least = HUGE_VAL;

	for (int i = 0; i < n; i++)
		least = fmin(least, height(&all[i], slope, x));
	return least;
}

static double clamp(double slope, double min, double max)
{
	return fmax(min, fmin(max, slope));
}

/* The best line goes through two points, or is as steep as it may be. */
static double slow_bound(int n, double x, double min, double max)
{
	double best = fmax(rest(n, min, x), rest(n, max, x));

	for (int i = 0; i < n; i++)
		for (int k = 0; k < n; k++) {
			double dx = (double)(all[k].x - all[i].x);

			if (dx > 0)
				best = fmax(best, rest(n, clamp((double)(all[k].y - all[i].y) / dx,
								min, max), x));
		}
	return best;
}

/* Few x, so that some are equal; heights that drift and scatter. */
static void scatter(int n, uint64_t width, uint64_t noise)
{
	double drift = ((double)random_below(3000) - 1500) / 1e7;

	memset(&h, 0, sizeof(h));
	for (int i = 0; i < n; i++) {
		all[i].x = (int64_t)random_below(width) - (int64_t)width / 2;
		all[i].y = (int64_t)(drift * (double)all[i].x) + (int64_t)random_below(noise);
		hull_add(&h, all[i].x, all[i].y);
	}
}

TEST(bound_is_that_of_all_lines_below_all_points)
{
	seed = 7;
	for (int round = 0; round < 2000; round++) {
		uint64_t width = round % 2 ? 1000 : 1000000000;
		int n = 1 + (int)random_below(POINTS);
		double min = -STEEP, max = STEEP;

		scatter(n, width, 1 + random_below(round % 3 ? 100 : 100000));
		if (round % 5 == 0)
			min = -STEEP / (double)(1 + random_below(10));
		if (round % 7 == 0)
			max = STEEP / (double)(1 + random_below(10));
		for (int q = 0; q < 8; q++) {
			double x = (double)random_below(2 * width) - (double)width;
			double slow = slow_bound(n, x, min, max);

			ck_assert_double_le(fabs(hull_bound(&h, x, min, max) - slow), 1e-3);
		}
	}
}

TEST(order_does_not_matter)
{
	seed = 8;
	for (int round = 0; round < 500; round++) {
		struct hull first;

		scatter(POINTS, 1000000000, 50000);
		first = h;
		memset(&h, 0, sizeof(h));
		for (int i = POINTS; i-- > 0;)
			hull_add(&h, all[i].x, all[i].y);
		ck_assert_uint_eq(first.n, h.n);
		ck_assert_mem_eq(first.p, h.p, h.n * sizeof(h.p[0]));
	}
}

TEST(touching_line_is_below_all_points_and_meets_one)
{
	seed = 9;
	for (int round = 0; round < 500; round++) {
		double slope = ((double)random_below(4000) - 2000) / 1e7;
		struct hull_point p;
		double at_0;

		scatter(POINTS, 1000000, 500);
		at_0 = hull_touch(&h, slope, &p);
		ck_assert_double_le(fabs(at_0 - rest(POINTS, slope, 0)), 1e-6);
		ck_assert_double_le(fabs(height(&p, slope, 0) - at_0), 1e-6);
	}
}

/* A parabola keeps every point of it; what is forgotten only lets lines get higher. */
TEST(full_hull_forgets_points_and_keeps_its_bounds_true)
{
	memset(&h, 0, sizeof(h));
	for (int64_t i = 0; i < 1000; i++) {
		ck_assert(hull_add(&h, i * 1000000, (i - 500) * (i - 500) / 10));
		ck_assert_uint_le(h.n, HULL_POINTS);
		ck_assert_double_ge(hull_bound(&h, (double)i * 1e6, -STEEP, STEEP),
				    (double)((i - 500) * (i - 500) / 10) - 1);
	}
	ck_assert_double_le(hull_bound(&h, 999e6, -STEEP, STEEP), 24900);
}

TEST(point_that_no_line_can_touch_is_not_kept)
{
	memset(&h, 0, sizeof(h));
	ck_assert(hull_add(&h, 0, 0));
	ck_assert(!hull_add(&h, 0, 0));
	ck_assert(!hull_add(&h, 5000, 1));
	ck_assert(!hull_add(&h, -5000, 1));
	ck_assert(hull_add(&h, 10000, 1));
	ck_assert(hull_add(&h, 0, -3));		/* in the shadow of this one */
	ck_assert_uint_eq(h.n, 1);
}

int main(void)
{
	return fx_run(NULL, NULL);
}
