/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a simulated NCCL does that a plugin would not expect: handles that are
 * refused, stale or garbage, work of others, other releases and interfaces.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "nccl/profiler.h"
#include "tests/fixture.h"
#include "tests/fixture_sim.h"
#include "tests/sim/player.h"
#include "tests/sim/probe.h"
#include "tests/sim/pxn.h"

/* ---- handles ---- */

TEST(children_of_a_refused_event_start_without_a_parent_and_without_states)
{
	probe_reset(NCCL_PROXY_STEP, NCCL_PROXY_OP);
	fx_play_version(FX_TWO_NODES "AllReduce w 1Ki float32\n", 6);
	ck_assert_int_eq(probe_count("ProxyOp X"), 0);
	ck_assert_int_ge(probe_count("ProxyStep S <-"), 2);
	ck_assert_int_eq(probe_count("ProxyStep R"), 0);
	ck_assert_int_eq(probe_count("ProxyStep X"), probe_count("ProxyStep S"));
}

TEST(a_slot_that_is_not_written_gives_an_old_handle_back)
{
	probe_reset(NCCL_KERNEL_CH, 0);
	fx_play_version(FX_TWO_NODES "AllReduce w 1Ki float32\nAllReduce w 1Ki float32\n", 6);
	ck_assert_int_eq(probe_stale(), 0);
	probe_reset(NCCL_PROXY_CTRL, 0);
	probe_keep_slot(NCCL_PROXY_CTRL);
	fx_play_version(FX_TWO_NODES "AllReduce w 1Ki float32\n", 6);
	ck_assert_int_gt(probe_count("? X"), 0);
}

TEST(a_sender_that_waits_for_its_peer_records_it_again_and_again)
{
	fx_play(FX_TWO_NODES "late rank 1 by 1ms\nAllReduce w 1Ki float32\n", NCCL_PROXY_STEP);
	ck_assert_int_ge(probe_count("ProxyStep R 20"), 10);
}

TEST(a_receive_without_a_request_is_started_twice_and_stopped_once)
{
	fx_play("nodes 2\npace none\ncomm w ranks 0,1 channels 4\nAllReduce w 1Ki float32\n",
		NCCL_PROXY_STEP);
	ck_assert_int_eq(probe_count("ProxyStep S"), probe_count("ProxyStep X") + 1);
}

/* ---- the network library's own events ---- */

#define NET "netplugin ib\n" FX_TWO_NODES "AllReduce w 512Ki float32\n"
#define NET_EXTERNAL "netplugin external\n" FX_TWO_NODES "AllReduce w 512Ki float32\n"

TEST(infiniband_stops_each_of_its_events_twice)
{
	int steps;

	fx_play(NET, 0x7fff);
	steps = probe_count("ProxyStep X");
	ck_assert_int_gt(steps, 0);
	ck_assert_int_eq(probe_count("NetPlugin S <ProxyStep id=10001"), steps);
	ck_assert_int_eq(probe_count("NetPlugin X"), 2 * steps);
	ck_assert_int_eq(probe_stale(), steps);
	ck_assert_int_eq(probe_strangers(), 0);
	ck_assert_ptr_nonnull(strstr(probe_text(PROBE_PROXY, 0),
				     "ProxyStep R 20\nNetPlugin S <ProxyStep id=10001\n"
				     "ProxyStep R 9 "));
	ck_assert_ptr_nonnull(strstr(probe_text(PROBE_PROXY, 0),
				     "NetPlugin X\nNetPlugin X\nProxyStep R 11 "));
}

TEST(an_external_net_plugin_updates_and_stops_at_once)
{
	fx_play(NET_EXTERNAL, 0x7fff);
	ck_assert_int_gt(probe_count("NetPlugin S <ProxyStep id=7fff0001"), 0);
	ck_assert_int_eq(probe_count("NetPlugin R 21"), probe_count("NetPlugin S"));
	ck_assert_int_eq(probe_count("NetPlugin X"), probe_count("NetPlugin S"));
	ck_assert_int_eq(probe_stale(), 0);
}

