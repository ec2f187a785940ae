/* SPDX-License-Identifier: Apache-2.0 */
#include "judge/cusum.h"

#include <math.h>
#include <string.h>

#include "tests/fixture.h"

static struct cusum c;

static double uniform(void)
{
	return ((double)(fx_random() % 1000000) + 0.5) / 1e6;
}

static double normal(void)
{
	return sqrt(-2 * log(uniform())) * cos(6.283185307179586 * uniform());
}

static void learn(double mean, double sigma)
{
	memset(&c, 0, sizeof(c));
	for (int i = 0; i < CUSUM_LEARN; i++)
		ck_assert_int_eq(cusum_add(&c, mean + sigma * normal(), 8), 0);
}

/* The alarm after so many samples at that level, or its first one. */
static int feed(int n, double mean, double sigma, double h)
{
	for (int i = 0; i < n; i++)
		if (cusum_add(&c, mean + sigma * normal(), h))
			return i + 1;
	return 0;
}

TEST(it_learns_the_level_and_its_spread_whatever_a_few_say)
{
	learn(5, 0.1);
	ck_assert(fabs(c.mean - 5) < 0.03);
	ck_assert(fabs(c.sigma - 0.1) < 0.03);
	memset(&c, 0, sizeof(c));
	for (int i = 0; i < CUSUM_LEARN; i++)
		cusum_add(&c, i % 10 ? 5 + 0.1 * normal() : 50, 8);
	ck_assert(fabs(c.mean - 5) < 0.06);
	ck_assert(c.sigma < 0.2);
}

/* A node has ten kinds of operations, of which a week may pass without a false alarm. */
#define NODE_LIMIT cusum_limit(10 * 60480.0)

/* Changes of less than five percent are not told. */
TEST(few_samples_raise_no_false_alarms)
{
	int alarms = 0;

	for (int run = 0; run < 2000; run++) {
		bool told = false;

		memset(&c, 0, sizeof(c));
		for (int i = 0; i < CUSUM_LEARN; i++)
			told |= cusum_add(&c, 3 + 0.025 * normal(), NODE_LIMIT) > 0 &&
				cusum_change(&c) >= 0.05;
		alarms += told;
	}
	ck_assert_msg(alarms <= 2, "%d alarms in 2000 beginnings", alarms);
}

/* Ten percent, after four minutes of windows of 10 s: within two minutes. */
TEST(a_change_is_found_soon_after_the_first_samples)
{
	int found = 0;

	for (int run = 0; run < 200; run++) {
		int n;

		memset(&c, 0, sizeof(c));
		ck_assert_int_eq(feed(CUSUM_FIRST, 3, 0.02, NODE_LIMIT), 0);
		n = feed(100, 3 + log(1.1), 0.02, NODE_LIMIT);
		found += n && n <= 12 && c.alarm > 0;
	}
	ck_assert_msg(found >= 190, "%d of 200", found);
}

/* Jobs of two minutes each: the third is judged from its first minute on. */
TEST(what_short_jobs_leave_adds_up)
{
	int found = 0;

	for (int run = 0; run < 200; run++) {
		int n;

		memset(&c, 0, sizeof(c));
		for (int job = 0; job < 2; job++) {
			ck_assert_int_eq(feed(CUSUM_FIRST / 2, 3, 0.02, NODE_LIMIT), 0);
			ck_assert_uint_eq(c.learned, (uint32_t)(job + 1) * CUSUM_FIRST / 2);
			cusum_start(&c, c.mean, c.sigma, c.learned);
		}
		n = feed(100, 3 + log(1.1), 0.02, NODE_LIMIT);
		found += n && n <= 12 && c.alarm > 0;
	}
	ck_assert_msg(found >= 190, "%d of 200", found);
}

/* A minute's samples are too few to judge a job that is slower from its beginning on. */
TEST(what_a_short_job_left_raises_no_alarm_by_itself)
{
	cusum_start(&c, 3, 0.02, CUSUM_LEAST);
	ck_assert(!cusum_is_known(&c));
	ck_assert_int_eq(feed(CUSUM_FIRST - CUSUM_LEAST, 3.3, 0.02, 8), 0);
	ck_assert(cusum_is_known(&c));
}

TEST(a_level_without_any_spread_has_one_of_a_percent)
{
	learn(5, 0);
	ck_assert(fabs(c.sigma - CUSUM_SIGMA_MIN) < 1e-9);
	ck_assert_int_eq(feed(1000, 5.004, 0, 8), 0);
	ck_assert_int_gt(feed(1000, 5.02, 0, 8), 0);
}

static const struct { double h, samples; } lengths[] = {
	{ 5, 940 }, { 8, 19000 }, { 10, 141000 },
};

TEST_LOOP(run_lengths_are_the_published_ones, 0, FX_COUNT(lengths))
{
	ck_assert(fabs(cusum_run_length(lengths[_i].h) / lengths[_i].samples - 1) < 0.02);
	ck_assert(fabs(cusum_limit(lengths[_i].samples) - lengths[_i].h) < 0.02);
}

