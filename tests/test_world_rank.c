/* SPDX-License-Identifier: Apache-2.0 */
/* Ranks by the numbers that launchers and people give them. */
#include "reader/base/job.h"

#include <stdio.h>
#include <string.h>

#include "tests/fixture.h"

static struct comm comms[4];
static struct process p;

static void setup(void)
{
	memset(comms, 0, sizeof(comms));
	p = (struct process){ .comms = comms };
}

static void launch(const char *rank)
{
	p.env_bytes = (uint32_t)snprintf(p.env, sizeof(p.env), "RANK=%s", rank) + 1;
}

/* A communicator of so many ranks, this one on a GPU. */
static const struct comm *join(int32_t nranks, int32_t rank, uint8_t gpu)
{
	struct comm *c = &comms[p.ncomms++];

	*c = (struct comm){ .ready = true, .has_id = true, .id = 0xc0 + p.ncomms, .has_gpu = true,
			    .nranks = nranks, .rank = rank, .gpu_uuid = { gpu } };
	job_find_world(&p);
	return c;
}

TEST(launcher_says_who_a_process_of_one_gpu_is)
{
	const struct comm *pair;

	launch("13");
	join(8, 5, 1);
	pair = join(2, 1, 1);
	ck_assert_int_eq(job_world_rank(&p, pair), 13);
	ck_assert_int_eq(job_world_rank(&p, NULL), 13);
	ck_assert_int_eq(job_process_rank(&p), 13);
	ck_assert_int_eq(job_world_rank_of(&p, pair, 0), UNKNOWN_I32);
	ck_assert_int_eq(job_world_rank_of(&p, &comms[0], 4), UNKNOWN_I32);
}

TEST(largest_communicator_says_it_else)
{
	const struct comm *pair = join(2, 1, 1);

	ck_assert_int_eq(job_world_rank(&p, pair), 1);
	join(8, 5, 1);
	ck_assert_int_eq(job_world_rank(&p, pair), 5);
	ck_assert_int_eq(job_process_rank(&p), 5);
	ck_assert_int_eq(job_world_rank_of(&p, pair, 1), 5);
	ck_assert_int_eq(job_world_rank_of(&p, pair, 0), UNKNOWN_I32);
	ck_assert_int_eq(job_world_rank_of(&p, &comms[1], 7), 7);
}

/* The launcher counts processes there. */
TEST(ranks_of_one_process_are_told_apart_by_their_gpus)
{
	const struct comm *first, *second;

	launch("1");
	join(8, 4, 1);
	join(8, 5, 2);
	first = join(2, 0, 1);
	second = join(2, 1, 2);
	ck_assert_int_eq(job_world_rank(&p, first), 4);
	ck_assert_int_eq(job_world_rank(&p, second), 5);
	ck_assert_int_eq(job_world_rank(&p, NULL), UNKNOWN_I32);
	ck_assert_int_eq(job_process_rank(&p), 1);
}

/* Where GPUs are not known, by the largest communicator alone. */
TEST(ranks_of_one_process_without_gpus_are_told_apart_by_their_communicator)
{
	const struct comm *first = join(4, 2, 0), *second = join(4, 3, 0), *pair = join(2, 1, 0);

	for (int i = 0; i < 3; i++)
		comms[i].has_gpu = false;
	comms[1].id = comms[0].id;
	p.several_gpus = false;
	job_find_world(&p);
	ck_assert_int_eq(job_world_rank(&p, first), 2);
	ck_assert_int_eq(job_world_rank(&p, second), 3);
	ck_assert_int_eq(job_world_rank(&p, pair), UNKNOWN_I32);
}

TEST(nothing_is_made_up)
{
	job_find_world(&p);
	ck_assert_int_eq(job_world_rank(&p, NULL), UNKNOWN_I32);
	launch("-1");
	comms[0] = (struct comm){ .ready = true, .rank = 3, .nranks = UNKNOWN_I32 };
	p.ncomms = 1;
	job_find_world(&p);
	ck_assert_int_eq(job_world_rank(&p, &comms[0]), UNKNOWN_I32);
}

int main(void)
{
	return fx_run(setup, NULL);
}
