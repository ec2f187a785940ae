/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sends and receives of one group, as they are called for, launched and done: what
 * they amount to is told once, when the last is done, and not where one is missing.
 */
#include "tests/fx_recon.h"

#define GROUP	900
#define PLAN	800

static struct fx_recon fx;

static void teardown(void)
{
	fx_recon_close(&fx);
}

static void give(union fx_record r)
{
	fx_give(&fx, &fx.a, &r);
}

static void call(uint64_t i, bool is_send)
{
	give(fx_p2p_api(100 + i, GROUP, is_send ? FX_SEND : FX_RECV, 90));
}

/* The i-th transfer of the group is with `peer`, of plan PLAN + i / 4. */
static void head(uint64_t i, int32_t peer, bool is_send)
{
	union fx_record r = fx_p2p(200 + i, 100 + i, peer, 1, 100 + i);

	r.p2p.func = is_send ? FX_SEND : FX_RECV;
	r.p2p.group = PLAN + i / 4;
	give(r);
}

static void end_plan(uint64_t n)
{
	give(fx_head(NCI_EV_GROUP, 1, PLAN + n, 0, 90, 200));
}

static void kernel(uint64_t i)
{
	uint64_t start = 5000 + i + i / 4 * 5000;	/* one launch after the other */

	give(fx_kernel(300 + i, 200 + i, (uint8_t)i, start, start + 4000));
}

static const struct op *derived(void)
{
	const struct op *found = NULL;

	for (uint32_t i = 0; i < fx.ndone; i++) {
		if (!fx.done[i].parts)
			continue;
		ck_assert_ptr_null(found);	/* told once */
		found = &fx.done[i];
	}
	return found;
}

/* Rank 0 of 4 with each of the others, in two launches. */
static void call_and_launch(void)
{
	for (uint64_t i = 0; i < 6; i++)
		call(i, i % 2);
	for (uint64_t i = 0; i < 6; i++)
		head(i, 1 + (int32_t)i / 2, i % 2);
	end_plan(0);
	end_plan(1);
}

TEST(exchange_in_two_launches_is_one_alltoall)
{
	fx_recon_open(&fx, 6, FX_MASK_KERNEL);
	call_and_launch();
	for (uint64_t i = 0; i < 6; i++) {
		ck_assert_ptr_null(derived());
		kernel(i);
	}
	ck_assert_uint_eq(fx.ndone, 7);
	ck_assert_str_eq(derived()->func, "AlltoAll");
	ck_assert_uint_eq(derived()->parts, 6);
	ck_assert_uint_eq(derived()->bytes, 4 * 1024);
	ck_assert_uint_eq(derived()->exec_ns, 9005);
	ck_assert_int_eq(derived()->source, TIMING_KERNEL_GPU);
	ck_assert_double_eq_tol(derived()->busbw_gbs, 3 * 1024 / 9005.0, 1e-9);
	ck_assert_uint_eq(derived()->seq, 0);
	ck_assert_uint_eq(derived()->api_start_ticks, 90);
	ck_assert_uint_eq(derived()->fused, 0);
	ck_assert(derived()->complete && !derived()->is_p2p);
}

/* In place nothing but the call is seen of what a rank sends to itself. */
TEST_LOOP(silent_transfer_to_oneself_is_known_by_its_calls, 0, 2)
{
	fx_recon_open(&fx, 6, FX_MASK_KERNEL);
	fx.a.comms[0].nranks = 2;
	for (uint64_t i = 0; i < 2 + 2 * (uint64_t)_i; i++)
		call(i, i % 2);
	head(0, 1, false);
	head(1, 1, true);
	end_plan(0);
	kernel(0);
	kernel(1);
	if (_i) {
		ck_assert_ptr_null(derived());	/* another launch may follow */
		fx_wait(&fx, 250 * FX_MS);
	}
	ck_assert_str_eq(derived()->func, _i ? "AlltoAll" : "SendRecv");
}

