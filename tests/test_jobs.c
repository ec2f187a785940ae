/* SPDX-License-Identifier: Apache-2.0 */
/* Processes belong together that have a communicator in common. */
#include "ncclinspd/base/jobs.h"

#include <stdlib.h>
#include <string.h>

#include "tests/fixture.h"

#define PROCESSES	8
#define COMMS		4

static struct process process[PROCESSES], *list[PROCESSES];
static struct comm comms[PROCESSES][COMMS];
static uint32_t job[PROCESSES];

static void setup(void)
{
	memset(process, 0, sizeof(process));
	memset(comms, 0, sizeof(comms));
	for (uint32_t i = 0; i < PROCESSES; i++) {
		process[i].comms = comms[i];
		list[i] = &process[i];
	}
}

static void in_comm(uint32_t i, uint64_t id, int32_t rank)
{
	process[i].comms[process[i].ncomms++] = (struct comm){
		.ready = true, .has_id = true, .id = id, .rank = rank,
	};
}

static void group(uint64_t seed)
{
	ck_assert_int_eq(jobs_group(list, PROCESSES, seed, job), 0);
}

TEST(who_has_a_communicator_in_common_is_of_one_job)
{
	in_comm(1, 10, 0);
	in_comm(4, 10, 1);
	in_comm(2, 11, 0);
	in_comm(5, 11, 1);
	group(1);
	ck_assert_uint_eq(job[4], 1);
	ck_assert_uint_eq(job[5], 2);
	ck_assert_uint_eq(job[0], 0);
	ck_assert_uint_eq(job[7], 7);
}

TEST(pairs_hang_together_through_others)
{
	in_comm(0, 20, 0);
	in_comm(5, 20, 1);
	in_comm(3, 21, 0);
	in_comm(6, 21, 1);
	in_comm(6, 22, 0);
	in_comm(5, 22, 1);
	group(2);
	for (uint32_t i = 0; i < PROCESSES; i++)
		ck_assert_uint_eq(job[i], i == 3 || i == 5 || i == 6 ? 0 : i);
}

TEST(the_same_number_of_two_users_is_two_jobs)
{
	in_comm(0, 30, 0);
	in_comm(1, 30, 0);
	process[1].uid = 7;
	group(3);
	ck_assert_uint_eq(job[1], 1);
}

TEST(what_is_closed_or_has_no_id_joins_nobody)
{
	in_comm(0, 40, 0);
	in_comm(1, 40, 1);
	comms[1][0].finalize_ticks = 5;
	in_comm(2, 0, 0);
	in_comm(3, 0, 1);
	comms[2][0].has_id = comms[3][0].has_id = false;
	group(4);
	for (uint32_t i = 0; i < PROCESSES; i++)
		ck_assert_uint_eq(job[i], i);
}

/* By hand: two are of one job if a chain of common communicators leads from one to the other. */
static void reach(bool to[PROCESSES], uint32_t from)
{
	if (to[from])
		return;
	to[from] = true;
	for (uint32_t k = 0; k < PROCESSES; k++)
		for (uint32_t c = 0; c < process[from].ncomms; c++)
			if (jobs_comm(&process[k], comms[from][c].id, UNKNOWN_I32))
				reach(to, k);
}

TEST_LOOP(jobs_are_what_can_be_reached, 0, 20)
{
	fx_seed((uint64_t)_i);
	for (uint32_t i = 0; i < PROCESSES; i++)
		for (uint32_t c = fx_random() % COMMS; c > 0; c--)
			in_comm(i, fx_random() % 12, (int32_t)i);
	group((uint64_t)_i);
	for (uint32_t i = 0; i < PROCESSES; i++) {
		bool to[PROCESSES] = { false };

		reach(to, i);
		for (uint32_t k = 0; k < PROCESSES; k++)
			ck_assert_int_eq(job[i] == job[k], to[k]);
	}
}

TEST(a_rank_is_found_in_its_communicator)
{
	in_comm(0, 50, 3);
	in_comm(0, 50, 4);
	ck_assert_int_eq(jobs_comm(&process[0], 50, 4)->rank, 4);
	ck_assert_int_eq(jobs_comm(&process[0], 50, UNKNOWN_I32)->rank, 3);
	ck_assert_ptr_null(jobs_comm(&process[0], 50, 5));
	ck_assert_ptr_null(jobs_comm(&process[0], 51, UNKNOWN_I32));
}

TEST(a_table_of_many_is_read_so_far_and_no_further)
{
	struct comm *many = calloc(2 * JOBS_ENTRIES, sizeof(*many));

	process[0].comms = many;
	for (uint64_t c = 0; c < 2 * JOBS_ENTRIES; c++)
		in_comm(0, 1000 + c, 0);
	in_comm(1, 1000 + JOBS_COMMS - 1, 1);
	in_comm(2, 1000 + JOBS_COMMS, 1);
	group(5);
	ck_assert_uint_eq(job[1], 0);
	ck_assert_uint_eq(job[2], 2);
	ck_assert_ptr_nonnull(jobs_comm(&process[0], 1000 + JOBS_ENTRIES - 1, 0));
	ck_assert_ptr_null(jobs_comm(&process[0], 1000 + JOBS_ENTRIES, 0));
	free(many);
}

int main(void)
{
	return fx_run(setup, NULL);
}
