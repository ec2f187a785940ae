/* SPDX-License-Identifier: Apache-2.0 */
/* How long an operation may be in flight. */
#include "ncclinspd/findings/limits.h"
#include "tests/fixture.h"

#define MS	UINT64_C(1000000)
#define SECOND	(1000 * MS)

static struct limits *l;

static void setup(void)
{
	ck_assert_int_eq(limits_new(&l, 10 * SECOND, 60 * SECOND), 0);
}

static void teardown(void)
{
	limits_free(l);
}

static struct op make_op(uint64_t comm_id, uint64_t bytes, uint64_t ns)
{
	return (struct op){ .has_comm_id = true, .comm_id = comm_id, .nranks = 8,
			    .func = "AllReduce", .seq = UNKNOWN_U64, .bytes = bytes,
			    .complete = true, .expects_kernel = true, .enqueued_ns = 5 * SECOND,
			    .done_ns = 5 * SECOND + ns };
}

static void add(uint64_t comm_id, uint64_t bytes, uint64_t ns, int times)
{
	struct op op = make_op(comm_id, bytes, ns);

	while (times--)
		limits_add(l, &op, false);
}

static struct limit limit_of(uint64_t comm_id, uint64_t bytes, uint64_t period_ns)
{
	struct op op = make_op(comm_id, bytes, 0);
	struct limit limit;

	limits_of(l, &op, period_ns, &limit);
	return limit;
}

TEST(without_a_history_there_is_patience_and_most_for_the_first)
{
	struct op later = make_op(1, 4096, 0);
	struct limit limit;

	limits_set(l, 10 * SECOND, 600 * SECOND);
	ck_assert_uint_eq(limit_of(1, 4096, 0).ns, 120 * SECOND);
	ck_assert_int_eq(limit_of(1, 4096, 0).reason, LIMIT_FIRST);
	later.seq = 7;		/* the daemon came late, the communicator is not new */
	limits_of(l, &later, 0, &limit);
	ck_assert_uint_eq(limit.ns, 60 * SECOND);
	add(1, 1 << 20, MS, 1);
	ck_assert_uint_eq(limit_of(1, 4096, 0).ns, 60 * SECOND);
	ck_assert_int_eq(limit_of(1, 4096, 0).reason, LIMIT_NO_HISTORY);
	ck_assert_uint_eq(limit_of(1, 4096, 0).p999_ns, UNKNOWN_U64);
	ck_assert_uint_eq(limit_of(2, 4096, 0).ns, 120 * SECOND);
}

/* A daemon that starts again finds them in the rings, and was not there when they ended. */
TEST(what_was_over_before_the_daemon_came_makes_no_limit_longer)
{
	struct op op = make_op(1, 4096, 3600 * SECOND);

	op.predates = true;
	for (int i = 0; i < 100; i++)
		limits_add(l, &op, false);
	add(1, 4096, MS, 8);
	ck_assert_uint_eq(limit_of(1, 4096, 0).ns, 10 * SECOND);
}

TEST(short_operations_have_the_least_limit)
{
	add(1, 4096, MS, 8);
	ck_assert_uint_eq(limit_of(1, 4096, 0).ns, 10 * SECOND);
	ck_assert_int_eq(limit_of(1, 4096, 0).reason, LIMIT_MINIMUM);
	ck_assert_uint_eq(limit_of(1, 4096, 0).ops, 8);
}

TEST(long_ones_have_eight_times_their_99th_percentile)
{
	struct limit limit;

	add(1, 4096, 2 * SECOND, 10000);
	add(1, 4096, 8 * SECOND, 50);	/* less than one in 100 */
	limit = limit_of(1, 4096, 0);
	ck_assert_uint_ge(limit.p99_ns, 2 * SECOND);
	ck_assert_uint_le(limit.p99_ns, 2 * SECOND * 3 / 2);
	ck_assert_uint_ge(limit.p999_ns, 8 * SECOND);
	ck_assert_uint_eq(limit.ns, 8 * limit.p99_ns);
	ck_assert_int_eq(limit.reason, LIMIT_HISTORY);
}

/* A checkpoint or two, which the others waited for in an operation. */
TEST(a_slow_one_or_two_make_no_limit_longer)
{
	limits_set(l, 10 * SECOND, 600 * SECOND);
	add(1, 4096, 50 * SECOND, 2);
	add(1, 4096, MS, 8);
	ck_assert_uint_eq(limit_of(1, 4096, 0).ns, 10 * SECOND);
	ck_assert_int_eq(limit_of(1, 4096, 0).reason, LIMIT_MINIMUM);
}

TEST(no_limit_is_above_the_greatest_but_of_those_that_always_take_long)
{
	ck_assert_uint_eq(limit_of(1, 4096, 0).ns, 60 * SECOND);
	ck_assert_int_eq(limit_of(1, 4096, 0).reason, LIMIT_MAXIMUM);
	add(1, 4096, MS, 60);
	add(1, 4096, 9 * SECOND, 40);
	ck_assert_uint_eq(limit_of(1, 4096, 0).ns, 60 * SECOND);
	ck_assert_int_eq(limit_of(1, 4096, 0).reason, LIMIT_MAXIMUM);
	add(2, 4096, 50 * SECOND, 20);
	ck_assert_uint_ge(limit_of(2, 4096, 0).ns, 150 * SECOND);
	ck_assert_uint_le(limit_of(2, 4096, 0).ns, 150 * SECOND * 3 / 2);
	ck_assert_uint_eq(limit_of(1, 4096, 40 * SECOND).ns, 80 * SECOND);
}

