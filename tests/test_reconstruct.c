/* SPDX-License-Identifier: Apache-2.0 */
#include "nci/token.h"
#include "reader/time/stamps.h"
#include "tests/fx_recon.h"

static struct fx_recon fx;

static void teardown(void)
{
	fx_recon_close(&fx);
}

static void give(union fx_record r)
{
	fx_give(&fx, &fx.a, &r);
}

TEST(collective_is_complete_when_all_its_channels_have_stopped)
{
	fx_recon_open(&fx, 6, FX_MASK_KERNEL);
	give(fx_coll_api(7, 0, FX_ALLREDUCE, 1024, 90));
	give(fx_coll(8, 7, 3, 64, 100));
	for (uint8_t c = 0; c < 64; c++) {
		ck_assert_uint_eq(fx.ndone, 0);
		give(fx_kernel(100 + c, 8, c, 5000 + c, 9000 + c));
	}
	ck_assert_uint_eq(fx.ndone, 1);
	ck_assert(fx.done[0].complete);
	ck_assert_uint_eq(fx.done[0].kernel_stopped, 64);
	ck_assert_uint_eq(fx.done[0].exec_ns, 4063);
	ck_assert_int_eq(fx.done[0].source, TIMING_KERNEL_GPU);
	ck_assert_uint_eq(fx.done[0].bytes, 4096);
	ck_assert_uint_eq(fx.done[0].count, 1024);
	ck_assert_str_eq(fx.done[0].datatype, "ncclFloat32");
	ck_assert_uint_eq(fx.done[0].seq, 3);
	ck_assert_uint_eq(fx.done[0].enqueued_ns, 90);
	ck_assert_str_eq(fx.done[0].comm_name, "tp");
	ck_assert_double_eq_tol(fx.done[0].busbw_gbs, 4096 / 4063.0 * 1.5, 1e-9);
}

TEST(children_and_call_may_be_read_before_their_collective)
{
	fx_recon_open(&fx, 6, FX_MASK_KERNEL);
	give(fx_kernel(101, 8, 0, 5000, 9000));
	give(fx_kernel(102, 8, 1, 5000, 9500));
	give(fx_coll(8, 7, 3, 2, 100));
	ck_assert_uint_eq(fx.ndone, 0);		/* complete, but its call is still to come */
	give(fx_coll_api(7, 0, FX_ALLREDUCE, 1024, 90));
	fx_wait(&fx, 1);
	ck_assert_uint_eq(fx.ndone, 1);
	ck_assert_uint_eq(fx.done[0].exec_ns, 4500);
	ck_assert(fx.done[0].has_graph);
	ck_assert_uint_eq(fx.done[0].api_start_ticks, 90);
	fx_wait(&fx, 100000 * FX_MS);
	ck_assert_uint_eq(fx.ndone, 1);		/* the call is used up */
}

/* A thread's tag is in its call; another thread may launch. */
TEST_LOOP(tag_of_the_call_is_that_of_what_has_none, 0, 3)
{
	union fx_record api = fx_coll_api(7, 0, FX_ALLREDUCE, 1024, 90);
	union fx_record coll = fx_coll(8, 7, 3, 2, 100);

	api.coll_api.form++;		/* two lines */
	api.coll_api.tag = _i == 2 ? nci_tag_of_name("AllReduce", 9) : 17;
	coll.coll.tag = _i == 1 ? 9 : 0;
	fx_recon_open(&fx, 6, FX_MASK_KERNEL);
	give(api);
	give(coll);
	give(fx_kernel(101, 8, 0, 5000, 9000));
	give(fx_kernel(102, 8, 1, 5000, 9500));
	fx_wait(&fx, 1);
	ck_assert_uint_eq(fx.ndone, 1);
	ck_assert_uint_eq(fx.done[0].tag, coll.coll.tag ? coll.coll.tag : api.coll_api.tag);
	ck_assert_pstr_eq(fx.done[0].tag_name, _i == 2 ? "AllReduce" : NULL);
}

TEST(lost_call_delays_its_collective_only_for_a_moment)
{
	fx_recon_open(&fx, 6, FX_MASK_OPS);
	give(fx_coll(8, 7, 3, 2, 100));
	fx_wait(&fx, FX_MS);
	ck_assert_uint_eq(fx.ndone, 0);
	fx_wait(&fx, 60 * FX_MS);
	ck_assert_uint_eq(fx.ndone, 1);
	ck_assert(!fx.done[0].has_graph);
}

