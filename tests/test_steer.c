/* SPDX-License-Identifier: Apache-2.0 */
/* When KernelCh is on, and what ends it for good. */
#include <sys/mman.h>

#include "tests/fx_steer.h"

/* ---- bursts --------------------------------------------------------------------------- */

START_TEST(slow_job_is_watched_all_the_time)
{
	init();
	ck_assert(is_on());
	for (int i = 0; i < 1000; i++) {
		pass(20 * MS);
		collective();
		ck_assert(is_on());
	}
	ck_assert_uint_eq(told()->kernels, NCI_KERNELS_ALWAYS);
	ck_assert_uint_eq(told()->burst_length_ms, told()->burst_period_ms);
	ck_assert_uint_eq(told()->groups_inside, 1000);
	ck_assert_uint_eq(told()->groups_outside, 0);
	ck_assert_uint_eq(told()->switches, 0);
}
END_TEST

START_TEST(fast_job_is_watched_in_bursts_that_cost_the_budget)
{
	uint64_t inside, outside;
	double cost;

	init();
	run_until(false, SECOND);
	run_for(3 * SECOND, FAST);
	inside = told()->ops_inside;
	outside = told()->ops_outside;
	run_for(32 * SECOND, FAST);
	inside = told()->ops_inside - inside;
	outside = told()->ops_outside - outside;
	cost = (double)inside / (double)(inside + outside) * FAST * 10e-6;
	ck_assert_msg(cost > 0.004 && cost < 0.006, "%.5f", cost);
	ck_assert_uint_eq(told()->burst_period_ms, 8000);
	ck_assert_uint_eq(told()->bursts, 5);	/* the one at the begin among them */
	ck_assert_uint_eq(told()->kernels, NCI_KERNELS_OUTSIDE);
}
END_TEST

START_TEST(burst_begins_on_the_grid_and_is_seen_as_one)
{
	init();
	run_for(9 * SECOND, FAST);
	now.real_ns = (now.real_ns / (8 * SECOND) + 1) * 8 * SECOND - MS;
	collective();
	ck_assert(!is_on());
	pass(MS);
	collective();
	ck_assert(is_on());
	ck_assert_uint_eq(told()->kernels, NCI_KERNELS_INSIDE);
	ck_assert_uint_ne(told()->burst_start, 0);
	ck_assert_uint_eq(process_self.ring.live->mask, (uint32_t)mask);
	pass(told()->burst_length_ms * MS + MS);
	collective();
	ck_assert(!is_on());
	ck_assert_uint_eq(told()->burst_start, 0);
}
END_TEST

START_TEST(all_operations_are_watched_where_that_is_asked_for)
{
	setenv("NCCLINSP_SAMPLE", "all", 1);
	init();
	run_for(5 * SECOND, FAST);
	ck_assert(is_on());
	ck_assert_uint_eq(told()->switches, 0);
	ck_assert_uint_eq(told()->kernels, NCI_KERNELS_ALWAYS);
	ck_assert_uint_eq(told()->sample, NCI_SAMPLE_ALL);
	ck_assert_uint_eq(told()->source, NCI_SOURCE_ENVIRONMENT);
}
END_TEST

START_TEST(budget_of_the_environment_is_kept)
{
	setenv("NCCLINSP_BUDGET", _i ? "0" : "20.5", 1);
	init();
	run_for(10 * SECOND, 200);
	ck_assert_uint_eq(told()->budget_ppm, _i ? 0 : 205000);
	ck_assert_int_eq(is_on(), !_i);
	if (_i)
		ck_assert_uint_eq(told()->bursts, 0);
}
END_TEST

