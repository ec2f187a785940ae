/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a look at thousands of ranks costs, in steps: calls that look at a value of JSON or
 * compare texts, which all work on rows is made of.  Four times as many ranks in four times as
 * many communicators may take no more than four times as many, and a frame of what is already
 * known no more than before.
 */
#include <dlfcn.h>
#include <stdio.h>

#include "cli/common/members.h"
#include "tests/fixture_view.h"

#define FEW	500
#define MANY	2000

static uint64_t steps;

/* ---- counted: the executable's symbols win over those of libraries ------------------ */

#define COUNTED(type, name, declared, given)				\
	type name declared						\
	{								\
		static type (*next) declared;				\
									\
		if (!next)						\
			*(void **)&next = dlsym(RTLD_NEXT, #name);	\
		steps++;						\
		return next given;					\
	}
COUNTED(json_t *, json_object_get, (const json_t *object, const char *key), (object, key))
COUNTED(json_t *, json_array_get, (const json_t *array, size_t i), (array, i))
COUNTED(int, json_equal, (const json_t *a, const json_t *b), (a, b))
COUNTED(void *, json_object_iter_next, (json_t *object, void *iter), (object, iter))

/* ---- a node with as many communicators as ranks ------------------------------------- */

static json_t *cost_rank(int i)
{
	char id[16];

	snprintf(id, sizeof(id), "0x%08x", i);
	return json_pack("{s:s s:s s:i s:i s:i s:i s:s s:s s:s s:i s:f s:i s:f s:f}",
			 "comm_id", id, "comm_name", "dp", "nranks", 2, "rank", 0,
			 "pid", 4000 + i % 8, "uid", 1000, "user", "ada",
			 "pci_bus_id", "0000:10:00.0", "state", "live", "in_flight", 1,
			 "ops_per_s", 50.0, "p50_ns", 17300, "share", 0.25, "badness", 0.0);
}

static json_t *cost_op_row(int i)
{
	json_t *row = fx_make_op_row(i % 12);
	char id[16];

	snprintf(id, sizeof(id), "0x%08x", i);
	json_object_set_new(row, "comm_id", json_string(id));
	json_object_set_new(row, "comm_name", json_string("dp"));
	return row;
}

static void cost_answers(int n)
{
	json_decref(fx.answers.ranks);
	fx.answers.ranks = fx_list_of("ranks", cost_rank, n);
	json_decref(fx.answers.ops);
	fx.answers.ops = fx_list_of("rows", cost_op_row, n);
}

/* Steps of the first look at so many ranks, and of a frame after that. */
static uint64_t cost_of_look(int n, enum view_table table, uint64_t *of_frame)
{
	uint64_t all;

	fx_setup();
	cost_answers(n);
	place_step(&fx.place)->table = table;
	steps = 0;
	fx_build();
	all = steps;
	steps = 0;
	fx_show(160, 40);
	*of_frame = steps;
	fx_teardown();
	memset(&fx, 0, sizeof(fx));
	return all;
}

static void cost_is_linear(const char *what, uint64_t few, uint64_t many)
{
	printf("# %s: %llu steps for %d ranks, %llu for %d\n", what, (unsigned long long)few, FEW,
	       (unsigned long long)many, MANY);
	fflush(stdout);
	ck_assert_uint_gt(few, 0);
	ck_assert_msg(many <= few * 11 / 10 * (MANY / FEW), "%s grows faster than rows do", what);
}

TEST_LOOP(look_takes_as_long_as_there_are_ranks, 0, 4)
{
	static const enum view_table tables[] = { VIEW_RANKS, VIEW_OPS, VIEW_TREE, VIEW_COMMS };
	uint64_t frame, many;
	uint64_t few = cost_of_look(FEW, tables[_i], &frame);

	many = cost_of_look(MANY, tables[_i], &frame);
	cost_is_linear(view_tables[tables[_i]].title, few, many);
}

/* Of each row that is not shown only that it is there: its scope and the filter. */
TEST(frame_takes_few_steps_for_rows_that_nobody_sees)
{
	uint64_t few, many;

	cost_of_look(FEW + 100, VIEW_RANKS, &few);
	cost_of_look(MANY, VIEW_RANKS, &many);
	ck_assert_uint_le(many - few, 4 * (MANY - FEW));
}

/* ---- how often they are asked for --------------------------------------------------- */

struct asked {
	int ranks, rows;
};

static json_t *cost_answer(void *arg, const char *target)
{
	struct asked *asked = arg;

	if (strncmp(target, "/v1/ranks", 9))
		return json_object();
	asked->rows += asked->ranks;
	return fx_list_of("ranks", cost_rank, asked->ranks);
}

/* The ranks' rows that are read in 20 looks, one a second. */
static int cost_of_looks(int ranks)
{
	const struct view_want want = { .window = "10s" };
	struct client *client = client_new(NULL, 1000);
	struct asked asked = { .ranks = ranks };
	static struct view view;

	client_set_source(client, cost_answer, &asked);
	for (uint64_t i = 0; i < 20; i++)
		ck_assert_int_eq(view_fetch(&view, client, &want, FX_NOW + i * FX_SECOND), 0);
	view_deinit(&view);
	memset(&view, 0, sizeof(view));
	client_free(client);
	return asked.rows;
}

TEST(thousands_of_ranks_are_not_read_at_each_look)
{
	ck_assert_int_eq(cost_of_looks(8), 8 * 10);
	ck_assert_int_le(cost_of_looks(8000), 8000 * 3);
}

/* The filter by job, user and GPU of rows that do not tell these. */
static uint64_t cost_of_members(int n)
{
	struct cli cli = { .uid = 1000, .pid = CLI_ANY };
	json_t *processes = fx_list_of("processes", fx_make_process, 8), *comms = json_array();
	json_t *rows = fx_list_of("rows", cost_op_row, n), *members, *row;
	size_t i;

	for (int k = 0; k < n; k++) {
		char id[16];

		snprintf(id, sizeof(id), "0x%08x", k);
		json_array_append_new(comms, json_pack("{s:s s:s s:i s:[{s:i s:i}]}",
				      "comm_id", id, "name", "dp", "nranks", 2, "local_ranks",
				      "rank", 0, "pid", 4000 + k % 8));
	}
	steps = 0;
	members = members_join(json_object_get(processes, "processes"), comms);
	json_array_foreach(json_object_get(rows, "rows"), i, row)
		ck_assert(members_want(&cli, members, row));
	json_decref(members);
	json_decref(rows);
	json_decref(comms);
	json_decref(processes);
	return steps;
}

TEST(filter_by_user_takes_as_long_as_there_are_rows)
{
	uint64_t few = cost_of_members(FEW);

	cost_is_linear("members", few, cost_of_members(MANY));
}

int main(void)
{
	return fx_run(NULL, NULL);
}