TEST(nothing_to_watch_is_complete_at_once_and_untimed)
{
	fx_recon_open(&fx, 4, FX_MASK_OPS);
	give(fx_coll(8, 7, 3, 2, 100));
	ck_assert_uint_eq(fx.ndone, 1);
	ck_assert(fx.done[0].complete);
	ck_assert(!fx.done[0].sampled);
	ck_assert_int_eq(fx.done[0].source, TIMING_NONE);
	ck_assert_uint_eq(fx.done[0].exec_ns, UNKNOWN_U64);
	ck_assert(fx.done[0].busbw_gbs < 0);
}

TEST(bytes_of_allgather_are_right_without_its_call_and_its_count_unknown)
{
	union fx_record r = fx_coll(8, 7, 3, 2, 100);

	fx_recon_open(&fx, 4, FX_MASK_OPS);
	r.coll.func = FX_ALLGATHER;
	r.coll.datatype = FX_INT8;
	r.coll.count = 4096;
	give(r);
	ck_assert_uint_eq(fx.done[0].bytes, 4 * 4096);
	ck_assert_uint_eq(fx.done[0].count, UNKNOWN_U64);
	ck_assert_ptr_null(fx.done[0].datatype);
}

TEST(unsized_type_takes_its_bytes_from_the_descriptor)
{
	union fx_record api = fx_coll_api(7, 0, FX_ALLGATHER, 4096, 90);
	union fx_record r = fx_coll(8, 7, 3, 2, 100);

	fx_recon_open(&fx, 6, FX_MASK_OPS);
	api.coll_api.datatype = FX_UNKNOWN_TYPE;
	r.coll.func = FX_ALLGATHER;
	r.coll.datatype = FX_INT8;
	r.coll.count = 4096;
	give(api);
	give(r);
	ck_assert_uint_eq(fx.done[0].bytes, 4 * 4096);
	ck_assert_uint_eq(fx.done[0].count, 4096);
	ck_assert_ptr_null(fx.done[0].datatype);
}

TEST(token_that_is_given_twice_keeps_its_first_meaning)
{
	fx_recon_open(&fx, 6, FX_MASK_OPS);
	give(fx_coll_api(7, 0, FX_ALLREDUCE, 1024, 90));
	give(fx_coll_api(7, 0, FX_ALLREDUCE, 5, 95));
	give(fx_coll(8, 7, 3, 2, 100));
	give(fx_coll(8, 7, 4, 2, 200));
	fx_wait(&fx, 100000 * FX_MS);
	ck_assert_uint_eq(fx.ndone, 1);
	ck_assert_uint_eq(fx.done[0].count, 1024);
	ck_assert_uint_eq(fx.done[0].seq, 3);
}

TEST(each_replay_of_a_captured_call_is_an_operation)
{
	union fx_record api = fx_coll_api(7, 0, FX_ALLREDUCE, 1024, 90);

	fx_recon_open(&fx, 6, FX_MASK_KERNEL);
	api.rec.form |= NCI_FORM_GRAPH;
	give(api);
	fx_wait(&fx, 3600000 * FX_MS);		/* captured long ago */
	for (uint64_t i = 0; i < 5; i++) {
		give(fx_coll(20 + i, 7, i, 1, 1000 * i + 100));
		give(fx_kernel(40 + i, 20 + i, 0, 1000 * i + 200000, 1000 * i + 200300));
	}
	ck_assert_uint_eq(fx.ndone, 5);
	for (uint64_t i = 0; i < 5; i++) {
		ck_assert(fx.done[i].graph);
		ck_assert_uint_eq(fx.done[i].enqueued_ns, 1000 * i + 100);
		ck_assert_uint_eq(fx.done[i].count, 1024);
	}
}

/* A call that its own thread launches. */
static void launch_something(uint32_t comm)
{
	union fx_record api = fx_coll_api(1001, 0, FX_ALLREDUCE, 1024, 10);
	union fx_record coll = fx_coll(1002, 1001, 0, 1, 12);
	union fx_record kernel = fx_kernel(1003, 1002, 0, 100, 200);

	api.rec.comm = coll.rec.comm = kernel.rec.comm = comm;
	give(api);
	give(coll);
	give(kernel);
}

