/* SPDX-License-Identifier: Apache-2.0 */
#include "ncclinspd/look.h"

#include <errno.h>

#define SPARE_LANES	2	/* read beyond those in use: new ones show up at once */

uint32_t look_bytes(const struct attached *a)
{
	return (uint32_t)(sizeof(struct look) + a->cover * sizeof(struct nci_lane));
}

static uint32_t load32(const _Atomic uint32_t *p)
{
	return atomic_load_explicit(p, memory_order_relaxed);
}

static uint64_t load64(const _Atomic uint64_t *p)
{
	return atomic_load_explicit(p, memory_order_relaxed);
}

/* Events that the process itself could not record. */
static void take_counters(struct attached *a)
{
	const struct nci_live *live = &a->look->live;
	struct process *p = &a->seg->process;

	p->loss.pool = 0;
	for (uint32_t i = 0; i < a->seg->nlanes; i++)
		p->loss.pool += load64(&a->look->lane[i].pool_full) +
				load32(&a->look->lane[i].reclaimed);
	p->loss.lane = load64(&live->no_lane);
	p->loss.string = load64(&live->no_string);
	p->loss.comm = load64(&live->no_comm);
	p->api_version = load32(&live->api_version);
	p->level = load32(&live->level);
	p->mask = load32(&live->mask);
	p->reason = load32(&live->reason);
}

/*
 * A lane is opened from a second copy of its line: what was copied beside
 * NCI_LANE_READY may be older than it.
 */
static int open_lane(struct segment *seg, struct nci_lane *line, uint32_t i)
{
	uint64_t at = seg->live_offset + sizeof(struct nci_live) + i * sizeof(*line);
	int r;

	atomic_thread_fence(memory_order_acquire);
	r = segment_read(seg, line, sizeof(*line), at);
	return r < 0 ? r : segment_lane_open(seg, i, line);
}

static int open_lanes(struct attached *a)
{
	struct segment *seg = a->seg;

	for (uint32_t i = 0; i < seg->nlanes; i++) {
		struct nci_lane *line = &a->look->lane[i];
		int r;

		if (seg->lane[i].open || load32(&line->state) != NCI_LANE_READY)
			continue;
		r = open_lane(seg, line, i);
		if (r < 0)
			return r;
	}
	return 0;
}

int look_take(struct attached *a, int copied, bool all)
{
	struct segment *seg = a->seg;
	uint32_t lanes = load32(&a->look->live.lanes);
	int r;

	if (copied < 0 || (uint32_t)copied != look_bytes(a))
		return -EPROTO;
	if (lanes > seg->max_lanes)
		lanes = seg->max_lanes;
	if (lanes < seg->process.lanes)
		return -EPROTO;
	seg->process.lanes = lanes;
	if (lanes > a->cover) {		/* many at once: the next look sees them all */
		a->cover = seg->max_lanes;
		lanes = seg->nlanes;
	} else if (a->cover > lanes + SPARE_LANES) {
		a->cover = lanes + SPARE_LANES;
	}
	seg->nlanes = lanes;
	r = open_lanes(a);
	if (r == 0)
		r = segment_tables(seg, &a->look->live, all);
	take_counters(a);
	return r;
}
