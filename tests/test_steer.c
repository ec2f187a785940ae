/* SPDX-License-Identifier: Apache-2.0 */
/* When kernels are timed, and what ends it for good. */
#include <sys/mman.h>

#include "tests/fx_steer.h"

/* ---- bursts --------------------------------------------------------------------------- */

TEST(without_a_daemon_bursts_are_so_short_that_no_cost_matters)
{
	uint64_t on_ns = 0;

	init();
	ck_assert(!is_on());
	for (uint64_t at = 0; at < 64 * SECOND; at += 10 * MS) {
		pass(10 * MS);
		collective();
		on_ns += is_on() * 10 * MS;
	}
	ck_assert_uint_eq(on_ns, 4 * 80 * MS);
	ck_assert_uint_eq(told()->switches, 8);
	ck_assert_uint_eq(told()->mode, NCI_MODE_BURST);
}

TEST(bursts_are_those_that_the_daemon_plans)
{
	file.burst_period_ms = 2000;
	file.burst_length_us = 500000;
	file.burst_until_mono_ns = clock_ns(CLOCK_MONOTONIC) + 20 * SECOND;
	write_file();
	init();
	leave_burst();
	collective();
	ck_assert(!is_on());
	pass(MS);
	collective();
	ck_assert(is_on());
	ck_assert_uint_eq(process_self.ring.live->mask, (uint32_t)mask & ~1u);
	pass(498 * MS);
	collective();
	ck_assert(is_on());
	pass(2 * MS);
	collective();
	ck_assert(!is_on());
	pass(20 * SECOND);		/* the plan has run out */
	go_to_burst();
	pass(100 * MS);
	collective();
	ck_assert(!is_on());
	ck_assert_uint_eq(s->period_ns, STEER_PERIOD_MS * MS);
}

TEST_LOOP(plan_of_a_whole_period_is_always_and_one_of_nothing_never, 0, 2)
{
	bool whole = _i;

	file.burst_period_ms = 1000;
	file.burst_length_us = whole ? 1000000 : 0;
	file.burst_until_mono_ns = clock_ns(CLOCK_MONOTONIC) + 60 * SECOND;
	write_file();
	init();
	for (int i = 0; i < 500; i++) {
		pass(37 * MS);
		collective();
		ck_assert_int_eq(is_on(), whole);
	}
	ck_assert_uint_eq(told()->switches, 0);	/* it is so from the first work on */
}

/* Start-up is when graphs are captured, threads begin to send and buffers are spread. */
TEST(nothing_is_timed_before_the_process_has_been_active_for_a_while)
{
	setenv("NCCLINSP_SETTLE", "30", 1);
	init();
	run_for(2 * SECOND);
	ck_assert_uint_eq((told()->settles_mono_ns - now.mono_ns) / SECOND, 27);
	pass(600 * SECOND);		/* a model is loaded: that counts for a second */
	run_for(26 * SECOND);
	go_to_burst();
	collective();
	ck_assert(!is_on());
	ck_assert_uint_ne(told()->settles_mono_ns, 0);
	run_for(2 * SECOND);
	go_to_burst();
	collective();
	ck_assert(is_on());
	ck_assert_uint_eq(told()->settles_mono_ns, 0);
}

TEST_LOOP(process_that_is_never_timed_does_not_settle, 0, 2)
{
	setenv("NCCLINSP_SETTLE", "30", 1);
	setenv(_i ? "NCCLINSP_LEVEL" : "NCCLINSP_KERNELS", _i ? "ops" : "never", 1);
	init();
	collective();
	ck_assert(!is_on());
	ck_assert_uint_eq(told()->settles_mono_ns, 0);
}

/* ---- the other modes ------------------------------------------------------------------- */

TEST_LOOP(always_is_always_and_never_is_never, 0, 2)
{
	bool always = _i;

	setenv("NCCLINSP_KERNELS", always ? "always" : "never", 1);
	setenv("NCCLINSP_SETTLE", "30", 1);
	init();
	ck_assert_int_eq(is_on(), always);
	for (int i = 0; i < 300; i++) {
		pass(333 * MS);
		send_recv();
		ck_assert_int_eq(is_on(), always);
	}
	ck_assert_uint_eq(told()->switches, 0);
	ck_assert_uint_eq(told()->mode, always ? NCI_MODE_ALWAYS : NCI_MODE_NEVER);
}

