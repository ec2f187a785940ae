/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/fixture.h"

#include <errno.h>
#include <string.h>

#include "cli/table/filter.h"

static const struct column columns[] = {
	{ "func", "OP", COL_TEXT, "func", 0, 0, 0 },
	{ "rank", "RANK", COL_INTEGER, "rank", 0, 0, 0 },
	{ "size_class", "SIZE", COL_BYTES, "size", 0, 0, 0 },
	{ "p50_ns", NULL, COL_MICROS, "p50", 0, 0, 0 },
	{ NULL, "P50(us)", COL_MICROS, "p50", 0, 0, 0 },
	{ "share", "SHARE(%)", COL_PERCENT, "share", 0, 0, 0 },
	{ "sampled_fraction", "TIMED(%)", COL_PERCENT, "share", 0, 0, 0 },
	{ "age_ns", NULL, COL_AGE, "age", 0, 0, 0 },
	{ NULL, "AGE", COL_AGE, "age", 0, 0, 0 },
	{ "idle_ns", "IDLE", COL_SINCE, "last", 0, 0, 0 },
	{ "complete", NULL, COL_TEXT, "complete", 0, 0, 0 },
	{ "lost", "LOST", COL_SUM, "lost", 0, 0, 0 },
	{ NULL, "ALGO/PROTO", COL_TEXT, "algo/proto", 0, 0, 0 },
};

static const struct report_style style = { .now_ns = 10000000000 };
static struct filter filter;
static json_t *row;

static void setup(void)
{
	row = json_pack("{s:s,s:i,s:I,s:i,s:f,s:I,s:I,s:b,s:{s:i,s:i},s:s,s:s,s:n}",
			"func", "AllReduce", "rank", 3, "size", (json_int_t)1048576, "p50", 17300,
			"share", 0.25, "age", (json_int_t)43000000000, "last",
			(json_int_t)4000000000, "complete", 1, "lost", "pool", 1, "lane", 2,
			"algo", "RING", "proto", "LL", "nothing");
	ck_assert_ptr_nonnull(row);
	filter_init(&filter, columns, FX_COUNT(columns));
}

static void teardown(void)
{
	json_decref(row);
}

static const struct {
	const char *expression;
	bool wants;
} cases[] = {
	/* texts, in whichever case */
	{ "func=AllReduce", true }, { "func=allreduce", true }, { "func=All", false },
	{ "func!=AllReduce", false }, { "func!=Send", true }, { "op~reduce", true },
	{ "func ~ REDUCE", true }, { "func!~reduce", false }, { "func!~send", true },
	{ "complete=yes", true }, { "algo/proto=ring/ll", true },
	/* numbers, in the unit of the field's name or of its header, or in their own */
	{ "rank=3", true }, { "rank!=3", false }, { "rank<3", false }, { "rank<=3", true },
	{ "rank>2", true }, { "rank>=4", false }, { "p50_ns>17000", true },
	{ "p50_ns>18000", false }, { "p50>17", true }, { "p50>18", false },
	{ "p50<18us", true }, { "p50_ns<18us", true }, { "p50>1ms", false },
	{ "size>=1MiB", true }, { "size>1M", false }, { "size>1MB", true },
	{ "share=25%", true },
	{ "share=25", true }, { "share>26", false }, { "sampled_fraction>0.2", true },
	{ "sampled_fraction>0.3", false }, { "timed>24", true }, { "timed>26", false },
	{ "age>40", true }, { "age>1m", false }, { "age_ns>43000000001", false },
	{ "idle>5.9", true }, { "idle>7s", false }, { "idle_ns=6000000000", true },
	{ "lost=3", true },
	/* fixed strings */
	{ "reduce", true }, { "send|REDUCE", true }, { "send|recv", false }, { "1MiB", true },
	{ "ring/ll", true }, { "|", false }, { "a.*e", false },
};

TEST_LOOP(an_expression_wants_the_row_or_not, 0, FX_COUNT(cases))
{
	char why[128] = "";
	bool wants;

	ck_assert_msg(!filter_add(&filter, cases[_i].expression, why, sizeof(why)), "%s: %s",
		      cases[_i].expression, why);
	wants = filter_wants(&filter, row, &style);
	ck_assert_msg(wants == cases[_i].wants, "%s: %d", cases[_i].expression, wants);
}

static const struct {
	const char *expression;
	bool wants;
} unknown_cases[] = {
	{ "rank=0", false }, { "rank<5", false }, { "rank>=0", false }, { "rank!=3", true },
	{ "rank=-", true }, { "rank!=-", false }, { "func=-", true }, { "func~all", false },
	{ "func!~all", true }, { "p50<1", false }, { "lost=0", false },
};

TEST_LOOP(what_is_not_known_is_no_number_and_can_be_asked_for, 0, FX_COUNT(unknown_cases))
{
	char why[128];

	json_object_clear(row);
	ck_assert_int_eq(filter_add(&filter, unknown_cases[_i].expression, why, sizeof(why)), 0);
	ck_assert_msg(filter_wants(&filter, row, &style) == unknown_cases[_i].wants, "%s",
		      unknown_cases[_i].expression);
}

static const struct {
	const char *expression;
	const char *why;
} wrong_cases[] = {
	{ "nonsense=3", "no field 'nonsense'; --fields help lists them" },
	{ "rank=three", "'three' is not a number, which the field rank needs" },
	{ "rank=", "'' is not a number, which the field rank needs" },
	{ "size>4q", "'4q' is not a number, which the field size needs" },
	{ "p50>4MiB", "'4MiB' is not a number, which the field p50 needs" },
	{ "rank=3s", "'3s' is not a number, which the field rank needs" },
};

TEST_LOOP(what_cannot_be_meant_is_refused_with_the_reason, 0, FX_COUNT(wrong_cases))
{
	char why[128] = "";

	ck_assert_int_eq(filter_add(&filter, wrong_cases[_i].expression, why, sizeof(why)),
			 -EINVAL);
	ck_assert_str_eq(why, wrong_cases[_i].why);
	ck_assert(filter_wants(&filter, row, &style));
}

TEST(all_expressions_must_hold_and_there_is_room_for_eight)
{
	char why[128];

	for (int i = 0; i < FILTERS - 1; i++)
		ck_assert_int_eq(filter_add(&filter, "rank=3", why, sizeof(why)), 0);
	ck_assert(filter_wants(&filter, row, &style));
	ck_assert_int_eq(filter_add(&filter, "func=Send", why, sizeof(why)), 0);
	ck_assert(!filter_wants(&filter, row, &style));
	ck_assert_int_eq(filter_add(&filter, "rank=3", why, sizeof(why)), -E2BIG);
}

int main(void)
{
	return fx_run(setup, teardown);
}
