/* SPDX-License-Identifier: Apache-2.0 */
#include "ncclinspd/oplog.h"

#include "tests/fixture.h"

static struct oplog *oplog;
static uint64_t serials[16];
static uint32_t nserials;

static void setup(void)
{
	ck_assert_int_eq(oplog_new(&oplog, 8), 0);
	for (uint64_t i = 1; i <= 12; i++) {
		struct op op = {
			.uid = i % 2 ? 100 : 200, .pid = (pid_t)i, .rank = (int32_t)(i % 4),
			.has_comm_id = true, .comm_id = i % 3, .comm_name = i % 3 ? "dp" : "tp",
			.func = i == 10 ? "Reduce" : "AllReduce",
			.enqueued_ns = 100 * i, .done_ns = 100 * i + 50,
		};

		ck_assert_uint_eq(oplog_add(oplog, &op), i);
	}
	nserials = 0;
}

static void teardown(void)
{
	oplog_free(oplog);
}

static bool note(const struct op *op, uint64_t serial, void *arg)
{
	(void)arg;
	ck_assert_ptr_eq(op, oplog_at(oplog, serial));
	serials[nserials++] = serial;
	return nserials < 16;
}

START_TEST(newest_come_first_and_the_oldest_are_gone)
{
	struct oplog_filter any = { .all_users = true, .rank = UNKNOWN_I32 };

	ck_assert_uint_eq(oplog_visit(oplog, &any, note, NULL), 8);
	for (uint32_t i = 0; i < 8; i++)
		ck_assert_uint_eq(serials[i], 12 - i);
	ck_assert_ptr_null(oplog_at(oplog, 4));
	ck_assert_ptr_null(oplog_at(oplog, 13));
	ck_assert_ptr_null(oplog_at(oplog, 0));
}
END_TEST

static const struct {
	struct oplog_filter filter;
	uint32_t found;
	uint64_t first;
} filters[] = {
	{ { .uid = 100, .rank = UNKNOWN_I32 }, 4, 11 },
	{ { .all_users = true, .rank = 1 }, 2, 9 },
	{ { .all_users = true, .rank = UNKNOWN_I32, .pid = 7 }, 1, 7 },
	{ { .all_users = true, .rank = UNKNOWN_I32, .func = "Reduce" }, 1, 10 },
	{ { .all_users = true, .rank = UNKNOWN_I32, .comm_name = "2", .has_comm_id = true,
	    .comm_id = 2 }, 3, 11 },
	{ { .all_users = true, .rank = UNKNOWN_I32, .comm_name = "tp" }, 3, 12 },
	{ { .all_users = true, .rank = UNKNOWN_I32, .comm_name = "no" }, 0, 0 },
	{ { .all_users = true, .rank = UNKNOWN_I32, .limit = 3 }, 3, 12 },
	{ { .all_users = true, .rank = UNKNOWN_I32, .since_mono_ns = 1050 }, 3, 12 },
};

START_TEST(each_filter_finds_its_own)
{
	ck_assert_uint_eq(oplog_visit(oplog, &filters[_i].filter, note, NULL), filters[_i].found);
	ck_assert_uint_eq(serials[0], filters[_i].first);
}
END_TEST

static bool count(const struct op *op, uint64_t serial, void *arg)
{
	uint64_t *last = arg;

	ck_assert_str_eq(op->func, "ReduceScatter");
	ck_assert_uint_lt(serial, *last);
	*last = serial;
	return true;
}

static bool any(const struct op *op, uint64_t serial, void *arg)
{
	(void)serial;
	(void)arg;
	return op->func;
}

START_TEST(what_is_rare_outlives_what_is_frequent)
{
	struct oplog_filter rare = { .all_users = true, .rank = UNKNOWN_I32,
				     .func = "ReduceScatter" };
	struct op op = { .process_id = 1, .comm_index = 3 };
	uint64_t last = UINT64_MAX;
	struct oplog *big;

	ck_assert_int_eq(oplog_new(&big, 0), 0);
	for (int i = 0; i < 40 * OPLOG_DEFAULT; i++) {
		op.func = i % OPLOG_DEFAULT ? "AllReduce" : "ReduceScatter";
		oplog_add(big, &op);
	}
	ck_assert_uint_eq(oplog_visit(big, &rare, count, &last), 40);
	rare.limit = 7;
	last = UINT64_MAX;
	ck_assert_uint_eq(oplog_visit(big, &rare, count, &last), 7);
	rare.func = NULL;
	rare.limit = 0;
	ck_assert_uint_eq(oplog_visit(big, &rare, any, NULL), OPLOG_DEFAULT + 39);
	oplog_free(big);
}
END_TEST

int main(void)
{
	const struct fx_test tests[] = {
		FX_TEST(newest_come_first_and_the_oldest_are_gone),
		FX_TEST(what_is_rare_outlives_what_is_frequent),
		FX_LOOP(each_filter_finds_its_own, 0, FX_COUNT(filters)),
	};

	return fx_run(setup, teardown, tests, FX_COUNT(tests));
}
