/* SPDX-License-Identifier: Apache-2.0 */
#include "ncclinspd/sums/oplog.h"

#include "tests/fixture.h"

static struct oplog *oplog;
static uint64_t serials[16];	/* in op.seq as well */
static uint32_t nserials;

static void setup(void)
{
	ck_assert_int_eq(oplog_new(&oplog, 8), 0);
	for (uint64_t i = 1; i <= 12; i++) {
		struct op op = {
			.uid = i % 2 ? 100 : 200, .pid = (pid_t)i, .rank = (int32_t)(i % 4),
			.nranks = i > 10 ? 2 : 4, .seq = i,
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

/* What passes the filter, `most` looked at in one go, into `serials`. */
static void look(const struct oplog *log, const struct oplog_filter *filter, uint32_t most)
{
	struct oplog_visit visit;
	const struct op *op;
	uint32_t budget;

	oplog_begin(&visit, log, filter);
	do {
		budget = most;
		while ((op = oplog_next(&visit, log, &budget)) && nserials < FX_COUNT(serials))
			serials[nserials++] = op->seq;
	} while (!budget);
}

#define ANY .all_users = true, .rank = UNKNOWN_I32, .nranks = UNKNOWN_I32

TEST(newest_come_first_and_the_oldest_are_gone)
{
	struct oplog_filter any = { ANY };

	look(oplog, &any, 100);
	ck_assert_uint_eq(nserials, 8);
	for (uint32_t i = 0; i < 8; i++)
		ck_assert_uint_eq(serials[i], 12 - i);
	ck_assert_ptr_null(oplog_at(oplog, 4));
	ck_assert_ptr_null(oplog_at(oplog, 13));
	ck_assert_ptr_null(oplog_at(oplog, 0));
}

static const struct {
	struct oplog_filter filter;
	uint32_t found;
	uint64_t first;
} filters[] = {
	{ { .uid = 100, .rank = UNKNOWN_I32, .nranks = UNKNOWN_I32 }, 4, 11 },
	{ { .all_users = true, .rank = 1, .nranks = UNKNOWN_I32 }, 2, 9 },
	{ { .all_users = true, .rank = UNKNOWN_I32, .nranks = 4 }, 6, 10 },
	{ { ANY, .npids = 1, .pid = { 7 } }, 1, 7 },
	{ { ANY, .npids = 3, .pid = { 1, 7, 9 } }, 2, 9 },
	{ { ANY, .func = "Reduce" }, 1, 10 },
	{ { ANY, .comm_name = "2", .has_comm_id = true, .comm_id = 2 }, 3, 11 },
	{ { ANY, .comm_name = "tp" }, 3, 12 },
	{ { ANY, .comm_name = "no" }, 0, 0 },
	{ { ANY, .since_mono_ns = 1050 }, 3, 12 },
};

TEST_LOOP(each_filter_finds_its_own, 0, FX_COUNT(filters))
{
	look(oplog, &filters[_i].filter, 1 + (uint32_t)_i);
	ck_assert_uint_eq(nserials, filters[_i].found);
	ck_assert_uint_eq(serials[0], filters[_i].first);
}

TEST(what_is_rare_outlives_what_is_frequent)
{
	struct oplog_filter rare = { ANY, .func = "ReduceScatter" }, any = { ANY };
	struct op op = { .process_id = 1, .comm_index = 3 };
	uint32_t budget = UINT32_MAX;
	struct oplog_visit visit;
	uint64_t last = UINT64_MAX;
	const struct op *got;
	struct oplog *big;
	int n = 0;

	ck_assert_int_eq(oplog_new(&big, 0), 0);
	for (uint64_t i = 0; i < 40 * OPLOG_DEFAULT; i++) {
		op.seq = i;
		op.func = i % OPLOG_DEFAULT ? "AllReduce" : "ReduceScatter";
		oplog_add(big, &op);
	}
	oplog_begin(&visit, big, &rare);
	for (; (got = oplog_next(&visit, big, &budget)); n++) {
		ck_assert_str_eq(got->func, "ReduceScatter");
		ck_assert_uint_lt(got->seq, last);
		last = got->seq;
	}
	ck_assert_int_eq(n, 40);
	oplog_begin(&visit, big, &any);
	for (n = 0; oplog_next(&visit, big, &budget); n++)
		continue;
	ck_assert_int_eq(n, OPLOG_DEFAULT + 39);
	oplog_free(big);
}

/* Random logs and rates: in pieces, with additions between, it is as in one go. */
TEST_LOOP(a_visit_in_pieces_sees_the_log_as_it_was, 0, 20)
{
	struct oplog_filter any = { ANY };
	static const char *const funcs[] = { "AllReduce", "AllGather", "Broadcast" };
	uint64_t whole[400], n = 0, seq, kept = 1 + fx_random() % 200;
	struct oplog_visit visit, first;
	uint32_t budget = UINT32_MAX;
	const struct op *op;
	struct oplog *log;

	fx_seed((uint64_t)_i);
	ck_assert_int_eq(oplog_new(&log, (uint32_t)kept), 0);
	for (seq = 1; seq < 1000; seq++) {
		struct op new = { .seq = seq, .func = funcs[!(fx_random() % 50)] };

		oplog_add(log, &new);
	}
	oplog_begin(&first, log, &any);
	visit = first;
	while ((op = oplog_next(&first, log, &budget)))
		whole[n++] = op->seq;
	ck_assert_uint_ge(n, kept);
	for (uint64_t i = 0, more = kept / OPLOG_GRACE; i < n; i++) {
		for (uint64_t k = fx_random() % 3; k && more; k--, more--) {
			struct op new = { .seq = seq++, .func = funcs[fx_random() % 3] };

			oplog_add(log, &new);
		}
		budget = 1;
		op = oplog_next(&visit, log, &budget);
		ck_assert_ptr_nonnull(op);
		ck_assert_uint_eq(op->seq, whole[i]);
	}
	budget = 1;
	ck_assert_ptr_null(oplog_next(&visit, log, &budget));
	oplog_free(log);
}

TEST(user_with_many_kinds_pushes_out_nobody_elses_rare_ones)
{
	struct oplog_filter own = { .uid = 2, .rank = UNKNOWN_I32, .nranks = UNKNOWN_I32 };
	struct op op = { .uid = 2, .account = 2, .process_id = 1, .func = "AllReduce" };
	struct oplog *big;

	ck_assert_int_eq(oplog_new(&big, 0), 0);
	for (op.seq = 1; op.seq <= FX_COUNT(serials); op.seq++)
		oplog_add(big, &op);
	op.uid = op.account = 1;
	for (op.process_id = 2; op.process_id < 4 * OPLOG_DEFAULT; op.process_id++)
		oplog_add(big, &op);
	look(big, &own, 100);
	ck_assert_uint_eq(nserials, FX_COUNT(serials));
	for (uint32_t i = 0; i < nserials; i++)
		ck_assert_uint_eq(serials[i], FX_COUNT(serials) - i);
	oplog_free(big);
}

/* The reserve has no grace: what leaves it meanwhile is missing, and nothing comes twice. */
TEST_LOOP(a_visit_in_pieces_sees_nothing_that_came_to_the_reserve_since, 0, 5)
{
	static uint64_t whole[2 * OPLOG_DEFAULT];
	struct oplog_filter any = { ANY };
	struct op op = { .func = "AllReduce" };
	struct oplog_visit visit, first;
	uint32_t budget = UINT32_MAX, n = 0, at = 0, seen = 0, added = 0;
	const struct op *got;
	struct oplog *big;

	fx_seed((uint64_t)_i);
	ck_assert_int_eq(oplog_new(&big, 0), 0);
	for (op.seq = 1; op.seq < 3 * OPLOG_DEFAULT; op.seq++) {
		op.account = (uid_t)(fx_random() % 3);
		op.process_id = fx_random() % 2000;
		oplog_add(big, &op);
	}
	oplog_begin(&first, big, &any);
	visit = first;
	while ((got = oplog_next(&first, big, &budget)))
		whole[n++] = got->seq;
	ck_assert_uint_eq(n, OPLOG_DEFAULT + OPLOG_DEFAULT / OPLOG_RESERVE + 1);
	do {
		budget = 64;
		while ((got = oplog_next(&visit, big, &budget)) && ++seen)
			while (whole[at++] != got->seq)
				ck_assert_uint_lt(at, n);
		for (uint64_t k = fx_random() % 6; k; k--, op.seq++, added++)
			oplog_add(big, &op);
	} while (!budget);
	ck_assert_uint_lt(added, OPLOG_DEFAULT / OPLOG_GRACE);
	ck_assert_uint_ge(seen + added, n);
	oplog_free(big);
}

TEST(a_visitor_who_is_overtaken_sees_less_and_nothing_else)
{
	struct oplog_filter any = { ANY };
	struct oplog_visit visit;
	uint32_t budget = UINT32_MAX;

	oplog_begin(&visit, oplog, &any);
	for (uint64_t i = 0; i < 9; i++) {
		struct op op = { .seq = 100 + i };

		oplog_add(oplog, &op);
	}
	ck_assert_uint_eq(oplog_next(&visit, oplog, &budget)->seq, 12);
	for (uint64_t i = 0; i < 100; i++) {
		struct op op = { .seq = 200 + i };

		oplog_add(oplog, &op);
	}
	ck_assert_ptr_null(oplog_next(&visit, oplog, &budget));
}

int main(void)
{
	return fx_run(setup, teardown);
}