TEST(first_seconds_are_over_once_and_for_all)
{
	setenv("NCCLINSP_KERNELS", "first 5s", 1);
	init();
	ck_assert(is_on());
	pass(100 * SECOND);
	collective();			/* the first group begins the time */
	ck_assert(is_on());
	pass(4 * SECOND);
	collective();
	ck_assert(is_on());
	ck_assert_uint_eq(seen(), 0);
	pass(SECOND);
	collective();
	ck_assert(!is_on());
	ck_assert_uint_eq(seen(), NCI_SEEN_END);
	run_for(10 * SECOND);
	ck_assert(!is_on());
	ck_assert_uint_eq(told()->switches, 1);
	ck_assert_uint_eq(told()->mode_s, 5);
}

TEST_LOOP(daemon_says_it_for_those_whose_environment_does_not, 0, 2)
{
	bool named = _i;

	if (named)
		setenv("NCCLINSP_KERNELS", "never", 1);
	file.mode = NCI_MODE_FIRST;
	file.mode_s = 7;
	write_file();
	init();
	ck_assert_uint_eq(told()->mode, named ? NCI_MODE_NEVER : NCI_MODE_FIRST);
	ck_assert_int_eq(is_on(), !named);
}

TEST_LOOP(words_that_are_none_are_told_and_ignored, 0, 10)
{
	static const struct {
		const char *name, *value;
	} bad[] = {
		{ "NCCLINSP_KERNELS", "sometimes" }, { "NCCLINSP_KERNELS", "first" },
		{ "NCCLINSP_KERNELS", "first 5m" }, { "NCCLINSP_KERNELS", "first 86401" },
		{ "NCCLINSP_KERNELS", "first " }, { "NCCLINSP_KERNELS", "first -1" },
		{ "NCCLINSP_SETTLE", "soon" }, { "NCCLINSP_SETTLE", "1.5" },
		{ "NCCLINSP_SETTLE", "-1" }, { "NCCLINSP_SETTLE", "99999999999999999999" },
	};

	setenv(bad[_i].name, bad[_i].value, 1);
	init();
	ck_assert(s->env.misspelt);
	ck_assert_uint_eq(told()->mode, NCI_MODE_BURST);
	ck_assert_uint_eq(s->env.settle_s, strcmp(bad[_i].name, "NCCLINSP_SETTLE") ? 0 : 30);
}

/* ---- NCCL 2.31 -------------------------------------------------------------------------- */

static void init_v7(void)
{
	leave_real_burst();
	ck_assert_int_eq(ncclProfiler_v7.init(&context, 1, &mask, "c", 1, 2, 0, NULL), 0);
	begin_at_a_time();
}

TEST(nccl_that_cannot_be_switched_is_timed_first_and_then_never_again)
{
	init_v7();
	ck_assert_int_eq(mask & NCCL_KERNELS, NCCL_KERNELS);
	ck_assert_uint_eq(told()->mode, NCI_MODE_FIRST);
	ck_assert_uint_eq(told()->mode_s, 60);
	run_for(59 * SECOND);
	ck_assert_int_eq(mask & NCCL_KERNELS, NCCL_KERNELS);
	run_for(2 * SECOND);
	ck_assert_int_eq(mask & NCCL_KERNELS, 0);
	ncclProfiler_v7.init(&(void *){ NULL }, 2, &mask, "d", 1, 2, 0, NULL);
	run_for(100 * SECOND);
	ck_assert_int_eq(mask & NCCL_KERNELS, 0);
	ck_assert_uint_eq(told()->switches, 1);
}

