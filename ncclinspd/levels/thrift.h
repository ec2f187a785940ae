/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NCCLINSPD_LEVELS_THRIFT_H
#define NCCLINSPD_LEVELS_THRIFT_H

/*
 * Whether a process's callbacks cost more than the budget allows, and what it is
 * lowered to then: from net to kernel, from kernel to ops, and back later.
 *
 * It goes by the median of the last seconds, since one callback that was interrupted
 * counts as much as thousands.  After a step it waits for as many new seconds; a step
 * back up is tried when the cost has been below half of the budget, at first after a
 * minute, and after twice as long each time that it did not last.
 */

#include "ncclinspd/levels/wishes.h"
#include "reader/base/model.h"

#define THRIFT_LOOKS	11
#define THRIFT_LEAST_NS	(UINT64_C(60) * 1000000000)
#define THRIFT_MOST_NS	(UINT64_C(3600) * 1000000000)

struct thrift {
	uint32_t cap;		/* NCI_LEVEL_KERNEL, NCI_LEVEL_OPS, or WISH_KEEP: not lowered */
	uint32_t from;		/* level that it was lowered from, if it is */
	uint32_t looks;		/* looks since the last step */
	double share[THRIFT_LOOKS];
	double cost;		/* the share for which it was lowered last */
	uint64_t since_ns;	/* the last step; 0: none yet */
	uint64_t raised_ns;	/* the last step, if that was one up; else 0 */
	uint64_t wait_ns;	/* before a step up is tried */
};

struct thrift_look {
	double share;		/* share of wall time since the last look; < 0: not known */
	double budget;		/* share of wall time; <= 0: none, never lowered */
	uint32_t level;		/* NCI_LEVEL_* in force */
	bool held;		/* the level is what somebody wants: not judged */
};

void thrift_init(struct thrift *t);

/* Once a second.  True: the cap has changed. */
bool thrift_look(struct thrift *t, const struct thrift_look *look, uint64_t now_ns);

#endif
