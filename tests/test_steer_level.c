/* SPDX-License-Identifier: Apache-2.0 */
/* Levels that are switched while a job runs, and what records and readers are told. */
#include <sys/wait.h>

#include "plugin/cost.h"
#include "tests/fx_steer.h"

/* ---- levels ------------------------------------------------------------------------------- */

static void ask(uint32_t level, uint32_t sample, uint64_t until)
{
	write_entry(level, sample, until);
	if (process_self.ring.header) {
		pass(ORDERS_LOOK_NS);
		collective();
	}
}

TEST(level_of_the_file_holds_from_the_first_communicator_on)
{
	ask(NCI_LEVEL_OPS, NCI_CONTROL_KEEP, 0);
	init();
	ck_assert_int_eq(mask, 0x1606);
	ck_assert_uint_eq(told()->source, NCI_SOURCE_CONTROL);
	ck_assert_uint_eq(told()->cause, NCI_CAUSE_PERSON);
	ck_assert_uint_eq(told()->sequence, file.sequence);
	ck_assert_uint_eq(process_self.ring.live->level, NCI_LEVEL_OPS);
}

/* At any level, to any other, in each version that has groups. */
TEST_LOOP(mask_holds_bits_of_the_version_after_every_switch, 5, 7)
{
	static const uint32_t levels[] = { NCI_LEVEL_OFF, NCI_LEVEL_OPS, NCI_LEVEL_KERNEL,
					   NCI_LEVEL_NET, NCI_LEVEL_TRACE };

	ask(NCI_CONTROL_KEEP, NCI_CONTROL_KEEP, 0);
	if (_i == 5)
		ncclProfiler_v5.init(&context, 1, &mask, "c", 1, 2, 0, NULL);
	else
		ncclProfiler_v6.init(&context, 1, &mask, "c", 1, 2, 0, NULL);
	begin_at_a_time();
	for (int i = 0; i < 300; i++) {
		uint32_t level = levels[fx_random() % 5];

		ask(level, i % 3 ? NCI_SAMPLE_BUDGET : NCI_SAMPLE_ALL, 0);
		ck_assert_uint_eq(process_self.ring.live->level, level);
		ck_assert_uint_eq((uint32_t)mask & ~level_events(_i), 0);
		ck_assert_uint_eq(process_self.ring.live->mask, level_essence((uint32_t)mask));
		ck_assert_msg(mask != 0, "nothing would switch it on again");
		if (level == NCI_LEVEL_OFF)
			ck_assert_int_eq(mask, NCCL_GROUP_API);
		if (level == NCI_LEVEL_TRACE)	/* but kernels: how calls were made was not seen */
			ck_assert_uint_eq(level_essence((uint32_t)mask) | NCCL_KERNEL_CH,
					  level_essence(level_events(_i)));
	}
	ck_assert_uint_eq(told()->control_refused, 0);
}

TEST(off_records_nothing_and_is_switched_on_again)
{
	uint32_t lanes;
	void *group;

	setenv("NCCLINSP_LEVEL", "off", 1);
	ask(NCI_CONTROL_KEEP, NCI_CONTROL_KEEP, 0);
	init();
	ck_assert_int_eq(mask, NCCL_GROUP_API);
	group = start(NCCL_GROUP_API, NULL, 1, false);
	ncclProfiler_v6.recordEventState(group, NCCL_GROUP_API_START_STOP, NULL);
	stop_group(group);
	lanes = atomic_load(&process_self.ring.live->lanes);
	ck_assert_uint_eq(lanes, 0);
	ask(NCI_LEVEL_NET, NCI_SAMPLE_ALL, 0);
	collective();
	ck_assert_uint_eq(atomic_load(&process_self.ring.live->lanes), 1);
	run_for(2 * SECOND);
	ck_assert_int_eq(mask, 0x161e);		/* how it uses NCCL was not seen: no kernels */
	ck_assert_uint_eq(seen(), NCI_SEEN_PAUSE);
}

