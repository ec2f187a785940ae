/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PLUGIN_STATES_H
#define PLUGIN_STATES_H

/* One row per NCCL state: which event it belongs to, and what it leaves there. */

#include <stdbool.h>

#include "nci/events.h"
#include "plugin/nccl_profiler.h"

struct states_row {
	uint8_t event;		/* NCI_EV_* */
	uint8_t offset;		/* of the span or the marks that it fills */
	bool span;		/* a span: emit.c stores it */
	bool repeats;		/* comes at polling rate: the first is kept, the rest counted */
	/* What it leaves beside its span; NULL: nothing.  `args` may be NULL. */
	void (*take)(struct nci_record *rec, uint8_t state, uint8_t offset, uint64_t ticks,
		     const void *args);
};

extern const struct states_row states_rows[NCCL_STATE_END];

#endif
