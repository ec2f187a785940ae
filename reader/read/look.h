/* SPDX-License-Identifier: Apache-2.0 */
#ifndef READER_READ_LOOK_H
#define READER_READ_LOOK_H

/*
 * One look at a segment: its live block and lane directory, which tell in one
 * copy of a few hundred bytes everything that is new in a process.
 */

#include "reader/base/model.h"
#include "reader/read/segment.h"

/* A segment that is being drained. */
struct attached {
	struct segment *seg;
	uint8_t *look;		/* a copy of what lies at live_offset; room for all lanes */
	uint32_t cover;		/* lanes that the next look reads */
	bool planned;		/* has lines in the buffer */
	uint64_t hash;		/* hash of the state that was looked at last */
	bool read_all;		/* all that it tells of is read */
	bool steered;		/* what steers it was taken after the last change */
	bool unchanged;		/* all is read, no change since the look before: nothing to do */
	uint64_t looked_ns, changed_ns;
	uint64_t all_ns;	/* next look at all of its tables */
	uint64_t latest_ticks;	/* no stamp in hand is later */
};

static inline const struct nci_live *look_live(const struct attached *a)
{
	return (const struct nci_live *)a->look;
}

static inline struct nci_lane *look_lane(const struct attached *a, uint32_t i)
{
	return (struct nci_lane *)(a->look + a->seg->live_bytes + i * a->seg->lane_bytes);
}

/*
 * Look, and if anything has changed check it and take over what changes rarely: counters,
 * new lanes, tables.  a->seg->lies: it was caught.
 */
void look_at(struct attached *a, enum segment_tables which, uint64_t now_ns);

/*
 * Whether the i-th of `n` is to be looked at now: not each time where it has done nothing for a
 * while.  Each has a moment of its own, so that any poll looks at some of a job's processes.
 */
bool look_is_due(const struct attached *a, uint32_t i, uint32_t n, uint64_t now_ns);

#endif
