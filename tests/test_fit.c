/* SPDX-License-Identifier: Apache-2.0 */
#include "ncclinspd/sums/fit.h"

#include <math.h>
#include <string.h>

#include "tests/fixture.h"

static struct fit fit;
static struct fit_line line;

static void setup(void)
{
	memset(&fit, 0, sizeof(fit));
	memset(&line, 0, sizeof(line));
}

static void add(uint64_t bytes, uint64_t ns, int n)
{
	for (int i = 0; i < n; i++)
		fit_add(&fit, bytes, ns);
}

static bool has_line(void)
{
	return fit_line(&fit, &line) == FIT_FOUND;
}

static bool is_near(double got, double expected, double part)
{
	return fabs(got - expected) <= part * fabs(expected) + 1e-9;
}

TEST(line_through_exact_points_is_found)
{
	for (uint64_t bytes = 1024; bytes <= 1024 * 1024; bytes *= 2)
		add(bytes, 8000 + bytes / 4, 3);
	ck_assert(has_line());
	ck_assert_int_eq(line.method, FIT_HULL);
	ck_assert(is_near(line.latency_ns, 8000, 1e-9));
	ck_assert(is_near(line.ns_per_byte, 0.25, 1e-9));
	ck_assert(is_near(line.r2, 1, 1e-9));
	ck_assert_uint_eq(fit.n, 33);
}

TEST(delays_that_only_add_do_not_move_the_line)
{
	for (int i = 0; i < 20000; i++) {
		uint64_t bytes = UINT64_C(16384) << (fx_random() % 3) * 2;
		double u = (double)(fx_random() % 1000000 + 1) / 1e6;
		uint64_t delay = (uint64_t)(-5000 * log(u)) + (i % 100 ? 0 : 5000000);

		add(bytes, 10000 + bytes / 20 + delay, 1);
	}
	ck_assert(has_line());
	ck_assert(is_near(line.latency_ns, 10000, 0.08));
	ck_assert(is_near(line.ns_per_byte, 0.05, 0.05));
	ck_assert_double_gt(line.r2, 0.99);
}

/* A busy machine sees both ends of one in fifty at once. */
TEST(transfers_that_look_too_short_do_not_move_the_line)
{
	struct fit parts[4] = { { 0 } };

	for (int i = 0; i < 4000; i++) {
		uint64_t bytes = UINT64_C(4096) << fx_random() % 4 * 2;
		uint64_t ns = fx_random() % 50 ? 300000 + bytes / 2 + fx_random() % 10000 : 600;

		fit_add(&parts[i / 1000], bytes, ns);
	}
	for (int i = 0; i < 4; i++)
		fit_merge(&fit, &parts[i]);
	ck_assert_uint_eq(fit.n, 4000);
	ck_assert(has_line());
	ck_assert(is_near(line.latency_ns, 300000, 0.01));
	ck_assert(is_near(line.ns_per_byte, 0.5, 0.05));
}

TEST(few_or_close_sizes_give_no_line)
{
	ck_assert_int_eq(fit_line(&fit, &line), FIT_NO_TIMES);
	add(1000, 5000, 10);
	add(8000, 9000, 10);
	ck_assert_int_eq(fit_line(&fit, &line), FIT_FEW_SIZES);
	add(0, 1, 10);
	ck_assert_uint_eq(fit.sizes, 2);
	add(2000, 6000, 10);
	ck_assert(has_line());
	setup();
	for (uint64_t bytes = 1000; bytes < 4000; bytes += 500)
		add(bytes, bytes, 1);
	ck_assert_int_eq(fit_line(&fit, &line), FIT_CLOSE_SIZES);
}

TEST(times_that_fall_with_the_size_give_no_line)
{
	add(1000, 9000, 1);
	add(4000, 6000, 1);
	add(8000, 2000, 1);
	ck_assert(!has_line());
}

TEST(latency_below_zero_is_left_to_the_next_method)
{
	add(100, 3000, 5);
	add(1000, 1000, 1);
	add(4000, 9500, 1);
	add(5000, 13000, 1);
	ck_assert(has_line());
	ck_assert_int_ne(line.method, FIT_HULL);
	ck_assert_double_ge(line.latency_ns, 0);
	ck_assert_double_gt(line.ns_per_byte, 0);
}

TEST(no_line_is_better_than_a_latency_below_zero)
{
	add(1000, 1100, 1000);
	add(2000, 1200, 1);
	add(100000, 200000, 1000);
	ck_assert(!has_line());
}

TEST(points_that_lie_along_no_line_give_none)
{
	add(10000, 31, 10);
	add(50000, 40000, 10);
	add(150000, 60, 10);
	ck_assert_int_eq(fit_line(&fit, &line), FIT_NO_LINE);
}

TEST(memory_is_bounded_and_keeps_what_is_lowest)
{
	for (int i = 0; i < 50000; i++) {
		uint64_t bytes = 4096 + fx_random() % 1000000;

		add(bytes, 20000 + bytes / 10 + fx_random() % 40000, 1);
	}
	ck_assert_uint_eq(fit.sizes, FIT_SIZES);
	ck_assert_uint_eq(fit.n, 50000);
	for (uint32_t i = 1; i < fit.sizes; i++)
		ck_assert_uint_lt(fit.size[i - 1].bytes, fit.size[i].bytes);
	ck_assert(has_line());
	ck_assert(is_near(line.ns_per_byte, 0.1, 0.05));
	ck_assert(is_near(line.latency_ns, 20000, 0.05));
}

