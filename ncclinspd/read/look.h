/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NCCLINSPD_READ_LOOK_H
#define NCCLINSPD_READ_LOOK_H

/*
 * One look at a segment: its live block and lane directory, which tell in one
 * copy of a few hundred bytes everything that is new in a process.
 */

#include "ncclinspd/find/segment.h"
#include "ncclinspd/model.h"

/* A copy of what lies behind live_offset. */
struct look {
	struct nci_live live;
	struct nci_lane lane[];
};

/* A segment that is being drained. */
struct attached {
	struct segment *seg;
	struct look *look;	/* room for all lanes */
	uint32_t cover;		/* lanes that the next look reads */
	bool planned;		/* has lines in the buffer */
	uint64_t latest_ticks;	/* no stamp in hand is later */
};

/* How many bytes at seg->live_offset the next look copies to a->look. */
uint32_t look_bytes(const struct attached *a);

/*
 * They are there: check them and take over what changes rarely: counters, new lanes,
 * tables.  0 or -EPROTO.
 */
int look_take(struct attached *a, enum segment_tables which);

#endif
