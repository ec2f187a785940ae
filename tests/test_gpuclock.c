/* SPDX-License-Identifier: Apache-2.0 */
#include "reader/time/gpuclock.h"

#include <math.h>
#include <string.h>

#include "reader/base/model.h"
#include "reader/time/hull.h"
#include "tests/fixture.h"
#include "tests/gpu_model.h"

static struct gpuclock *c;
static struct gpu_model m;

static void setup(void)
{
	ck_assert_int_eq(gpuclock_new(&c), 0);
	gpu_model_init(&m, 1);
}

static void teardown(void)
{
	gpuclock_free(c);
}

/* The next kernel, and what the clock says of it. */
static enum gpuclock_verdict see_next(void)
{
	gpu_model_next(&m);
	return gpuclock_see(c, &m.sight, true);
}

/* How wide the bracket is; the true time is in it. */
static uint64_t bracket(void)
{
	uint64_t lo, hi, latest;

	ck_assert(gpuclock_map(c, m.sight.gpu_start_ns, &lo, &hi));
	ck_assert_uint_le(lo, m.start_ns);
	ck_assert_uint_ge(hi, m.start_ns);
	ck_assert(gpuclock_map(c, m.sight.gpu_stop_ns, &lo, &hi));
	ck_assert_uint_le(lo, m.stop_ns);
	ck_assert_uint_ge(hi, m.stop_ns);
	ck_assert(gpuclock_map(c, m.sight.gpu_stop_ns, NULL, &latest));
	ck_assert_uint_eq(latest, hi);
	return hi - lo;
}

TEST(nothing_is_known_before_the_first_stamp)
{
	struct gpuclock_facts facts;
	uint64_t lo, hi;

	ck_assert(!gpuclock_map(c, 5, &lo, &hi));
	ck_assert(!gpuclock_map(c, 5, NULL, &hi));
	ck_assert_uint_eq(gpuclock_span_error(c, 1000), UNKNOWN_U64);
	gpuclock_facts(c, &facts);
	ck_assert(!facts.has_drift);
	ck_assert_uint_eq(facts.hi_ns, 0);
	ck_assert_uint_eq(facts.resolution_ns, UNKNOWN_U64);
}

TEST(first_kernel_lies_between_its_launch_and_its_callback)
{
	struct gpuclock_sight s = {
		.gpu_start_ns = UINT64_C(1770000000000000000),
		.gpu_stop_ns = UINT64_C(1770000000000100000),
		.start_ns = 5000900, .stop_ns = 5102000, .launch_ns = 4990000,
	};
	uint64_t lo, hi;

	ck_assert_int_eq(gpuclock_see(c, &s, true), GPUCLOCK_FITS);
	ck_assert(gpuclock_map(c, s.gpu_start_ns, &lo, &hi));
	ck_assert_uint_le(lo, s.launch_ns);
	ck_assert_uint_ge(hi, s.start_ns);
	ck_assert_uint_le(hi - lo, 10900 + 2 * 100000 + 2 * GPUCLOCK_HOST_NS);
}

/* A kernel of 100 us whose callbacks came so late, and that was launched so early. */
static struct gpuclock_sight kernel_at(uint64_t ns, int64_t late_ns, int64_t early_ns)
{
	return (struct gpuclock_sight){
		.gpu_start_ns = UINT64_C(1770000000000000000) + ns,
		.gpu_stop_ns = UINT64_C(1770000000000100000) + ns,
		.start_ns = 500000000 + ns + (uint64_t)late_ns,
		.stop_ns = 500100000 + ns + (uint64_t)late_ns,
		.launch_ns = 500000000 + ns - (uint64_t)early_ns,
	};
}

TEST_LOOP(kernel_that_was_told_just_before_shows_which_stamps_cannot_be, 0, 2)
{
	struct gpuclock_sight slow = kernel_at(0, 50000000, 50000000);
	struct gpuclock_sight prompt = kernel_at(1000000, 1000, 5000);
	struct gpuclock_sight lie = _i ? kernel_at(2000000, 500000, -50000) :
				    kernel_at(2000000, -GPUCLOCK_STEP_NS - 10000, 500000);

	ck_assert_int_eq(gpuclock_see(c, &slow, true), GPUCLOCK_FITS);
	ck_assert_int_eq(gpuclock_see(c, &prompt, true), GPUCLOCK_FITS);
	ck_assert(!gpuclock_see_plain(c, &lie));
	ck_assert_int_eq(gpuclock_see(c, &lie, true), _i ? GPUCLOCK_PAST : GPUCLOCK_FUTURE);
}

