/* SPDX-License-Identifier: Apache-2.0 */
/* Which Send meets which Recv, and on which channels. */
#include "tests/fixture.h"
#include "tests/fixture_sim.h"
#include "tests/sim/schedule.h"

static const struct { const char *text; int n, distance[8]; } orders[] = {
	{ "nodes 2\ncomm w ranks 0,1\n", 2, { 0, 1 } },
	{ "nodes 3\ncomm w ranks 0-2\n", 3, { 0, 1, 2 } },
	{ "nodes 4\ncomm w ranks 0-3\n", 4, { 0, 1, 3, 2 } },
	{ "gpus 4\ncomm w ranks 0-3\n", 4, { 0, 1, 3, 2 } },
	{ "processes 6\ncomm w ranks 0-5\n", 6, { 0, 1, 3, 2, 5, 4 } },
};

TEST_LOOP(distances_come_in_the_order_of_the_schedule, 0, FX_COUNT(orders))
{
	struct scenario *scn = fx_scenario(orders[_i].text);

	for (int k = 0; k < orders[_i].n; k++)
		for (int from = 0; from < orders[_i].n; from++)
			ck_assert_int_eq(schedule_round(scn, &scn->comm[0], from,
							(from + orders[_i].distance[k]) %
							orders[_i].n), k);
	scenario_free(scn);
}

/* In each round everybody sends once and receives once, and all of a pair of nodes is near. */
TEST_LOOP(a_round_is_a_permutation_of_the_ranks, 0, 2)
{
	static const char *const texts[] = {
		"nodes 3\nprocesses 4\ncomm w ranks 0-11\n",
		"nodes 2\nprocesses 8\ncomm w ranks 0-10\n",	/* not as many on each */
	};
	struct scenario *scn = fx_scenario(texts[_i]);
	const struct sim_comm *c = &scn->comm[0];
	int to[12][12] = { 0 }, from[12][12] = { 0 };

	for (int a = 0; a < c->nranks; a++)
		for (int b = 0; b < c->nranks; b++) {
			int round = schedule_round(scn, c, a, b);

			ck_assert_int_lt(round, c->nranks);
			ck_assert_int_eq(to[round][b]++, 0);
			ck_assert_int_eq(from[round][a]++, 0);
		}
	ck_assert_int_eq(schedule_round(scn, c, 3, 3), 0);
	scenario_free(scn);
}

TEST(first_channels_of_neighbouring_rounds_are_far_apart)
{
	const int first[] = { 0, 4, 2, 6, 1, 5, 3, 7, 0 };

	for (int round = 0; round < 9; round++)
		ck_assert_int_eq(schedule_first(round, schedule_channels(7)), first[round]);
	for (int round = 0; round < 4; round++)		/* four ranks, two channels */
		ck_assert_int_eq(schedule_first(round, schedule_channels(2)), round % 2);
	ck_assert_int_eq(schedule_first(5, schedule_channels(1)), 0);
}

int main(void)
{
	return fx_run(NULL, NULL);
}
