/* SPDX-License-Identifier: Apache-2.0 */
/* Which clock of a GPU a communicator gets. */
#include "reader/time/gpus.h"
#include "tests/fixture.h"

static struct gpus gpus;
static struct comm comm = { .ready = true, .has_gpu = true, .gpu_uuid = { 0xab } };
static struct process ours, others;

static void setup(void)
{
	gpus = (struct gpus){ 0 };
	ours = (struct process){ .id = 1, .uid = 100, .account = 100, .comms = &comm, .ncomms = 1,
				 .clock = { NCI_CLOCK_TSC, 0, 0, 0.5, 0 } };
	others = ours;
	others.id = 2;
}

static void teardown(void)
{
	gpus_deinit(&gpus);
}

TEST(a_gpu_has_one_clock_for_all_processes_of_a_user)
{
	ck_assert_ptr_eq(gpus_get(&gpus, &ours, 0), gpus_get(&gpus, &others, 0));
	ck_assert_uint_eq(gpus.n, 1);
}

TEST(a_clock_is_kept_for_the_next_job)
{
	struct gpu *gpu = gpus_get(&gpus, &ours, 0);

	gpus_put(&gpus, gpu);
	ck_assert_uint_eq(gpus.freed, 1);
	ck_assert_ptr_eq(gpus_get(&gpus, &others, 0), gpu);
}

TEST(who_claims_the_gpu_of_another_user_gets_a_clock_of_their_own)
{
	struct gpu *gpu = gpus_get(&gpus, &ours, 0);

	others.uid = 101;
	ck_assert_ptr_ne(gpus_get(&gpus, &others, 0), gpu);
	ck_assert_uint_eq(gpu->uid, 100);
	ck_assert_uint_eq(gpu->users, 1);
}

TEST(ticks_of_another_counter_have_another_clock)
{
	struct gpu *gpu = gpus_get(&gpus, &ours, 0);

	gpus_put(&gpus, gpu);
	others.clock = (struct tick_clock){ NCI_CLOCK_MONOTONIC, 0, 0, 1, 0 };
	ck_assert_ptr_ne(gpus_get(&gpus, &others, 0), gpu);
}

/* No uuid: each communicator has a clock of its own. */
TEST(a_user_with_many_communicators_leaves_clocks_for_others)
{
	struct gpu *last = NULL;
	uint32_t had = 0;

	comm.has_gpu = false;
	for (ours.id = 1; had < 2 * GPUS_MAX && (last = gpus_get(&gpus, &ours, 0)); ours.id++)
		had++;
	ck_assert_ptr_null(last);
	ck_assert_uint_gt(had, GPUS_MAX / 2);
	others.id = 2 * ours.id;
	others.account = others.uid = 101;
	ck_assert_ptr_nonnull(gpus_get(&gpus, &others, 0));
	gpus_put(&gpus, gpus.at[0]);
	ck_assert_ptr_eq(gpus_get(&gpus, &ours, 0), gpus.at[0]);
}

int main(void)
{
	return fx_run(setup, teardown);
}
