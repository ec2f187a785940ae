/* SPDX-License-Identifier: Apache-2.0 */
/* Which events are asked for, at each level and in each version. */
#include <stdlib.h>

#include "nci/segment.h"
#include "plugin/level.h"
#include "tests/fixture.h"
#include "tests/plugin_driver.h"

#define PLENTY	(UINT64_C(1) << 40)

/* The mask that NCCL gets, by level, for versions 1 to 6. */
static const struct {
	const char *name;
	uint32_t level;
	uint32_t mask[NCCL_PROFILER_VERSIONS + 1];
} expected[] = {
	{ "off",    NCI_LEVEL_OFF,    { 0, 0x01, 0x01, 0x01, 0x01, 0x100, 0x100 } },
	{ "ops",    NCI_LEVEL_OPS,    { 0, 0x06, 0x06, 0x06, 0x06, 0x606, 0x1606 } },
	{ "kernel", NCI_LEVEL_KERNEL, { 0, 0x06, 0x06, 0x06, 0x06, 0x646, 0x1646 } },
	{ "net",    NCI_LEVEL_NET,    { 0, 0x1e, 0x1e, 0x1e, 0x1e, 0x65e, 0x165e } },
	{ "trace",  NCI_LEVEL_TRACE,  { 0, 0x1f, 0x1f, 0xdf, 0xff, 0xfff, 0x7fff } },
};

static struct level lv;

START_TEST(each_level_asks_for_its_events_in_each_version)
{
	for (int v = 1; v <= NCCL_PROFILER_VERSIONS; v++) {
		level_choose(&lv, v, expected[_i].name, NULL, PLENTY);
		ck_assert_uint_eq(lv.level, expected[_i].level);
		ck_assert_msg(lv.mask == expected[_i].mask[v], "v%d %s: 0x%x", v,
			      expected[_i].name, lv.mask);
		ck_assert_uint_eq(lv.mask & ~level_events(v), 0);
		ck_assert(!lv.misspelt);
	}
}
END_TEST

START_TEST(plugin_hands_that_mask_to_nccl)
{
	static struct pd pd;

	pd_open(&pd, expected[_i].name);
	pd.version = 5;
	pd_init(&pd);
	ck_assert_int_eq(pd.mask, (int)expected[_i].mask[5]);
	pd_read(&pd);
	ck_assert_uint_eq(pd.live.level, expected[_i].level);
	ck_assert_uint_eq(pd.live.mask, expected[_i].mask[5]);
}
END_TEST

/* Two NCCLs in one process, and the newer one came first. */
START_TEST(older_version_beside_a_newer_one_is_asked_for_its_own_events)
{
	static struct pd pd;

	setenv("NCCLINSP_SAMPLE", "all", 1);
	pd_open(&pd, expected[_i].name);
	pd_init(&pd);
	for (pd.version = 1; pd.version < NCCL_PROFILER_VERSIONS; pd.version++) {
		uint32_t mine = expected[_i].mask[pd.version];

		pd_init(&pd);
		if (expected[_i].level != NCI_LEVEL_OFF)
			ck_assert_uint_eq((uint32_t)pd.mask, mine);
	}
	pd_read(&pd);
	ck_assert_uint_eq(pd.live.mask, expected[_i].mask[6]);
}
END_TEST

START_TEST(default_is_net)
{
	level_choose(&lv, 6, NULL, NULL, PLENTY);
	ck_assert_uint_eq(lv.level, NCI_LEVEL_NET);
	level_choose(&lv, 6, "", "", PLENTY);
	ck_assert_uint_eq(lv.level, NCI_LEVEL_NET);
}
END_TEST

START_TEST(misspelt_texts_are_ignored_and_told)
{
	static const char *const masks[] = { "0x", "12g", "0xfg", "-1", " 1", "1 ",
					     "0x100000000", "99999999999999999999999" };

	level_choose(&lv, 6, "everything", NULL, PLENTY);
	ck_assert_uint_eq(lv.level, NCI_LEVEL_NET);
	ck_assert(lv.misspelt);
	for (int i = 0; i < FX_COUNT(masks); i++) {
		level_choose(&lv, 6, "ops", masks[i], PLENTY);
		ck_assert_msg(lv.level == NCI_LEVEL_OPS, "%s is a mask", masks[i]);
		ck_assert(lv.misspelt);
	}
}
END_TEST

START_TEST(raw_mask_is_taken_as_it_is_within_the_version)
{
	static const struct {
		const char *text;
		int version;
		uint32_t mask;
	} raw[] = {
		{ "0x40", 3, 0x40 }, { "64", 4, 0x40 }, { "0x20", 1, 0x20 },
		{ "0xffffffff", 2, 0x3f }, { "0xFFFF", 5, 0xfff }, { "32767", 6, 0x7fff },
		{ "0", 6, 0 }, { "0X2", 6, 2 },
	};

	for (int i = 0; i < FX_COUNT(raw); i++) {
		level_choose(&lv, raw[i].version, "ops", raw[i].text, 0);
		ck_assert_uint_eq(lv.level, NCI_LEVEL_MASK);
		ck_assert_msg(lv.mask == raw[i].mask, "%s: 0x%x", raw[i].text, lv.mask);
		ck_assert_uint_eq(lv.reason, NCI_REASON_NONE);
	}
}
END_TEST

