/* SPDX-License-Identifier: Apache-2.0 */
/* The call sequences of a simulated NCCL, line by line: order, parents, threads, masks. */
#include <stdio.h>
#include <string.h>

#include "nccl/profiler.h"
#include "tests/fixture.h"
#include "tests/fixture_sim.h"
#include "tests/sim/probe.h"

/* A thread's whole log; init and finalize aside. */
static void expect(int kind, const char *lines)
{
	const char *text = probe_text(kind, -1);

	ck_assert_msg(!strcmp(text, lines), "wanted:\n%s\ngot:\n%s", lines, text);
}

TEST(an_all_reduce_over_two_nodes_calls_in_the_documented_order)
{
	fx_play(FX_TWO_NODES "AllReduce w 512Ki float32\n", 0x7fff);
	expect(PROBE_UNIT,
	       "GroupApi S <- depth=1 graph=0\n"
	       "GroupApi R 23 null\n"
	       "CollApi S <GroupApi AllReduce 524288 ncclFloat32 graph=0\n"
	       "CollApi X\n"
	       "GroupApi R 24 null\n"
	       "KernelLaunch S <GroupApi\n"
	       "KernelLaunch X\n"
	       "Group S <-\n"
	       "Coll S <CollApi group=Group AllReduce seq=0 count=524288 ncclFloat32 RING SIMPLE "
	       "channels=1\n"
	       "Coll X\n"
	       "Group X\n"
	       "GroupApi X\n");
	expect(PROBE_PROXY,
	       "ProxyCtrl S <-\nProxyCtrl R 13\nProxyCtrl X\n"
	       "ProxyCtrl S <-\nProxyCtrl R 15\nProxyCtrl R 16\nProxyCtrl X\n"
	       "ProxyCtrl S <-\nProxyCtrl R 17\n"
	       "ProxyOp S <Coll channel=0 peer=1 steps=4 send=0\n"
	       "ProxyOp S <Coll channel=0 peer=1 steps=4 send=1\n"
	       "ProxyCtrl R 18 3\nProxyCtrl X\n"
	       "ProxyOp R 19\nProxyStep S <ProxyOp step=0\nProxyStep R 10\n"
	       "ProxyOp R 19\nProxyStep S <ProxyOp step=0\nProxyStep R 8\n"
	       "ProxyCtrl S <-\nProxyCtrl R 14\nProxyCtrl X\n"
	       "ProxyStep S <ProxyOp step=1\nProxyStep R 10\n"
	       "ProxyStep S <ProxyOp step=1\nProxyStep R 8\n"
	       "ProxyStep S <ProxyOp step=2\nProxyStep R 10\n"
	       "ProxyStep S <ProxyOp step=2\nProxyStep R 8\n"
	       "ProxyStep S <ProxyOp step=3\nProxyStep R 10\n"
	       "ProxyStep S <ProxyOp step=3\nProxyStep R 8\n"
	       "ProxyStep R 20\nProxyStep R 9 524288\nKernelCh S <Coll channel=0\n"
	       "ProxyStep X\nProxyStep R 11 524288\n"
	       "ProxyStep R 20\nProxyStep R 9 524288\nProxyStep R 12\nProxyStep X\n"
	       "ProxyStep X\nProxyStep R 11 524288\n"
	       "ProxyStep R 20\nProxyStep R 9 524288\nProxyStep R 12\nProxyStep X\n"
	       "ProxyStep X\nProxyStep R 11 524288\n"
	       "ProxyStep R 20\nProxyStep R 9 524288\nProxyStep R 12\nProxyStep X\n"
	       "ProxyStep X\nProxyOp X\nProxyStep R 11 524288\nProxyStep R 12\n"
	       "ProxyStep X\nProxyOp X\n"
	       "KernelCh R 22\nKernelCh X\n"
	       "ProxyCtrl S <-\nProxyCtrl R 13\nProxyCtrl X\n"
	       "ProxyCtrl S <-\nProxyCtrl R 15\nProxyCtrl R 16\nProxyCtrl X\n");
	ck_assert_int_eq(probe_stale(), 0);
	ck_assert_int_eq(probe_strangers(), 0);
}