/* No launch tells how early they can have been. */
TEST_LOOP(stamps_that_are_hours_away_are_not_of_this_clock, 0, 2)
{
	struct gpuclock_sight first = kernel_at(0, 1000, 0), away = kernel_at(1000000, 1000, 0);
	uint64_t by_ns = UINT64_C(7200000000000);

	first.launch_ns = away.launch_ns = 0;
	away.gpu_start_ns += _i ? -by_ns : by_ns;
	away.gpu_stop_ns += _i ? -by_ns : by_ns;
	ck_assert_int_eq(gpuclock_see(c, &first, true), GPUCLOCK_FITS);
	ck_assert(!gpuclock_see_plain(c, &away));
	ck_assert_int_eq(gpuclock_see(c, &away, true), _i ? GPUCLOCK_PAST : GPUCLOCK_FUTURE);
}

TEST(before_two_stamps_differ_its_tick_may_be_as_slow_as_any)
{
	struct gpuclock_sight s = kernel_at(0, 1000, 5000);
	uint64_t lo, hi;

	s.gpu_stop_ns = s.gpu_start_ns;
	ck_assert_int_eq(gpuclock_see(c, &s, true), GPUCLOCK_FITS);
	ck_assert(gpuclock_map(c, s.gpu_start_ns, &lo, &hi));
	ck_assert_uint_eq(hi, s.start_ns + GPUCLOCK_HOST_NS + 1024);
	ck_assert_uint_eq(lo, s.launch_ns - GPUCLOCK_HOST_NS - 1024);
}

#define PAST_NS		30000	/* see gpuclock.c */
#define ROUNDED_NS	4

/* By how much a kernel's stamps are too early for their callbacks, and too late for its launch. */
struct distance {
	int64_t future_ns, past_ns;
};

/* By the brackets as they are asked for.  False: there are none. */
static bool distance_of(const struct gpuclock_sight *s, struct distance *d)
{
	struct gpuclock_facts facts;
	uint64_t lo, hi, stop_lo, stop_hi, unit;

	gpuclock_facts(c, &facts);
	unit = facts.resolution_ns < 1024 ? facts.resolution_ns : 1024;
	if (!gpuclock_map(c, s->gpu_start_ns, &lo, &hi) ||
	    !gpuclock_map(c, s->gpu_stop_ns, &stop_lo, &stop_hi))
		return false;
	d->future_ns = (int64_t)(lo + unit - s->start_ns);
	if ((int64_t)(stop_lo + unit - s->stop_ns) > d->future_ns)
		d->future_ns = (int64_t)(stop_lo + unit - s->stop_ns);
	d->past_ns = (int64_t)(s->launch_ns + unit - hi);
	return lo && lo < hi && stop_lo < stop_hi;
}

static bool is_near(int64_t ns, int64_t bound_ns)
{
	return ns >= bound_ns - ROUNDED_NS && ns <= bound_ns + ROUNDED_NS;
}

TEST_LOOP(verdict_is_that_of_the_brackets, 0, 4)
{
	uint32_t judged[3] = { 0 };

	fx_seed((uint64_t)_i);
	for (uint64_t i = 0; i < 3000; i++) {
		struct gpuclock_sight s = kernel_at(i * 700000, (int64_t)(fx_random() % 60000),
						    (int64_t)(fx_random() % 80000));
		uint64_t lie = i % 3 == 2 ? fx_random() % 600000 - 300000 : 0;
		enum gpuclock_verdict verdict;
		struct distance d;
		bool known;

		s.gpu_start_ns += lie;
		s.gpu_stop_ns += lie;
		known = distance_of(&s, &d);
		verdict = gpuclock_see(c, &s, !lie);
		if (!known || is_near(d.future_ns, GPUCLOCK_STEP_NS) ||
		    is_near(d.past_ns, PAST_NS))
			continue;
		ck_assert_int_eq(verdict, d.future_ns > GPUCLOCK_STEP_NS ? GPUCLOCK_FUTURE :
				 d.past_ns > PAST_NS ? GPUCLOCK_PAST : GPUCLOCK_FITS);
		judged[verdict]++;
	}
	ck_assert_uint_gt(judged[GPUCLOCK_FITS], 1000);
	ck_assert_uint_gt(judged[GPUCLOCK_FUTURE], 50);
	ck_assert_uint_gt(judged[GPUCLOCK_PAST], 50);
}

