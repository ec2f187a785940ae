/* SPDX-License-Identifier: Apache-2.0 */
/* The period of an operation stream, against a slow search that tries every lag. */
#include <stdlib.h>

#include "ncclinspd/findings/period.h"
#include "tests/fixture.h"

#define MS UINT64_C(1000000)

static struct period *p;
static uint64_t tokens[3 * PERIOD_TOKENS];
static uint32_t n;
static uint64_t now_ns;

static void setup(void)
{
	p = calloc(1, sizeof(*p));
	n = 0;
	now_ns = 1000 * MS;
}

static void teardown(void)
{
	free(p);
}

static void add(uint64_t token, uint64_t gap_ns)
{
	now_ns += gap_ns;
	tokens[n++] = token;
	period_add(p, token, now_ns, (struct period_part){ 0 });
}

/* The definition: the smallest lag with a share of 0.95 and 0.98 of the best. */
static double slow_share(uint32_t lag)
{
	uint32_t first = n > PERIOD_TOKENS ? n - PERIOD_TOKENS : 0, same = 0;

	for (uint32_t i = first + lag; i < n; i++)
		same += tokens[i] == tokens[i - lag];
	return (double)same / (n - first - lag);
}

static uint32_t slow_lag(void)
{
	uint32_t room = n > PERIOD_TOKENS ? PERIOD_TOKENS : n;
	double most = 0;

	for (uint32_t lag = 1; lag * 3 <= room; lag++)
		if (slow_share(lag) > most)
			most = slow_share(lag);
	for (uint32_t lag = 1; lag * 3 <= room; lag++)
		if (slow_share(lag) >= 0.95 && slow_share(lag) >= 0.98 * most)
			return lag;
	return 0;
}

/* A random iteration of `length` operations of a few kinds, with one that is its own. */
static void make_iteration(uint64_t *iteration, uint32_t length, uint32_t kinds)
{
	for (uint32_t i = 0; i < length; i++)
		iteration[i] = 1 + fx_random() % kinds;
	iteration[fx_random() % length] = 1000;
}

TEST_LOOP(it_finds_what_a_search_of_all_lags_finds, 0, 60)
{
	uint32_t length, iterations;
	uint64_t iteration[200];

	fx_seed((uint64_t)_i);
	length = 1 + (uint32_t)(fx_random() % 200);
	iterations = 4 + (uint32_t)(fx_random() % 40);
	make_iteration(iteration, length, 1 + (uint32_t)(fx_random() % 6));
	for (uint32_t i = 0; i < iterations * length && n < 3 * PERIOD_TOKENS - 1; i++) {
		bool odd = fx_random() % 1000 < (uint64_t)_i % 4 * 5;	/* 0 to 1.5 % are others */

		add(odd ? 5000 + fx_random() % 9 : iteration[i % length], MS);
	}
	period_find(p, false);
	ck_assert_uint_eq(p->lag, slow_lag());
}

TEST(noise_has_no_period)
{
	for (int i = 0; i < 2000; i++)
		add(fx_random() % 50, MS);
	ck_assert(!period_find(p, false));
	ck_assert_uint_eq(slow_lag(), 0);
}

/* Forward, backward, then a pause of the optimiser; every 8th iteration takes longer. */
static void iterate(int times)
{
	for (int i = 0; i < times; i++) {
		add(1, i % 8 ? 90 * MS : 190 * MS);
		for (uint64_t k = 2; k < 12; k++)
			add(k % 3 + 2, MS);
	}
}

/* Also where the first that ended was not the first that was posted. */
TEST(what_was_posted_first_may_end_later)
{
	now_ns = 2000 * MS;
	add(2, 0);
	now_ns = 1000 * MS;
	add(1, 0);
	now_ns = 2000 * MS;
	for (uint32_t i = 1; i < 50; i++) {
		add(1, 50 * MS);
		add(2, 50 * MS);
	}
	ck_assert(period_find(p, false));
	ck_assert_uint_eq(period_step(p, 1000 * MS).step_ns, 100 * MS);
}

TEST(its_iterations_are_measured_from_the_longest_gap)
{
	iterate(80);
	ck_assert(period_find(p, false));
	ck_assert_uint_eq(p->lag, 11);
	ck_assert_uint_eq(p->median_ns, 100 * MS);
	ck_assert_uint_eq(p->p95_ns, 200 * MS);
}

