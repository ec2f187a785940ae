/* SPDX-License-Identifier: Apache-2.0 */
/* Operations that became slower, in rows that are made up. */
#include <string.h>

#include "judge/regression.h"
#include "tests/fixture.h"

#define SECOND	UINT64_C(1000000000)
#define NOW	(1000 * SECOND)
#define ROWS	6

static struct regression_row rows[ROWS];
static struct regression_case c;
static char text[1024];

/* Three kinds of operations in each of two communicators, all as ever. */
static void setup(void)
{
	for (uint32_t i = 0; i < ROWS; i++)
		rows[i] = (struct regression_row){
			.comm = 1 + i / 3, .func = "AllReduce", .algo = "RING", .comm_name = "dp",
			.bytes = 1 << (20 + i), .rated = true, .usual_ns = 1e6, .recent_ns = 1e6,
		};
}

static void teardown(void) {}

static void slow_down(uint32_t i, double change)
{
	rows[i].alarm = 1;
	rows[i].change = change;
	rows[i].recent_ns = 1.2e6;
	rows[i].since_ns = NOW - 60 * SECOND;
}

/* Which of them is told, of all; ROWS: none. */
static uint32_t told(void)
{
	uint32_t place = ROWS;

	for (uint32_t i = 0; i < ROWS; i++) {
		struct regression_case one;

		if (!regression_judge(rows, ROWS, i, &one))
			continue;
		ck_assert_uint_eq(place, ROWS);
		place = i;
		c = one;
	}
	regression_say(&c, NOW, text, sizeof(text));
	return place;
}

TEST(one_kind_alone_is_told_as_such)
{
	slow_down(1, 0.1823216);
	ck_assert_uint_eq(told(), 1);
	ck_assert_int_eq(c.scope, REGRESSION_KIND);
	ck_assert_str_eq(text, "AllReduce of 2MiB on dp (RING, -) takes 20 % longer than usual: "
			 "1.2ms instead of 1ms, for 1m00s. So do 1 of 6 kinds of operations here: "
			 "what runs beside this one may have changed.");
}

TEST(kind_of_a_communicator_that_changed_most_speaks_for_it)
{
	slow_down(0, 0.1);
	slow_down(2, 0.2);
	ck_assert_uint_eq(told(), 2);
	ck_assert_int_eq(c.scope, REGRESSION_COMMUNICATOR);
	ck_assert_ptr_nonnull(strstr(text, "So do 2 of 3 kinds of operations of this comm"));
	rows[3].change = rows[4].change = 0.06;	/* no alarm yet, and slower as well */
	ck_assert_uint_eq(told(), 2);
	ck_assert_int_eq(c.scope, REGRESSION_NODE);
	ck_assert_ptr_nonnull(strstr(text, "So do 4 of 6 kinds of operations on this node"));
}

TEST(what_is_faster_or_not_rated_or_hardly_slower_is_not_told)
{
	slow_down(0, 0.2);
	slow_down(1, 0.2);
	slow_down(2, 0.049);
	rows[0].alarm = -1;
	rows[1].rated = false;
	c.row = &rows[0];
	ck_assert_uint_eq(told(), ROWS);
}

int main(void)
{
	return fx_run(setup, teardown);
}