static void *other_sender(void *arg)
{
	(void)arg;
	send_recv();
	return NULL;
}

/* Two threads send: kernels stay as they are, and the mask has them also at `off`. */
TEST(off_with_kernels_that_must_stay_on_is_nobody_else_s_order)
{
	ask(NCI_CONTROL_KEEP, NCI_CONTROL_KEEP, 0);
	init();
	send_recv();
	go_to_burst();
	send_recv();
	ck_assert(is_on());
	on_another_thread(other_sender, NULL);
	for (int i = 0; i < 5; i++) {
		ask(i % 2 ? NCI_LEVEL_NET : NCI_LEVEL_OFF, NCI_CONTROL_KEEP, 0);
		collective();
		ck_assert(is_on());
		ck_assert_uint_eq(process_self.ring.live->level,
				  i % 2 ? NCI_LEVEL_NET : NCI_LEVEL_OFF);
		ck_assert_uint_eq(seen() & NCI_SEEN_OUTSIDE, 0);
	}
}

TEST(all_operations_are_timed_while_that_is_asked_for)
{
	ask(NCI_CONTROL_KEEP, NCI_CONTROL_KEEP, 0);
	init();
	run_for(SECOND);
	ck_assert(!is_on());
	ask(NCI_CONTROL_KEEP, NCI_SAMPLE_ALL, now.mono_ns + 5 * SECOND);
	ck_assert(is_on());
	ck_assert_uint_eq(told()->sample, NCI_SAMPLE_ALL);
	run_for(4 * SECOND);
	ck_assert(is_on());
	run_for(2 * SECOND);
	ck_assert(!is_on());
	ck_assert_uint_eq(told()->switches, 2);
}

TEST(raise_ends_by_itself_when_the_daemon_is_gone)
{
	setenv("NCCLINSP_LEVEL", "net", 1);
	init();
	ask(NCI_LEVEL_TRACE, NCI_SAMPLE_ALL, now.mono_ns + 5 * SECOND);
	ck_assert_int_eq(mask, 0x161e);		/* there was no file to be found yet */
	pass(ORDERS_OPEN_NS);
	ask(NCI_LEVEL_TRACE, NCI_SAMPLE_ALL, now.mono_ns + 5 * SECOND);
	ck_assert_int_eq(mask, 0x7efe);
	ck_assert_uint_eq(told()->until_mono_ns, file.entry[0].until_mono_ns);
	unlink(path);
	pass(4 * SECOND);
	collective();
	ck_assert_int_eq(mask, 0x7efe);
	pass(SECOND);
	collective();
	ck_assert_int_eq(mask, 0x161e);
	ck_assert_uint_eq(told()->until_mono_ns, 0);
	ck_assert_uint_eq(told()->source, NCI_SOURCE_ENVIRONMENT);
}

/* What is in flight when the level falls is told to its end. */
TEST(handles_outlive_the_level_that_gave_them)
{
	struct nccl_descr_v6 d = { .type = NCCL_PROXY_OP };
	uint64_t size = 4096, stale;
	void *op, *step = NULL;

	ask(NCI_LEVEL_TRACE, NCI_CONTROL_KEEP, 0);
	init();
	d.proxyOp.pid = getpid();
	ncclProfiler_v6.startEvent(context, &op, &d);
	ask(NCI_LEVEL_OFF, NCI_CONTROL_KEEP, 0);
	ck_assert_int_eq(mask, NCCL_GROUP_API);
	ck_assert_ptr_eq(start(NCCL_GROUP_API, NULL, 1, false), (void *)NCI_TOKEN_UNRECORDED);
	d = (struct nccl_descr_v6){ .type = NCCL_PROXY_STEP, .parentObj = op };
	ncclProfiler_v6.startEvent(context, &step, &d);
	ck_assert_ptr_nonnull(step);
	ncclProfiler_v6.recordEventState(step, NCCL_STEP_SEND_WAIT, (void *)&size);
	ncclProfiler_v6.stopEvent(step);
	ncclProfiler_v6.stopEvent(op);
	stale = atomic_load(&process_self.ring.directory[0].stale);
	ck_assert_uint_eq(stale, 0);
	ncclProfiler_v6.stopEvent(op);
	ck_assert_uint_eq(atomic_load(&process_self.ring.directory[0].stale), 1);
}