TEST_LOOP(levels_do_not_touch_kernels_there, 0, 2)
{
	bool always = _i;

	setenv("NCCLINSP_KERNELS", always ? "always" : "never", 1);
	write_entry(NCI_LEVEL_NET, NCI_CONTROL_KEEP, 0);
	init_v7();
	for (uint32_t i = 0; i < 8; i++) {
		write_entry(NCI_LEVEL_OPS + i % 3, i % 2 ? NCI_SAMPLE_ALL : NCI_SAMPLE_BUDGET, 0);
		pass(ORDERS_LOOK_NS);
		collective();
		ck_assert_uint_eq(process_self.ring.live->level, NCI_LEVEL_OPS + i % 3);
		ck_assert_int_eq(mask & NCCL_KERNELS, always ? NCCL_KERNELS : 0);
	}
	ck_assert_uint_eq(told()->switches, 0);
	write_entry(NCI_LEVEL_OFF, NCI_CONTROL_KEEP, 0);
	pass(ORDERS_LOOK_NS);
	collective();
	ck_assert_int_eq(mask, NCCL_GROUP_API);
	write_entry(NCI_LEVEL_NET, NCI_CONTROL_KEEP, 0);
	pass(ORDERS_LOOK_NS);
	collective();
	ck_assert_int_eq(mask & NCCL_KERNELS, 0);
}

static void *other_sender(void *arg)
{
	(void)arg;
	send_recv();
	return NULL;
}

/* There no job waits for a stamp: what must end does, when nobody is within a group. */
TEST(several_senders_do_not_keep_it_on_there)
{
	void *group;

	init_v7();
	send_recv();
	on_another_thread(other_sender, NULL);
	ck_assert_uint_eq(seen(), NCI_SEEN_SENDERS);
	pass(60 * SECOND);
	group = start(NCCL_GROUP_API, NULL, 2, false);
	on_another_thread(other_sender, NULL);
	ck_assert(is_on());
	stop_group(group);
	ck_assert(!is_on());
}

/* ---- what makes NCCL's counts drift ------------------------------------------------------- */

static void *group_of(int depth)
{
	return start(NCCL_GROUP_API, NULL, depth, false);
}

/* It is not counted, and all behind it is told with other works' times; nothing hangs. */
TEST(any_broadcast_drifts_there_and_ends_nothing)
{
	struct nccl_descr_v7 d = { .type = NCCL_COLL_API };
	void *handle;

	init_v7();
	d.collApi.func = "Broadcast";
	ncclProfiler_v7.startEvent(context, &handle, &d);
	ncclProfiler_v7.stopEvent(handle);
	run_for(SECOND);
	ck_assert_uint_ne(process_self.ring.comms[0].drift, 0);
	ck_assert_int_eq(mask & NCCL_KERNELS, NCCL_KERNELS);
	ck_assert_uint_eq(seen(), 0);
}

/* What was not watched since the last look is not known. */
TEST(mask_from_outside_drifts_there)
{
	uint64_t before;

	init_v7();
	run_for(SECOND);
	before = clock_ticks(process_self.clock);
	ck_assert_uint_eq(process_self.ring.comms[0].drift, 0);
	mask = 0xffff;
	collective();
	ck_assert_uint_ne(process_self.ring.comms[0].drift, 0);
	ck_assert_uint_lt(process_self.ring.comms[0].drift, before);
	ck_assert_uint_eq(seen(), NCI_SEEN_OUTSIDE);
}

TEST(broadcasts_of_several_roots_in_one_group_end_it_at_once)
{
	uint64_t drift;
	void *group;

	setenv("NCCLINSP_KERNELS", "always", 1);
	init();
	group = group_of(2);
	broadcast(context, 0);
	broadcast(context, 0);
	ck_assert(is_on());
	broadcast(context, 1);
	ck_assert(!is_on());		/* for what else comes in this group */
	stop_group(group);
	drift = process_self.ring.comms[0].drift;
	ck_assert_uint_ne(drift, 0);
	ck_assert_uint_eq(process_self.ring.live->comms_drifted, 1);
	for (int i = 0; i < 100; i++) {
		run_for(SECOND);
		ck_assert(!is_on());
	}
	ck_assert_uint_eq(seen(), NCI_SEEN_ALLGATHERV);
}

/* A group with one root each is an ordinary collective, however many there are. */
TEST(broadcasts_of_one_root_each_end_nothing)
{
	void *other, *group;

	setenv("NCCLINSP_KERNELS", "always", 1);
	init();
	ncclProfiler_v6.init(&other, 2, &mask, "d", 1, 2, 1, NULL);
	for (int root = 0; root < 8; root++) {
		group = group_of(2);
		broadcast(context, root);
		broadcast(other, root + 1);
		broadcast(context, root);
		collective();		/* launched: the group is over */
		stop_group(group);
		group = group_of(1);
		broadcast(context, 7 - root);
		stop_group(group);
	}
	ck_assert(is_on());
	ck_assert_uint_eq(seen(), 0);
	ck_assert_uint_eq(process_self.ring.comms[0].drift, 0);
}