/* One that has launched nothing yet (comm 0 of the second run) may be at it on another thread. */
TEST_LOOP(call_without_operation_has_no_duration_once_its_group_has_ended, 0, 2)
{
	fx_recon_open(&fx, 6, FX_MASK_KERNEL);
	launch_something(_i);
	give(fx_coll_api(7, 6, FX_BROADCAST, 1024, 90));
	fx_wait(&fx, 5000 * FX_MS);
	ck_assert_uint_eq(fx.ndone, 1);		/* connecting may take as long as it likes */
	give(fx_head(NCI_EV_GROUP_API, 1, 6, 0, 80, 95));
	fx_wait(&fx, 60 * FX_MS);
	ck_assert_uint_eq(fx.ndone, _i ? 1 : 2);
	if (_i)
		fx_wait(&fx, 60000 * FX_MS);
	ck_assert_uint_eq(fx.ndone, 2);
	ck_assert(fx.done[1].api_only);
	ck_assert_str_eq(fx.done[1].func, "Broadcast");
	ck_assert_int_eq(fx.done[1].root, 0);
	ck_assert_uint_eq(fx.done[1].bytes, 4096);
	ck_assert_uint_eq(fx.done[1].exec_ns, UNKNOWN_U64);
	ck_assert_uint_eq(fx.done[1].seq, UNKNOWN_U64);
}

/* PyTorch nests its groups, and the first launch connects for seconds. */
TEST(call_in_a_group_waits_for_the_next_launch_on_its_communicator)
{
	union fx_record group = fx_head(NCI_EV_GROUP_API, 1, 6, 0, 80, 95);

	fx_recon_open(&fx, 6, FX_MASK_KERNEL);
	group.group_api.depth = 2;
	give(fx_coll_api(7, 6, FX_ALLREDUCE, 1024, 90));
	give(fx_coll_api(8, 6, FX_BROADCAST, 1024, 92));
	give(group);
	fx_wait(&fx, 5000 * FX_MS);
	ck_assert_uint_eq(fx.ndone, 0);
	give(fx_coll(9, 7, 0, 1, 1000));
	give(fx_kernel(10, 9, 0, 5000, 9000));
	fx_wait(&fx, 60 * FX_MS);
	ck_assert_uint_eq(fx.ndone, 2);
	ck_assert(!fx.done[0].api_only);
	ck_assert_uint_eq(fx.done[0].exec_ns, 4000);
	ck_assert(fx.done[1].api_only);
	ck_assert_str_eq(fx.done[1].func, "Broadcast");
}

/* Its group ends at once; another thread connects first, and launches after that. */
TEST(call_on_a_nonblocking_communicator_is_counted_once)
{
	fx_recon_open(&fx, 6, FX_MASK_KERNEL);
	for (uint64_t i = 0, n = 0; i < 3; i++, n++) {
		if (i == 2) {
			launch_something(1);	/* others launch on their own thread */
			n++;
		}
		give(fx_coll_api(7 + 10 * i, 6 + 10 * i, FX_ALLREDUCE, 1024,
				 90 + 2000 * i));
		give(fx_head(NCI_EV_GROUP_API, 1, 6 + 10 * i, 0, 80, 95));
		for (int k = 0; k < 5; k++)
			fx_wait(&fx, 1000 * FX_MS);
		ck_assert_uint_eq(fx.ndone, n);
		give(fx_coll(nci_token(3, 1, i + 1), 7 + 10 * i, i, 1,
			     1000 + 2000 * i));
		give(fx_kernel(10 + 10 * i, nci_token(3, 1, i + 1), 0, 5000 * i + 5000,
			       5000 * i + 9000));
		ck_assert_uint_eq(fx.ndone, n + 1);
		ck_assert(!fx.done[n].api_only);
	}
	fx_wait(&fx, 100000 * FX_MS);
	ck_assert_uint_eq(fx.ndone, 4);
}

