/* SPDX-License-Identifier: Apache-2.0 */
#include "reader/time/timeline.h"

#include "tests/fixture.h"

/* 4 ticks are a ns; tick 1e12 was at 500 s. */
static const struct tick_clock clock = {
	.kind = NCI_CLOCK_TSC,
	.ticks = UINT64_C(1000000000000),
	.mono_ns = UINT64_C(500000000000),
	.ns_per_tick = 0.25,
};

static const uint64_t t0 = UINT64_C(1000000000000);

TEST(ticks_map_to_ns_on_both_sides_of_the_calibration)
{
	ck_assert_uint_eq(timeline_mono(&clock, t0 + 4000), clock.mono_ns + 1000);
	ck_assert_uint_eq(timeline_mono(&clock, t0 - 4000), clock.mono_ns - 1000);
	ck_assert_uint_eq(timeline_mono(&clock, 0), 0);
	ck_assert_uint_eq(timeline_span(&clock, t0, t0 + 4000), 1000);
	ck_assert_uint_eq(timeline_span(&clock, t0 + 1, t0), UNKNOWN_U64);
}

TEST(best_source_decides_and_is_named)
{
	struct op op = { .complete = true, .start_ticks = t0, .stop_ticks = t0 + 40 };

	timeline_place(&clock, NULL, &op);
	ck_assert_int_eq(op.source, TIMING_NONE);
	ck_assert_uint_eq(op.exec_ns, UNKNOWN_U64);
	ck_assert(!op.sampled);
	ck_assert_uint_eq(op.enqueue_ns, 10);
	op.proxy_start_ticks = t0 + 400;
	op.proxy_stop_ticks = t0 + 800;
	timeline_place(&clock, NULL, &op);
	ck_assert_str_eq(timeline_source_text(op.source), "proxy_cpu");
	ck_assert_uint_eq(op.exec_ns, 100);
	op.kernel_start_ticks = t0 + 400;
	op.kernel_stop_ticks = t0 + 1200;
	timeline_place(&clock, NULL, &op);
	ck_assert_str_eq(timeline_source_text(op.source), "kernel_cpu");
	ck_assert_uint_eq(op.exec_ns, 200);
	op.gpu_start_ns = 7000;
	op.gpu_stop_ns = 7210;
	timeline_place(&clock, NULL, &op);
	ck_assert_str_eq(timeline_source_text(op.source), "kernel_gpu");
	ck_assert_uint_eq(op.exec_ns, 210);
	ck_assert(op.sampled);
}

TEST(refused_stamps_make_what_the_host_saw_unbelievable)
{
	struct op op = {
		.complete = true, .stamps_refused = 1,
		.kernel_start_ticks = t0, .kernel_stop_ticks = t0 + 400,
	};

	timeline_place(&clock, NULL, &op);
	ck_assert_int_eq(op.source, TIMING_NONE);
}

TEST(operation_that_is_not_complete_has_no_duration)
{
	struct op op = { .gpu_start_ns = 7000, .gpu_stop_ns = 7210 };

	timeline_place(&clock, NULL, &op);
	ck_assert_uint_eq(op.exec_ns, UNKNOWN_U64);
}

TEST(queue_time_is_given_only_if_the_host_watched_the_kernel_start)
{
	struct op op = {
		.complete = true, .api_start_ticks = t0 - 400, .start_ticks = t0,
		.kernel_start_ticks = t0 + 4000, .kernel_stop_ticks = t0 + 4000 + 4 * 950,
		.gpu_start_ns = 7000, .gpu_stop_ns = 8000,
	};

	timeline_place(&clock, NULL, &op);
	ck_assert_uint_eq(op.queue_ns, 1100);
	op.kernel_stop_ticks = op.kernel_start_ticks + 4 * 850;	/* it came late */
	timeline_place(&clock, NULL, &op);
	ck_assert_uint_eq(op.queue_ns, UNKNOWN_U64);
}

TEST(impossible_stamps_are_not_sane)
{
	ck_assert(timeline_stamps_sane(5, 5));
	ck_assert(!timeline_stamps_sane(0, 5));
	ck_assert(!timeline_stamps_sane(6, 5));
	ck_assert(!timeline_stamps_sane(6, UINT64_MAX));
}

int main(void)
{
	return fx_run(NULL, NULL);
}