TEST(a_single_node_with_kernel_ch_alone_has_parents_and_no_proxy_op)
{
	fx_play("processes 2\npace none\ncomm w ranks 0,1 channels 1\nAllReduce w 1Ki float32\n",
		NCCL_KERNEL_CH);
	expect(PROBE_UNIT,
	       "GroupApi S <- depth=1 graph=0\nGroupApi R 23 null\n"
	       "CollApi S <GroupApi AllReduce 1024 ncclFloat32 graph=0\nCollApi X\n"
	       "GroupApi R 24 null\n"
	       "Group S <-\n"
	       "Coll S <CollApi group=Group AllReduce seq=0 count=1024 ncclFloat32 RING SIMPLE "
	       "channels=1\n"
	       "Coll X\nGroup X\nGroupApi X\n");
	expect(PROBE_PROXY, "KernelCh S <Coll channel=0\nKernelCh R 22\nKernelCh X\n");
}

TEST(a_grouped_send_and_receive_share_one_launch_and_stop_together)
{
	fx_play(FX_TWO_NODES "chunk 64Ki\n"
		"group\nSend w 16Ki float32 from 0 to 1\nSend w 16Ki float32 from 1 to 0\nend\n",
		0x7fff & ~NCCL_PROXY_CTRL);
	expect(PROBE_UNIT,
	       "GroupApi S <- depth=2 graph=0\nGroupApi R 23 null\n"
	       "P2pApi S <GroupApi Send 16384 ncclFloat32\nP2pApi X\n"
	       "P2pApi S <GroupApi Recv 16384 ncclFloat32\nP2pApi X\n"
	       "GroupApi R 24 null\n"
	       "KernelLaunch S <GroupApi\nKernelLaunch X\n"
	       "Group S <-\n"
	       "P2p S <P2pApi group=Group Send peer=1 count=16384 channels=1\n"
	       "P2p S <P2pApi group=Group Recv peer=1 count=16384 channels=1\n"
	       "P2p X\nP2p X\nGroup X\nGroupApi X\n");
	ck_assert_int_eq(probe_count("KernelCh S <P2p"), 2);
	ck_assert_int_eq(probe_count("ProxyOp S <P2p"), 2);
}

#define SUM(count) "AllReduce w " count " float32\n"
#define CALL(count) "CollApi S <GroupApi AllReduce " count " ncclFloat32 graph=0\nCollApi X\n"

TEST(groups_that_are_open_before_the_first_call_are_counted)
{
	fx_play(FX_TWO_NODES "group\ngroup\n" SUM("1") "end\n" SUM("2") "end\n",
		NCCL_COLL_API | NCCL_KERNEL_LAUNCH);
	expect(PROBE_UNIT,
	       "GroupApi S <- depth=3 graph=0\nGroupApi R 23 null\n" CALL("1") CALL("2")
	       "GroupApi R 24 null\nKernelLaunch S <GroupApi\nKernelLaunch X\nGroupApi X\n");
}

TEST(a_group_that_opens_after_the_first_call_ends_the_event_of_the_outer_one)
{
	fx_play(FX_TWO_NODES "group\n" SUM("1") "group\n" SUM("2") "end\n" SUM("3") "end\n",
		NCCL_COLL_API | NCCL_KERNEL_LAUNCH);
	expect(PROBE_UNIT,
	       "GroupApi S <- depth=2 graph=0\nGroupApi R 23 null\n" CALL("1") CALL("2")
	       "GroupApi R 24 null\nGroupApi X\n"
	       "GroupApi S <- depth=2 graph=0\nGroupApi R 23 null\n" CALL("3")
	       "GroupApi R 24 null\nKernelLaunch S <GroupApi\nKernelLaunch X\nGroupApi X\n");
}