TEST(old_interface_is_never_given_kernel_ch_on_the_way)
{
	ask(NCI_CONTROL_KEEP, NCI_CONTROL_KEEP, 0);
	ncclProfiler_v4.init(&context, &mask, "c", 1, 1, 2, 0, NULL);
	now.mono_ns = clock_ns(CLOCK_MONOTONIC);
	for (uint32_t level = NCI_LEVEL_OFF; level <= NCI_LEVEL_TRACE; level++) {
		write_entry(level, NCI_CONTROL_KEEP, 0);
		pass(ORDERS_LOOK_NS);
		decide(false);
		ck_assert_uint_eq(process_self.ring.live->level, level);
		ck_assert_int_eq(mask & NCCL_KERNEL_CH, 0);
		ck_assert_uint_eq((uint32_t)mask & ~level_events(4), 0);
		ck_assert_int_ne(mask, 0);
	}
}

/* ---- records, and what is measured ---------------------------------------------------------- */

static bool tells_watched(void)
{
	void *coll = start(NCCL_COLL, "AllReduce", 0, false);
	struct nci_record *rec = shmring_find(&process_self.ring, (uint64_t)coll);
	bool watched = rec->form & NCI_FORM_WATCHED;

	ncclProfiler_v6.stopEvent(coll);
	return watched;
}

/* What a group tells that begins within SURE_TICKS of a change: we may lose the CPU between. */
static bool tells_watched_soon_after_a_change(void)
{
	uint64_t change;
	bool watched;

	do {
		void *group;

		change = clock_ticks(process_self.clock);
		atomic_store(&s->switched, change);
		group = start(NCCL_GROUP_API, NULL, 1, false);
		watched = tells_watched();
		stop_group(group);
	} while (watched && clock_ticks(process_self.clock) - change >= SURE_TICKS);
	return watched;
}

TEST(record_says_whether_its_kernels_will_be_told)
{
	uint64_t before;
	void *group;

	init();
	go_to_burst();
	before = clock_ticks(process_self.clock);
	collective();
	ck_assert(is_on());
	ck_assert_uint_ge(atomic_load(&s->switched), before);
	ck_assert(!tells_watched_soon_after_a_change());	/* its call may have been before */
	atomic_store(&s->switched, 0);
	group = start(NCCL_GROUP_API, NULL, 1, false);
	ck_assert(tells_watched());
	stop_group(group);
	/* Who has called is not known, and it has long been on. */
	ck_assert(tells_watched());
	atomic_store(&s->switched, clock_ticks(process_self.clock) - SURE_TICKS * 2);
	ck_assert(!tells_watched());
	leave_burst();
	collective();
	atomic_store(&s->switched, 0);
	group = start(NCCL_GROUP_API, NULL, 1, false);
	ck_assert(!tells_watched());
	stop_group(group);
}

/* Another thread has ended its group in the middle of ours. */
TEST(change_within_a_group_is_not_taken_for_watched)
{
	void *group;

	setenv("NCCLINSP_KERNELS", "always", 1);
	init();
	group = start(NCCL_GROUP_API, NULL, 2, false);
	ck_assert(process_thread.steer.watched);
	ck_assert(steer_try(s));
	steer_store(&process_self, (uint32_t)mask, (uint32_t)mask ^ NCCL_KERNEL_CH, 1);
	ck_assert(!is_on());
	steer_leave(s);
	ck_assert(!tells_watched());
	stop_group(group);
}

