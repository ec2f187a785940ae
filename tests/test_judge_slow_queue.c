/* SPDX-License-Identifier: Apache-2.0 */
/* Queues between two ranks that are slower than the others, in rows that are made up. */
#include "judge/slow_queue.h"

#include "tests/fixture.h"
#include "util/unknown.h"

#define QUEUES	8

static struct slow_queue q[QUEUES];

static void setup(void)
{
	for (int i = 0; i < QUEUES; i++)
		q[i] = (struct slow_queue){ .requests = 20, .median_ns = 1000 };
}

static void teardown(void)
{
}

TEST(queue_that_takes_four_times_as_long_as_its_like_is_slow)
{
	q[5].median_ns = 4000;
	slow_queues_compare(q, QUEUES);
	for (int i = 0; i < QUEUES; i++) {
		ck_assert_double_eq(q[i].ratio, i == 7 ? 4 : 1);
		ck_assert_uint_eq(q[i].others, QUEUES - 1);
		ck_assert(slow_queue_is_slow(&q[i]) == (i == 7));
	}
}

TEST(several_on_one_bad_path_are_slow)
{
	for (int i = 0; i < 3; i++)
		q[i].median_ns = 3000;
	slow_queues_compare(q, QUEUES);
	ck_assert_double_eq(q[4].ratio, 1);
	ck_assert_double_eq(q[5].ratio, 3);
}

/* Of 3 to 8: half of them, or one more. */
TEST_LOOP(where_half_of_them_are_slow_none_is, 0, 12)
{
	uint32_t n = 3 + (uint32_t)_i / 2, slow = (n + 1) / 2 + (uint32_t)_i % 2;

	for (uint32_t i = 0; i < slow; i++)
		q[i].median_ns = 9000;
	slow_queues_compare(q, n);
	for (uint32_t i = 0; i < n; i++)
		ck_assert(!slow_queue_is_slow(&q[i]));
}

TEST(of_two_nobody_knows_which_is_the_usual_one)
{
	q[1].median_ns = 5000;
	slow_queues_compare(q, 2);
	ck_assert_double_eq(q[1].ratio, 5);
	ck_assert_double_eq(q[0].ratio, 0.2);
	ck_assert(!slow_queue_is_slow(&q[1]));
	q[2].median_ns = 1100;
	slow_queues_compare(q, 3);
	ck_assert_double_eq(q[2].ratio, 5000 / 1100.);
	ck_assert(slow_queue_is_slow(&q[2]));
}

TEST(few_requests_and_times_that_nobody_knows_are_not_compared)
{
	q[0].requests = 19;
	q[1].median_ns = UNKNOWN_U64;
	q[2].median_ns = 2000;
	q[4].median_ns = 0;
	slow_queues_compare(q, 5);
	ck_assert_double_eq(q[1].ratio, 2);
	ck_assert_uint_eq(q[1].others, 1);
	for (int i = 2; i < 5; i++)
		ck_assert_double_lt(q[i].ratio, 0);
	slow_queues_compare(q + 2, 2);
	ck_assert_double_lt(q[2].ratio, 0);
	slow_queues_compare(q, 1);
	ck_assert_double_lt(q[0].ratio, 0);
}

TEST(requests_are_alike_within_a_factor_of_two)
{
	ck_assert_uint_eq(slow_queue_size(1024), slow_queue_size(2047));
	ck_assert_uint_ne(slow_queue_size(1024), slow_queue_size(2048));
	ck_assert_uint_eq(slow_queue_size(0), slow_queue_size(1));
}

/* One of eight that takes four times as long makes all 1.4 times slower. */
TEST(a_slow_queue_explains_a_link_only_as_far_as_it_costs)
{
	struct slow_queues_sum sum = { 0 };

	q[5].median_ns = 4000;
	slow_queues_compare(q, QUEUES);
	for (int i = 0; i < QUEUES; i++)
		slow_queues_sum_add(&sum, &q[i]);
	ck_assert(slow_queues_explain(&sum, 1.5));
	ck_assert(slow_queues_explain(&sum, 1.7));
	ck_assert(!slow_queues_explain(&sum, 1.8));
	ck_assert(!slow_queues_explain(&(struct slow_queues_sum){ 0 }, 1.5));
}

/* Both queues of a slow channel; or the only one, where a connection has one. */
TEST(path_of_one_is_not_why_all_of_several_are_slow)
{
	struct slow_queues_sum sum = { 0 };

	q[5].median_ns = q[6].median_ns = 4000;
	slow_queues_compare(q, QUEUES);
	slow_queues_sum_add(&sum, &q[6]);
	ck_assert(slow_queues_explain(&sum, 4));
	slow_queues_sum_add(&sum, &q[7]);
	ck_assert(!slow_queues_explain(&sum, 4));
}

int main(void)
{
	return fx_run(setup, teardown);
}