TEST(a_net_plugin_stops_and_updates_what_was_never_started)
{
	fx_play(NET_EXTERNAL, NCCL_PROXY_STEP);
	ck_assert_int_eq(probe_count("NetPlugin"), 0);
	ck_assert_int_eq(probe_count("? R 21"), probe_count("ProxyStep X"));
	ck_assert_int_eq(probe_count("? X"), probe_count("ProxyStep X"));
}

/* ---- what never ends ---- */

TEST(an_aborted_communicator_leaves_its_events_open)
{
	fx_play(FX_TWO_NODES "comm v ranks 0,1 channels 1\nabort comm w op 1\n"
		"AllReduce w 4Mi float32\nAllReduce w 4Mi float32\nAllReduce w 4Mi float32\n"
		"AllReduce v 1Ki float32\n", 0x7fff);
	ck_assert_int_eq(probe_count("Coll S"), 3);
	ck_assert_int_eq(probe_count("KernelCh S"), 3);
	ck_assert_int_eq(probe_count("KernelCh X"), 2);
	ck_assert_int_eq(probe_count("finalize"), 2);
}

TEST(a_stuck_step_starts_and_never_stops)
{
	probe_reset(NCCL_PROXY_STEP | NCCL_KERNEL_CH, 0);
	ck_assert_int_eq(fx_play_version(FX_TWO_NODES "stuck rank 0 comm w op 0 step 1 state net\n"
					 "AllReduce w 2Mi float32\n", 6), 1);
	ck_assert_ptr_nonnull(strstr(probe_text(PROBE_PROXY, 0), "ProxyStep R 9 "));
	ck_assert_int_eq(probe_count("KernelCh S"), 1);
	ck_assert_int_eq(probe_count("KernelCh X"), 0);
	ck_assert_int_gt(probe_count("ProxyStep S"), probe_count("ProxyStep X"));
}

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
	struct player_shared shared = PLAYER_ALONE;
	struct pace pace = { .factor = 0 };

	shared.pxn = p->pxn;
	player_run(p->scn, p->process, &plugin, &pace, &shared);
	return NULL;
}