/* An inner ncclGroupEnd ends the GroupApi, and the outermost group goes on. */
TEST_LOOP(roots_on_either_side_of_an_inner_end_are_of_one_group, 0, 2)
{
	bool late = _i;
	void *group;

	setenv("NCCLINSP_KERNELS", "always", 1);
	init();
	group = group_of(3);
	broadcast(context, 0);
	stop_group(group);
	if (late)			/* NCCL was at it for long: it has launched */
		process_thread.steer.over = true;
	group = group_of(2);
	broadcast(context, 1);
	stop_group(group);
	ck_assert_int_eq(is_on(), late);
}

/* What such a process does once it does again, with several roots. */
TEST_LOOP(broadcast_beside_a_send_ends_it, 0, 2)
{
	bool send_first = _i;
	void *group;

	setenv("NCCLINSP_KERNELS", "always", 1);
	init();
	group = group_of(2);
	if (send_first)
		play(NCCL_P2P_API, "Send");
	broadcast(context, 0);
	if (!send_first)
		play(NCCL_P2P_API, "Send");
	play(NCCL_P2P_API, "Recv");
	play(NCCL_P2P, "Send");
	ck_assert(is_on());		/* a Send that is watched wants its Recv to be */
	stop_group(group);
	ck_assert(!is_on());
	ck_assert_uint_eq(seen(), NCI_SEEN_ALLGATHERV);
	ck_assert_uint_eq(process_self.ring.comms[0].drift, 0);
}

TEST(older_nccl_has_no_allgatherv)
{
	struct nccl_descr_v5 d = { .type = NCCL_COLL_API };
	void *handle;

	setenv("NCCLINSP_KERNELS", "always", 1);
	ncclProfiler_v5.init(&context, 1, &mask, "c", 1, 2, 0, NULL);
	for (int root = 0; root < 2; root++) {
		d.collApi.func = "Broadcast";
		d.collApi.root = root;
		ncclProfiler_v5.startEvent(context, &handle, &d);
		ncclProfiler_v5.stopEvent(handle);
	}
	ck_assert(is_on());
	ck_assert_uint_eq(seen(), 0);
}

static void send_to_self(void)
{
	struct nccl_descr_v6 d = { .type = NCCL_P2P, .rank = 1 };
	void *group = group_of(2), *handle;

	play(NCCL_P2P_API, "Send");
	play(NCCL_P2P_API, "Recv");
	d.p2p.func = "Send";
	d.p2p.peer = 1;
	ncclProfiler_v6.startEvent(context, &handle, &d);
	ncclProfiler_v6.stopEvent(handle);
	stop_group(group);
}

/* As long as every work is watched none is waited for in vain: a pause would be the harm. */
TEST_LOOP(rank_that_sends_to_itself_is_not_timed_again_after_a_pause, 0, 2)
{
	bool always = _i;

	if (always)
		setenv("NCCLINSP_KERNELS", "always", 1);
	init();
	go_to_burst();
	collective();
	ck_assert(is_on());
	send_to_self();
	ck_assert(is_on());
	ck_assert_uint_ne(process_self.ring.comms[0].drift, 0);
	for (int i = 0; i < 3; i++) {
		leave_burst();
		send_to_self();
		ck_assert_int_eq(is_on(), always);
		go_to_burst();
		collective();
		ck_assert_int_eq(is_on(), always);
	}
	decide(false);
	ck_assert_uint_eq(seen(), NCI_SEEN_SELF);
}

TEST_LOOP(captured_graphs_leave_it_as_it_is_for_good, 0, 2)
{
	bool on = _i;

	init();
	if (on) {
		go_to_burst();
		collective();
	}
	stop_group(start(NCCL_GROUP_API, NULL, 1, true));
	for (int i = 0; i < 200; i++) {
		pass(777 * MS);
		collective();
		ck_assert_int_eq(is_on(), on);
	}
	ck_assert_uint_eq(seen(), NCI_SEEN_GRAPHS);
}

/* ---- other NCCLs ------------------------------------------------------------------------- */

