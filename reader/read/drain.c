/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One poll:
 *
 *     look      live block and lane directory of every segment      (R1)
 *     copy      the lines that are new, as far as they fit into the buffer
 *     look      at the directories of these lanes again             (R2, R3)
 *     deliver   what was whole: decode, hand on
 *
 * and again from copy while the buffer was too small.  An idle segment costs one
 * read of a few hundred bytes.
 */
#include "reader/read/drain.h"

#include <errno.h>
#include <stdlib.h>

#include "reader/base/pool.h"
#include "reader/read/decode.h"
#include "reader/read/look.h"
#include "reader/read/slots.h"
#include "reader/time/ticks.h"
#include "shmring/clock.h"
#include "util/cleanup.h"
#include "util/list.h"

#define MAX_SEGMENTS	1024
#define BUFFER_LINES	16384u		/* 1 MiB: four full lanes, and still in the L2 cache */
#define MAX_PLANS	1024u		/* lanes in one batch */
#define FIRST_LANES	16		/* lanes of a process that the first look covers */
#define MAX_ROUNDS	16		/* then others get their turn */

#define AIM_PERCENT	12		/* lane's fill between two polls; a quarter is too much */
#define MIN_WAIT_NS	UINT64_C(1000000)
#define MAX_WAIT_NS	UINT64_C(100000000)
#define IDLE_WAIT_NS	UINT64_C(15000000)	/* idle, if polling costs nothing */
#define IDLE_SHARE	2000		/* idle polling may take 1/2000 of a core */
#define TABLES_NS	UINT64_C(100000000)	/* between two looks for finalized communicators */
#define ALL_NS		UINT64_C(10000000000)	/* looks even where their number tells of none */
#define FUTURE_NS	1e9		/* a stamp further ahead is a lie */

struct drain_plan {
	struct attached *a;
	uint32_t lane;
};

struct drain {
	const struct tick_clock *ticks;
	drain_sink *sink;
	void *arg;
	struct attached at[MAX_SEGMENTS];
	uint32_t count;
	uint32_t turn;			/* number of the one that plans first */
	struct nci_line *buffer;
	uint32_t used;			/* lines of it */
	struct drain_plan plans[MAX_PLANS];
	uint32_t nplans;
	unsigned fill_percent;		/* fill of the fullest lane at this poll */
	uint64_t polled_ns, wait_ns, tables_ns;
	bool woken;			/* one that did nothing for a while does */
	uint64_t cost_ns;		/* cost of a poll that finds nothing, smoothed */
	struct slots slots;
	struct drain_totals gone;	/* totals of segments that are no longer attached */
};

/* Bytes for a look at all of its lanes. */
static size_t drain_room_for(const struct segment *seg)
{
	return seg->live_bytes + seg->max_lanes * seg->lane_bytes;
}

CLEANUP_DEFINE(drain_free, struct drain)

int drain_new(struct drain **out, const struct tick_clock *ticks, drain_sink *sink, void *arg)
{
	CLEANUP(drain_freep) struct drain *d = calloc(1, sizeof(*d));

	if (!d)
		return -ENOMEM;
	d->buffer = aligned_alloc(NCI_LINE_BYTES, BUFFER_LINES * NCI_LINE_BYTES);
	if (!d->buffer)
		return -ENOMEM;
	d->ticks = ticks;
	d->sink = sink;
	d->arg = arg;
	d->wait_ns = MIN_WAIT_NS;
	*out = DISOWN(d);
	return 0;
}

void drain_free(struct drain *d)
{
	if (!d)
		return;
	for (uint32_t i = 0; i < d->count; i++)
		pages_give(d->at[i].look, drain_room_for(d->at[i].seg));
	slots_deinit(&d->slots);
	free(d->buffer);
	free(d);
}

int drain_add(struct drain *d, struct segment *seg)
{
	uint8_t *look = pages_take(drain_room_for(seg));
	struct attached *a;

	if (!look)
		return -ENOMEM;
	a = array_add(d->at, &d->count);
	if (!a) {
		pages_give(look, drain_room_for(seg));
		return -ENOSPC;
	}
	*a = (struct attached){
		.seg = seg,
		.look = look,
		.cover = seg->max_lanes < FIRST_LANES ? seg->max_lanes : FIRST_LANES,
	};
	d->wait_ns = MIN_WAIT_NS;	/* it may start with a burst */
	return 0;
}

