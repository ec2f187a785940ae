/* SPDX-License-Identifier: Apache-2.0 */
/* Figures of two runs, drawn by chance: what differs is found, and chance is not. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "judge/difference.h"
#include "tests/fixture.h"

#define SERIES	24	/* figures that are compared together */
#define VALUES	64
#define PAIRS	400

static double a[VALUES], b[VALUES], bound_a[VALUES], bound_b[VALUES], scratch[4 * VALUES];
static uint32_t order[SERIES];

static double draw(void)
{
	return ((double)(fx_random() >> 11) + 0.5) / 9007199254740992.0;
}

static double draw_normal(void)
{
	double far = sqrt(-2 * log(draw()));

	return far * cos(2 * M_PI * draw());
}

/* The times of operations, one after another. */
struct kind {
	const char *name;
	double spread;	/* one operation's */
	double lasting;	/* the part of it that the next one has as well */
	double jumps;	/* all operations of a minute together, eight of them */
};

static const struct kind kinds[] = {
	{ "independent", 0.3, 0, 0 },
	{ "each like the one before", 0.1, 0.7, 0 },
	{ "other from minute to minute", 0.1, 0, 0.03 },
};

static void draw_run(double *values, const struct kind *k, double level)
{
	double last = 0, minute = 0;

	for (uint32_t i = 0; i < VALUES; i++) {
		if (i % 8 == 0)
			minute = k->jumps * draw_normal();
		last = k->lasting * last + sqrt(1 - k->lasting * k->lasting) * draw_normal();
		values[i] = level * exp(k->spread * last + minute);
	}
}

/* Both runs, of which figure `slower` takes so many times as long in the second. */
static uint32_t pair_compare(const struct kind *k, uint32_t slower, double times,
			     struct difference rows[SERIES])
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < SERIES; i++) {
		draw_run(a, k, 1e6);
		draw_run(b, k, i == slower ? times * 1e6 : 1e6);
		rows[i] = (struct difference){ .scale = 0 };
		difference_measure(&rows[i], &(struct difference_side){ a, NULL, VALUES },
				   &(struct difference_side){ b, NULL, VALUES }, scratch);
	}
	difference_judge(rows, SERIES, order);
	for (uint32_t i = 0; i < SERIES; i++)
		n += rows[i].differs;
	return n;
}

TEST_LOOP(runs_that_are_alike_differ_in_one_of_fifty_pairs_at_most, 0, FX_COUNT(kinds))
{
	const struct kind *k = &kinds[_i];
	struct difference rows[SERIES];
	uint32_t wrong = 0;

	fx_seed(17 + (uint64_t)_i);
	for (uint32_t i = 0; i < PAIRS; i++)
		wrong += pair_compare(k, SERIES, 1, rows) > 0;
	printf("# %s: %u of %u pairs of runs that are alike differ\n", k->name, wrong, PAIRS);
	ck_assert_uint_le(wrong, PAIRS / 50);
}

TEST(an_operation_that_takes_a_tenth_longer_is_found_among_others)
{
	static const struct kind steady = { "steady", 0.05, 0.3, 0 };
	struct difference rows[SERIES];
	uint32_t found = 0, others = 0;

	fx_seed(5);
	for (uint32_t i = 0; i < 200; i++) {
		others += pair_compare(&steady, 7, 1.1, rows) - rows[7].differs;
		found += rows[7].differs;
		ck_assert(!rows[7].differs || rows[7].change > 0.05);
	}
	printf("# found in %u of 200 pairs, %u others\n", found, others);
	ck_assert_uint_ge(found, 190);
	ck_assert_uint_le(others, 4);
}

/* Values of one level each, a little apart. */
static struct difference levels_compare(uint32_t n, double from, double to, double scale,
					double least)
{
	struct difference d = { .scale = scale, .least = least };

	for (uint32_t i = 0; i < n; i++) {
		a[i] = from + (i * 7 % 11) * 1e-3;
		b[i] = to + (i * 5 % 13) * 1e-3;
	}
	difference_measure(&d, &(struct difference_side){ a, NULL, n },
			   &(struct difference_side){ b, NULL, n }, scratch);
	difference_judge(&d, 1, order);
	return d;
}

TEST(little_is_told_of_no_difference_however_sure)
{
	ck_assert(!levels_compare(VALUES, 100, 104.5, 0, 0).differs);
	ck_assert(levels_compare(VALUES, 100, 106, 0, 0).differs);
	ck_assert(levels_compare(VALUES, 106, 100, 0, 0).differs);
	ck_assert_double_lt(levels_compare(VALUES, 106, 100, 0, 0).change, 0);
	ck_assert_double_lt(levels_compare(VALUES, 100, 104.5, 0, 0).p, 1e-6);
}