/* Both sides together: half of one side's run length.  Of 400 runs, within a fifth. */
TEST_LOOP(false_alarms_come_as_rarely_as_the_formula_says, 0, 3)
{
	double h = 3 + _i, expected = cusum_run_length(h) / 2, sum = 0;

	for (int run = 0; run < 400; run++) {
		cusum_start(&c, 0, 1, CUSUM_LEARN);
		while (!cusum_add(&c, normal(), h))
			sum++;
		sum++;
	}
	ck_assert(fabs(sum / 400 / expected - 1) < 0.2);
}

TEST_LOOP(a_change_is_found_with_its_size_its_onset_and_its_direction, 0, 10)
{
	int direction = _i % 2 ? 1 : -1, n;

	learn(3, 0.02);
	feed(50, 3, 0.02, 12);
	n = feed(100, 3 + direction * 0.1, 0.02, 12);
	ck_assert_int_gt(n, 0);
	ck_assert_int_lt(n, 8);
	ck_assert_int_eq(c.alarm, direction);
	ck_assert_int_ge((int)cusum_onset(&c, direction), n);
	ck_assert_int_le((int)cusum_onset(&c, direction), n + 12);
	for (int i = 0; i < 20; i++)
		cusum_add(&c, 3 + direction * 0.1, 12);
	ck_assert(fabs(cusum_change(&c) - direction * 0.1) < 0.02);
}

TEST(an_alarm_stays_until_the_series_is_back_even_when_the_level_is_learned)
{
	learn(3, 0.02);
	ck_assert_int_gt(feed(100, 3.2, 0.02, 8), 0);
	for (int i = 0; i < 300; i++)
		ck_assert_int_eq(cusum_add(&c, 3.2 + 0.02 * normal(), 8), 1);
	ck_assert(fabs(c.mean - 3.2) < 0.03);		/* learned */
	ck_assert(fabs(cusum_change(&c) - 0.2) < 0.03);	/* and not forgotten */
	for (int i = 0; i < 20; i++)
		cusum_add(&c, 3 + 0.02 * normal(), 8);
	ck_assert_int_eq(c.alarm, 0);
	ck_assert(fabs(c.mean - 3) < 0.03);
}

/* Windows of 10 s: within a minute, also where the change itself was short. */
TEST_LOOP(a_short_change_that_is_repaired_is_over_soon, 0, 20)
{
	learn(3, 0.02);
	ck_assert_int_gt(feed(100, 3.2, 0.02, 8), 0);
	for (int i = 0; i < 10; i++)
		ck_assert_int_eq(cusum_add(&c, 3.2 + 0.02 * normal(), 8), 1);
	for (int i = 0; i < 5; i++)
		cusum_add(&c, 3 + 0.02 * normal(), 8);
	ck_assert_int_eq(c.alarm, 0);
}

/* A progress thread that gets no CPU sees an operation begin late: for a window, all are fast. */
TEST(one_sample_far_beyond_the_old_level_is_not_the_way_back)
{
	learn(3, 0.02);
	ck_assert_int_gt(feed(100, 3.2, 0.02, 8), 0);
	for (int i = 0; i < 60; i++)
		cusum_add(&c, 3.2 + 0.02 * normal(), 8);
	ck_assert_int_eq(cusum_add(&c, 2, 8), 1);
	ck_assert_int_eq(cusum_add(&c, 3.2, 8), 1);
	for (int i = 0; i < 5; i++)
		cusum_add(&c, 3, 8);
	ck_assert_int_eq(c.alarm, 0);
}

TEST(what_is_no_number_is_ignored)
{
	learn(3, 0.02);
	ck_assert_int_eq(cusum_add(&c, NAN, 8), 0);
	ck_assert_int_eq(cusum_add(&c, INFINITY, 8), 0);
	ck_assert_int_eq(cusum_add(&c, 3, 8), 0);
	ck_assert(isfinite(c.recent));
}

/* Sums the long way: the greatest sum of a stretch that ends now. */
TEST_LOOP(sums_are_those_of_the_worst_stretch, 0, 10)
{
	double x[60], worst[2] = { 0, 0 };

	cusum_start(&c, 0, 1, CUSUM_LEARN);
	for (int i = 0; i < 60; i++) {
		x[i] = normal();
		cusum_add(&c, x[i], 1e9);
	}
	for (int side = 0; side < 2; side++) {
		double sum = 0;

		for (int from = 59; from >= 0; from--) {
			sum += (side ? -x[from] : x[from]) - CUSUM_K;
			worst[side] = fmax(worst[side], sum);
		}
		ck_assert(fabs(worst[side] - c.sum[side]) < 1e-9);
	}
}

int main(void)
{
	return fx_run(NULL, NULL);
}