TEST(one_callback_of_256_is_measured_by_the_kind_of_its_thread)
{
	uint64_t user, proxy;

	setenv("NCCLINSP_LEVEL", "trace", 1);
	init();
	for (int i = 0; i < 256 * 64; i++)
		play(NCCL_KERNEL_CH, NULL);
	user = told()->timed[NCI_THREADS_USER].count;
	proxy = told()->timed[NCI_THREADS_PROXY].count;
	ck_assert_uint_eq(user, 0);
	ck_assert_msg(proxy > 32 && proxy < 512, "%lu", proxy);
	ck_assert_uint_ne(told()->timed[NCI_THREADS_PROXY].ticks, 0);
	for (int i = 0; i < 256 * 16; i++)
		play(NCCL_COLL_API, "AllReduce");
	ck_assert_uint_gt(told()->timed[NCI_THREADS_USER].count, 0);
}

/* A full pool is no reason to go on as before for ever. */
TEST(groups_without_a_record_decide_as_well)
{
	void *group;

	init();
	collective();
	for (int i = 0; i < SHMRING_SLOTS + 64; i++)
		start(NCCL_COLL_API, "AllReduce", 0, false);
	ck_assert_uint_gt(process_thread.lane.out->line->pool_full, 0);
	group = start(NCCL_GROUP_API, NULL, 2, false);
	ck_assert_ptr_eq(group, (void *)NCI_TOKEN_UNRECORDED);
	ck_assert(!process_thread.steer.launched);
	ck_assert_ptr_null(start(NCCL_P2P, "Send", 0, false));
	ck_assert(process_thread.steer.launched);
	atomic_store(&s->due_ns, 0);
	ncclProfiler_v6.stopEvent(group);
	ck_assert(!process_thread.steer.open);
	ck_assert_uint_ne(atomic_load(&s->due_ns), 0);	/* it has looked */
}

/* NCCL may stop in the child what it started in the parent. */
TEST_LOOP(group_that_is_open_across_a_fork_harms_nobody, 0, 2)
{
	bool off = _i;
	void *group;
	int status;
	pid_t pid;

	setenv("NCCLINSP_LEVEL", off ? "off" : "ops", 1);
	init();
	group = start(NCCL_GROUP_API, NULL, 1, false);
	pid = fork();
	if (pid == 0) {
		ncclProfiler_v6.stopEvent(group);
		ncclProfiler_v6.stopEvent((void *)NCI_TOKEN_UNRECORDED);
		_exit(0);
	}
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_int_eq(status, 0);
	stop_group(group);
	ck_assert_uint_eq(atomic_load(&s->open), 0);
}

/* A callback of a Coll that has taken so long. */
static void cost_took(uint64_t ticks)
{
	uint64_t end = clock_ticks(process_self.clock);

	cost_add(NCI_EV_COLL, end - ticks, end);
}

/* Neither what came before the usual time was known, nor a thread that was not let run. */
TEST(callback_that_was_interrupted_costs_no_more_than_others)
{
	const struct nci_timed *out;
	uint64_t n = 0, before, usual;

	init();
	out = &told()->timed[NCI_THREADS_USER];
	for (; n < 1000; n++)
		cost_took(5000 + n % 7);
	before = atomic_load(&out->ticks);
	cost_took(5000);
	usual = atomic_load(&out->ticks) - before;
	ck_assert_uint_ge(usual, 5000);
	before = atomic_load(&out->ticks);
	cost_took(UINT64_C(1) << 36);
	ck_assert_uint_le(atomic_load(&out->ticks) - before, 20 * usual);
	ck_assert_uint_eq(atomic_load(&out->count), n + 2);
	ck_assert_uint_eq(told()->timed[NCI_THREADS_PROXY].count, 0);
}

int main(void)
{
	return fx_run(setup, NULL);
}
