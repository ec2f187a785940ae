/* SPDX-License-Identifier: Apache-2.0 */
#include "reader/join/ops.h"

#include "tests/fixture.h"

/* Sizes and factors as nccl-tests prints them, for 8 ranks and 1024 floats. */
static const struct {
	const char *func;
	uint64_t bytes;
	double factor;
} known[] = {
	{ "AllReduce",      4096, 2 * 7.0 / 8 },
	{ "AllGather",     32768, 7.0 / 8 },
	{ "ReduceScatter", 32768, 7.0 / 8 },
	{ "AlltoAll",      32768, 7.0 / 8 },
	{ "Gather",        32768, 7.0 / 8 },
	{ "Scatter",       32768, 7.0 / 8 },
	{ "Broadcast",      4096, 1 },
	{ "Reduce",         4096, 1 },
	{ "Send",           4096, 1 },
	{ "Recv",           4096, 1 },
};

TEST_LOOP(sizes_and_factors_are_those_of_nccl_tests, 0, FX_COUNT(known))
{
	struct op op = { .func = known[_i].func, .nranks = 8, .exec_ns = 1000 };

	op.bytes = ops_size(ops_facts(op.func), 1024, ops_datatype_bytes("ncclFloat32"), 8);
	ck_assert_uint_eq(op.bytes, known[_i].bytes);
	ops_bandwidth(&op);
	ck_assert_double_eq_tol(op.algbw_gbs, (double)known[_i].bytes / 1000, 1e-9);
	ck_assert_double_eq_tol(op.busbw_gbs, op.algbw_gbs * known[_i].factor, 1e-9);
}

TEST(what_is_not_known_stays_unknown)
{
	struct op op = { .func = "AllGatherV", .nranks = 8, .bytes = 4096, .exec_ns = 1000 };

	ck_assert_uint_eq(ops_size(ops_facts("AllGatherV"), 1, 4, 8), UNKNOWN_U64);
	ck_assert_uint_eq(ops_size(ops_facts(NULL), 1, 4, 8), UNKNOWN_U64);
	ck_assert_uint_eq(ops_size(ops_facts("AllReduce"), 1, ops_datatype_bytes("Unknown"), 8),
			  UNKNOWN_U64);
	ck_assert_uint_eq(ops_size(ops_facts("AllGather"), 1, 4, UNKNOWN_I32), UNKNOWN_U64);
	ck_assert_uint_eq(ops_size(ops_facts("AllReduce"), UINT64_MAX / 2, 4, 8), UNKNOWN_U64);
	ck_assert_uint_eq(ops_size(ops_facts("AllGather"), UINT64_MAX / 8, 4, 8), UNKNOWN_U64);
	ops_bandwidth(&op);
	ck_assert_double_gt(op.algbw_gbs, 0);
	ck_assert_double_lt(op.busbw_gbs, 0);
	op.exec_ns = UNKNOWN_U64;
	ops_bandwidth(&op);
	ck_assert_double_lt(op.algbw_gbs, 0);
}

TEST(largest_communicator_there_can_be_has_a_bandwidth)
{
	struct op op = { .func = "AllReduce", .nranks = INT32_MAX, .bytes = 4096, .exec_ns = 1000 };

	ops_bandwidth(&op);
	ck_assert_double_eq_tol(op.busbw_gbs, 2 * op.algbw_gbs, 1e-6);
}

/* Names of one home, more than have places near it. */
TEST(names_that_meet_keep_their_places_and_all_are_told_right)
{
	static _Alignas(32) char name[16][OPS_WORDS * 32];
	static const char *const texts[] = { "AllReduce", "ncclFloat32", "Broadcast", "other" };
	struct ops_words words = { 0 };
	const struct ops_word *first[16];

	for (int i = 0; i < 16; i++)
		strcpy(name[i], texts[i % 4]);
	for (int n = 0; n < 3; n++)
		for (int i = 0; i < 16; i++) {
			const struct ops_word *word = ops_word(&words, name[i]);

			ck_assert_ptr_eq(word->name, name[i]);
			ck_assert_ptr_eq(word->facts, ops_facts(name[i]));
			ck_assert_uint_eq(word->type_bytes, ops_datatype_bytes(name[i]));
			if (i < 7 && n)		/* the places behind are shared by the others */
				ck_assert_ptr_eq(word, first[i]);
			first[i] = word;
		}
	ck_assert_ptr_null(ops_word(&words, NULL)->facts);
	ck_assert_uint_eq(ops_word(&words, NULL)->type_bytes, 0);
}

int main(void)
{
	return fx_run(NULL, NULL);
}