TEST(few_values_are_not_compared)
{
	ck_assert_int_eq(levels_compare(DIFFERENCE_VALUES - 1, 100, 200, 0, 0).test,
			 DIFFERENCE_NONE);
	ck_assert(!levels_compare(DIFFERENCE_VALUES - 1, 100, 200, 0, 0).differs);
	ck_assert(levels_compare(DIFFERENCE_VALUES, 100, 200, 0, 0).differs);
}

/* Waiting may be 0 before: it is compared with what operations take. */
TEST(change_is_relative_to_the_scale_and_not_below_the_least)
{
	ck_assert(levels_compare(VALUES, 0, 6, 100, 0).differs);
	ck_assert(!levels_compare(VALUES, 0, 6, 200, 0).differs);
	ck_assert(!levels_compare(VALUES, 0, 6, 100, 10).differs);
}

TEST(a_few_outliers_are_no_difference)
{
	struct difference d = { .scale = 0 };

	for (uint32_t i = 0; i < VALUES; i++) {
		a[i] = 100 + i * 7 % 11;
		b[i] = i % 16 == 3 ? 5000 : 100 + i * 5 % 11;
	}
	difference_measure(&d, &(struct difference_side){ a, NULL, VALUES },
			   &(struct difference_side){ b, NULL, VALUES }, scratch);
	difference_judge(&d, 1, order);
	ck_assert(!d.differs);
}

static bool ranges_differ(double from, double to, double bound)
{
	struct difference d = { .scale = 0 };

	for (uint32_t i = 0; i < 4; i++) {
		a[i] = from + i;
		b[i] = to + i;
		bound_a[i] = bound_b[i] = bound;
	}
	difference_measure(&d, &(struct difference_side){ a, bound_a, 4 },
			   &(struct difference_side){ b, bound_b, 4 }, scratch);
	ck_assert_int_eq(d.test, DIFFERENCE_RANGES);
	difference_judge(&d, 1, order);
	return d.differs;
}

TEST(ranges_differ_where_they_do_not_meet)
{
	ck_assert(ranges_differ(100, 120, 5));
	ck_assert(!ranges_differ(100, 120, 9));
	ck_assert(!ranges_differ(100, 104, 0.1));	/* less than the least change */
	ck_assert(ranges_differ(120, 100, 5));
}

/* Four links, of which the second has changed from `from` to `to`. */
static bool link_differs(uint32_t n, double from, double to, double others_to, double apart)
{
	struct difference d[16];

	for (uint32_t i = 0; i < n; i++)
		d[i] = (struct difference){ .a = i == 1 ? from : 1,
					    .b = i == 1 ? to : others_to * (i == 2 ? apart : 1) };
	difference_measure_links(d, n, scratch);
	difference_judge(d, n, order);
	return d[1].differs;
}

TEST(fifty_thousand_links_take_no_longer_than_to_sort_them)
{
	const uint32_t n = 50000;
	struct difference *d = calloc(n, sizeof(*d));
	double *room = calloc(2 * (size_t)n, sizeof(*room));

	for (uint32_t i = 0; i < n; i++)
		d[i] = (struct difference){ .a = 1, .b = i == 4711 ? 1.5 : 1 };
	difference_measure_links(d, n, room);
	for (uint32_t i = 0; i < n; i++)
		ck_assert_int_eq(d[i].apart, i == 4711);
	free(room);
	free(d);
}

TEST(link_differs_by_itself_and_against_the_others)
{
	ck_assert(link_differs(4, 1, 1.5, 1, 1));
	ck_assert(link_differs(4, 1.5, 1, 1, 1));
	ck_assert(!link_differs(4, 1, 1.2, 1, 1));	/* too little */
	ck_assert(!link_differs(4, 1, 1.5, 1.5, 1));	/* all have changed, as on a busy host */
	ck_assert(!link_differs(4, 1, 0.9, 0.4, 1));	/* less than the others, and faster */
	ck_assert(!link_differs(4, 1, 1.5, 1, 1.6));	/* another one is as far off */
	ck_assert(!link_differs(2, 1, 1.5, 1, 1));	/* one beside it tells nothing */
}

TEST(bound_of_a_median_shrinks_with_the_number_of_values)
{
	ck_assert_double_eq_tol(difference_median_bound(1000, 1000, 100), 8, 1e-9);
	ck_assert_double_eq_tol(difference_median_bound(1000, 1128.16, 100), 8 + 50.132, 1e-3);
	ck_assert_double_eq_tol(difference_median_bound(1000, 1128.16, 10000), 8 + 5.0132, 1e-3);
}

int main(void)
{
	return fx_run(NULL, NULL);
}