TEST(merged_fits_are_the_fit_of_all_points)
{
	struct fit parts[3] = { { 0 } }, merged = { 0 };

	for (int i = 0; i < 300; i++) {
		uint64_t bytes = 100 * (1 + fx_random() % FIT_SIZES), ns = fx_random() % 5000;

		add(bytes, ns, 1);
		fit_add(&parts[i % 3], bytes, ns);
	}
	for (int i = 0; i < 3; i++)
		fit_merge(&merged, &parts[i]);
	ck_assert_uint_eq(merged.sizes, fit.sizes);
	ck_assert_mem_eq(merged.size, fit.size, fit.sizes * sizeof(fit.size[0]));
	ck_assert_uint_eq(merged.n, fit.n);
	ck_assert(is_near(merged.bytes, fit.bytes, 1e-12));
}

/* ---- against slow and obvious versions ---------------------------------------- */

/* Of all lines through two points that no point is below: the one over the mean size. */
static bool slow_hull(double *latency, double *slope)
{
	double mean = fit.bytes / (double)fit.n;

	for (uint32_t a = 0; a < fit.sizes; a++)
		for (uint32_t b = a + 1; b < fit.sizes; b++) {
			const struct fit_size *p = &fit.size[a], *q = &fit.size[b];
			bool below = false;

			*slope = ((double)fit_low(q) - (double)fit_low(p)) /
				 (double)(q->bytes - p->bytes);
			*latency = (double)fit_low(p) - *slope * (double)p->bytes;
			for (uint32_t i = 0; i < fit.sizes; i++)
				below |= (double)fit_low(&fit.size[i]) <
					 *latency + *slope * (double)fit.size[i].bytes - 1e-6;
			if (!below && (double)p->bytes <= mean && mean <= (double)q->bytes)
				return true;
		}
	return false;
}

/* Least squares by the normal equations over every transfer, one by one. */
static void slow_squares(double *latency, double *slope)
{
	double n = 0, x = 0, t = 0, xx = 0, xt = 0;

	for (uint32_t i = 0; i < fit.sizes; i++)
		for (uint64_t k = 0; k < fit.size[i].n; k++) {
			double s = (double)fit.size[i].bytes, ns = (double)fit_low(&fit.size[i]);

			n++;
			x += s;
			t += ns;
			xx += s * s;
			xt += s * ns;
		}
	*slope = (n * xt - x * t) / (n * xx - x * x);
	*latency = (t - *slope * x) / n;
}

/* It runs below the points or down, or they do not lie along it. */
static bool slow_is_refused(double latency, double slope)
{
	double n = 0, mean = 0, left = 0, all = 0;

	for (uint32_t i = 0; i < fit.sizes; i++) {
		n += (double)fit.size[i].n;
		mean += (double)fit.size[i].n * (double)fit_low(&fit.size[i]);
	}
	for (uint32_t i = 0; i < fit.sizes; i++) {
		double ns = (double)fit_low(&fit.size[i]), of = (double)fit.size[i].n;

		left += of * pow(ns - latency - slope * (double)fit.size[i].bytes, 2);
		all += of * pow(ns - mean / n, 2);
	}
	return slope <= 0 || latency < 0 || left > (1 - FIT_LEAST_R2) * all - 1e-6;
}

TEST(line_is_that_of_the_slow_version)
{
	uint32_t found[FIT_METHOD_END] = { 0 };

	for (int round = 0; round < 20000; round++) {
		double latency, slope;
		int sizes = 3 + (int)(fx_random() % (FIT_SIZES - 2));

		setup();
		for (int i = 0; i < sizes; i++) {
			uint64_t bytes = 10 + fx_random() % 1000;

			add(bytes, bytes + fx_random() % 1500, 1 + fx_random() % 5);
		}
		if (!has_line())
			continue;
		found[line.method]++;
		ck_assert_double_ge(line.r2, FIT_LEAST_R2);
		ck_assert_double_le(line.r2, 1);
		ck_assert(slow_hull(&latency, &slope));
		if (line.method == FIT_HULL) {
			ck_assert(is_near(line.ns_per_byte, slope, 1e-6));
			ck_assert(fabs(line.latency_ns - latency) <= 0.5 + 1e-6 * latency);
			continue;
		}
		ck_assert(slow_is_refused(latency, slope));
		slow_squares(&latency, &slope);
		if (line.method == FIT_LEAST_SQUARES) {
			ck_assert(is_near(line.ns_per_byte, slope, 1e-6));
			ck_assert(fabs(line.latency_ns - latency) <= 0.5 + 1e-6 * latency);
			continue;
		}
		ck_assert(slow_is_refused(latency, slope));
	}
	for (int i = 0; i < FIT_METHOD_END; i++)
		ck_assert_uint_gt(found[i], 0);
}

int main(void)
{
	return fx_run(setup, NULL);
}
