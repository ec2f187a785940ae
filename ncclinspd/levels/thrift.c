/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A level must not go up and down with every second: the median of many looks decides,
 * and a step up that does not last makes the next one wait longer.
 */
#include "ncclinspd/levels/thrift.h"

#include <string.h>

#include "tables/stat.h"

void thrift_init(struct thrift *t)
{
	*t = (struct thrift){ .cap = WISH_KEEP, .wait_ns = THRIFT_LEAST_NS };
}

static void thrift_step(struct thrift *t, uint32_t cap, uint64_t now_ns)
{
	t->cap = cap;
	t->looks = 0;
	t->since_ns = now_ns;
}

/* A step up that did not last has the next one wait for twice as long. */
static void thrift_lower(struct thrift *t, uint32_t level, double share, uint64_t now_ns)
{
	if (!t->raised_ns || now_ns - t->raised_ns > t->wait_ns)
		t->wait_ns = THRIFT_LEAST_NS;
	else
		t->wait_ns = t->wait_ns * 2 < THRIFT_MOST_NS ? t->wait_ns * 2 : THRIFT_MOST_NS;
	if (t->cap == WISH_KEEP)
		t->from = level;
	t->raised_ns = 0;
	t->cost = share;
	thrift_step(t, level == NCI_LEVEL_NET ? NCI_LEVEL_KERNEL : NCI_LEVEL_OPS, now_ns);
}

static void thrift_raise(struct thrift *t, uint64_t now_ns)
{
	bool back = t->cap == NCI_LEVEL_KERNEL || t->from == NCI_LEVEL_KERNEL;

	t->raised_ns = now_ns;
	thrift_step(t, back ? WISH_KEEP : NCI_LEVEL_KERNEL, now_ns);
}

/* The process does not follow, or not yet: no reason to go on. */
static bool level_is_above_cap(const struct thrift *t, uint32_t level)
{
	return t->cap != WISH_KEEP && level > t->cap;
}

bool thrift_look(struct thrift *t, const struct thrift_look *look, uint64_t now_ns)
{
	double share, sorted[THRIFT_LOOKS];

	if (look->budget <= 0 || look->share < 0 || look->held ||
	    level_is_above_cap(t, look->level)) {
		t->looks = 0;
		return false;
	}
	t->share[t->looks++ % THRIFT_LOOKS] = look->share;
	if (t->looks < THRIFT_LOOKS)
		return false;
	memcpy(sorted, t->share, sizeof(sorted));
	share = stat_median(sorted, THRIFT_LOOKS);
	if (share > look->budget &&
	    (look->level == NCI_LEVEL_NET || look->level == NCI_LEVEL_KERNEL)) {
		thrift_lower(t, look->level, share, now_ns);
		return true;
	}
	if (t->cap != WISH_KEEP && share < look->budget / 2 &&
	    now_ns - t->since_ns >= t->wait_ns) {
		thrift_raise(t, now_ns);
		return true;
	}
	return false;
}