/* Broadcasts in groups, as NCCL 2.29.2 tells them: no launch ever, but more calls. */
TEST(call_in_a_group_is_known_by_a_much_later_one)
{
	union fx_record group = fx_head(NCI_EV_GROUP_API, 1, 6, 0, 80, 95);

	fx_recon_open(&fx, 6, FX_MASK_KERNEL);
	group.group_api.depth = 2;
	give(fx_coll_api(7, 6, FX_BROADCAST, 1024, 90));
	give(group);
	fx_wait(&fx, 3000 * FX_MS);
	give(fx_coll_api(8, 16, FX_BROADCAST, 1024, 900 * FX_MS));
	fx_wait(&fx, 60 * FX_MS);
	ck_assert_uint_eq(fx.ndone, 0);
	give(fx_coll_api(9, 26, FX_BROADCAST, 1024, 1100 * FX_MS));
	fx_wait(&fx, 60 * FX_MS);
	ck_assert_uint_eq(fx.ndone, 1);
	ck_assert(fx.done[0].api_only);
}

TEST(record_drained_after_the_poll_began_is_not_old)
{
	fx_recon_open(&fx, 6, FX_MASK_KERNEL);
	give(fx_coll_api(7, 0, FX_ALLREDUCE, 1024, 90));
	give(fx_coll(9, 77, 3, 2, 100));
	give(fx_kernel(101, 8, 0, 5000, 9000));
	reconstruct_flush(fx.rc, fx.now - 5);
	ck_assert_uint_eq(fx.ndone, 0);
	ck_assert_uint_eq(reconstruct_stats(fx.rc)->orphans, 0);
}

TEST(copy_engine_collective_is_known_by_its_enqueue_only)
{
	union fx_record r = fx_head(NCI_EV_CE_COLL, 2, 8, 7, 100, 160);

	fx_recon_open(&fx, 6, FX_MASK_NET);
	r.ce.seq = 4;
	r.ce.count = 4096;
	r.ce.func = FX_ALLGATHER;
	r.ce.datatype = FX_INT8;
	give(fx_coll_api(7, 0, FX_ALLGATHER, 1024, 90));
	give(r);
	ck_assert_uint_eq(fx.ndone, 1);
	ck_assert(fx.done[0].is_ce);
	ck_assert_int_eq(fx.done[0].source, TIMING_ENQUEUE_CPU);
	ck_assert_uint_eq(fx.done[0].exec_ns, UNKNOWN_U64);
	ck_assert_uint_eq(fx.done[0].enqueue_ns, 60);
	ck_assert_uint_eq(fx.done[0].seq, UNKNOWN_U64);
	ck_assert_uint_eq(fx.done[0].bytes, 4 * 4096);
}

TEST(stamps_that_cannot_be_true_are_refused_and_counted)
{
	fx_recon_open(&fx, 6, FX_MASK_KERNEL);
	give(fx_coll(8, 0, 3, 3, 100));
	give(fx_kernel(101, 8, 0, 5000, 9000));
	give(fx_kernel(102, 8, 1, 0, 9000));
	give(fx_kernel(103, 8, 2, 9000, 5000));
	ck_assert_uint_eq(fx.ndone, 1);
	ck_assert_uint_eq(fx.done[0].stamps_refused, 2);
	ck_assert_uint_eq(fx.done[0].exec_ns, UNKNOWN_U64);	/* what one channel took */
	ck_assert_uint_eq(fx.a.p.stamps_refused[STAMP_ZERO], 1);
	ck_assert_uint_eq(fx.a.p.stamps_refused[STAMP_BACKWARDS], 1);
	give(fx_coll(9, 0, 4, 1, 100));
	give(fx_kernel(104, 9, 0, 0, 0));
	ck_assert_uint_eq(fx.done[1].exec_ns, UNKNOWN_U64);
	ck_assert_int_eq(fx.done[1].source, TIMING_NONE);
}

TEST(channel_that_runs_backwards_is_refused_until_it_has_been_sane_for_a_while)
{
	uint64_t refused = 0;

	fx_recon_open(&fx, 6, FX_MASK_KERNEL);
	for (uint64_t i = 0; i < 2; i++) {	/* torn stamps, far ahead */
		give(fx_coll(1000 + i, 0, i, 1, 100));
		give(fx_kernel(1010 + i, 1000 + i, 0, 900000000 - 100000000 * i, 900001000));
	}
	for (uint64_t i = 2; i < 60; i++) {
		give(fx_coll(2000 + i, 0, i, 1, 100));
		give(fx_kernel(3000 + i, 2000 + i, 0, 10000 * i, 10000 * i + 500));
		refused += fx.done[i].stamps_refused;
	}
	ck_assert_uint_eq(fx.a.p.stamps_refused[STAMP_BACKWARDS], 7);
	ck_assert_uint_eq(fx.a.p.stamps_refused[STAMP_DISTRUSTED], STAMPS_SANE);
	ck_assert_uint_eq(refused, 7 + STAMPS_SANE);
	ck_assert_uint_eq(fx.done[59].exec_ns, 500);
}

