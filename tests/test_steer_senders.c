/* SPDX-License-Identifier: Apache-2.0 */
/* Who may change what NCCL is asked for where threads send and receive. */
#include "tests/fx_steer.h"

/* An inner ncclGroupEnd: a Send is posted and its Recv is not. */
TEST(group_of_sends_that_has_launched_nothing_switches_nothing)
{
	void *group;

	init();
	send_recv();
	go_to_burst();
	group = start(NCCL_GROUP_API, NULL, 2, false);
	play(NCCL_P2P_API, "Send");
	stop_group(group);
	ck_assert(!is_on());
	group = start(NCCL_GROUP_API, NULL, 2, false);
	play(NCCL_P2P_API, "Recv");
	play(NCCL_P2P, "Send");
	stop_group(group);
	ck_assert(is_on());
}

TEST(lone_call_of_the_sender_switches)
{
	void *group;

	init();
	send_recv();
	go_to_burst();
	group = start(NCCL_GROUP_API, NULL, 1, false);	/* launched by another thread */
	play(NCCL_P2P_API, "Send");
	stop_group(group);
	ck_assert(is_on());
}

static void *other_collective(void *arg)
{
	(void)arg;
	collective();
	return NULL;
}

static void *other_sender(void *arg)
{
	(void)arg;
	send_recv();
	return NULL;
}

TEST(other_threads_do_not_switch_for_the_sender)
{
	init();
	send_recv();
	go_to_burst();
	on_another_thread(other_collective, NULL);
	ck_assert(!is_on());
	ck_assert_uint_eq(s->waits, 1);
	send_recv();
	ck_assert(is_on());
	leave_burst();
	on_another_thread(other_collective, NULL);
	ck_assert(is_on());
	send_recv();
	ck_assert(!is_on());
}

TEST_LOOP(two_senders_leave_it_as_it_is_for_good, 0, 2)
{
	bool on = _i;

	init();
	send_recv();
	go_to_burst();
	if (on)
		send_recv();
	ck_assert_int_eq(is_on(), on);
	on_another_thread(other_sender, NULL);
	for (int i = 0; i < 100; i++) {
		pass(777 * MS);
		send_recv();
		ck_assert_int_eq(is_on(), on);
	}
	ck_assert_uint_eq(seen(), NCI_SEEN_SENDERS);
}

/* What must be off at once is: a job that never ends would be for sure. */
TEST(broadcasts_of_several_roots_end_it_whoever_sends)
{
	void *group;

	setenv("NCCLINSP_KERNELS", "always", 1);
	init();
	send_recv();
	on_another_thread(other_sender, NULL);
	group = start(NCCL_GROUP_API, NULL, 2, false);
	broadcast(context, 0);
	broadcast(context, 1);
	ck_assert(!is_on());
	stop_group(group);
}

/* A second communicator comes when the process has ended its first: its threads are the same. */
TEST(senders_are_known_beyond_the_last_communicator)
{
	init();
	send_recv();
	on_another_thread(other_sender, NULL);
	ncclProfiler_v6.finalize(context);
	init();
	go_to_burst();
	collective();
	ck_assert(!is_on());
	ck_assert_uint_eq(seen(), NCI_SEEN_SENDERS);
}

int main(void)
{
	return fx_run(setup, NULL);
}