TEST(where_no_end_is_watched_the_period_is_what_there_is)
{
	struct limit limit;

	limits_of_unwatched(l, 0, &limit);
	ck_assert_uint_eq(limit.ns, 60 * SECOND);
	ck_assert_int_eq(limit.reason, LIMIT_NO_HISTORY);
	limits_of_unwatched(l, SECOND, &limit);
	ck_assert_uint_eq(limit.ns, 10 * SECOND);
	limits_of_unwatched(l, 10 * SECOND, &limit);
	ck_assert_uint_eq(limit.ns, 30 * SECOND);
	limits_of_unwatched(l, 50 * SECOND, &limit);
	ck_assert_uint_eq(limit.ns, 100 * SECOND);
}

TEST(long_iterations_give_three_of_them)
{
	add(1, 4096, MS, 8);
	ck_assert_uint_eq(limit_of(1, 4096, 4 * SECOND).ns, 12 * SECOND);
	ck_assert_int_eq(limit_of(1, 4096, 4 * SECOND).reason, LIMIT_PERIOD);
}

TEST(a_stall_that_went_by_is_not_learnt_from_but_a_new_way_is)
{
	add(1, 4096, MS, 20);
	add(1, 4096, 100 * SECOND, 3);
	ck_assert_uint_eq(limit_of(1, 4096, 0).ns, 10 * SECOND);
	add(1, 4096, 100 * SECOND, 3);
	ck_assert_uint_eq(limit_of(1, 4096, 0).ns, 60 * SECOND);
	add(1, 4096, 100 * SECOND, 24);
	ck_assert_uint_ge(limit_of(1, 4096, 0).ns, 300 * SECOND);
}

TEST(what_had_no_watched_end_is_no_history)
{
	struct op op = make_op(1, 4096, MS);

	op.expects_kernel = false;
	for (int i = 0; i < 20; i++)
		limits_add(l, &op, false);
	op.expects_kernel = true;
	op.complete = false;
	for (int i = 0; i < 20; i++)
		limits_add(l, &op, false);
	ck_assert_uint_eq(limit_of(1, 4096, 0).ops, 0);
}

TEST(who_claims_another_users_communicator_does_not_make_its_history)
{
	struct op op = make_op(1, 4096, 100 * SECOND);

	add(1, 4096, MS, 8);
	op.uid = 101;
	for (int i = 0; i < 100; i++)
		limits_add(l, &op, false);
	ck_assert_uint_eq(limit_of(1, 4096, 0).ns, 10 * SECOND);
}

TEST(many_kinds_push_out_the_oldest_and_the_newest_stays)
{
	for (uint64_t comm = 1; comm < 3000; comm++)
		add(comm, 4096, MS, 8);
	ck_assert_uint_eq(limit_of(2999, 4096, 0).ns, 10 * SECOND);
	ck_assert_uint_eq(limit_of(1, 4096, 0).ops, 0);
}

/* Its own history and its communicator's count as used, whatever was asked for between. */
TEST(kind_that_comes_again_and_again_stays_the_newest)
{
	limits_set(l, 10 * SECOND, 600 * SECOND);
	add(2, 4096, MS, 1);
	add(1, 4096, MS, 8);
	limit_of(2, 4096, 0);
	add(3, 4096, MS, 1);
	add(1, 4096, MS, 1);
	for (uint64_t comm = 10; comm < 10 + (1024 - 2) / 2; comm++)
		add(comm, 4096, MS, 1);
	ck_assert_uint_eq(limit_of(1, 4096, 0).ops, 9);
	ck_assert_int_eq(limit_of(2, 4096, 0).reason, LIMIT_FIRST);
}

/* Both have the same; one is told which ranks did what the one before did. */
TEST_LOOP(ranks_of_one_operation_make_the_history_that_they_make_alone, 0, 20)
{
	struct limits *alone;

	fx_seed((uint64_t)_i);
	ck_assert_int_eq(limits_new(&alone, 10 * SECOND, 60 * SECOND), 0);
	for (int k = 0; k < 500; k++) {
		struct op op = make_op(1 + fx_random() % 3, 4096 << fx_random() % 2, 0);

		for (int rank = 0; rank < 4; rank++) {
			op.predates = fx_random() % 3 == 0;
			op.done_ns = op.enqueued_ns + fx_random() % (fx_random() % 8 ? MS :
								      100 * SECOND);
			limits_add(l, &op, rank > 0);
			limits_add(alone, &op, false);
		}
		for (uint64_t comm = 1; comm < 4; comm++)
			for (uint64_t bytes = 4096; bytes <= 8192; bytes *= 2) {
				struct limit together = limit_of(comm, bytes, 0), wanted;

				op = make_op(comm, bytes, 0);
				limits_of(alone, &op, 0, &wanted);
				ck_assert_uint_eq(together.ops, wanted.ops);
				ck_assert_uint_eq(together.ns, wanted.ns);
				ck_assert_uint_eq(together.p999_ns, wanted.p999_ns);
			}
	}
	limits_free(alone);
}

int main(void)
{
	return fx_run(setup, teardown);
}
