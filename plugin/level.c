/* SPDX-License-Identifier: Apache-2.0 */
/*
 * NCCL delivers more than what its mask says: the parents of what was asked for.
 * They are recorded too, since grouping and names hang on them; up to v4 NCCL
 * even drops children whose parent was refused.
 */
#include "plugin/level.h"

#include <string.h>

#include "nci/segment.h"
#include "plugin/nccl_profiler.h"

#define FIRST_API_WITH_SAFE_KERNEL_CH	5	/* before NCCL 2.28 it can abort the job */
#define FIRST_API_WITH_CALM_PROXY_CTRL	4	/* before, it floods with each proxy loop */

#define OPS	(NCCL_COLL_API | NCCL_P2P_API | NCCL_COLL | NCCL_P2P | NCCL_CE_COLL)
#define NET	(NCCL_PROXY_OP | NCCL_PROXY_STEP)

static const struct {
	const char *name;
	uint32_t mask;
	bool folds;
} levels[NCI_LEVEL_END] = {
	/* `off` keeps the one callback through which it can be switched on again. */
	[NCI_LEVEL_OFF]    = { "off",    NCCL_GROUP_API, false },
	[NCI_LEVEL_OPS]    = { "ops",    OPS, false },
	[NCI_LEVEL_KERNEL] = { "kernel", OPS | NCCL_KERNEL_CH, false },
	[NCI_LEVEL_NET]    = { "net",    OPS | NCCL_KERNEL_CH | NET, true },
	[NCI_LEVEL_TRACE]  = { "trace",  NCCL_EVENTS_V6, false },
	[NCI_LEVEL_MASK]   = { "mask",   0, false },
};

static const uint32_t version_events[NCCL_PROFILER_VERSIONS + 1] = {
	0, NCCL_EVENTS_V1, NCCL_EVENTS_V2, NCCL_EVENTS_V3, NCCL_EVENTS_V4, NCCL_EVENTS_V5,
	NCCL_EVENTS_V6,
};

#define BELOW_OP	(NCCL_PROXY_OP | NCCL_PROXY_STEP | NCCL_KERNEL_CH | NCCL_NET_PLUGIN)
#define CE		(NCCL_CE_COLL | NCCL_CE_SYNC | NCCL_CE_BATCH)

/* An event that comes whenever one of `for_any` was asked for. */
static const struct {
	uint32_t parent;
	uint32_t for_any;
} implied[] = {
	{ NCCL_GROUP_API, NCCL_EVENTS_V6 & ~NCCL_PROXY_CTRL },
	{ NCCL_COLL_API,  NCCL_COLL | BELOW_OP | CE },
	{ NCCL_P2P_API,   NCCL_P2P | BELOW_OP },
	{ NCCL_GROUP,     NCCL_COLL | NCCL_P2P | BELOW_OP },
	{ NCCL_COLL,      BELOW_OP },
	{ NCCL_P2P,       BELOW_OP },
	{ NCCL_PROXY_OP,  NCCL_PROXY_STEP | NCCL_NET_PLUGIN },
	{ NCCL_PROXY_STEP, NCCL_NET_PLUGIN },
	{ NCCL_CE_COLL,   NCCL_CE_SYNC | NCCL_CE_BATCH },
};

uint32_t level_events(int version)
{
	return version >= 1 && version <= NCCL_PROFILER_VERSIONS ? version_events[version] : 0;
}

const char *level_name(uint32_t level)
{
	return level < NCI_LEVEL_END ? levels[level].name : "unknown";
}

static uint32_t with_parents(uint32_t mask)
{
	uint32_t wanted = mask;

	for (size_t i = 0; i < sizeof(implied) / sizeof(implied[0]); i++)
		if (mask & implied[i].for_any)
			wanted |= implied[i].parent;
	return wanted;
}

static int digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c |= 0x20;
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : 16;
}

/* Own parsing: strtoul() would bind us to the newest C library. */
static bool parse_mask(const char *text, uint32_t *mask)
{
	int base = text[0] == '0' && (text[1] | 0x20) == 'x' ? 16 : 10;
	uint64_t value = 0;

	if (base == 16)
		text += 2;
	if (!*text)
		return false;
	for (; *text; text++) {
		int d = digit(*text);

		if (d >= base)
			return false;
		value = value * (unsigned int)base + (unsigned int)d;
		if (value > UINT32_MAX)
			return false;
	}
	*mask = (uint32_t)value;
	return true;
}

static bool parse_level(const char *text, uint32_t *level)
{
	for (uint32_t i = 0; i < NCI_LEVEL_MASK; i++)
		if (strcmp(text, levels[i].name) == 0) {
			*level = i;
			return true;
		}
	return false;
}

static bool takes_kernel_ch_with_care(const struct level *lv)
{
	return !lv->by_name && lv->level < NCI_LEVEL_END &&
	       levels[lv->level].mask & NCCL_KERNEL_CH;
}

bool level_shrink(struct level *lv, uint64_t spare_bytes)
{
	if (!takes_kernel_ch_with_care(lv) || !(lv->mask & NCCL_KERNEL_CH) ||
	    spare_bytes >= LEVEL_SPARE_BYTES)
		return false;
	lv->reason = NCI_REASON_SHM;
	lv->mask &= ~(uint32_t)NCCL_KERNEL_CH;
	return true;
}

uint32_t level_mask(const struct level *lv, int version)
{
	uint32_t mask = lv->mask & level_events(version);

	if (lv->level == NCI_LEVEL_MASK)
		return mask;
	if (lv->level == NCI_LEVEL_OFF && !mask)
		return NCCL_GROUP;	/* older versions have no GroupApi */
	if (version < FIRST_API_WITH_CALM_PROXY_CTRL)
		mask &= ~(uint32_t)NCCL_PROXY_CTRL;
	if (takes_kernel_ch_with_care(lv) && version < FIRST_API_WITH_SAFE_KERNEL_CH)
		mask &= ~(uint32_t)NCCL_KERNEL_CH;
	return mask;
}

/* What a level may have in this version and on this machine. */
static void take_level(struct level *lv, int version, uint64_t spare_bytes)
{
	lv->mask = levels[lv->level].mask;
	lv->folds = levels[lv->level].folds;
	lv->mask = level_mask(lv, version);
	if (takes_kernel_ch_with_care(lv) && version < FIRST_API_WITH_SAFE_KERNEL_CH)
		lv->reason = NCI_REASON_API;
	level_shrink(lv, spare_bytes);
	if (lv->level != NCI_LEVEL_OFF)
		lv->wanted = with_parents(lv->mask) & level_events(version);
}

void level_switch(struct level *lv, int version, uint32_t level, bool scarce)
{
	*lv = (struct level){ .level = level };
	take_level(lv, version, scarce ? 0 : UINT64_MAX);
}

void level_choose(struct level *lv, int version, const char *name, const char *mask,
		  uint64_t spare_bytes)
{
	*lv = (struct level){ .level = NCI_LEVEL_NET };
	if (name && *name && !parse_level(name, &lv->level))
		lv->misspelt = true;
	if (mask && *mask) {
		if (parse_mask(mask, &lv->mask)) {
			lv->level = NCI_LEVEL_MASK;
			lv->by_name = true;
			lv->mask &= level_events(version);
			lv->wanted = with_parents(lv->mask) & level_events(version);
			return;
		}
		lv->misspelt = true;
	}
	lv->by_name = lv->level == NCI_LEVEL_TRACE;
	take_level(lv, version, spare_bytes);
}