static struct attached *drain_find(struct drain *d, const struct segment *seg)
{
	for (uint32_t i = 0; i < d->count; i++)
		if (d->at[i].seg == seg)
			return &d->at[i];
	return NULL;
}

static void drain_add_totals(struct drain_totals *sum, const struct process *p)
{
	sum->records += p->records;
	sum->bytes += p->bytes;
	sum->lost += process_lost(p);
	sum->before += p->loss.before;
	sum->rejected += p->loss.rejected;
	sum->unknown += p->loss.unknown;
}

void drain_remove(struct drain *d, struct segment *seg)
{
	struct attached *a = drain_find(d, seg);

	if (!a)
		return;
	drain_add_totals(&d->gone, &seg->process);
	pages_give(a->look, drain_room_for(seg));
	*a = d->at[--d->count];
}

void drain_sum(const struct drain *d, struct drain_totals *out)
{
	*out = d->gone;
	for (uint32_t i = 0; i < d->count; i++)
		drain_add_totals(out, &d->at[i].seg->process);
	out->poll_interval_ns = d->wait_ns;
}

/* ---- look ------------------------------------------------------------------ */

/* The part of d->at that is looked at: what may be due, or all of it; or `again`. */
enum who {
	LOOK_DUE,
	LOOK_ALL,
	LOOK_AGAIN,		/* segments with lines in the buffer */
};

static bool wants_look(const struct drain *d, const struct attached *a, enum who who,
		       uint64_t now_ns)
{
	if (a->seg->lies)
		return false;
	if (who == LOOK_AGAIN)
		return a->planned;
	return who == LOOK_ALL || look_is_due(a, (uint32_t)(a - d->at), d->count, now_ns);
}

static struct tick_clock segment_clock_of(const struct drain *d, uint32_t kind, uint64_t now_ns)
{
	if (kind == NCI_CLOCK_MONOTONIC)
		return (struct tick_clock){ .kind = kind, .ticks = now_ns, .mono_ns = now_ns,
					    .ns_per_tick = 1, .span_ns = UINT64_MAX };
	return *d->ticks;
}

static void take_time(const struct drain *d, struct attached *a, uint64_t now_ns)
{
	const struct process *p = &a->seg->process;
	const struct ticks_pair first = { p->first_ticks, p->first_mono_ns };
	struct tick_clock *clock = &a->seg->process.clock;

	*clock = segment_clock_of(d, a->seg->clock, now_ns);
	ticks_reach_back(clock, &first);
	a->latest_ticks = ticks_at(clock, now_ns) +
			  (uint64_t)(FUTURE_NS / clock->ns_per_tick);
}

static void drain_look(struct drain *d, struct attached *first, uint32_t n, enum who who)
{
	uint64_t now_ns = clock_ns(CLOCK_MONOTONIC);
	bool tables = who != LOOK_AGAIN && now_ns >= d->tables_ns;

	for (uint32_t i = 0; i < n; i++) {
		struct attached *a = &first[i];
		bool quiet = a->unchanged, all = who != LOOK_AGAIN && now_ns >= a->all_ns;

		if (!wants_look(d, a, who, now_ns))
			continue;
		if (all)
			a->all_ns = now_ns + ALL_NS;
		look_at(a, all ? TABLES_ALL : tables ? TABLES_CHANGED : TABLES_NEW, now_ns);
		take_time(d, a, now_ns);
		d->woken |= quiet && a->changed_ns == now_ns;
	}
	if (tables)
		d->tables_ns = now_ns + TABLES_NS;
}

/* ---- copy ------------------------------------------------------------------ */

/* False: the buffer is full. */
static bool drain_copy_lane(struct drain *d, struct attached *a, uint32_t i)
{
	struct shmring_reader *reader = &a->seg->lane[i].reader;
	uint32_t room = BUFFER_LINES - d->used;
	struct shmring_span span[2];
	unsigned fill = shmring_fill_percent(reader, look_lane(a, i));
	int n;

	if (fill > d->fill_percent)
		d->fill_percent = fill;
	if (room < NCI_RECORD_MAX_LINES || d->nplans == MAX_PLANS)
		return false;
	n = shmring_want(reader, look_lane(a, i), d->buffer + d->used, room, span);
	if (n < 0)
		a->seg->lies = true;
	if (n <= 0)
		return true;
	for (int k = 0; k < n; k++)	/* a short one: the file was truncated */
		if (segment_read(a->seg, span[k].to, span[k].bytes, span[k].offset) < 0)
			a->seg->lies = true;
	*array_must_add(d->plans, &d->nplans) = (struct drain_plan){ a, i };
	d->used += (uint32_t)(reader->to - reader->first);
	a->planned = true;
	return reader->to == reader->end;
}

