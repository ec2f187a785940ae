/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PLUGIN_STATES_H
#define PLUGIN_STATES_H

/* One row per NCCL state: which event it belongs to, and what it leaves there. */

#include <stdbool.h>

#include "nci/events.h"
#include "nccl/profiler.h"

#define STATES_ANY	0	/* each time; the last one stays */
#define STATES_FIRST	1	/* comes at polling rate: the first is kept, the rest counted */
#define STATES_STARTED	2	/* NCCL records it in one breath with the start: never */

struct states_row {
	uint8_t event;		/* NCI_EV_* */
	uint8_t offset;		/* place of the span or the marks that it fills */
	bool span;		/* a span: emit.c stores it */
	uint8_t when;		/* STATES_*: whether the clock is looked at */
	/* Stores what it leaves beside its span; NULL: nothing.  `args` may be NULL. */
	void (*take)(struct nci_record *rec, uint8_t state, uint8_t offset, uint64_t ticks,
		     const void *args);
};

extern const struct states_row states_rows[NCCL_STATE_END];

#endif
