/* SPDX-License-Identifier: Apache-2.0 */
/* Scenario files: what they mean, and what is said about bad ones. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/fixture.h"
#include "tests/fixture_sim.h"
#include "tests/sim/scenario.h"

TEST(ranks_are_counted_node_by_node_and_process_by_process)
{
	struct scenario *s = fx_scenario("nodes 2\nprocesses 3\ngpus 2\n");

	ck_assert_int_eq(s->nranks, 12);
	ck_assert_int_eq(s->nprocesses, 6);
	ck_assert_int_eq(scenario_process_of(s, 7), 3);
	ck_assert_int_eq(scenario_node_of(s, 5), 0);
	ck_assert_int_eq(scenario_node_of(s, 6), 1);
	scenario_free(s);
}

TEST(one_comm_line_makes_communicators_of_one_name_and_different_ids)
{
	struct scenario *s = fx_scenario("nodes 2\nprocesses 4\n"
					 "comm dp ranks 0-4/4 ranks 1,5 channels 3 proto ll\n");

	ck_assert_int_eq(s->ncomms, 2);
	ck_assert_str_eq(s->comm[0].name, s->comm[1].name);
	ck_assert(s->comm[0].id != s->comm[1].id);
	ck_assert_int_eq(s->comm[0].world[1], 4);
	ck_assert_int_eq(s->comm[1].nnodes, 2);
	ck_assert_int_eq(s->family[0].channels, 3);
	scenario_free(s);
}

static uint64_t id_in_file(const char *name)
{
	struct scenario *s;
	char err[256];
	uint64_t id;

	ck_assert_int_eq(scenario_parse(&s, name, "gpus 2\ncomm w ranks 0,1\n", err, sizeof(err)),
			 0);
	id = s->comm[0].id;
	scenario_free(s);
	return id;
}

TEST(jobs_of_two_files_have_different_ids_wherever_the_files_lie)
{
	ck_assert_uint_ne(id_in_file("a.scn"), id_in_file("b.scn"));
	ck_assert_uint_eq(id_in_file("a.scn"), id_in_file("some/where/a.scn"));
}

TEST(an_operation_takes_what_it_does_not_say_from_its_communicator)
{
	struct scenario *s = fx_scenario("gpus 2\ncomm w ranks 0,1 channels 6 algo tree\n"
					 "AllReduce w 4Ki bfloat16 proto ll128 # fast\n");

	ck_assert_uint_eq(s->program->op.count, 4096);
	ck_assert_int_eq(s->program->op.channels, 6);
	ck_assert_str_eq(names_get(NAMES_ALGO, s->program->op.algo)->name, "TREE");
	ck_assert_str_eq(names_get(NAMES_PROTO, s->program->op.proto)->name, "LL128");
	scenario_free(s);
}

TEST(a_pair_of_ranks_may_have_a_link_of_its_own)
{
	struct scenario *s = fx_scenario("nodes 2\ngpus 2\nlink net latency 9us\n"
					 "link 0 to 2 rate 500MB/s\n");

	ck_assert(scenario_link(s, 0, 2)->rate == 0.5);
	ck_assert_int_eq(scenario_link(s, 0, 2)->latency_ns, 9000);
	ck_assert(scenario_link(s, 2, 0)->rate == 25);
	ck_assert(scenario_link(s, 0, 1)->rate == 200);
	scenario_free(s);
}

TEST(blocks_nest)
{
	struct scenario *s = fx_scenario("gpus 2\ncomm w ranks 0,1\nloop 2\nloop forever\n"
					 "group\nAllReduce w 1 int8\nend\nend\nsync\nend\n");

	ck_assert_uint_eq(s->program->body->times, SCENARIO_FOREVER);
	ck_assert_int_eq(s->program->body->body->kind, STMT_GROUP);
	ck_assert_int_eq(s->program->body->next->kind, STMT_SYNC);
	ck_assert(scenario_is_endless(s));
	scenario_free(s);
}

static const struct { const char *text, *message; } bad[] = {
	{ "fly 3\n", "bad:1: 'fly' is no statement" },
	{ "nodes\n", "bad:1: number is missing" },
	{ "nodes 2 3\n", "bad:1: '3' is not understood here" },
	{ "nodes 0\n", "bad:1: 0 is not between 1 and 128" },
	{ "nodes 20\nprocesses 20\n", "bad:2: more than 128 ranks" },
	{ "\n# x\ncomm w ranks 0,1\n", "bad:3: '1' is not within 0-0" },
	{ "gpus 2\ncomm w ranks 0,0\n", "bad:2: rank 0 is named twice" },
	{ "comm w ranks 0\nnodes 2\n", "bad:2: too late: ranks were named already" },
	{ "comm w ranks 0\ncomm w ranks 0\n", "bad:2: communicator 'w' exists already" },
	{ "comm a/b ranks 0\n", "bad:1: name 'a/b' has other than letters, digits, . _ -" },
	{ "AllReduce w 1 int8\n", "bad:1: no communicator 'w'" },
	{ "comm w ranks 0\nAllReduce w x int8\n", "bad:2: 'x' is no number" },
	{ "comm w ranks 0\nAllReduce w 1 int9\n", "bad:2: 'int9' is no datatype" },
	{ "comm w ranks 0\nAllReduce w 1 int8 algo fast\n", "bad:2: 'fast' is no algorithm" },
	{ "comm w ranks 0\nAllReduce w 1 int8 ce\n",
	  "bad:2: copy engines run AllGather and AlltoAll only" },
	{ "comm w ranks 0\nRecv w 1 int8\n", "bad:2: a Send stands for both sides" },
	{ "comm w ranks 0\nSend w 1 int8 from 0\n",
	  "bad:2: 'to' is wanted, not 'the end of the line'" },
	{ "end\n", "bad:1: nothing is open that could end" },
	{ "loop 2\nend\n", "bad:2: an empty block does nothing" },
	{ "loop 2\nsync\n", "bad:2: a block is not ended" },
	{ "comm w ranks 0\ngroup\nReduce w 1 int8\ngroup\nend\n",
	  "bad:5: an empty block does nothing" },
	{ "comm w ranks 0\ncomm v ranks 0 pxn share w\n",
	  "bad:2: pxn needs progress threads of its own" },
	{ "group\nsync\n", "bad:2: a group holds operations only" },
	{ "replay g\n", "bad:1: no graph 'g' so far" },
	{ "link net rate 0GB/s\n", "bad:1: a rate of 0 moves nothing; see the fault 'stuck'" },
	{ "compute 5\n", "bad:1: '5' is no duration: unknown unit ''" },
	{ "nccl 2.99\n", "bad:1: '2.99' is no release from 2.23 to 2.31" },
	{ "comm w ranks 0\nkill process 1 comm w op 0\n", "bad:2: 1 is not between 0 and 0" },
	{ "late rank 0 by 1ms every 0\n", "bad:1: every 0 is never" },
	{ "pace fast\n", "bad:1: 'fast' is no number" },
	{ "netplugin on\n", "bad:1: 'on' is none of off, ib, socket, external" },
};

TEST_LOOP(a_bad_line_is_named_with_its_place_and_reason, 0, FX_COUNT(bad))
{
	struct scenario *scn = NULL;
	char err[256];

	ck_assert_int_lt(scenario_parse(&scn, "bad", bad[_i].text, err, sizeof(err)), 0);
	ck_assert_str_eq(err, bad[_i].message);
	ck_assert_ptr_null(scn);
}

TEST(every_scenario_of_the_repository_is_understood)
{
	DIR *dir = opendir("tests/scenarios");
	struct scenario *scn;
	struct dirent *e;
	char path[512], err[512];
	int n = 0;

	ck_assert_msg(dir != NULL, "run me from the repository's root");
	while ((e = readdir(dir))) {
		if (!strstr(e->d_name, ".scn"))
			continue;
		snprintf(path, sizeof(path), "tests/scenarios/%s", e->d_name);
		ck_assert_msg(!scenario_load(&scn, path, err, sizeof(err)), "%s", err);
		scenario_free(scn);
		n++;
	}
	closedir(dir);
	ck_assert_int_ge(n, 11);
}

int main(void)
{
	return fx_run(NULL, NULL);
}