static bool drain_copy_segment(struct drain *d, struct attached *a)
{
	a->planned = false;
	if (a->unchanged)
		return true;
	a->read_all = false;
	for (uint32_t i = 0; i < a->seg->nlanes && !a->seg->lies; i++)
		if (a->seg->lane[i].open && !drain_copy_lane(d, a, i))
			return false;
	a->read_all = !a->planned;
	return true;
}

/* False: more is waiting than the buffer holds.  Each time another one is first. */
static bool drain_copy(struct drain *d, struct attached *first, uint32_t n)
{
	bool all = true;

	d->used = d->nplans = 0;
	for (uint32_t k = 0; k < n; k++)
		all = drain_copy_segment(d, &first[(d->turn + k) % n]) && all;
	d->turn++;
	return all;
}

/* ---- deliver --------------------------------------------------------------- */

static void record_deliver(struct drain *d, struct attached *a, struct nci_record *rec,
			   uint64_t now_ns)
{
	struct process *p = &a->seg->process;
	struct event event;

	p->bytes += NCI_FORM_LINES(rec->form) * NCI_LINE_BYTES;
	switch (decode_record(p, rec, a->latest_ticks, &event)) {
	case DECODE_OK:
		d->sink(d->arg, p, &event, now_ns);
		break;
	case DECODE_UNKNOWN:
		p->loss.unknown++;
		break;
	case DECODE_REFUSED:
		p->loss.rejected++;
		break;
	}
}

/* The only kind of thread that does it; SEGMENT_THREADS: any may. */
static enum segment_thread thread_kind(const struct nci_record *rec)
{
	switch (rec->type) {
	case NCI_EV_KERNEL_CH:
	case NCI_EV_PROXY_STEP:
	case NCI_EV_PROXY_CTRL:
	case NCI_EV_PROXY_SUMS:
		return SEGMENT_PROGRESS;
	case NCI_EV_GROUP_API:
	case NCI_EV_COLL_API:
	case NCI_EV_P2P_API:
		return SEGMENT_CALLING;
	}
	return SEGMENT_THREADS;
}

static pid_t lane_owner(const struct attached *a, uint32_t lane)
{
	return (pid_t)atomic_load_explicit(&look_lane(a, lane)->tid, memory_order_relaxed);
}

static void lane_deliver(struct drain *d, struct drain_plan *plan_of, uint64_t now_ns)
{
	struct attached *a = plan_of->a;
	struct process *p = &a->seg->process;
	struct segment_lane *lane = &a->seg->lane[plan_of->lane];
	struct shmring_reader *reader = &lane->reader;
	struct shmring_reader was = *reader;
	const struct nci_record *rec;
	enum segment_thread kind;
	int r;

	if (a->seg->lies)
		return;
	r = shmring_settle(reader, look_lane(a, plan_of->lane));
	/* The record lies in our own buffer: decode may mend it. */
	while (r >= 0 && (r = shmring_next(reader, &rec)) > 0) {
		kind = thread_kind(rec);
		if (kind < SEGMENT_THREADS)
			lane->tid[kind] = lane_owner(a, plan_of->lane);
		record_deliver(d, a, (struct nci_record *)(uintptr_t)rec, now_ns);
	}
	if (r < 0)
		a->seg->lies = true;
	p->records += reader->records - was.records;
	p->loss.overrun += reader->lost - was.lost;
	p->loss.before += reader->before - was.before;
	if (reader->records != was.records)
		p->last_record_ns = now_ns;
}

static void drain_deliver(struct drain *d)
{
	uint64_t now_ns = clock_ns(CLOCK_MONOTONIC);

	for (uint32_t i = 0; i < d->nplans; i++)
		lane_deliver(d, &d->plans[i], now_ns);
}

