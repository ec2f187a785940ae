/* SPDX-License-Identifier: Apache-2.0 */
/* Who may change what NCCL is asked for where several threads send and receive. */
#include <pthread.h>

#include "tests/fx_steer.h"

START_TEST(who_sends_is_watched_again_only_when_nobody_else_has_sent_for_a_while)
{
	init();
	make_fast();
	send_recv();
	go_to_burst();
	send_recv();
	ck_assert(!is_on());
	pass(29 * SECOND);
	go_to_burst();
	send_recv();
	ck_assert(!is_on());
	pass(2 * SECOND);
	go_to_burst();
	send_recv();
	ck_assert(is_on());
	ck_assert_uint_eq(reason(), NCI_REASON_NONE);
}
END_TEST

/* An inner ncclGroupEnd: a Send is posted and its Recv is not. */
START_TEST(group_that_has_launched_nothing_switches_nothing)
{
	void *group;

	setenv("NCCLINSP_SETTLE", "0", 1);
	init();
	make_fast();
	send_recv();
	go_to_burst();
	group = start(NCCL_GROUP_API, NULL, 2, false);
	play(NCCL_P2P_API, "Send");
	stop_group(group);
	ck_assert(!is_on());
	ck_assert_uint_eq(s->waits, 1);
	group = start(NCCL_GROUP_API, NULL, 2, false);
	play(NCCL_P2P_API, "Recv");
	play(NCCL_P2P, "Send");
	stop_group(group);
	ck_assert(is_on());
}
END_TEST

START_TEST(lone_call_of_the_sender_switches)
{
	void *group;

	setenv("NCCLINSP_SETTLE", "0", 1);
	init();
	make_fast();
	send_recv();
	go_to_burst();
	group = start(NCCL_GROUP_API, NULL, 1, false);	/* launched by another thread */
	play(NCCL_COLL_API, "AllReduce");
	stop_group(group);
	ck_assert(is_on());
}
END_TEST

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

static void on_another_thread(void *(*run)(void *))
{
	pthread_t thread;

	ck_assert_int_eq(pthread_create(&thread, NULL, run, NULL), 0);
	pthread_join(thread, NULL);
}

START_TEST(other_threads_do_not_switch_for_the_sender)
{
	setenv("NCCLINSP_SETTLE", "0", 1);
	init();
	make_fast();
	send_recv();
	go_to_burst();
	on_another_thread(other_collective);
	ck_assert(!is_on());
	ck_assert_uint_eq(s->waits, 1);
	send_recv();
	ck_assert(is_on());
	pass(SECOND);
	on_another_thread(other_collective);
	ck_assert(is_on());
	send_recv();
	ck_assert(!is_on());
}
END_TEST

START_TEST(two_senders_leave_it_as_it_is_for_good)
{
	bool on = _i;

	setenv("NCCLINSP_SETTLE", "0", 1);
	init();
	make_fast();
	atomic_store(&s->switched, 0);		/* long ago */
	send_recv();
	go_to_burst();
	if (on)
		send_recv();
	atomic_store(&s->switched, 0);
	ck_assert_int_eq(is_on(), on);
	on_another_thread(other_sender);
	for (int i = 0; i < 100; i++) {
		pass(777 * MS);
		send_recv();
		ck_assert_int_eq(is_on(), on);
	}
	ck_assert_uint_eq(reason(), NCI_REASON_THREADS);
	ck_assert_uint_eq(told()->kernels, on ? NCI_KERNELS_ALWAYS : NCI_KERNELS_NEVER);
}
END_TEST

/* Its first call may have read the mask before the change. */
START_TEST(first_send_right_after_a_change_sets_what_cannot_hang)
{
	bool sends = _i & 1, on = _i & 2;
	void *group;

	init();
	make_fast();
	if (on) {
		go_to_burst();
		collective();
	}
	ck_assert_int_eq(is_on(), on);
	group = start(NCCL_GROUP_API, NULL, 2, false);
	play(NCCL_P2P_API, sends ? "Send" : "Recv");
	ck_assert_int_eq(is_on(), sends);
	ck_assert_uint_eq(process_self.ring.live->mask, (uint32_t)mask);
	(void)group;
}
END_TEST