START_TEST(words_that_are_none_are_told_and_ignored)
{
	static const char *const variable[] = { "NCCLINSP_SAMPLE", "NCCLINSP_BUDGET",
		"NCCLINSP_GRAPHS", "NCCLINSP_SETTLE" };
	static const char *const bad[] = { "some", "0.5%", "-1", "101", ".", "1.2.3", "1e3" };

	setenv(variable[_i / FX_COUNT(bad)], bad[_i % FX_COUNT(bad)], 1);
	init();
	if (_i / FX_COUNT(bad) == 3 && strcmp(bad[_i % FX_COUNT(bad)], "101") == 0)
		ck_assert(!s->misspelt);	/* seconds, not percent */
	else
		ck_assert(s->misspelt);
	ck_assert_uint_eq(told()->budget_ppm, 5000);
	ck_assert_uint_eq(told()->sample, NCI_SAMPLE_BUDGET);
}
END_TEST

START_TEST(first_groups_of_a_later_communicator_are_watched)
{
	void *first;

	init();
	run_for(9 * SECOND, FAST);
	run_until(false, SECOND);
	first = context;
	init();
	ck_assert_ptr_ne(first, context);
	ck_assert(!is_on());		/* groups of the first one may be under way */
	collective();
	ck_assert(is_on());
	run_until(false, SECOND);
}
END_TEST

/* Threads with a GPU each would all send for the first time at once. */
START_TEST(second_rank_of_a_communicator_is_waited_for)
{
	void *first;
	bool twin = _i;

	init();
	first = context;
	ck_assert(is_on());
	ck_assert_int_eq(ncclProfiler_v6.init(&context, 1, &mask, "c", 1, 2, twin, NULL), 0);
	ck_assert_int_eq(is_on(), !twin);
	now.mono_ns = clock_ns(CLOCK_MONOTONIC);
	ck_assert_uint_eq(atomic_load(&s->switched), 0);
	run_for(29 * SECOND, 100);
	ck_assert_int_eq(is_on(), !twin);
	run_for(2 * SECOND, 100);
	ck_assert(is_on());		/* nobody has sent */
	ncclProfiler_v6.finalize(first);
	ncclProfiler_v6.init(&first, 1, &mask, "c", 1, 2, twin, NULL);
	ck_assert(is_on());		/* the other one is no more */
}
END_TEST

/* A thread may be within a call on the first one, and have read the mask before. */
START_TEST(change_for_ranks_that_come_later_is_one_for_who_was_there)
{
	void *c;

	init();
	ncclProfiler_v6.init(&c, 2, &mask, "d", 1, 2, 0, NULL);
	ck_assert(is_on());
	ncclProfiler_v6.init(&c, 2, &mask, "d", 1, 2, 1, NULL);
	ck_assert(!is_on());
	ck_assert_uint_ne(atomic_load(&s->switched), 0);
}
END_TEST

/* However slow it is: how fast it will be is not known. */
START_TEST(first_send_of_a_slow_job_waits_as_well)
{
	init();
	collective();
	ck_assert(is_on());
	send_recv();
	ck_assert(!is_on());
	ck_assert_uint_eq(reason(), NCI_REASON_SETTLING);
	ck_assert_uint_eq(told()->settles_mono_ns, now.mono_ns + 30 * SECOND);
	pass(31 * SECOND);
	send_recv();
	ck_assert(is_on());
	ck_assert_uint_eq(reason(), NCI_REASON_NONE);
	ck_assert_uint_eq(told()->settles_mono_ns, 0);
}
END_TEST

/* It is told of those only whose kernels will be timed. */
START_TEST(who_is_never_timed_does_not_settle)
{
	setenv("NCCLINSP_BUDGET", "0", _i == 0);
	setenv("NCCLINSP_LEVEL", "ops", _i == 1);
	init();
	collective();
	send_recv();
	ck_assert(!is_on());
	ck_assert_uint_eq(reason(), NCI_REASON_NONE);
	ck_assert_uint_eq(told()->settles_mono_ns, 0);
}
END_TEST

/* ---- graphs, and other NCCLs ------------------------------------------------------------ */

START_TEST(captured_group_ends_it_for_good)
{
	void *group;

	init();
	ck_assert(is_on());
	group = start(NCCL_GROUP_API, NULL, 1, true);
	play(NCCL_COLL_API, "AllReduce");
	stop_group(group);
	ck_assert(!is_on());
	run_for(5 * SECOND, 100);
	ck_assert(!is_on());
	ck_assert_uint_eq(reason(), NCI_REASON_GRAPHS);
	ck_assert_uint_eq(told()->kernels, NCI_KERNELS_NEVER);
}
END_TEST