/* True: more is waiting. */
static bool round_of(struct drain *d, struct attached *first, uint32_t n)
{
	bool all = drain_copy(d, first, n);

	if (!d->nplans)
		return false;
	atomic_thread_fence(memory_order_acquire);			/* R2 */
	drain_look(d, first, n, LOOK_AGAIN);
	drain_deliver(d);
	return !all;
}

static bool drain_poll_segments(struct drain *d, struct attached *first, uint32_t n, enum who who)
{
	int rounds = MAX_ROUNDS;
	bool more = true;

	d->woken = false;
	drain_look(d, first, n, who);
	if (d->woken && who == LOOK_DUE)	/* so may the others of its job be */
		drain_look(d, first, n, LOOK_ALL);
	while (more && rounds--)
		more = round_of(d, first, n);
	return more;
}

/* ---- when ------------------------------------------------------------------ */

static uint64_t value_clamp(uint64_t n, uint64_t low, uint64_t high)
{
	return n < low ? low : n > high ? high : n;
}

/*
 * The wait in which the fullest lane reaches AIM_PERCENT at the rate at which it was just
 * filled; slower by steps only.  An idle process may wake at any moment: idle
 * polls come as often as IDLE_SHARE allows.
 */
static uint64_t drain_next_wait(const struct drain *d, uint64_t since_ns)
{
	uint64_t idle = value_clamp(d->cost_ns * IDLE_SHARE, IDLE_WAIT_NS, MAX_WAIT_NS);
	uint64_t wait = d->wait_ns * 2;

	if (d->fill_percent && since_ns * AIM_PERCENT / d->fill_percent < wait)
		wait = since_ns * AIM_PERCENT / d->fill_percent;
	return value_clamp(wait, MIN_WAIT_NS, idle);
}

uint64_t drain_poll(struct drain *d, uint64_t now_ns)
{
	uint64_t since_ns = now_ns - d->polled_ns, cost_ns;
	bool more;

	if (!d->count) {
		d->polled_ns = now_ns;
		d->wait_ns = MAX_WAIT_NS;
		return now_ns + d->wait_ns;
	}
	d->polled_ns = now_ns;
	d->fill_percent = 0;
	more = drain_poll_segments(d, d->at, d->count, LOOK_DUE);
	cost_ns = clock_ns(CLOCK_MONOTONIC) - now_ns;
	if (!d->fill_percent)
		d->cost_ns = (d->cost_ns * 7 + cost_ns) / 8;
	if (more)
		return now_ns;
	d->wait_ns = drain_next_wait(d, since_ns);
	return now_ns + d->wait_ns;
}

/* ---- the end, and what is in flight ---------------------------------------- */

void drain_finish(struct drain *d, struct segment *seg)
{
	struct attached *a = drain_find(d, seg);
	bool more = true;

	if (!a)
		return;
	/* Work that others did for it (PXN) must be known before it is over. */
	drain_poll_segments(d, d->at, d->count, LOOK_ALL);
	d->tables_ns = a->all_ns = 0;	/* finalized communicators too */
	/* The first look may have found more lanes than it covered. */
	for (int i = 0; i < 2 || (more && i < MAX_ROUNDS); i++)
		more = !seg->lies && drain_poll_segments(d, a, 1, LOOK_ALL);
	if (!seg->lies && slots_copy(&d->slots, a) == 0)
		slots_keep(&d->slots, &seg->process);
}

int drain_slots(struct drain *d, struct process *p, const struct live_slot **slots)
{
	struct attached *a = drain_find(d, process_segment(p));
	int r;

	if (!a)
		return -ESRCH;
	if (a->seg->lies)
		return -EPROTO;
	drain_look(d, a, 1, LOOK_ALL);
	if (a->seg->lies)
		return -EPROTO;
	r = slots_copy(&d->slots, a);
	if (r < 0)
		return r;
	*slots = d->slots.at;
	return (int)d->slots.n;
}

uint32_t drain_threads(struct drain *d, struct process *p, enum segment_thread kind,
		       pid_t *tids, uint32_t max)
{
	const struct attached *a = drain_find(d, process_segment(p));
	uint32_t n = 0;

	for (uint32_t i = 0; a && i < a->seg->nlanes && n < max; i++) {
		pid_t tid = a->seg->lane[i].tid[kind];

		if (tid > 0 && tid == lane_owner(a, i))
			tids[n++] = tid;
	}
	return n;
}
