/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PLUGIN_LEVEL_H
#define PLUGIN_LEVEL_H

/* What to ask NCCL for: a pure function of what the user wrote and what there is. */

#include <stdbool.h>
#include <stdint.h>

/* Shared memory that NCCL takes for KernelCh on first use is 33 MiB. */
#define LEVEL_SPARE_BYTES	(UINT64_C(40) << 20)

struct level {
	uint32_t level;		/* NCI_LEVEL_* */
	uint32_t mask;		/* for NCCL */
	uint32_t wanted;	/* events that get a handle: mask, and the parents it brings */
	bool folds;		/* steps leave no record beside the sums of their operation */
	uint32_t reason;	/* NCI_REASON_*: why mask is less than the level asks for */
	bool by_name;		/* the environment asks for it by a mask or as trace: no care */
	bool misspelt;		/* a text was no level or no mask, and was ignored */
};

/* All events that a version of the interface knows; 0 for a version that is none. */
uint32_t level_events(int version);

/* "net" and so on; never NULL. */
const char *level_name(uint32_t level);

/*
 * `name` is NCCLINSP_LEVEL, `mask` NCCL_PROFILE_EVENT_MASK (decimal or 0x...,
 * stronger than the name); NULL or "" where not set.  `spare_bytes`: free shared
 * memory.
 */
void level_choose(struct level *lv, int version, const char *name, const char *mask,
		  uint64_t spare_bytes);

/*
 * The same level as the control file asks for it: always with care.  `scarce`: that
 * there is too little shared memory is known.
 */
void level_switch(struct level *lv, int version, uint32_t level, bool scarce);

/*
 * What of it an NCCL that speaks `version` may be asked for; where a process has
 * two NCCLs, that is not the version that the level was chosen for.
 */
uint32_t level_mask(const struct level *lv, int version);

/*
 * For a later communicator: true if KernelCh has just gone from lv->mask, because
 * shared memory has become scarce.  It does not come back.
 */
bool level_shrink(struct level *lv, uint64_t spare_bytes);

#endif
