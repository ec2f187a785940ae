/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_FX_AGGREGATE_H
#define TESTS_FX_AGGREGATE_H

/* An aggregate, operations by hand, and answers to keep. */

#include <math.h>

#include "ncclinspd/sums/aggregate.h"
#include "reader/join/ops.h"
#include "tests/fixture.h"

#define FX_SECOND UINT64_C(1000000000)

static struct {
	struct aggregate *agg;
	uint64_t now;
} fx;

static void fx_setup(void)
{
	fx.now = 1000 * FX_SECOND + 123456789;
	ck_assert_int_eq(aggregate_new(&fx.agg, NULL, fx.now), 0);
}

static void fx_teardown(void)
{
	aggregate_free(fx.agg);
}

static const char *const fx_funcs[] = { "AllReduce", "AllGather", "Broadcast" };

static struct op fx_make_op(uint32_t rank, uint32_t func, uint64_t bytes, uint64_t exec_ns)
{
	struct op op = {
		.process_id = rank + 1, .uid = 100 + rank % 2, .comm_index = 0,
		.has_comm_id = true, .comm_id = 0xabc, .comm_name = "dp",
		.rank = (int32_t)rank, .nranks = 4, .func = fx_funcs[func], .algo = "RING",
		.peer = UNKNOWN_I32, .bytes = bytes, .exec_ns = exec_ns, .queue_ns = UNKNOWN_U64,
		.source = exec_ns == UNKNOWN_U64 ? TIMING_NONE : TIMING_KERNEL_GPU,
	};

	ops_bandwidth(&op);
	return op;
}

struct fx_answer {
	struct aggregate_row row[64];
	int n;
};

static inline bool fx_keep(const struct aggregate_row *row, void *arg)
{
	struct fx_answer *a = arg;

	if (a->n < FX_COUNT(a->row))
		a->row[a->n++] = *row;
	return true;
}

/* The first 64 rows. */
static inline void fx_ask_for(struct fx_answer *a, const struct aggregate_query *query)
{
	a->n = 0;
	ck_assert_int_ge(aggregate_query(fx.agg, query, fx.now, fx_keep, a), a->n);
}

static inline void fx_ask(struct fx_answer *a, enum aggregate_window window, uint32_t by)
{
	struct aggregate_query query = { .windows = 1u << window, .by = by, .all_users = true };

	fx_ask_for(a, &query);
}

static inline int fx_by_exec(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

/* As near as a histogram's bucket is. */
static inline bool fx_is_close(uint64_t got, uint64_t exact)
{
	return fabs((double)got - (double)exact) <= 0.0079 * (double)exact + 1;
}

#endif
