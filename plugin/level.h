/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PLUGIN_LEVEL_H
#define PLUGIN_LEVEL_H

/*
 * The events that a level asks NCCL for: pure functions.  steer.h decides whether
 * kernels may be timed in this process.
 */

#include <stdbool.h>
#include <stdint.h>

struct level {
	uint32_t level;		/* NCI_LEVEL_* */
	uint32_t mask;		/* events that NCCL is asked for */
	uint32_t wanted;	/* events that get a handle: mask, and the parents it brings */
	bool folds;		/* steps leave no record beside the sums of their operation */
};

/* All events that a version of the interface knows; 0 for a version that is none. */
uint32_t level_events(int version);

/* "net" and so on; never NULL. */
const char *level_name(uint32_t level);

/* A level by its number, NCI_LEVEL_OFF to NCI_LEVEL_TRACE; or a mask. */
void level_take(struct level *lv, int version, uint32_t level);
void level_take_mask(struct level *lv, int version, uint32_t mask);

/*
 * A mask without those of its bits that change nothing: parents come with their children,
 * whether or not they are asked for.
 */
uint32_t level_essence(uint32_t mask);

/* The two bits that level_essence() may leave out of every mask with operations in it. */
#define LEVEL_SPARE_BITS	(NCCL_GROUP | NCCL_GROUP_API)

#endif
