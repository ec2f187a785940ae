/* SPDX-License-Identifier: Apache-2.0 */
/* Which events are asked for, at each level and in each version. */
#include <stdlib.h>

#include "nci/segment.h"
#include "plugin/environment.h"
#include "plugin/level.h"
#include "tests/fixture.h"
#include "tests/plugin_driver.h"

/* The mask that NCCL gets, by level, for versions 1 to 7. */
static const struct {
	const char *name;
	uint32_t level;
	uint32_t mask[NCCL_PROFILER_VERSIONS + 1];
} expected[] = {
	{ "off",    NCI_LEVEL_OFF,    { 0, 0x01, 0x01, 0x01, 0x01, 0x100, 0x100, 0x100 } },
	{ "ops",    NCI_LEVEL_OPS,    { 0, 0x06, 0x06, 0x06, 0x06, 0x606, 0x1606, 0x1606 } },
	{ "kernel", NCI_LEVEL_KERNEL, { 0, 0x06, 0x06, 0x46, 0x46, 0x646, 0x1646, 0x9646 } },
	{ "net",    NCI_LEVEL_NET,    { 0, 0x1e, 0x1e, 0x5e, 0x5e, 0x65e, 0x165e, 0x965e } },
	{ "trace",  NCI_LEVEL_TRACE,  { 0, 0x1f, 0x1f, 0xdf, 0xff, 0xfff, 0x7fff, 0xffff } },
};

static struct level lv;
static struct environment e;

static void read_variables(const char *level, const char *mask, const char *kernels)
{
	setenv("NCCLINSP_LEVEL", level, 1);
	setenv("NCCL_PROFILE_EVENT_MASK", mask, 1);
	setenv("NCCLINSP_KERNELS", kernels, 1);
	environment_read(&e);
}

TEST_LOOP(each_level_asks_for_its_events_in_each_version, 0, 5)
{
	for (int v = 1; v <= NCCL_PROFILER_VERSIONS; v++) {
		read_variables(expected[_i].name, "", "");
		level_take(&lv, v, e.level);
		ck_assert_uint_eq(lv.level, expected[_i].level);
		ck_assert_msg(lv.mask == expected[_i].mask[v], "v%d %s: 0x%x", v,
			      expected[_i].name, lv.mask);
		ck_assert_uint_eq(lv.mask & ~level_events(v), 0);
		ck_assert(e.has_level && !e.misspelt);
	}
}

TEST_LOOP(plugin_hands_that_mask_to_nccl, 0, 5)
{
	static struct pd pd;

	pd_open(&pd, expected[_i].name);
	setenv("NCCLINSP_KERNELS", "always", 1);
	pd.version = 5;
	pd_init(&pd);
	ck_assert_uint_eq((uint32_t)pd.mask, level_essence(expected[_i].mask[5]));
	pd_read(&pd);
	ck_assert_uint_eq(pd.live.level, expected[_i].level);
	ck_assert_uint_eq(pd.live.mask, level_essence(expected[_i].mask[5]));
}

/* Two NCCLs in one process, and the newer one came first. */
TEST_LOOP(older_version_beside_a_newer_one_is_asked_for_its_own_events, 0, 5)
{
	static struct pd pd;

	pd_open(&pd, expected[_i].name);
	setenv("NCCLINSP_KERNELS", "always", 1);
	pd.version = NCCL_PROFILER_VERSIONS;
	pd_init(&pd);
	for (pd.version = 1; pd.version < NCCL_PROFILER_VERSIONS; pd.version++) {
		uint32_t mine = expected[_i].mask[pd.version];

		if (pd.version < 5 && expected[_i].level != NCI_LEVEL_TRACE)
			mine &= ~(uint32_t)NCCL_KERNEL_CH;	/* there it can abort a job */

		pd_init(&pd);
		if (expected[_i].level != NCI_LEVEL_OFF)
			ck_assert_uint_eq((uint32_t)pd.mask, mine);
	}
	pd_read(&pd);
	ck_assert_uint_eq(pd.live.mask, level_essence(expected[_i].mask[NCCL_PROFILER_VERSIONS]));
}

TEST(default_is_net_and_the_mode_is_nobodys)
{
	unsetenv("NCCLINSP_LEVEL");
	unsetenv("NCCL_PROFILE_EVENT_MASK");
	unsetenv("NCCLINSP_KERNELS");
	unsetenv("NCCLINSP_SETTLE");
	for (int i = 0; i < 2; i++) {
		environment_read(&e);
		ck_assert_uint_eq(e.level, NCI_LEVEL_NET);
		ck_assert_uint_eq(e.mode, 0);
		ck_assert_uint_eq(e.settle_s, ENVIRONMENT_SETTLE_S);
		ck_assert(!e.has_level && !e.has_mask && !e.misspelt);
		read_variables("", "", "");
	}
}

