/* SPDX-License-Identifier: Apache-2.0 */
/* Slow GPUs, and why they are: rows that are made up. */
#include <string.h>

#include "judge/gpu.h"
#include "tests/fixture.h"

#define GPUS	4
#define MOST	1980

static struct gpu_health all[GPUS];
static struct gpu_cause cause;
static char text[256];

/* GPUs with these mean clocks, of which the first has these reasons. */
static void gpus_have(const uint64_t *mhz, uint64_t reasons)
{
	for (uint32_t i = 0; i < GPUS; i++) {
		all[i] = gpu_unknown("0000:01:00.0");
		all[i].read_ns = 1;
		all[i].mean_mhz = mhz[i];
		all[i].sm_max_mhz = MOST;
		all[i].reasons = i ? 0 : reasons;
	}
}

static const char *said(void)
{
	struct phrase phrase;

	phrase_start(&phrase, text, sizeof(text));
	gpu_say_cause(&phrase, &cause);
	return text;
}

static const struct {
	const char *how;
	uint64_t mhz[GPUS], reasons;
	uint32_t n;
	bool slow;
} clocks[] = {
	{ "throttled alone", { 1095, MOST, MOST, MOST }, 0x20, GPUS, true },
	{ "slower than the others, for no reason", { 1095, MOST, MOST, MOST }, 0, GPUS, true },
	{ "all at their power limit", { 1500, 1510, 1490, 1500 }, 0x04, GPUS, false },
	{ "throttled, yet as fast as the others", { 1400, 1400, 1400, 1400 }, 0x20, GPUS, false },
	{ "a little slower", { 1900, MOST, MOST, MOST }, 0x20, GPUS, false },
	{ "not read", { UNKNOWN_U64, MOST, MOST, MOST }, 0x20, GPUS, false },
	{ "the only one, throttled", { 1095 }, 0x40, 1, true },
	{ "the only one, at a low clock for no reason", { 1095 }, 0, 1, false },
	{ "the only one, idle", { 345 }, 0x01, 1, false },
	{ "the only one, a little slower", { 1900 }, 0x40, 1, false },
};

TEST_LOOP(a_gpu_is_slow_that_is_slower_than_the_others, 0, FX_COUNT(clocks))
{
	gpus_have(clocks[_i].mhz, clocks[_i].reasons);
	ck_assert_msg(gpu_find_cause(all, clocks[_i].n, 0, &cause) == clocks[_i].slow, "%s",
		      clocks[_i].how);
}

static const struct {
	uint64_t reasons;
	const char *text;
} reasons[] = {
	{ 0x20, "thermal" }, { 0x40, "thermal" }, { 0x48, "thermal" }, { 0x88, "power brake" },
	{ 0x08, "hardware slowdown" }, { 0x04, "power limit" }, { 0x24, "thermal" },
	{ 0x10, "sync boost" }, { 0x02, "clock setting" }, { 0x01, NULL }, { 0, NULL },
	{ UNKNOWN_U64, NULL }, { UINT64_C(1) << 40, NULL },
};

TEST_LOOP(the_worst_reason_is_named, 0, FX_COUNT(reasons))
{
	struct gpu_health g = { .reasons = reasons[_i].reasons };
	const char *found = gpu_limit_text(gpu_limit_of(&g));

	ck_assert_msg(reasons[_i].text ? found && !strcmp(found, reasons[_i].text) : !found,
		      "%d: %s", _i, found ?: "none");
	ck_assert(!found == !gpu_limit_advice(gpu_limit_of(&g)));
}

TEST(the_sentence_has_clocks_reason_and_time)
{
	gpus_have(clocks[0].mhz, 0x20);
	ck_assert(gpu_find_cause(all, GPUS, 0, &cause));
	ck_assert_uint_eq(cause.others_mhz, MOST);
	ck_assert_str_eq(said(), "its GPU runs at 1095 of 1980 MHz, thermal");
	strcpy(cause.since, "12:03:10");
	ck_assert_str_eq(said(), "its GPU runs at 1095 of 1980 MHz, thermal, since 12:03:10");
	gpus_have(clocks[0].mhz, 0);
	all[0].sm_max_mhz = UNKNOWN_U64;
	ck_assert(gpu_find_cause(all, GPUS, 0, &cause));
	ck_assert_str_eq(said(),
			 "its GPU runs at 1095 MHz, the others of its node run at 1980 MHz");
}

TEST(a_gpu_that_is_lost_needs_no_clock)
{
	gpus_have(clocks[2].mhz, 0);
	all[0].lost = true;
	ck_assert(gpu_find_cause(all, GPUS, 0, &cause));
	ck_assert_str_eq(said(), "the driver has lost its GPU");
	ck_assert(!gpu_find_cause(all, GPUS, 1, &cause));
}

int main(void)
{
	return fx_run(NULL, NULL);
}