TEST(group_that_lacks_transfers_is_not_named)
{
	fx_recon_open(&fx, 6, FX_MASK_KERNEL);
	for (uint64_t i = 0; i < 12; i++)
		call(i, i % 2);
	for (uint64_t i = 0; i < 6; i++)
		head(i, 1 + (int32_t)i / 2, i % 2);
	end_plan(0);
	end_plan(1);
	for (uint64_t i = 0; i < 6; i++)
		kernel(i);
	fx_wait(&fx, 4000 * FX_MS);
	ck_assert_uint_eq(reconstruct_stats(fx.rc)->unnamed, 0);	/* they may still come */
	fx_wait(&fx, 2000 * FX_MS);
	ck_assert_uint_eq(reconstruct_stats(fx.rc)->unnamed, 1);
	ck_assert_ptr_null(derived());
}

TEST(group_that_lost_records_is_not_named)
{
	fx_recon_open(&fx, 6, FX_MASK_KERNEL);
	call_and_launch();
	fx.a.p.loss.overrun++;
	for (uint64_t i = 0; i < 6; i++)
		kernel(i);
	ck_assert_ptr_null(derived());
	ck_assert_uint_eq(reconstruct_stats(fx.rc)->unnamed, 1);
}

/* Nobody knows whether a group was among them. */
TEST_LOOP(after_a_loss_groups_have_no_number, 0, 2)
{
	fx_recon_open(&fx, 6, FX_MASK_KERNEL);
	if (_i)
		fx.a.p.loss.before = 1;
	else
		fx.a.p.loss.pool = 1;
	call_and_launch();
	for (uint64_t i = 0; i < 6; i++)
		kernel(i);
	ck_assert_uint_eq(derived()->seq, UNKNOWN_U64);
}

TEST(part_without_a_time_leaves_the_whole_without)
{
	fx_recon_open(&fx, 6, FX_MASK_KERNEL);
	call_and_launch();
	for (uint64_t i = 0; i < 5; i++)
		kernel(i);
	give(fx_kernel(305, 205, 5, 9000, 5000));
	ck_assert_uint_eq(derived()->exec_ns, UNKNOWN_U64);
	ck_assert_double_lt(derived()->busbw_gbs, 0);
}

TEST(member_that_hangs_keeps_its_group_open)
{
	fx_recon_open(&fx, 6, FX_MASK_KERNEL);
	call_and_launch();
	for (uint64_t i = 0; i < 5; i++)
		kernel(i);
	for (int i = 0; i < 100; i++)
		fx_wait(&fx, 1000 * FX_MS);
	ck_assert_ptr_null(derived());
	reconstruct_end(fx.rc, &fx.a.p, fx.now);
	ck_assert_ptr_null(derived());
}

TEST(before_version_5_a_launch_is_a_group)
{
	fx_recon_open(&fx, 4, FX_MASK_KERNEL);
	head(0, 1, false);
	head(1, 3, true);
	end_plan(0);
	kernel(0);
	kernel(1);
	fx_wait(&fx, 0);
	fx_wait(&fx, 250 * FX_MS);
	ck_assert_str_eq(derived()->func, "Shift");
	ck_assert_int_eq(derived()->shift, -1);
}

TEST(lonely_send_is_only_a_send)
{
	fx_recon_open(&fx, 6, FX_MASK_KERNEL);
	call(0, true);
	head(0, 1, true);
	end_plan(0);
	kernel(0);
	ck_assert_uint_eq(fx.ndone, 1);
	ck_assert_ptr_null(derived());
}

TEST(small_pools_push_groups_out_and_count_them)
{
	const struct reconstruct_limits small = { .groups = 1, .parts = 1 };

	fx_recon_open_with(&fx, 6, FX_MASK_KERNEL, &small);
	call_and_launch();
	for (uint64_t i = 0; i < 6; i++)
		kernel(i);
	ck_assert_uint_eq(fx.ndone, 6);
	ck_assert_uint_eq(reconstruct_stats(fx.rc)->unnamed, 1);
	call(10, true);
	give(fx_p2p_api(120, GROUP + 1, FX_SEND, 90));
	ck_assert_uint_eq(reconstruct_stats(fx.rc)->unnamed, 2);
}

int main(void)
{
	return fx_run(NULL, teardown);
}