/* As NCCL does when its proxy thread lags behind: all receives, then what ran between. */
TEST(receives_may_run_ahead_on_a_channel)
{
	fx_recon_open(&fx, 5, FX_MASK_KERNEL);
	for (uint64_t i = 0; i < 20; i++) {
		give(fx_coll(1000 + i, 0, i, 1, 100));
		give(fx_p2p(2000 + i, 0, 2, 1, 100));
		give(fx_kernel(4000 + i, 2000 + i, 0, 100000 * i + 50000, 100000 * i + 60000));
		if (i % 4 < 3)
			continue;
		for (uint64_t k = i - 3; k <= i; k++)
			give(fx_kernel(3000 + k, 1000 + k, 0, 100000 * k + 1, 100000 * k + 501));
	}
	ck_assert_uint_eq(fx.ndone, 40);
	ck_assert_uint_eq(reconstruct_stats(fx.rc)->stamps_refused, 0);
}

TEST(late_children_are_counted_and_change_nothing)
{
	fx_recon_open(&fx, 4, FX_MASK_KERNEL);
	give(fx_coll(8, 0, 3, 1, 100));
	give(fx_kernel(101, 8, 0, 5000, 9000));
	give(fx_proxy(201, 8, 5000, 9900));
	ck_assert_uint_eq(reconstruct_stats(fx.rc)->late, 1);
	fx_wait(&fx, 100000 * FX_MS);
	ck_assert_uint_eq(fx.ndone, 1);
	ck_assert_uint_eq(reconstruct_stats(fx.rc)->orphans, 0);
}

TEST(operation_has_the_name_of_its_tag_once_that_is_known)
{
	union fx_record r;

	fx_recon_open(&fx, 6, FX_MASK_OPS);
	for (uint64_t i = 1; i <= 4; i++) {
		fx.a.p.nstrings = i < 3 ? FX_ALLREDUCE : FX_STRINGS - 1;
		r = fx_coll(nci_token(0, 2, i), 0, i, 1, 100 * i);
		r.coll.tag = i < 4 ? fx.a.tags[FX_RING - 1] : fx.a.tags[FX_SEND - 1];
		give(r);
	}
	ck_assert_uint_eq(fx.ndone, 4);
	ck_assert_ptr_null(fx.done[0].tag_name);
	ck_assert_ptr_null(fx.done[1].tag_name);
	ck_assert_str_eq(fx.done[2].tag_name, "RING");
	ck_assert_str_eq(fx.done[3].tag_name, "Send");
}

/* Where many newer ones of its slot have come since, and others of it are open. */
TEST(late_children_are_told_from_early_ones_by_their_slot)
{
	fx_recon_open(&fx, 4, FX_MASK_KERNEL);
	for (uint64_t i = 1; i <= 100; i++) {
		give(fx_coll(nci_token(0, 2, i), 0, i, 1, 100 * i));
		if (i != 3 && i != 60)
			give(fx_kernel(101, nci_token(0, 2, i), 0, 100 * i + 50, 100 * i + 90));
	}
	ck_assert_uint_eq(fx.ndone, 98);
	for (uint64_t i = 1; i <= 100; i++)
		if (i != 3 && i != 60)
			give(fx_kernel(101, nci_token(0, 2, i), 0, 100 * i + 50, 100 * i + 90));
	ck_assert_uint_eq(reconstruct_stats(fx.rc)->late, 98);
	give(fx_kernel(101, nci_token(0, 2, 60), 0, 11000, 11090));
	give(fx_kernel(101, nci_token(0, 2, 3), 0, 11100, 11190));
	ck_assert_uint_eq(fx.ndone, 100);
	give(fx_kernel(101, nci_token(0, 2, 101), 0, 11200, 11290));
	give(fx_coll(nci_token(0, 2, 101), 0, 101, 1, 11150));
	ck_assert_uint_eq(fx.ndone, 101);
	give(fx_kernel(101, nci_token(0, 2, 101), 0, 11200, 11290));
	give(fx_coll(nci_token(0, 2, 60), 0, 60, 1, 6000));	/* once more: refused */
	give(fx_kernel(101, nci_token(0, 2, 60), 0, 11000, 11090));
	ck_assert_uint_eq(reconstruct_stats(fx.rc)->late, 100);
	fx_wait(&fx, 100000 * FX_MS);
	ck_assert_uint_eq(fx.ndone, 101);
	ck_assert_uint_eq(reconstruct_stats(fx.rc)->orphans, 0);
}