START_TEST(first_send_long_after_a_change_sets_nothing)
{
	init();
	make_fast();
	atomic_store(&s->switched, clock_ticks(process_self.clock) - (UINT64_C(1) << 32));
	start(NCCL_GROUP_API, NULL, 2, false);
	play(NCCL_P2P_API, "Send");
	ck_assert(!is_on());
}
END_TEST

/* That thread's clock was looked at before the other one's, which was faster then. */
START_TEST(change_that_came_after_the_look_at_the_clock_is_a_change)
{
	init();
	make_fast();
	atomic_store(&s->switched, clock_ticks(process_self.clock) + (UINT64_C(1) << 40));
	start(NCCL_GROUP_API, NULL, 2, false);
	ck_assert(!process_thread.steer.watched);
	play(NCCL_P2P_API, "Send");
	ck_assert(is_on());
	ck_assert(!steer_launched(clock_ticks(process_self.clock)));
}
END_TEST

static void *first_send(void *arg)
{
	start(NCCL_GROUP_API, NULL, 2, false);
	play(NCCL_P2P_API, arg);
	return NULL;
}

static void on_another_thread_call(char *func)
{
	pthread_t thread;

	ck_assert_int_eq(pthread_create(&thread, NULL, first_send, func), 0);
	pthread_join(thread, NULL);
}

/* Somebody found that nobody sends, and was not let run until somebody did. */
START_TEST(change_that_was_decided_before_a_first_send_is_not_made_after_it)
{
	bool second = _i;
	uint32_t before;

	setenv("NCCLINSP_SAMPLE", "all", 1);
	init();
	if (second)
		send_recv();
	ck_assert(is_on());
	ck_assert(steer_try(s));
	before = steer_asked(s);
	on_another_thread_call("Send");
	ck_assert(!steer_store(&process_self, before, before & ~(uint32_t)NCCL_KERNEL_CH, 1));
	steer_leave(s);
	ck_assert(is_on());
	ck_assert_uint_eq(told()->bursts, 1);
	ck_assert_uint_eq(process_self.ring.live->mask, (uint32_t)mask);
	collective();		/* what was altered is as it was */
	ck_assert_int_eq(mask, (int)before);
}
END_TEST

/* The first one is within its first group: a Send that is watched waits for its Recv. */
START_TEST(second_first_send_leaves_to_the_first_one_what_it_needs)
{
	init();
	make_fast();
	start(NCCL_GROUP_API, NULL, 2, false);
	play(NCCL_P2P_API, "Send");
	ck_assert(is_on());
	on_another_thread_call("Recv");
	ck_assert(is_on());
}
END_TEST

/* At off there is but the one bit, and without it nothing would ever be on again. */
START_TEST(first_send_leaves_the_groups)
{
	setenv("NCCLINSP_LEVEL", "off", 1);
	init();
	start(NCCL_GROUP_API, NULL, 2, false);
	atomic_store(&process_self.wanted, NCCL_P2P_API);
	play(NCCL_P2P_API, "Send");
	ck_assert_int_eq(mask, NCCL_GROUP_API);
}
END_TEST

int main(void)
{
	const struct fx_test tests[] = {
		FX_TEST(who_sends_is_watched_again_only_when_nobody_else_has_sent_for_a_while),
		FX_TEST(group_that_has_launched_nothing_switches_nothing),
		FX_TEST(lone_call_of_the_sender_switches),
		FX_TEST(other_threads_do_not_switch_for_the_sender),
		FX_LOOP(two_senders_leave_it_as_it_is_for_good, 0, 2),
		FX_LOOP(first_send_right_after_a_change_sets_what_cannot_hang, 0, 4),
		FX_TEST(first_send_long_after_a_change_sets_nothing),
		FX_TEST(change_that_came_after_the_look_at_the_clock_is_a_change),
		FX_LOOP(change_that_was_decided_before_a_first_send_is_not_made_after_it, 0, 2),
		FX_TEST(second_first_send_leaves_to_the_first_one_what_it_needs),
		FX_TEST(first_send_leaves_the_groups),
	};

	return fx_run(setup, NULL, tests, FX_COUNT(tests));
}