START_TEST(captured_group_changes_nothing_for_who_accepts_it)
{
	setenv("NCCLINSP_GRAPHS", "kernel", 1);
	init();
	run_for(2 * SECOND, FAST);
	stop_group(start(NCCL_GROUP_API, NULL, 1, true));
	run_for(2 * SECOND, FAST);
	ck_assert(is_on());
	ck_assert_uint_eq(told()->switches, 0);
	ck_assert_uint_eq(reason(), NCI_REASON_NONE);
}
END_TEST

START_TEST(second_nccl_pins_both)
{
	int other = 0;
	void *c;

	init();
	make_fast();
	ncclProfiler_v6.init(&c, 2, &other, "d", 1, 2, 0, NULL);
	ck_assert_int_eq(other & NCCL_KERNEL_CH, 0);
	ck_assert_int_ne(other & NCCL_PROXY_STEP, 0);
	for (int i = 0; i < 100; i++) {
		pass(777 * MS);
		collective();
		ck_assert(!is_on());
	}
	ck_assert_uint_eq(reason(), NCI_REASON_LIBRARIES);
}
END_TEST

/* The first NCCL's library is closed, and the other one's job goes on. */
START_TEST(mask_of_an_nccl_that_is_gone_is_not_touched)
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
	now.mono_ns = clock_ns(CLOCK_MONOTONIC);
	now.real_ns = 1700000000 * SECOND;
	atomic_store(&s->switched, clock_ticks(process_self.clock));
	send_recv();
	make_fast();
	ncclProfiler_v6.init(&first, 2, &other, "f", 1, 2, 0, NULL);
	ck_assert_int_eq(other & NCCL_KERNEL_CH, 0);	/* as it was: groups may be under way */
	ck_assert_ptr_null(atomic_load(&s->mask));
	ncclProfiler_v6.finalize(first);
	ncclProfiler_v6.finalize(third);
	init();
	ck_assert_ptr_eq(atomic_load(&s->mask), &mask);
}
END_TEST

START_TEST(mask_is_forgotten_with_the_last_communicator)
{
	void *group, *first;

	init();
	make_fast();
	first = context;
	group = start(NCCL_GROUP_API, NULL, 1, false);
	ncclProfiler_v6.finalize(first);
	mask = 0x77;		/* another library's memory by now */
	go_to_burst();
	stop_group(group);
	ck_assert_int_eq(mask, 0x77);
	init();
	ck_assert(is_on());
}
END_TEST

int main(void)
{
	const struct fx_test tests[] = {
		FX_TEST(slow_job_is_watched_all_the_time),
		FX_TEST(fast_job_is_watched_in_bursts_that_cost_the_budget),
		FX_TEST(burst_begins_on_the_grid_and_is_seen_as_one),
		FX_TEST(all_operations_are_watched_where_that_is_asked_for),
		FX_LOOP(budget_of_the_environment_is_kept, 0, 2),
		FX_LOOP(words_that_are_none_are_told_and_ignored, 0, 28),
		FX_TEST(first_groups_of_a_later_communicator_are_watched),
		FX_LOOP(second_rank_of_a_communicator_is_waited_for, 0, 2),
		FX_TEST(change_for_ranks_that_come_later_is_one_for_who_was_there),
		FX_TEST(first_send_of_a_slow_job_waits_as_well),
		FX_LOOP(who_is_never_timed_does_not_settle, 0, 2),
		FX_TEST(captured_group_ends_it_for_good),
		FX_TEST(captured_group_changes_nothing_for_who_accepts_it),
		FX_TEST(second_nccl_pins_both),
		FX_TEST(mask_of_an_nccl_that_is_gone_is_not_touched),
		FX_TEST(mask_is_forgotten_with_the_last_communicator),
	};

	return fx_run(setup, NULL, tests, FX_COUNT(tests));
}
