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
	return p->y + slope * (x - p->x);
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
			double dx = all[k].x - all[i].x;

			if (dx > 0)
				best = fmax(best, rest(n, clamp((all[k].y - all[i].y) / dx,
								min, max), x));
		}
	return best;
}

/* Few x, so that some are equal; heights that drift and scatter. */
static void scatter(int n, uint64_t width, uint64_t noise)
{
	double drift = ((double)random_below(3000) - 1500) / 1e7;

	hull_begin(&h);
	for (int i = 0; i < n; i++) {
		all[i].x = (double)random_below(width) - (double)(width / 2);
		all[i].y = trunc(drift * all[i].x) + (double)random_below(noise);
	}
}

static void add_from(int i, int n)
{
	for (; i < n; i++)
		hull_add(&h, all[i].x, all[i].y);
}

static void bound_is_near(double bound, double slow, double near)
{
	ck_assert_double_ge(bound, slow - 1e-3);
	ck_assert_double_le(bound, slow + near + 1e-3);
}

/* Slopes get known before, between or behind the points. */
TEST(bound_is_that_of_all_lines_below_all_points)
{
	seed = 7;
	for (int round = 0; round < 2000; round++) {
		uint64_t width = round % 2 ? 1000 : 1000000000;
		int n = 1 + (int)random_below(POINTS), half = (int)random_below((uint64_t)n + 1);
		double min = -STEEP, max = STEEP, near;

		scatter(n, width, 1 + random_below(round % 3 ? 100 : 100000));
		if (round % 5 == 0)
			min = -STEEP / (double)(1 + random_below(10));
		if (round % 7 == 0)
			max = STEEP / (double)(1 + random_below(10));
		add_from(0, half);
		near = half ? h.near : 0;
		hull_narrow(&h, min, max);
		near = fmax(near, h.near);
		add_from(half, n);
		for (int q = 0; q < 8; q++) {
			double x = (double)random_below(2 * width) - (double)width;

			bound_is_near(hull_bound(&h, x), slow_bound(n, x, min, max), near);
		}
	}
}

TEST(nothing_bounds_a_line_but_points)
{
	hull_begin(&h);
	ck_assert(hull_is_empty(&h));
	ck_assert_double_eq(hull_bound(&h, -5), HUGE_VAL);
	ck_assert_double_eq(hull_bound(&h, 5), HUGE_VAL);
	ck_assert(hull_add(&h, 1e12, 1e12));
	ck_assert(!hull_is_empty(&h));
	ck_assert_uint_eq(h.n, 1);
	ck_assert_double_eq(hull_bound(&h, 1e12), 1e12);
}

TEST(order_hardly_matters)
{
	seed = 8;
	for (int round = 0; round < 500; round++) {
		struct hull first;

		scatter(POINTS, 1000000000, 50000);
		add_from(0, POINTS);
		first = h;
		hull_begin(&h);
		for (int i = POINTS; i-- > 0;)
			hull_add(&h, all[i].x, all[i].y);
		for (int i = 0; i < POINTS; i++)
			ck_assert_double_le(fabs(hull_bound(&h, all[i].x) -
						 hull_bound(&first, all[i].x)), h.near);
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
		add_from(0, POINTS);
		at_0 = hull_touch(&h, slope, &p);
		bound_is_near(at_0, rest(POINTS, slope, 0), h.near);
		ck_assert_double_le(fabs(height(&p, slope, 0) - at_0), 1e-6);
	}
}

/* A parabola keeps every point of it; what is forgotten only lets lines get higher. */
TEST(full_hull_forgets_points_and_keeps_its_bounds_true)
{
	hull_begin(&h);
	for (int64_t i = 0; i < 1000; i++) {
		double x = (double)i * 1e6, y = (double)((i - 500) * (i - 500) / 10);

		ck_assert(hull_add(&h, x, y));
		ck_assert_uint_le(h.n, HULL_POINTS);
		ck_assert_double_ge(hull_bound(&h, x), y - 1);
	}
	ck_assert_double_le(hull_bound(&h, 999e6), 24900);
}

TEST(point_that_keeps_no_line_lower_is_not_kept)
{
	hull_begin(&h);
	ck_assert(hull_add(&h, 0, 0));
	ck_assert(!hull_add(&h, 0, 0));
	ck_assert(!hull_add(&h, 5e6, 1000));
	ck_assert(!hull_add(&h, -5e6, 1000));
	ck_assert(!hull_add(&h, 5e6, 960));	/* by 40 ns: its slopes may be so far apart */
	ck_assert(hull_add(&h, 5e6, 950));
	ck_assert(hull_add(&h, 0, -100));	/* in the shadow of this one */
	ck_assert_uint_eq(h.n, 1);
	hull_narrow(&h, 1e-7, 1e-5);
	ck_assert(!hull_add(&h, 1e8, 900));
	ck_assert(!hull_add(&h, 1e8, 898.5));	/* by 1.5 ns: slopes are known well */
	ck_assert(hull_add(&h, 1e8, 897));
}

TEST(points_that_no_line_of_known_slope_touches_are_dropped)
{
	hull_begin(&h);
	for (int i = -5; i <= 5; i++)
		ck_assert(hull_add(&h, i * 1e7, i * i * 100));
	ck_assert_uint_eq(h.n, 11);
	hull_narrow(&h, -2e-5, 4e-5);	/* the edges' slopes are -9e-5, -7e-5 ... 9e-5 */
	ck_assert_uint_eq(h.n, 4);
	ck_assert_double_eq(h.p[3].x, -1e7);
	ck_assert_double_eq(h.p[0].x, 2e7);
	ck_assert_double_eq(hull_bound(&h, 5e7), 400 + 4e-5 * 3e7);
	ck_assert_double_eq(hull_bound(&h, -5e7), 100 + 2e-5 * 4e7);
	hull_narrow(&h, 0, 0);
	ck_assert_uint_eq(h.n, 1);
}

int main(void)
{
	return fx_run(NULL, NULL);
}