TEST(the_proxy_takes_the_receive_of_a_pair_first)
{
	const char *text, *recv, *send;

	fx_play(FX_TWO_NODES "group\nSend w 1Ki float32 from 0 to 1\n"
		"Send w 1Ki float32 from 1 to 0\nend\n", NCCL_PROXY_OP);
	text = probe_text(PROBE_PROXY, -1);
	recv = strstr(text, "ProxyOp S <P2p channel=0 peer=1 steps=1 send=0");
	send = strstr(text, "ProxyOp S <P2p channel=0 peer=1 steps=1 send=1");
	ck_assert_ptr_nonnull(recv);
	ck_assert_ptr_nonnull(send);
	ck_assert(recv < send);
}

TEST(a_chain_has_one_direction_at_its_ends)
{
	fx_play(FX_TWO_NODES "nccl 2.28\nBroadcast w 1Ki float32 root 1\n", NCCL_PROXY_OP);
	ck_assert_int_eq(probe_count("ProxyOp S <Coll channel=0 peer=1 steps=1 send=0"), 1);
	ck_assert_int_eq(probe_count("ProxyOp S"), 1);
	fx_play(FX_TWO_NODES "nccl 2.28\nReduce w 1Ki float32 root 1\n", NCCL_PROXY_OP);
	ck_assert_int_eq(probe_count("ProxyOp S <Coll channel=0 peer=1 steps=1 send=1"), 1);
	ck_assert_int_eq(probe_count("ProxyOp S"), 1);
}

TEST(a_ce_collective_is_a_nest_on_the_user_thread_and_counts_syncs)
{
	fx_play(FX_ONE_NODE "AllGather w 1Ki float32 ce\nAllGather w 1Ki float32 ce\n",
		NCCL_CE_COLL | NCCL_CE_SYNC | NCCL_CE_BATCH);
	ck_assert_ptr_nonnull(strstr(probe_text(PROBE_UNIT, 0),
		"GroupApi R 24 null\n"
		"CeColl S <CollApi AllGather seq=0 count=4096 ncclInt8\n"
		"CeSync S <CeColl complete=0 ranks=2\nCeSync X\n"
		"CeBatch S <CeColl ops=2 bytes=8192\nCeBatch X\n"
		"CeSync S <CeColl complete=1 ranks=2\nCeSync X\n"
		"CeColl X\n"));
	ck_assert_int_eq(probe_count("CeColl S <CollApi AllGather seq=2"), 2);
	ck_assert_int_eq(probe_count("Coll S"), 0);
	ck_assert_int_eq(probe_count("KernelLaunch"), 0);
}

TEST(a_graph_replays_on_the_callback_thread_below_the_parents_of_its_capture)
{
	fx_play(FX_TWO_NODES "graph g\nAllReduce w 1Ki float32\nend\nreplay g 2\n",
		NCCL_KERNEL_CH | NCCL_KERNEL_LAUNCH);
	expect(PROBE_UNIT,
	       "GroupApi S <- depth=1 graph=1\nGroupApi R 23 null\n"
	       "CollApi S <GroupApi AllReduce 1024 ncclFloat32 graph=1\nCollApi X\n"
	       "GroupApi R 24 null\n"
	       "KernelLaunch S <GroupApi\nKernelLaunch X\nGroupApi X\n");
	expect(PROBE_CALLBACK,
	       "Group S <-\n"
	       "Coll S <CollApi group=Group AllReduce seq=0 count=1024 ncclFloat32 RING SIMPLE "
	       "channels=1\nColl X\nGroup X\n"
	       "Group S <-\n"
	       "Coll S <CollApi group=Group AllReduce seq=1 count=1024 ncclFloat32 RING SIMPLE "
	       "channels=1\nColl X\nGroup X\n");
	ck_assert_int_eq(probe_count("KernelCh X"), 2);
}

TEST(a_graph_without_proxy_work_reports_once_at_capture)
{
	fx_play(FX_ONE_NODE "graph g\nAllReduce w 1Ki float32\nend\nreplay g 5\n", NCCL_COLL);
	ck_assert_int_eq(probe_count("Coll S"), 2);
	ck_assert_str_eq(probe_text(PROBE_CALLBACK, -1), "");
}

/* ---- masks ---- */