TEST(without_launches_only_the_upper_bound_is_known)
{
	struct gpuclock_facts facts;
	uint64_t lo, hi;

	for (int i = 0; i < 1000; i++) {
		gpu_model_next(&m);
		m.sight.launch_ns = 0;
		ck_assert_int_eq(gpuclock_see(c, &m.sight, true), GPUCLOCK_FITS);
		ck_assert(gpuclock_map(c, m.sight.gpu_start_ns, &lo, &hi));
		ck_assert_uint_eq(lo, 0);
		ck_assert_uint_ge(hi, m.start_ns);
	}
	ck_assert_uint_le(hi, m.start_ns + 20000);
	gpuclock_facts(c, &facts);
	ck_assert(!facts.has_drift);
	ck_assert_uint_eq(facts.lo_ns, 0);
}

TEST(bracket_is_20_us_wide_after_a_second_of_kernels_every_ms)
{
	static const double drifts[] = { -50, -7, 0, 3, 50 };

	for (size_t k = 0; k < FX_COUNT(drifts); k++) {
		teardown();
		setup();
		m.drift_ppm = drifts[k];
		m.offset_ns = INT64_C(3600000000000) * (int64_t)k;
		for (int i = 0; i < 1000; i++) {
			ck_assert_int_eq(see_next(), GPUCLOCK_FITS);
			bracket();
		}
		for (int i = 0; i < 1000; i++) {
			ck_assert_int_eq(see_next(), GPUCLOCK_FITS);
			ck_assert_uint_le(bracket(), 20000);
		}
	}
}

/* What a sanitizer looks for shows early, and it is slow. */
#ifdef __SANITIZE_ADDRESS__
#define KERNELS	100000
#else
#define KERNELS	500000		/* two stamps each */
#endif

/* A kernel every ms or two; half of them after a step of the clock. */
static void million(double drift_ppm, int64_t step_ns)
{
	struct gpuclock_facts facts;
	uint64_t refused = 0, wide = 0;

	m.drift_ppm = drift_ppm;
	m.offset_ns = INT64_C(5) * 3600 * 1000000000;
	for (int i = 0; i < KERNELS; i++) {
		if (i == KERNELS / 2)
			m.offset_ns += step_ns;
		if (see_next() != GPUCLOCK_FITS) {
			refused++;
			continue;
		}
		wide += bracket() > 20000 && i > 1000 &&
			(i < KERNELS / 2 || i > KERNELS / 2 + 1100);
	}
	gpuclock_facts(c, &facts);
	ck_assert_uint_eq(facts.steps, 1);
	ck_assert_uint_eq(facts.bends, 0);
	ck_assert_uint_le(refused, 80);
	ck_assert_uint_eq(wide, 0);
	ck_assert_double_le(fabs(facts.drift_ppm - drift_ppm), facts.drift_error_ppm);
	ck_assert_double_le(facts.drift_error_ppm, 0.5);
	ck_assert_uint_le(facts.points, 2 * HULL_POINTS);
}

TEST(sixteen_kernels_make_it_sure_not_sixteen_channels)
{
	for (int i = 0; i < 16; i++) {
		ck_assert(!gpuclock_is_sure(c));
		see_next();
		for (int channel = 1; channel < 16 && i < 15; channel++)
			gpuclock_see(c, &m.sight, true);
	}
	ck_assert(gpuclock_is_sure(c));
}

TEST(million_true_times_are_in_their_brackets_when_the_clock_steps_ahead)
{
	million(50, 7000000);
}

TEST(million_true_times_are_in_their_brackets_when_the_clock_steps_back)
{
	million(-50, -INT64_C(3600000000000));
}

int main(void)
{
	return fx_run(setup, teardown);
}