START_TEST(kernel_ch_is_left_out_with_a_reason)
{
	level_choose(&lv, 4, "net", NULL, PLENTY);
	ck_assert_uint_eq(lv.reason, NCI_REASON_API);
	ck_assert_uint_eq(lv.mask & NCCL_KERNEL_CH, 0);
	level_choose(&lv, 6, "kernel", NULL, LEVEL_SPARE_BYTES - 1);
	ck_assert_uint_eq(lv.reason, NCI_REASON_SHM);
	ck_assert_uint_eq(lv.mask & NCCL_KERNEL_CH, 0);
	level_choose(&lv, 6, "kernel", NULL, LEVEL_SPARE_BYTES);
	ck_assert_uint_eq(lv.reason, NCI_REASON_NONE);
	level_choose(&lv, 3, "trace", NULL, 0);
	ck_assert_uint_eq(lv.reason, NCI_REASON_NONE);
	ck_assert_uint_ne(lv.mask & NCCL_KERNEL_CH, 0);
	level_choose(&lv, 6, "ops", NULL, 0);
	ck_assert_uint_eq(lv.reason, NCI_REASON_NONE);
}
END_TEST

START_TEST(parents_that_nccl_brings_along_get_handles)
{
	level_choose(&lv, 6, NULL, "0x10", 0);		/* ProxyStep */
	ck_assert_uint_eq(lv.wanted, NCCL_PROXY_STEP | NCCL_PROXY_OP | NCCL_COLL | NCCL_P2P |
			  NCCL_GROUP | NCCL_COLL_API | NCCL_P2P_API | NCCL_GROUP_API);
	level_choose(&lv, 2, NULL, "0x10", 0);
	ck_assert_uint_eq(lv.wanted, NCCL_PROXY_STEP | NCCL_PROXY_OP | NCCL_COLL | NCCL_P2P |
			  NCCL_GROUP);
	level_choose(&lv, 6, NULL, "0x20", 0);		/* ProxyCtrl brings nothing */
	ck_assert_uint_eq(lv.wanted, NCCL_PROXY_CTRL);
	level_choose(&lv, 6, NULL, "0x2000", 0);	/* CeSync */
	ck_assert_uint_eq(lv.wanted, NCCL_CE_SYNC | NCCL_CE_COLL | NCCL_COLL_API |
			  NCCL_GROUP_API);
}
END_TEST

START_TEST(events_that_a_level_does_not_want_get_no_handle)
{
	static struct pd pd;

	pd_open(&pd, "ops");
	pd_init(&pd);
	ck_assert_ptr_null(PD_START(&pd, NCCL_PROXY_STEP));
	ck_assert_ptr_null(PD_START(&pd, NCCL_KERNEL_CH));
	ck_assert_ptr_nonnull(PD_START(&pd, NCCL_COLL));
	ck_assert_ptr_nonnull(PD_START(&pd, NCCL_GROUP_API));
	pd_read(&pd);
	ck_assert_uint_eq(pd.live.unknown_event, 0);
}
END_TEST

START_TEST(level_off_records_nothing)
{
	static struct pd pd;

	pd_open(&pd, "off");
	pd_init(&pd);
	/* A handle all the same: its stop is when the level may be switched on again. */
	pd_stop(&pd, PD_START(&pd, NCCL_GROUP_API));
	ck_assert_ptr_null(PD_START(&pd, NCCL_COLL));
	pd_read(&pd);
	ck_assert_uint_eq(pd.live.lanes, 0);
}
END_TEST

int main(void)
{
	const struct fx_test tests[] = {
		FX_LOOP(each_level_asks_for_its_events_in_each_version, 0, 5),
		FX_LOOP(plugin_hands_that_mask_to_nccl, 0, 5),
		FX_LOOP(older_version_beside_a_newer_one_is_asked_for_its_own_events, 0, 5),
		FX_TEST(default_is_net),
		FX_TEST(misspelt_texts_are_ignored_and_told),
		FX_TEST(raw_mask_is_taken_as_it_is_within_the_version),
		FX_TEST(kernel_ch_is_left_out_with_a_reason),
		FX_TEST(parents_that_nccl_brings_along_get_handles),
		FX_TEST(events_that_a_level_does_not_want_get_no_handle),
		FX_TEST(level_off_records_nothing),
	};

	return fx_run(NULL, NULL, tests, FX_COUNT(tests));
}
