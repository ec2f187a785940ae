/* SPDX-License-Identifier: Apache-2.0 */
/* What operations of one kind take as a rule. */
#include "tests/fx_aggregate.h"

static void add_times(uint32_t rank, uint64_t exec_ns, int n)
{
	struct op op = fx_make_op(rank, 0, 4096, exec_ns);

	while (n--)
		aggregate_add(fx.agg, &op, fx.now);
}

TEST(what_is_usual_is_told_of_its_own_kind_alone)
{
	struct op op = fx_make_op(0, 0, 4096, 5000000);
	struct aggregate_usual usual;

	ck_assert(!aggregate_usual(fx.agg, &op, 0, &usual));
	add_times(0, 1000000, 5000);
	add_times(1, 9000000, 5000);
	ck_assert(aggregate_usual(fx.agg, &op, 5000000, &usual));
	ck_assert_uint_eq(usual.taken_ns, 5000000);
	ck_assert_uint_eq(usual.ops, 5000);
	ck_assert_uint_eq(usual.p50_ns, 1000000);
	ck_assert_uint_eq(usual.p999_ns, 1000000);
	ck_assert(!aggregate_usual(fx.agg, &op, 5000001, &usual));
	op.bytes = 1 << 20;
	ck_assert(!aggregate_usual(fx.agg, &op, 0, &usual));
	op = fx_make_op(0, 0, 4096, UNKNOWN_U64);
	ck_assert(!aggregate_usual(fx.agg, &op, 0, &usual));
}

TEST(one_in_a_thousand_is_beyond_what_is_usual)
{
	struct op op = fx_make_op(0, 0, 4096, 1000000);
	struct aggregate_usual usual;

	add_times(0, 1000000, 9990);
	add_times(0, 8000000, 10);
	aggregate_usual(fx.agg, &op, 0, &usual);
	ck_assert(fx_is_close(usual.p999_ns, 1000000));
	add_times(0, 8000000, 2);
	aggregate_usual(fx.agg, &op, 0, &usual);
	ck_assert(fx_is_close(usual.p999_ns, 8000000));
}

TEST(the_first_of_a_communicator_does_not_make_slowness_usual)
{
	struct op op = fx_make_op(0, 0, 4096, 1000000);
	struct aggregate_usual usual;

	add_times(0, 900000000, 1);
	add_times(0, 1000000, 200);
	aggregate_usual(fx.agg, &op, 0, &usual);
	ck_assert(fx_is_close(usual.p999_ns, 1000000));
	add_times(0, 900000000, 1);
	aggregate_usual(fx.agg, &op, 0, &usual);
	ck_assert(fx_is_close(usual.p999_ns, 900000000));
}

TEST(a_batch_is_compared_with_batches)
{
	struct op op = fx_make_op(0, 0, 4096, 1000000);
	struct aggregate_usual usual;

	add_times(0, 1000000, 200);
	op.fused = 3;
	op.batch_ns = 4000000;
	ck_assert(!aggregate_usual(fx.agg, &op, 0, &usual));	/* not its head */
	op.batch_head = true;
	ck_assert(!aggregate_usual(fx.agg, &op, 0, &usual));	/* the first */
	aggregate_add(fx.agg, &op, fx.now);
	ck_assert(aggregate_usual(fx.agg, &op, 0, &usual));
	ck_assert_uint_eq(usual.taken_ns, 4000000);
	ck_assert_uint_eq(usual.ops, 1);
}

int main(void)
{
	return fx_run(fx_setup, fx_teardown);
}