TEST(misspelt_texts_are_ignored_and_told)
{
	static const char *const masks[] = { "0x", "12g", "0xfg", "-1", " 1", "1 ",
					     "0x100000000", "99999999999999999999999" };
	static const char *const modes[] = { "bursts", "first", "first s", "first 1m", "first 1s ",
					     "first 86401s", "ALWAYS", " never" };

	read_variables("everything", "", "");
	ck_assert_uint_eq(e.level, NCI_LEVEL_NET);
	ck_assert(e.misspelt && !e.has_level);
	for (int i = 0; i < FX_COUNT(masks); i++) {
		read_variables("ops", masks[i], "");
		ck_assert_msg(!e.has_mask && e.misspelt, "%s is a mask", masks[i]);
		ck_assert_uint_eq(e.level, NCI_LEVEL_OPS);
	}
	for (int i = 0; i < FX_COUNT(modes); i++) {
		read_variables("ops", "", modes[i]);
		ck_assert_msg(!e.mode && e.misspelt, "%s is a mode", modes[i]);
	}
}

TEST(modes_are_read)
{
	static const struct {
		const char *text;
		uint32_t mode, seconds;
	} modes[] = {
		{ "burst", NCI_MODE_BURST, 0 }, { "always", NCI_MODE_ALWAYS, 0 },
		{ "never", NCI_MODE_NEVER, 0 }, { "first 60s", NCI_MODE_FIRST, 60 },
		{ "first 5", NCI_MODE_FIRST, 5 }, { "first 86400s", NCI_MODE_FIRST, 86400 },
	};

	for (int i = 0; i < FX_COUNT(modes); i++) {
		read_variables("", "", modes[i].text);
		ck_assert_uint_eq(e.mode, modes[i].mode);
		ck_assert_uint_eq(e.mode_s, modes[i].seconds);
		ck_assert(!e.misspelt);
	}
	setenv("NCCLINSP_SETTLE", "3s", 1);
	environment_read(&e);
	ck_assert_uint_eq(e.settle_s, 3);
}

TEST(raw_mask_is_taken_as_it_is_within_the_version)
{
	static const struct {
		const char *text;
		int version;
		uint32_t mask;
	} raw[] = {
		{ "0x40", 3, 0x40 }, { "64", 4, 0x40 }, { "0x20", 1, 0x20 },
		{ "0xffffffff", 2, 0x3f }, { "0xFFFF", 5, 0xfff }, { "32767", 6, 0x7fff },
		{ "0xffff", 6, 0x7fff }, { "0xffff", 7, 0xffff }, { "0", 6, 0 }, { "0X2", 6, 2 },
	};

	for (int i = 0; i < FX_COUNT(raw); i++) {
		read_variables("ops", raw[i].text, "");
		ck_assert(e.has_mask && !e.misspelt);
		level_take_mask(&lv, raw[i].version, e.mask);
		ck_assert_uint_eq(lv.level, NCI_LEVEL_MASK);
		ck_assert_msg(lv.mask == raw[i].mask, "%s: 0x%x", raw[i].text, lv.mask);
	}
}

TEST(parents_that_nccl_brings_along_get_handles)
{
	level_take_mask(&lv, 6, NCCL_PROXY_STEP);
	ck_assert_uint_eq(lv.wanted, NCCL_PROXY_STEP | NCCL_PROXY_OP | NCCL_COLL | NCCL_P2P |
			  NCCL_GROUP | NCCL_COLL_API | NCCL_P2P_API | NCCL_GROUP_API);
	level_take_mask(&lv, 2, NCCL_PROXY_STEP);
	ck_assert_uint_eq(lv.wanted, NCCL_PROXY_STEP | NCCL_PROXY_OP | NCCL_COLL | NCCL_P2P |
			  NCCL_GROUP);
	level_take_mask(&lv, 6, NCCL_PROXY_CTRL);	/* brings nothing */
	ck_assert_uint_eq(lv.wanted, NCCL_PROXY_CTRL);
	level_take_mask(&lv, 6, NCCL_CE_SYNC);
	ck_assert_uint_eq(lv.wanted, NCCL_CE_SYNC | NCCL_CE_COLL | NCCL_COLL_API |
			  NCCL_GROUP_API);
}

TEST(events_that_a_level_does_not_want_get_no_handle)
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

TEST(level_off_records_nothing)
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

int main(void)
{
	return fx_run(NULL, NULL);
}
