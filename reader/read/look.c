/* SPDX-License-Identifier: Apache-2.0 */
/* A look compares the hash of one copy with the last one: an idle process costs little more. */
#include "reader/read/look.h"

#include <errno.h>

#include "nci/control.h"
#include "reader/base/pool.h"

#define SPARE_LANES	2	/* read beyond those in use: new ones show up at once */
#define REST_NS		UINT64_C(1000000)	/* between two looks at any that do nothing ... */
#define MAX_REST_NS	UINT64_C(500000000)	/* ... but not at the same one */
#define QUIET_NS	UINT64_C(1000000000)	/* they have done nothing for so long ... */
#define LONG_NS		UINT64_C(10000000000)	/* ... or for so long: a quarter of the looks */

static size_t look_bytes(const struct attached *a)
{
	return a->seg->live_bytes + a->cover * a->seg->lane_bytes;
}

static uint32_t look_load32(const _Atomic uint32_t *p)
{
	return atomic_load_explicit(p, memory_order_relaxed);
}

static uint64_t look_load64(const _Atomic uint64_t *p)
{
	return atomic_load_explicit(p, memory_order_relaxed);
}

/* Takes the counts of what the process itself could not record. */
static void take_counters(struct attached *a)
{
	const struct nci_live *live = look_live(a);
	struct process *p = &a->seg->process;

	p->loss.pool = p->ignored.handle = 0;
	for (uint32_t i = 0; i < a->seg->nlanes; i++) {
		p->loss.pool += look_load64(&look_lane(a, i)->pool_full) +
				look_load32(&look_lane(a, i)->reclaimed);
		p->ignored.handle += look_load64(&look_lane(a, i)->stale);
	}
	p->loss.lane = look_load64(&live->no_lane);
	p->loss.string = look_load64(&live->no_string);
	p->loss.comm = look_load64(&live->no_comm);
	p->ignored.event = look_load64(&live->unknown_event);
	p->ignored.state = look_load64(&live->unknown_state);
	p->ignored.finalized = look_load64(&live->closed_comm);
	p->ignored.context = look_load64(&live->bad_context);
	p->api_version = look_load32(&live->api_version);
	p->tags_full = look_load32(&live->flags) & NCI_LIVE_TAGS_FULL;
	p->is_rccl = look_load32(&live->flags) & NCI_LIVE_RCCL;
	p->level = look_load32(&live->level);
	p->mask = look_load32(&live->mask);
	p->seen = look_load32(&live->seen);
}

static bool pid_is_one_of(uint32_t value, uint32_t last)
{
	return value >= 1 && value <= last;
}

/*
 * Takes what steers the process.  Each field is whole by itself and only shown, so that a
 * block with a field that makes no sense is not known.
 */
static int take_steering(struct attached *a)
{
	struct nci_steer from;
	struct steering *to = &a->seg->process.steering;
	int r = segment_read(a->seg, &from, sizeof(from), offsetof(struct nci_header, steer));

	if (r < 0)
		return r;
#define TAKE32(name) to->name = look_load32(&from.name)
#define TAKE64(name) to->name = look_load64(&from.name)
	TAKE64(sequence);
	to->since_ticks = look_load64(&from.since);
	to->until_ns = look_load64(&from.until_mono_ns);
	to->settles_ns = look_load64(&from.settles_mono_ns);
	TAKE32(source);
	TAKE32(cause);
	TAKE32(sample);
	TAKE32(mode);
	TAKE32(mode_s);
	TAKE32(nccl_version);
	TAKE64(stores);
	TAKE64(switches);
	TAKE64(control_reads);
	TAKE64(control_refused);
#undef TAKE32
#undef TAKE64
	for (int i = 0; i < NCI_THREAD_CLASSES; i++) {
		to->timed[i].count = look_load64(&from.timed[i].count);
		to->timed[i].ticks = look_load64(&from.timed[i].ticks);
	}
	to->known = pid_is_one_of(to->source, NCI_SOURCE_OUTSIDE) && to->cause <= NCI_CAUSE_TRACE &&
		    pid_is_one_of(to->sample, NCI_SAMPLE_ALL) &&
		    pid_is_one_of(to->mode, NCI_MODES - 1);
	return 0;
}

/*
 * A lane is opened from a second copy of its line: what was copied beside
 * NCI_LANE_READY may be older than it.
 */
static int look_open_lane(struct segment *seg, struct nci_lane *line, uint32_t i)
{
	uint64_t at = seg->live_offset + seg->live_bytes + i * seg->lane_bytes;
	int r;

	atomic_thread_fence(memory_order_acquire);
	r = segment_read(seg, line, sizeof(*line), at);
	return r < 0 ? r : segment_lane_open(seg, i, line);
}

static int look_open_lanes(struct attached *a)
{
	struct segment *seg = a->seg;

	for (uint32_t i = 0; i < seg->nlanes; i++) {
		struct nci_lane *line = look_lane(a, i);
		int r;

		if (seg->lane[i].open || look_load32(&line->state) != NCI_LANE_READY)
			continue;
		r = look_open_lane(seg, line, i);
		if (r < 0)
			return r;
	}
	return 0;
}

static int look_take(struct attached *a, enum segment_tables which)
{
	struct segment *seg = a->seg;
	uint32_t lanes = look_load32(&look_live(a)->lanes), level = seg->process.level;
	int r;

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
	r = look_open_lanes(a);
	if (r == 0)
		r = segment_tables(seg, look_live(a), which);
	take_counters(a);
	if (r == 0 && (which != TABLES_NEW || seg->process.level != level))
		r = take_steering(a);	/* since when it has its level is told with that */
	return r;
}

/*
 * Most processes do nothing most of the time: their block is the same as before, and the
 * rest cannot have changed either.  One that records nothing may still follow an order, and of
 * an order that is just being followed the block may tell before the rest is written.
 */
static bool look_is_unchanged(const struct attached *a, enum segment_tables which)
{
	return a->read_all && a->steered && which != TABLES_ALL && a->seg->settled &&
	       a->seg->process.mask;
}

void look_at(struct attached *a, enum segment_tables which, uint64_t now_ns)
{
	size_t bytes = look_bytes(a);
	uint64_t hash;

	a->seg->lies = segment_read(a->seg, a->look, bytes, a->seg->live_offset) < 0;
	if (a->seg->lies)
		return;
	atomic_thread_fence(memory_order_acquire);
	hash = index_hash(0, a->look, bytes);
	a->looked_ns = now_ns;
	if (hash != a->hash) {
		a->changed_ns = now_ns;
		a->read_all = a->steered = false;
	}
	a->hash = hash;
	a->unchanged = look_is_unchanged(a, which);
	if (!a->unchanged)
		a->seg->lies = look_take(a, which) < 0;
	a->steered |= a->changed_ns != now_ns && which != TABLES_NEW;
}

bool look_is_due(const struct attached *a, uint32_t i, uint32_t n, uint64_t now_ns)
{
	uint64_t quiet_ns = a->unchanged ? now_ns - a->changed_ns : 0;
	uint64_t rest_ns = n * REST_NS * (quiet_ns < LONG_NS ? 1 : 4), moment_ns;

	if (quiet_ns < QUIET_NS)
		return true;
	if (rest_ns > MAX_REST_NS)
		rest_ns = MAX_REST_NS;
	moment_ns = rest_ns / n * i;
	return (now_ns - moment_ns) / rest_ns != (a->looked_ns - moment_ns) / rest_ns;
}
