/* SPDX-License-Identifier: Apache-2.0 */
/*
 * NCCL delivers more than what its mask says: the parents of what was asked for.
 * They are recorded too, since grouping and names hang on them; up to v4 NCCL
 * even drops children whose parent was refused.
 */
#include "plugin/level.h"

#include "nci/segment.h"
#include "nccl/profiler.h"

#define FIRST_API_WITH_CALM_PROXY_CTRL	4	/* before, it floods with each proxy loop */

#define OPS	(NCCL_COLL_API | NCCL_P2P_API | NCCL_COLL | NCCL_P2P | NCCL_CE_COLL)
#define NET	(NCCL_PROXY_OP | NCCL_PROXY_STEP)

static const struct {
	const char *name;
	uint32_t mask;
	bool folds;
} levels[NCI_LEVELS] = {
	/* `off` keeps the one callback through which it can be switched on again. */
	[NCI_LEVEL_OFF]    = { "off",    NCCL_GROUP_API, false },
	[NCI_LEVEL_OPS]    = { "ops",    OPS, false },
	[NCI_LEVEL_KERNEL] = { "kernel", OPS | NCCL_KERNELS, false },
	[NCI_LEVEL_NET]    = { "net",    OPS | NCCL_KERNELS | NET, true },
	[NCI_LEVEL_TRACE]  = { "trace",  NCCL_EVENTS_V7, false },
	[NCI_LEVEL_MASK]   = { "mask",   0, false },
};

static const uint32_t version_events[NCCL_PROFILER_VERSIONS + 1] = {
	0, NCCL_EVENTS_V1, NCCL_EVENTS_V2, NCCL_EVENTS_V3, NCCL_EVENTS_V4, NCCL_EVENTS_V5,
	NCCL_EVENTS_V6, NCCL_EVENTS_V7,
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
	return level < NCI_LEVELS ? levels[level].name : "unknown";
}

uint32_t level_essence(uint32_t mask)
{
	for (size_t i = 0; i < sizeof(implied) / sizeof(implied[0]); i++)
		if (implied[i].parent & LEVEL_SPARE_BITS &&
		    mask & implied[i].for_any & ~(uint32_t)LEVEL_SPARE_BITS)
			mask &= ~implied[i].parent;
	return mask;
}

void level_take_mask(struct level *lv, int version, uint32_t mask)
{
	uint32_t events = level_events(version);

	if (mask & NCCL_KERNEL_PHASE & events)
		mask |= NCCL_KERNEL_CH;		/* NCCL would do so too */
	*lv = (struct level){ .level = NCI_LEVEL_MASK, .mask = mask & events };
	lv->wanted = lv->mask;
	for (size_t i = 0; i < sizeof(implied) / sizeof(implied[0]); i++)
		if (lv->mask & implied[i].for_any)
			lv->wanted |= implied[i].parent & events;
	lv->wanted &= ~(uint32_t)NCCL_KERNEL_PHASE;	/* told to its KernelCh */
}

void level_take(struct level *lv, int version, uint32_t level)
{
	uint32_t mask = levels[level].mask;

	if (version < FIRST_API_WITH_CALM_PROXY_CTRL)
		mask &= ~(uint32_t)NCCL_PROXY_CTRL;
	level_take_mask(lv, version, mask);
	lv->level = level;
	lv->folds = levels[level].folds;
	if (level != NCI_LEVEL_OFF)
		return;
	lv->wanted = 0;
	if (!lv->mask)
		lv->mask = NCCL_GROUP;		/* older versions have no GroupApi */
}