static const struct { int mask; const char *present, *absent; } implied[] = {
	{ 0,			"", "GroupApi CollApi Group Coll ProxyOp ProxyStep ProxyCtrl" },
	{ NCCL_GROUP_API,	"GroupApi", "CollApi Group Coll ProxyOp KernelCh" },
	{ NCCL_COLL_API,	"GroupApi CollApi", "Group Coll ProxyOp KernelCh" },
	{ NCCL_KERNEL_LAUNCH,	"GroupApi KernelLaunch", "CollApi Group Coll" },
	{ NCCL_GROUP,		"GroupApi Group", "CollApi Coll" },
	{ NCCL_COLL,		"GroupApi CollApi Group Coll",
				"P2p ProxyOp KernelCh KernelLaunch" },
	{ NCCL_P2P,		"GroupApi P2pApi Group P2p", "CollApi Coll ProxyOp" },
	{ NCCL_P2P_API,		"GroupApi P2pApi", "Group P2p CollApi" },
	{ NCCL_PROXY_OP,	"GroupApi CollApi P2pApi Group Coll P2p ProxyOp",
				"ProxyStep KernelCh ProxyCtrl" },
	{ NCCL_PROXY_STEP,	"GroupApi CollApi Group Coll ProxyOp ProxyStep", "KernelCh" },
	{ NCCL_NET_PLUGIN,	"GroupApi CollApi Group Coll ProxyOp ProxyStep", "KernelCh" },
	{ NCCL_KERNEL_CH,	"GroupApi CollApi P2pApi Group Coll P2p KernelCh",
				"ProxyOp ProxyStep KernelLaunch" },
	{ NCCL_PROXY_CTRL,	"ProxyCtrl", "GroupApi CollApi Group Coll ProxyOp" },
	{ NCCL_CE_SYNC,		"GroupApi CollApi CeColl CeSync", "Group Coll CeBatch" },
};

static void expect_types(const char *list, bool wanted)
{
	char copy[256], words[64], *save = NULL;

	snprintf(copy, sizeof(copy), "%s", list);
	for (char *w = strtok_r(copy, " ", &save); w; w = strtok_r(NULL, " ", &save)) {
		snprintf(words, sizeof(words), "%s S ", w);
		ck_assert_msg(wanted == (probe_count(words) > 0), "%s %s", w,
			      wanted ? "is missing" : "is there");
	}
}

TEST_LOOP(a_mask_brings_exactly_the_parents_that_nccl_implies, 0, FX_COUNT(implied))
{
	fx_play(FX_TWO_NODES "AllReduce w 1Ki float32\nSend w 1Ki float32 from 0 to 1\n"
		"AllGather w 1Ki float32 ce\n", implied[_i].mask);
	expect_types(implied[_i].present, true);
	expect_types(implied[_i].absent, false);
}

TEST(an_operation_keeps_the_mask_it_was_posted_with)
{
	probe_reset(NCCL_KERNEL_CH, 0);
	probe_switch_mask(NCCL_COLL, 0);
	fx_play_version(FX_ONE_NODE "AllReduce w 1Ki float32\n", 6);
	ck_assert_int_eq(probe_count("KernelCh X"), 4);
}

TEST(a_mask_set_between_calls_counts_from_the_next_call_on)
{
	probe_reset(NCCL_COLL, 0);
	probe_switch_mask(NCCL_COLL_API, NCCL_KERNEL_CH);
	fx_play_version(FX_TWO_NODES "AllReduce w 1Ki float32\nAllReduce w 1Ki float32\n", 6);
	ck_assert_int_eq(probe_count("Coll S"), 2);
	ck_assert_int_eq(probe_count("KernelCh S"), 1);
}

TEST(the_last_coll_api_is_stopped_again_after_the_mask_is_cleared)
{
	probe_reset(NCCL_COLL_API, 0);
	probe_switch_mask(NCCL_COLL_API, 0);
	fx_play_version(FX_TWO_NODES "loop 3\nAllReduce w 1Ki float32\nend\n", 6);
	ck_assert_int_eq(probe_count("CollApi S"), 1);
	ck_assert_int_eq(probe_count("CollApi X"), 3);
	ck_assert_int_eq(probe_stale(), 2);
}

int main(void)
{
	return fx_run(NULL, NULL);
}