TEST(with_pxn_the_neighbour_carries_out_a_send_in_the_context_of_its_issuer)
{
	struct scenario *scn = fx_scenario("nodes 2\nprocesses 2\npace none\n"
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
	ck_assert_int_eq(probe_count("ProxyOp S <Coll channel=0 peer=2 steps=12 send=1"), 5);
	ck_assert_int_eq(probe_count("ProxyOp S"), 20);
	ck_assert_int_eq(probe_count("ProxyOp X"), 20);
	ck_assert_int_eq(probe_stale(), 0);
	pxn_free(pxn, scn);
	scenario_free(scn);
}

/* ---- versions ---- */

static const char versions_text[] = FX_TWO_NODES
	"AllReduce w 1Ki float32\nSend w 1Ki float32 from 0 to 1\n";

TEST_LOOP(a_library_of_any_version_gets_the_same_operations, 1, NCCL_PROFILER_VERSIONS + 1)
{
	probe_reset(0xff, 0);
	fx_play_version(versions_text, _i);
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

TEST(versions_one_to_three_get_no_sizes_and_no_identity_from_a_new_nccl)
{
	probe_reset(0x3f, 0);
	fx_play_version(versions_text, 1);
	ck_assert_int_eq(probe_count("Coll S <Group 4 seq=0 count=1024 7 1 2 hash=0"), 1);
	ck_assert_int_eq(probe_count("ProxyStep R 9 0"), probe_count("ProxyStep R 9"));
}

TEST(group_api_states_come_with_garbage_through_the_conversion_for_v5)
{
	probe_reset(NCCL_GROUP_API, 0);
	fx_play_version(versions_text, 5);
	ck_assert_int_eq(probe_count("GroupApi R 23 null"), 0);
	ck_assert_int_eq(probe_count("GroupApi R 23"), 2);
}

TEST(an_old_nccl_has_operation_states_and_steps_without_arguments)
{
	probe_reset(0xff, 0);
	fx_play_version("nccl 2.26\n" FX_TWO_NODES "AllReduce w 1Ki float32\n", 3);
	ck_assert_int_gt(probe_count("ProxyOp R 2"), 0);
	ck_assert_int_gt(probe_count("ProxyOp R 7"), 0);
	ck_assert_int_gt(probe_count("ProxyStep R 8 null"), 0);
	ck_assert_int_gt(probe_count("ProxyStep R 9 -1"), 0);
	ck_assert_int_eq(probe_count("ProxyOp R 19"), 0);
	ck_assert_int_eq(probe_count("KernelCh R"), 0);
	ck_assert_int_gt(probe_count("ProxyCtrl R 13"), 8);
}

TEST(some_releases_stop_few_receive_steps)
{
	const char *text = "AllReduce w 512Ki float32\n";	/* four steps each way */
	char release[300];

	for (int minor = 23; minor <= 27; minor++) {
		bool flawed = minor >= 24 && minor <= 26;

		snprintf(release, sizeof(release), "nccl 2.%d\n" FX_TWO_NODES "%s", minor, text);
		probe_reset(NCCL_PROXY_STEP, 0);
		fx_play_version(release, minor == 23 ? 1 : 2);
		ck_assert_int_eq(probe_count("ProxyStep S"), 8);
		ck_assert_int_eq(probe_count("ProxyStep X"), flawed ? 5 : 8);
	}
}

TEST(broadcast_is_an_api_call_and_nothing_more_from_2_29_on)
{
	fx_play(FX_TWO_NODES "Broadcast w 1Ki float32\n", 0x7fff);
	ck_assert_int_eq(probe_count("CollApi S"), 1);
	ck_assert_int_eq(probe_count("Coll S"), 0);
	fx_play(FX_TWO_NODES "allgatherv off\nBroadcast w 1Ki float32\n", 0x7fff);
	ck_assert_int_eq(probe_count("Coll S <CollApi group=Group Broadcast seq=0 count=4096 "
				     "ncclInt8"), 1);
}

TEST(what_the_network_adds_up_begins_and_is_never_heard_of_again)
{
	fx_play(FX_TWO_NODES "loop 3\nAllReduce w 1Mi float32 algo collnet_direct\nend\n", 0x7fff);
	ck_assert_int_eq(probe_count("ProxyOp S <Coll channel=0 peer=2 "), 6);
	ck_assert_int_eq(probe_count("ProxyOp"), 6);
	ck_assert_int_eq(probe_count("ProxyStep"), 0);
	ck_assert_int_eq(probe_count("KernelCh X"), 3);
	ck_assert_ptr_nonnull(strstr(probe_text(PROBE_UNIT, 0),
				     "COLLNET_DIRECT SIMPLE channels=0"));
}

TEST(a_self_send_in_place_is_an_api_call_and_nothing_more)
{
	fx_play(FX_TWO_NODES "Send w 1Ki float32 from 0 to 0 inplace\n", 0x7fff);
	ck_assert_int_eq(probe_count("P2pApi S"), 2);
	ck_assert_int_eq(probe_count("P2p S"), 0);
	fx_play(FX_TWO_NODES "Send w 1Ki float32 from 0 to 0\n", 0x7fff);
	ck_assert_int_eq(probe_count("P2p S"), 2);
	ck_assert_int_eq(probe_count("KernelCh"), 0);
	ck_assert_int_eq(probe_count("ProxyOp"), 0);
}

int main(void)
{
	return fx_run(NULL, NULL);
}
