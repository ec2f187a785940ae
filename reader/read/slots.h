/* SPDX-License-Identifier: Apache-2.0 */
#ifndef READER_READ_SLOTS_H
#define READER_READ_SLOTS_H

/* The events in flight in a process: its live handle slots, copied and checked. */

#include "reader/read/look.h"
#include "util/list.h"

/* Copies in hand; zeroed is empty. */
struct slots {
	struct nci_slot *pool[3];	/* three copies of one lane's pool */
	LIST(struct live_slot);
};

void slots_deinit(struct slots *s);

/*
 * Copy the live slots of all lanes, as a look has found them, to s->at, s->n of them.
 * 0 or a negative errno; -EPROTO: it was truncated.
 */
int slots_copy(struct slots *s, const struct attached *a);

/* Keep what slots_copy() found as what was in flight at the end.  0 or -ENOMEM. */
int slots_keep(const struct slots *s, struct process *p);

#endif