TEST(what_comes_every_twentieth_iteration_does_not_hide_the_period)
{
	for (int i = 0; i < 12; i++) {
		iterate(20);
		add(77, 50 * MS);
		add(78, 50 * MS);
	}
	period_find(p, false);
	ck_assert_uint_eq(p->lag, slow_lag());
}

TEST(order_of_completion_does_not_matter)
{
	for (uint64_t i = 0; i < 4000; i += 4)	/* four that end backwards */
		for (uint64_t k = 4; k-- > 0;)
			period_add(p, (i + k) % 10, (1000 + i + k) * MS,
				   (struct period_part){ 0 });
	ck_assert(period_find(p, false));
	ck_assert_uint_eq(p->lag, 10);
}

TEST(another_phase_ends_the_period_and_a_new_one_is_found)
{
	iterate(100);
	ck_assert(period_find(p, false));
	ck_assert_uint_eq(p->lag, 11);
	for (int i = 0; i < 30; i++)
		add(100 + (uint64_t)i % 3, MS);
	ck_assert(!period_find(p, false));
	for (int i = 0; i < PERIOD_TOKENS; i++)
		add(100 + (uint64_t)i % 3, MS);
	ck_assert(period_find(p, false));
	ck_assert_uint_eq(p->lag, 3);
	ck_assert_uint_eq(p->median_ns, 3 * MS);
}

/* Gradients in buckets of one size. */
static void buckets(uint32_t times, uint32_t lag, uint64_t pause_ns)
{
	for (uint32_t i = 0; i < times * lag; i++, period_find(p, false)) {
		add(1, i % lag ? (100 + fx_random() % 200) * MS / 100 :
			       pause_ns + fx_random() % (pause_ns / 5));
		if (i == 2 * lag - 1)
			now_ns += 30000 * MS;	/* a checkpoint */
	}
}

TEST_LOOP(gaps_tell_how_many_of_one_kind_are_an_iteration, 0, 40)
{
	uint32_t lag;

	fx_seed((uint64_t)_i);
	lag = 2 + (uint32_t)(fx_random() % 63);
	buckets(16, lag, (20 + fx_random() % 200) * MS);
	ck_assert(period_find(p, false));
	ck_assert_uint_eq(p->lag, lag);
}

TEST_LOOP(one_operation_an_iteration_is_one, 0, 20)
{
	fx_seed((uint64_t)_i);
	for (int i = 0; i < 600; i++) {		/* something takes longer now and then */
		add(1, (80 + fx_random() % 20) * MS + (fx_random() % 20 ? 0 : 400 * MS));
		period_find(p, false);
	}
	ck_assert(period_find(p, false));
	ck_assert_uint_eq(p->lag, 1);
	for (int i = 0; i < 600; i++) {		/* every eighth one takes twice as long */
		add(1, i % 8 ? 90 * MS : 190 * MS);
		period_find(p, false);
	}
	ck_assert(period_find(p, false));
	ck_assert_uint_eq(p->lag, 1);
}

/* It was looked for just before the last operation, and there is no other one to look again for. */
TEST(one_that_rests_is_looked_at_with_all_that_it_posted)
{
	iterate(2);
	ck_assert(!period_find(p, false));
	iterate(1);
	ck_assert(!period_find(p, false));
	ck_assert(period_find(p, true));
	ck_assert_uint_eq(p->lag, 11);
}

/* Noise, then as many iterations, which began in the middle of what is held. */
TEST(one_that_has_begun_lately_goes_on)
{
	uint32_t lag;

	iterate(30);
	ck_assert(period_find(p, false));
	lag = p->lag;
	for (int i = 0; i < PERIOD_TOKENS; i++)
		add(fx_random() % 3000, MS);
	iterate(4);
	p->lag = lag;		/* as it was when it was looked for last */
	ck_assert(period_find(p, false));
	ck_assert_uint_eq(p->lag, lag);
}

TEST(two_iterations_are_not_enough)
{
	iterate(2);
	ck_assert(!period_find(p, false));
	iterate(6);
	ck_assert(period_find(p, false));
}

int main(void)
{
	return fx_run(setup, teardown);
}