TEST(second_nccl_pins_both)
{
	int other = 0;
	void *c;

	init();
	collective();
	ncclProfiler_v6.init(&c, 2, &other, "d", 1, 2, 0, NULL);
	ck_assert_int_eq(other & NCCL_KERNEL_CH, 0);
	ck_assert_int_ne(other & NCCL_PROXY_STEP, 0);
	for (int i = 0; i < 100; i++) {
		pass(777 * MS);
		collective();
		ck_assert(!is_on());
	}
	ck_assert_uint_eq(seen(), NCI_SEEN_LIBRARIES);
}

/* The first NCCL's library is closed, and the other one's job goes on. */
TEST(mask_of_an_nccl_that_is_gone_is_not_touched)
{
	int *own = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	void *first, *second, *third;
	int other = 0;

	ck_assert_ptr_ne(own, MAP_FAILED);
	ncclProfiler_v6.init(&first, 1, own, "c", 1, 2, 0, NULL);
	ncclProfiler_v6.init(&second, 1, own, "d", 1, 2, 0, NULL);
	ncclProfiler_v6.init(&third, 2, &other, "e", 1, 2, 0, NULL);
	ncclProfiler_v6.finalize(second);
	ck_assert_ptr_eq(atomic_load(&s->mask), own);
	ncclProfiler_v6.finalize(first);
	ck_assert_int_eq(munmap(own, 4096), 0);
	context = third;
	begin_at_a_time();
	send_recv();
	go_to_burst();
	send_recv();
	ncclProfiler_v6.init(&first, 2, &other, "f", 1, 2, 0, NULL);
	ck_assert_int_eq(other & NCCL_KERNEL_CH, 0);	/* as it was: groups may be under way */
	ck_assert_ptr_null(atomic_load(&s->mask));
	ncclProfiler_v6.finalize(first);
	ncclProfiler_v6.finalize(third);
}

TEST(mask_is_forgotten_with_the_last_communicator)
{
	void *group, *first;

	init();
	collective();
	first = context;
	group = group_of(1);
	ncclProfiler_v6.finalize(first);
	mask = 0x77;		/* another library's memory by now */
	go_to_burst();
	stop_group(group);
	ck_assert_int_eq(mask, 0x77);
	init();
	ck_assert_int_eq(mask & NCCL_COLL, NCCL_COLL);
}

/* ---- somebody else's mask ------------------------------------------------------------------ */

TEST_LOOP(mask_that_somebody_else_has_set_is_an_order, 0, 5)
{
	static const int orders[] = { 0, 0x42, 0x7fff, NCCL_GROUP_API, 0x02 };
	int order = orders[_i];
	bool always = _i % 2;

	if (always)
		setenv("NCCLINSP_KERNELS", "always", 1);
	init();
	collective();
	mask = order;
	for (int i = 0; i < 200; i++) {
		pass(777 * MS);
		collective();
		ck_assert_int_eq(mask, order);
	}
	ck_assert(seen() & NCI_SEEN_OUTSIDE);
	ck_assert_uint_eq(told()->source, NCI_SOURCE_OUTSIDE);
	ck_assert_uint_ne(told()->since, 0);
	ck_assert_uint_eq(process_self.ring.live->level, NCI_LEVEL_MASK);
	mask = 0x4;		/* and the next one too */
	collective();
	ck_assert_int_eq(mask, 0x4);
	ck_assert_uint_eq(process_self.ring.live->mask, 0x4);
}

/* NCCL 2.31 writes the mask back after each init, as it has read it before. */
TEST(our_own_last_value_is_nobodys_order)
{
	int before;

	init();
	collective();
	before = mask;
	go_to_burst();
	collective();
	ck_assert(is_on());
	mask = before;
	collective();
	ck_assert(is_on());
	ck_assert_uint_eq(seen(), 0);
}

TEST(what_else_is_asked_for_from_outside_is_recorded)
{
	void *ctrl;

	init();
	collective();
	ck_assert_ptr_null(start(NCCL_PROXY_CTRL, NULL, 0, false));
	mask |= NCCL_PROXY_CTRL;
	collective();
	ctrl = start(NCCL_PROXY_CTRL, NULL, 0, false);
	ck_assert_ptr_nonnull(ctrl);
	ncclProfiler_v6.stopEvent(ctrl);
}

int main(void)
{
	return fx_run(setup, NULL);
}
