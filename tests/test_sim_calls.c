/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The call sequences of a simulated NCCL, line by line: order, parents, threads,
 * masks and the flaws that plugins must live with.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "plugin/nccl_profiler.h"
#include "tests/fixture.h"
#include "tests/sim/player.h"
#include "tests/sim/probe.h"
#include "tests/sim/pxn.h"

#define TWO_NODES "nodes 2\npace none\ncomm w ranks 0,1 channels 1\n"
#define ONE_NODE "gpus 2\nthreads process\npace none\ncomm w ranks 0,1 channels 2\n"

static struct scenario *parse(const char *text)
{
	struct scenario *scn;
	char err[256];

	ck_assert_msg(!scenario_parse(&scn, "test", text, err, sizeof(err)), "%s", err);
	return scn;
}

/* Play process 0 of a scenario to the probe; the result of player_run(). */
static int play_version(const char *text, int version)
{
	struct scenario *scn = parse(text);
	struct player_plugin plugin = { probe_table(version), version };
	struct pace pace = { .factor = 0 };
	int r;

	scn->hold_ns = 0;
	r = player_run(scn, 0, &plugin, &pace, NULL);
	scenario_free(scn);
	return r;
}

static void play(const char *text, int mask)
{
	probe_reset(mask, 0);
	ck_assert_int_eq(play_version(text, 6), 0);
}

/* A thread's whole log; init and finalize aside. */
static void expect(int kind, const char *lines)
{
	const char *text = probe_text(kind, -1);

	ck_assert_msg(!strcmp(text, lines), "wanted:\n%s\ngot:\n%s", lines, text);
}