/* As when each of eight threads launches many transfers in one group, and all proxies end late. */
TEST(late_children_are_told_from_early_ones_in_many_lanes)
{
	enum { LANES = 8, HEADS = 126 };

	fx_recon_open(&fx, 6, FX_MASK_NET);
	for (uint32_t lane = 0; lane < LANES; lane++)
		for (uint32_t i = 0; i < HEADS; i++)
			give(fx_coll(nci_token(lane, i, 9), 0, lane * HEADS + i, 1, 100 + i));
	for (uint32_t lane = 0; lane < LANES; lane++)
		for (uint32_t i = 0; i < HEADS; i++)
			give(fx_kernel(101, nci_token(lane, i, 9), 0, 1000 + i, 1090 + i));
	ck_assert_uint_eq(fx.ndone, LANES * HEADS);
	for (uint32_t lane = 0; lane < LANES; lane++)
		for (uint32_t i = 0; i < HEADS; i++)
			give(fx_proxy(nci_token(20, i, 3), nci_token(lane, i, 9), 1000, 2000));
	ck_assert_uint_eq(reconstruct_stats(fx.rc)->late, LANES * HEADS);
	fx_wait(&fx, 100000 * FX_MS);
	ck_assert_uint_eq(reconstruct_stats(fx.rc)->orphans, 0);
}

TEST(children_whose_head_never_comes_are_orphans)
{
	fx_recon_open(&fx, 6, FX_MASK_KERNEL);
	give(fx_kernel(101, 8, 0, 5000, 9000));
	fx_wait(&fx, 31000 * FX_MS);
	ck_assert_uint_eq(reconstruct_stats(fx.rc)->orphans, 1);
	ck_assert_uint_eq(fx.ndone, 0);
}

TEST(child_of_a_call_is_an_orphan)
{
	fx_recon_open(&fx, 6, FX_MASK_KERNEL);
	give(fx_coll_api(7, 0, FX_ALLREDUCE, 1024, 90));
	give(fx_kernel(101, 7, 0, 5000, 9000));
	ck_assert_uint_eq(reconstruct_stats(fx.rc)->orphans, 1);
}

/* Calls of several threads come in any order: they are kept as a sorted array would keep them. */
TEST_LOOP(newest_calls_are_told_in_the_order_in_which_they_were_made, 0, 4)
{
	struct called kept[RECONSTRUCT_CALLS] = { { .start_ns = 0 } };
	struct comm_progress progress;

	fx_recon_open(&fx, 6, FX_MASK_KERNEL);
	fx_seed((uint64_t)_i);
	for (uint64_t n = 1; n <= 200; n++) {
		uint64_t start = 1000 + 10 * n + fx_random() % 120;
		int at = RECONSTRUCT_CALLS - 1;

		give(fx_coll_api(n, 0, FX_ALLREDUCE, n, start));
		while (at >= 0 && kept[at].start_ns > start)
			at--;
		if (at >= 0) {
			memmove(kept, kept + 1, (size_t)at * sizeof(*kept));
			kept[at] = (struct called){ .start_ns = start, .count = n };
		}
		ck_assert(reconstruct_progress(&fx.a.p, 0, &progress));
		for (int i = 0; i < RECONSTRUCT_CALLS; i++) {
			ck_assert_uint_eq(progress.call[i].start_ns, kept[i].start_ns);
			ck_assert_uint_eq(progress.call[i].count, kept[i].count);
		}
	}
}

int main(void)
{
	return fx_run(NULL, teardown);
}
