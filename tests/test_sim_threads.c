/* SPDX-License-Identifier: Apache-2.0 */
/* Which thread of a simulated NCCL does what, and in which order. */
#include <stdio.h>
#include <string.h>

#include "nccl/profiler.h"
#include "tests/fixture.h"
#include "tests/fixture_sim.h"
#include "tests/sim/probe.h"

#define TWO_OPS "AllReduce w 1Ki float32\nAllReduce w 1Ki float32\n"

/* ---- init ---- */

TEST(a_thread_of_one_rank_makes_its_communicator_itself)
{
	fx_play("gpus 2\npace none\ncomm w ranks 0,1\n" TWO_OPS, NCCL_COLL);
	ck_assert_int_eq(probe_count("init"), 2);
	ck_assert_int_ne(probe_thread("init", 0), probe_thread("init", 1));
	for (int i = 0; i < 2; i++) {
		int t = probe_thread("GroupApi S", i);

		ck_assert(t == probe_thread("init", 0) || t == probe_thread("init", 1));
	}
}

TEST(ranks_that_share_a_thread_are_made_on_threads_of_their_own)
{
	fx_play("gpus 3\nthreads process\npace none\ncomm w ranks 0-2\n" TWO_OPS, NCCL_COLL);
	ck_assert_int_eq(probe_count("init"), 3);
	for (int i = 0; i < 3; i++) {
		ck_assert_int_ne(probe_thread("init", i), probe_thread("init", (i + 1) % 3));
		ck_assert_int_ne(probe_thread("init", i), probe_thread("GroupApi S", 0));
	}
}

/* ---- launches ---- */

/* In the log of application threads, is `first` before `second`? */
static bool comes_before(const char *first, const char *second)
{
	const char *text = probe_text(PROBE_UNIT, -1);
	const char *a = strstr(text, first), *b = strstr(text, second);

	ck_assert_msg(a && b, "%s or %s is missing in\n%s", first, second, text);
	return a < b;
}

TEST(the_last_rank_of_a_thread_is_launched_first)
{
	const char *ops = FX_ONE_NODE "Send w 1Ki float32 from 0 to 1\n";
	const char *send = "P2p S <P2pApi group=Group Send";
	const char *recv = "P2p S <P2pApi group=Group Recv";

	fx_play(ops, NCCL_P2P | NCCL_KERNEL_LAUNCH);
	ck_assert(comes_before(recv, send));
	fx_play("launch 6us forward\n" FX_ONE_NODE "Send w 1Ki float32 from 0 to 1\n",
		NCCL_P2P | NCCL_KERNEL_LAUNCH);
	ck_assert(comes_before(send, recv));
}

#define NONBLOCKING "processes 2\npace none\ncomm w ranks 0,1 nonblocking\n"

TEST(each_group_of_a_nonblocking_communicator_is_launched_by_a_new_thread)
{
	fx_play(NONBLOCKING TWO_OPS, NCCL_COLL | NCCL_KERNEL_LAUNCH);
	ck_assert_int_eq(probe_count("Coll S <CollApi"), 2);
	ck_assert_int_eq(probe_thread("CollApi S", 0), probe_thread("CollApi S", 1));
	ck_assert_int_ne(probe_thread("Coll S", 0), probe_thread("CollApi S", 0));
	ck_assert_int_ne(probe_thread("Coll S", 0), probe_thread("Coll S", 1));
	ck_assert_int_eq(probe_thread("Coll S", 1), probe_thread("KernelLaunch S", 1));
}

TEST(a_nonblocking_call_is_over_before_its_launch)
{
	fx_play(NONBLOCKING "AllReduce w 1Ki float32\n", NCCL_COLL | NCCL_KERNEL_LAUNCH);
	ck_assert(comes_before("GroupApi R 24", "GroupApi X"));
	ck_assert(comes_before("GroupApi X", "KernelLaunch S <GroupApi"));
	ck_assert_int_eq(probe_count("GroupApi X"), 1);
}

static const struct { const char *op; int warps; } warps[] = {
	{ "AllReduce w 16Mi float32", 17 },
	{ "AllReduce w 16Mi float32 proto ll128", 20 },
	{ "AllReduce w 16Mi float32 proto ll", 16 },
	{ "AllReduce w 1 float32", 3 },
	{ "AllReduce w 4Ki float32", 9 },
};

TEST_LOOP(few_bytes_have_few_warps, 0, FX_COUNT(warps))
{
	char text[200];

	snprintf(text, sizeof(text), FX_TWO_NODES "%s\n", warps[_i].op);
	fx_play(text, NCCL_COLL);
	ck_assert_int_eq(probe_warps(), warps[_i].warps);
}

/* ---- the progress thread ---- */

TEST(a_progress_thread_idles_whenever_it_has_to_wait)
{
	const char *text = "nodes 2\npace 1000\ncomm w ranks 0,1 channels 1\n"
			   "AllReduce w 512Ki float32\n";

	fx_play(text, NCCL_PROXY_STEP | NCCL_PROXY_CTRL);
	ck_assert_int_ge(probe_count("ProxyCtrl R 13"), 5);
	ck_assert_int_eq(probe_count("ProxyCtrl R 13"), probe_count("ProxyCtrl R 14") + 1);
	fx_play(FX_TWO_NODES "AllReduce w 512Ki float32\n", NCCL_PROXY_STEP | NCCL_PROXY_CTRL);
	ck_assert_int_eq(probe_count("ProxyCtrl R 13"), 2);
}

#define PARENT "processes 2\npace none\ncomm w ranks 0,1 channels 1\n"
#define BOTH "AllReduce w 1 int8\nAllReduce v 1 int8\n"

TEST(communicators_may_share_a_progress_thread)
{
	fx_play(PARENT "comm v ranks 0,1 channels 1\n" BOTH, NCCL_KERNEL_CH | NCCL_PROXY_CTRL);
	ck_assert_int_ne(probe_thread("KernelCh S", 0), probe_thread("KernelCh S", 1));
	fx_play(PARENT "comm v ranks 0,1 channels 1 share w\n" BOTH,
		NCCL_KERNEL_CH | NCCL_PROXY_CTRL);
	ck_assert_int_eq(probe_count("KernelCh X"), 2);
	ck_assert_int_eq(probe_thread("KernelCh S", 0), probe_thread("KernelCh S", 1));
	ck_assert_int_eq(probe_strangers(), 0);
}

TEST(a_shared_progress_thread_outlives_the_communicator_it_was_made_for)
{
	int last;

	fx_play(PARENT "comm v ranks 0,1 channels 1 share w\n" BOTH, NCCL_PROXY_CTRL);
	last = probe_count("ProxyCtrl X") - 1;
	ck_assert_int_gt(probe_place("ProxyCtrl X", last), probe_place("finalize", 0));
}

int main(void)
{
	return fx_run(NULL, NULL);
}