START_TEST(an_all_reduce_over_two_nodes_calls_in_the_documented_order)
{
	play(TWO_NODES "AllReduce w 512Ki float32\n", 0x7fff);
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
END_TEST

START_TEST(a_single_node_with_kernel_ch_alone_has_parents_and_no_proxy_op)
{
	play("processes 2\npace none\ncomm w ranks 0,1 channels 1\nAllReduce w 1Ki float32\n",
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
END_TEST

START_TEST(a_grouped_send_and_receive_share_one_launch_and_stop_together)
{
	play(TWO_NODES "chunk 64Ki\n"
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
END_TEST

START_TEST(the_proxy_takes_the_receive_of_a_pair_first)
{
	const char *text, *recv, *send;

	play(TWO_NODES "group\nSend w 1Ki float32 from 0 to 1\n"
	     "Send w 1Ki float32 from 1 to 0\nend\n", NCCL_PROXY_OP);
	text = probe_text(PROBE_PROXY, -1);
	recv = strstr(text, "ProxyOp S <P2p channel=1 peer=1 steps=1 send=0");
	send = strstr(text, "ProxyOp S <P2p channel=1 peer=1 steps=1 send=1");
	ck_assert_ptr_nonnull(recv);
	ck_assert_ptr_nonnull(send);
	ck_assert(recv < send);
}
END_TEST

START_TEST(a_ce_collective_is_a_nest_on_the_user_thread_and_counts_syncs)
{
	play(ONE_NODE "AllGather w 1Ki float32 ce\nAllGather w 1Ki float32 ce\n",
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
END_TEST

START_TEST(a_graph_replays_on_the_callback_thread_below_the_parents_of_its_capture)
{
	play(TWO_NODES "graph g\nAllReduce w 1Ki float32\nend\nreplay g 2\n",
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
END_TEST

START_TEST(a_graph_without_proxy_work_reports_once_at_capture)
{
	play(ONE_NODE "graph g\nAllReduce w 1Ki float32\nend\nreplay g 5\n", NCCL_COLL);
	ck_assert_int_eq(probe_count("Coll S"), 2);
	ck_assert_str_eq(probe_text(PROBE_CALLBACK, -1), "");
}
END_TEST

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

START_TEST(a_mask_brings_exactly_the_parents_that_nccl_implies)
{
	play(TWO_NODES "AllReduce w 1Ki float32\nSend w 1Ki float32 from 0 to 1\n"
	     "AllGather w 1Ki float32 ce\n", implied[_i].mask);
	expect_types(implied[_i].present, true);
	expect_types(implied[_i].absent, false);
}
END_TEST

START_TEST(an_operation_keeps_the_mask_it_was_posted_with)
{
	probe_reset(NCCL_KERNEL_CH, 0);
	probe_switch_mask(NCCL_COLL, 0);
	play_version(ONE_NODE "AllReduce w 1Ki float32\n", 6);
	ck_assert_int_eq(probe_count("KernelCh X"), 4);
}
END_TEST

START_TEST(a_mask_set_between_calls_counts_from_the_next_call_on)
{
	probe_reset(NCCL_COLL, 0);
	probe_switch_mask(NCCL_COLL_API, NCCL_KERNEL_CH);
	play_version(TWO_NODES "AllReduce w 1Ki float32\nAllReduce w 1Ki float32\n", 6);
	ck_assert_int_eq(probe_count("Coll S"), 2);
	ck_assert_int_eq(probe_count("KernelCh S"), 1);
}
END_TEST

START_TEST(the_last_coll_api_is_stopped_again_after_the_mask_is_cleared)
{
	probe_reset(NCCL_COLL_API, 0);
	probe_switch_mask(NCCL_COLL_API, 0);
	play_version(TWO_NODES "loop 3\nAllReduce w 1Ki float32\nend\n", 6);
	ck_assert_int_eq(probe_count("CollApi S"), 1);
	ck_assert_int_eq(probe_count("CollApi X"), 3);
	ck_assert_int_eq(probe_stale(), 2);
}
END_TEST

/* ---- handles ---- */

START_TEST(children_of_a_refused_event_start_without_a_parent_and_without_states)
{
	probe_reset(NCCL_PROXY_STEP, NCCL_PROXY_OP);
	play_version(TWO_NODES "AllReduce w 1Ki float32\n", 6);
	ck_assert_int_eq(probe_count("ProxyOp X"), 0);
	ck_assert_int_ge(probe_count("ProxyStep S <-"), 2);
	ck_assert_int_eq(probe_count("ProxyStep R"), 0);
	ck_assert_int_eq(probe_count("ProxyStep X"), probe_count("ProxyStep S"));
}
END_TEST

START_TEST(a_slot_that_is_not_written_gives_an_old_handle_back)
{
	probe_reset(NCCL_KERNEL_CH, 0);
	play_version(TWO_NODES "AllReduce w 1Ki float32\nAllReduce w 1Ki float32\n", 6);
	ck_assert_int_eq(probe_stale(), 0);
	probe_reset(NCCL_PROXY_CTRL, 0);
	probe_keep_slot(NCCL_PROXY_CTRL);
	play_version(TWO_NODES "AllReduce w 1Ki float32\n", 6);
	ck_assert_int_gt(probe_count("? X"), 0);
}
END_TEST

START_TEST(a_sender_that_waits_for_its_peer_records_it_again_and_again)
{
	play(TWO_NODES "late rank 1 by 1ms\nAllReduce w 1Ki float32\n", NCCL_PROXY_STEP);
	ck_assert_int_ge(probe_count("ProxyStep R 20"), 10);
}
END_TEST

START_TEST(a_receive_without_a_request_is_started_twice_and_stopped_once)
{
	play("nodes 2\npace none\ncomm w ranks 0,1 channels 4\nAllReduce w 1Ki float32\n",
	     NCCL_PROXY_STEP);
	ck_assert_int_eq(probe_count("ProxyStep S"), probe_count("ProxyStep X") + 1);
}
END_TEST

START_TEST(an_aborted_communicator_leaves_its_events_open)
{
	play(TWO_NODES "comm v ranks 0,1 channels 1\nabort comm w op 1\n"
	     "AllReduce w 4Mi float32\nAllReduce w 4Mi float32\nAllReduce w 4Mi float32\n"
	     "AllReduce v 1Ki float32\n", 0x7fff);
	ck_assert_int_eq(probe_count("Coll S"), 3);
	ck_assert_int_eq(probe_count("KernelCh S"), 3);
	ck_assert_int_eq(probe_count("KernelCh X"), 2);
	ck_assert_int_eq(probe_count("finalize"), 2);
}
END_TEST

START_TEST(a_stuck_step_starts_and_never_stops)
{
	probe_reset(NCCL_PROXY_STEP | NCCL_KERNEL_CH, 0);
	ck_assert_int_eq(play_version(TWO_NODES "stuck rank 0 comm w op 0 step 1 state net\n"
				      "AllReduce w 2Mi float32\n", 6), 1);
	ck_assert_ptr_nonnull(strstr(probe_text(PROBE_PROXY, 0), "ProxyStep R 9 "));
	ck_assert_int_eq(probe_count("KernelCh S"), 1);
	ck_assert_int_eq(probe_count("KernelCh X"), 0);
	ck_assert_int_gt(probe_count("ProxyStep S"), probe_count("ProxyStep X"));
}
END_TEST

/* ---- sends carried out elsewhere ---- */

struct pxn_process {
	pthread_t thread;
	const struct scenario *scn;
	struct pxn *pxn;
	int process;
};

static void *play_pxn(void *arg)
{
	struct pxn_process *p = arg;
	struct player_plugin plugin = { probe_table(6), 6 };
	struct pace pace = { .factor = 0 };

	player_run(p->scn, p->process, &plugin, &pace, p->pxn);
	return NULL;
}

START_TEST(with_pxn_the_neighbour_carries_out_a_send_in_the_context_of_its_issuer)
{
	struct scenario *scn = parse("nodes 2\nprocesses 2\npace none\n"
				     "comm w ranks 0-3 channels 1 pxn\n"
				     "loop 5\nAllReduce w 1Ki float32\nend\n");
	struct pxn_process p[4];
	struct pxn *pxn;

	probe_reset(NCCL_PROXY_STEP, 0);
	ck_assert_int_eq(pxn_new(&pxn, scn), 0);
	for (int i = 0; i < 4; i++) {
		p[i] = (struct pxn_process){ .scn = scn, .pxn = pxn, .process = i };
		pthread_create(&p[i].thread, NULL, play_pxn, &p[i]);
	}
	for (int i = 0; i < 4; i++)
		pthread_join(p[i].thread, NULL);
	ck_assert_int_eq(probe_mixed_threads(), 2);	/* those of ranks 0 and 2 */
	ck_assert_int_eq(probe_count("ProxyOp S <Coll channel=0 peer=2 steps=1 send=1"), 5);
	ck_assert_int_eq(probe_count("ProxyOp S"), 20);
	ck_assert_int_eq(probe_count("ProxyOp X"), 20);
	ck_assert_int_eq(probe_stale(), 0);
	pxn_free(pxn, scn);
	scenario_free(scn);
}
END_TEST

/* ---- versions ---- */

static const char versions_text[] = TWO_NODES
	"AllReduce w 1Ki float32\nSend w 1Ki float32 from 0 to 1\n";

START_TEST(a_library_of_any_version_gets_the_same_operations)
{
	probe_reset(0xff, 0);
	play_version(versions_text, _i);
	ck_assert_int_eq(probe_count("Coll S"), 1);
	ck_assert_int_eq(probe_count("P2p S"), 1);
	ck_assert_int_eq(probe_count("ProxyOp S"), 3);
	ck_assert_int_eq(probe_count("ProxyOp X"), 3);
	ck_assert_int_eq(probe_count("KernelCh S"), _i >= 3 ? 2 : 0);
	ck_assert_int_eq(probe_count("KernelCh R 22"), _i >= 4 ? 2 : 0);
	ck_assert_int_eq(probe_count("ProxyOp R 19"), _i >= 4 ? 3 : 0);
	ck_assert_int_eq(probe_count("CollApi S"), _i >= 5 ? 1 : 0);
	ck_assert_int_eq(probe_count(_i >= 5 ? "Coll S <CollApi" : "Coll S <Group"), 1);
	ck_assert_int_eq(probe_strangers(), 0);
}
END_TEST

START_TEST(versions_one_to_three_get_no_sizes_and_no_identity_from_a_new_nccl)
{
	probe_reset(0x3f, 0);
	play_version(versions_text, 1);
	ck_assert_int_eq(probe_count("Coll S <Group 4 seq=0 count=1024 7 1 2 hash=0"), 1);
	ck_assert_int_eq(probe_count("ProxyStep R 9 0"), probe_count("ProxyStep R 9"));
}
END_TEST

START_TEST(group_api_states_come_with_garbage_through_the_conversion_for_v5)
{
	probe_reset(NCCL_GROUP_API, 0);
	play_version(versions_text, 5);
	ck_assert_int_eq(probe_count("GroupApi R 23 null"), 0);
	ck_assert_int_eq(probe_count("GroupApi R 23"), 2);
}
END_TEST

START_TEST(an_old_nccl_has_operation_states_and_steps_without_arguments)
{
	probe_reset(0xff, 0);
	play_version("nccl 2.26\n" TWO_NODES "AllReduce w 1Ki float32\n", 3);
	ck_assert_int_gt(probe_count("ProxyOp R 2"), 0);
	ck_assert_int_gt(probe_count("ProxyOp R 7"), 0);
	ck_assert_int_gt(probe_count("ProxyStep R 8 null"), 0);
	ck_assert_int_gt(probe_count("ProxyStep R 9 -1"), 0);
	ck_assert_int_eq(probe_count("ProxyOp R 19"), 0);
	ck_assert_int_eq(probe_count("KernelCh R"), 0);
	ck_assert_int_gt(probe_count("ProxyCtrl R 13"), 8);
}
END_TEST

START_TEST(broadcast_is_an_api_call_and_nothing_more_from_2_29_on)
{
	play(TWO_NODES "Broadcast w 1Ki float32\n", 0x7fff);
	ck_assert_int_eq(probe_count("CollApi S"), 1);
	ck_assert_int_eq(probe_count("Coll S"), 0);
	play(TWO_NODES "allgatherv off\nBroadcast w 1Ki float32\n", 0x7fff);
	ck_assert_int_eq(probe_count("Coll S <CollApi group=Group Broadcast seq=0 count=4096 "
				     "ncclInt8"), 1);
}
END_TEST

START_TEST(a_self_send_in_place_is_an_api_call_and_nothing_more)
{
	play(TWO_NODES "Send w 1Ki float32 from 0 to 0 inplace\n", 0x7fff);
	ck_assert_int_eq(probe_count("P2pApi S"), 2);
	ck_assert_int_eq(probe_count("P2p S"), 0);
	play(TWO_NODES "Send w 1Ki float32 from 0 to 0\n", 0x7fff);
	ck_assert_int_eq(probe_count("P2p S"), 2);
	ck_assert_int_eq(probe_count("KernelCh"), 0);
	ck_assert_int_eq(probe_count("ProxyOp"), 0);
}
END_TEST

int main(void)
{
	const struct fx_test tests[] = {
		FX_TEST(an_all_reduce_over_two_nodes_calls_in_the_documented_order),
		FX_TEST(a_single_node_with_kernel_ch_alone_has_parents_and_no_proxy_op),
		FX_TEST(a_grouped_send_and_receive_share_one_launch_and_stop_together),
		FX_TEST(the_proxy_takes_the_receive_of_a_pair_first),
		FX_TEST(a_ce_collective_is_a_nest_on_the_user_thread_and_counts_syncs),
		FX_TEST(a_graph_replays_on_the_callback_thread_below_the_parents_of_its_capture),
		FX_TEST(a_graph_without_proxy_work_reports_once_at_capture),
		FX_LOOP(a_mask_brings_exactly_the_parents_that_nccl_implies, 0, FX_COUNT(implied)),
		FX_TEST(an_operation_keeps_the_mask_it_was_posted_with),
		FX_TEST(a_mask_set_between_calls_counts_from_the_next_call_on),
		FX_TEST(the_last_coll_api_is_stopped_again_after_the_mask_is_cleared),
		FX_TEST(children_of_a_refused_event_start_without_a_parent_and_without_states),
		FX_TEST(a_slot_that_is_not_written_gives_an_old_handle_back),
		FX_TEST(a_sender_that_waits_for_its_peer_records_it_again_and_again),
		FX_TEST(a_receive_without_a_request_is_started_twice_and_stopped_once),
		FX_TEST(an_aborted_communicator_leaves_its_events_open),
		FX_TEST(a_stuck_step_starts_and_never_stops),
		FX_TEST(with_pxn_the_neighbour_carries_out_a_send_in_the_context_of_its_issuer),
		FX_LOOP(a_library_of_any_version_gets_the_same_operations, 1, 7),
		FX_TEST(versions_one_to_three_get_no_sizes_and_no_identity_from_a_new_nccl),
		FX_TEST(group_api_states_come_with_garbage_through_the_conversion_for_v5),
		FX_TEST(an_old_nccl_has_operation_states_and_steps_without_arguments),
		FX_TEST(broadcast_is_an_api_call_and_nothing_more_from_2_29_on),
		FX_TEST(a_self_send_in_place_is_an_api_call_and_nothing_more),
	};

	return fx_run(NULL, NULL, tests, FX_COUNT(tests));
}
