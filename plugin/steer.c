/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One thread decides at a time, 40 times a second at most but around the edges of
 * bursts; a thread that finds another one at it goes on, and looks again with its next
 * group.  steer.h says what may change when, tests/test_steer_explore.c tries it.
 */
#include "plugin/process.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "nci/events.h"

#define COARSE_NS	UINT64_C(10000000)	/* a coarse clock is no later than that */
#define QUIET_NS	UINT64_C(25000000)	/* the longest time without a look */
#define ACTIVE_NS	UINT64_C(1000000000)	/* the most that a pause counts for */
#define SECOND_NS	UINT64_C(1000000000)
#define SURE_TICKS	(UINT64_C(1) << 16)	/* time that a call may take until we hear of it */
#define FIRST_API_WITH_SAFE_KERNEL_CH	5	/* before NCCL 2.28 it can abort the job */
#define FIRST_MODERN_NCCL	23101	/* its development branch counts as before */
#define RECENT_TICKS	(UINT64_C(1) << 31)	/* 0.7 s at 3 GHz: what a launch may take */
#define LAUNCH_TICKS	(UINT64_C(1) << 13)	/* a group's end that took so long has launched */
#define SPARE_BYTES	(UINT64_C(40) << 20)	/* NCCL takes 33 MiB of /dev/shm for KernelCh */
#define TRIES		8	/* another thread's change of the mask may come between */
#define PATIENCE	10000	/* looks at whether a callback is still deciding */

/* A test lets other threads go on where memory is shared, and has threads of its own. */
#ifndef STEER_POINT
#define STEER_POINT()
#define STEER_SELF	(&process_thread)
#endif

#define SET(field, value) atomic_store_explicit(&(field), (value), memory_order_relaxed)
#define GET(field) atomic_load_explicit(&(field), memory_order_relaxed)
#define ADD(field, n) atomic_fetch_add_explicit(&(field), (n), memory_order_relaxed)

#define FROZEN		(NCI_SEEN_GRAPHS | NCI_SEEN_SENDERS | NCI_SEEN_LIBRARIES)
#define NO_MORE		(NCI_SEEN_SELF | NCI_SEEN_PAUSE)
#define NONE		(NCI_SEEN_ALLGATHERV | NCI_SEEN_END | NCI_SEEN_SCARCE)

/* ---- NCCL's mask ------------------------------------------------------------------ */

static bool steer_is_on(const struct plugin_steer *s)
{
	return GET(s->value) & NCCL_KERNEL_CH;
}

static uint32_t steer_asked(const struct plugin_steer *s)
{
	int *mask = atomic_load_explicit(&s->mask, memory_order_acquire);

	return mask ? (uint32_t)__atomic_load_n(mask, __ATOMIC_ACQUIRE) : GET(s->value);
}

/* The mask for the level in force.  Kernels may have to stay on also at `off`. */
static uint32_t steer_mask_of(const struct plugin_steer *s, bool kernels)
{
	uint32_t all = NCCL_KERNELS & level_events(s->version);

	return level_essence((s->now.mask & ~(uint32_t)NCCL_KERNELS) | (kernels ? all : 0));
}

/* The spare bits say how many send: none, one, several. */
static uint32_t steer_with_spare_bits(const struct plugin_steer *s, uint32_t value)
{
	uint32_t all = value;

	if (GET(s->sender))
		all |= NCCL_GROUP;
	if (GET(s->seen) & NCI_SEEN_SENDERS)
		all |= NCCL_GROUP_API;
	return level_essence(all) == value ? all : value;
}

/* False, and nothing is stored: the mask does not hold `old` any more. */
static bool steer_swap(struct plugin_steer *s, uint32_t old, uint32_t value)
{
	int *mask = atomic_load_explicit(&s->mask, memory_order_acquire), seen = (int)old;

	STEER_POINT();
	return !mask || __atomic_compare_exchange_n(mask, &seen, (int)value, false,
						    __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
}

static void steer_store(struct plugin_process *p, uint32_t old, uint32_t value, uint64_t ticks)
{
	struct plugin_steer *s = &p->steer;
	struct nci_steer *out = &p->ring.header->steer;
	bool switches = (value ^ old) & NCCL_KERNEL_CH;

	if (value == level_essence(old))
		return;
	if (switches) {		/* before it: what is watched meanwhile is not taken for sure */
		SET(s->switched, ticks);
		ADD(s->switches, 1);
	}
	if (!steer_swap(s, old, steer_with_spare_bits(s, value)))
		return;
	s->before = GET(s->value);
	SET(s->value, value);
	SET(p->ring.live->mask, value);
	ADD(out->stores, 1);
	if (!switches)
		return;
	SET(out->switched, ticks);
	ADD(out->switches, 1);
}

static void steer_drifts(uint64_t comm, uint64_t ticks)
{
	struct nci_comm *entry = &process_self.ring.comms[comm % SHMRING_COMMS];

	if (!process_is_open(comm) || GET(entry->drift))
		return;
	SET(entry->drift, ticks);
	atomic_fetch_add_explicit(&process_self.ring.live->comms_drifted, 1,
				  memory_order_release);
}

/* A mask that is neither our last value nor the one before is somebody's order. */
static bool steer_is_outside(struct plugin_process *p, uint32_t asked, uint64_t ticks)
{
	struct plugin_steer *s = &p->steer;
	uint32_t value = level_essence(asked);

	if (value == GET(s->value) || (value == s->before && !(GET(s->seen) & NCI_SEEN_OUTSIDE)))
		return GET(s->seen) & NCI_SEEN_OUTSIDE;
	atomic_fetch_or_explicit(&s->seen, NCI_SEEN_OUTSIDE, memory_order_relaxed);
	for (size_t i = 0; s->modern && i < SHMRING_COMMS; i++)	/* wrong since our last look */
		steer_drifts(GET(p->open[i]) - 1, s->decided_ticks);
	level_take_mask(&s->now, s->version, asked);
	SET(s->value, value);
	SET(p->ring.live->mask, value);
	SET(p->ring.live->level, NCI_LEVEL_MASK);
	SET(p->ring.header->steer.source, NCI_SOURCE_OUTSIDE);
	SET(p->ring.header->steer.since, ticks);
	atomic_fetch_or_explicit(&p->wanted, s->now.wanted, memory_order_release);
	return true;
}

/* ---- whether kernels are timed ------------------------------------------------------ */

struct steer_moment {
	uint64_t mono_ns, real_ns, ticks;
	bool sent;		/* the calling thread is within a group of sends */
};

static bool steer_wants_kernels(const struct plugin_steer *s, const struct steer_moment *now)
{
	uint32_t seen = GET(s->seen), mask = s->modern ? s->start.mask : s->now.mask;

	if (!(mask & NCCL_KERNEL_CH) || s->mode == NCI_MODE_NEVER || seen & NONE ||
	    (seen & NO_MORE && !steer_is_on(s)))
		return false;
	if (s->mode != NCI_MODE_BURST)
		return true;
	if (s->active_ns < s->env.settle_s * SECOND_NS)
		return false;
	return s->sample == NCI_SAMPLE_ALL || s->now.level == NCI_LEVEL_TRACE ||
	       now->real_ns % s->period_ns < s->length_ns;
}

static bool steer_may_switch(struct plugin_steer *s, bool on, bool sent)
{
	const struct process_thread *sender = GET(s->sender);
	uint32_t seen = GET(s->seen);

	if (seen & FROZEN) {
		/* KernelCh goes off for good if it must; where NCCL would not wait, with care. */
		if (on || seen & (NCI_SEEN_GRAPHS | NCI_SEEN_LIBRARIES))
			return false;
		return seen & NCI_SEEN_ALLGATHERV || (s->modern && !sent && !GET(s->open));
	}
	SET(s->waits, sender && sender != STEER_SELF);
	return !sent && !GET(s->waits);
}

/* ---- level and sampling -------------------------------------------------------------- */

/*
 * Once given, a handle stays good, whatever is wanted now.  The parts of operations in
 * flight go on coming and belong to them: what was wanted once stays so.  But at `off`
 * groups are nothing to record, they are only there for us.
 */
static void steer_take_level(struct plugin_process *p, uint32_t level)
{
	struct plugin_steer *s = &p->steer;
	uint32_t wanted;

	if (level == s->start.level)
		s->now = s->start;
	else
		level_take(&s->now, s->version, level);
	wanted = GET(p->wanted) | s->now.wanted;
	if (s->now.level == NCI_LEVEL_OFF)
		wanted &= ~NCI_EVENT_BIT(p->group);
	if (!(s->now.wanted & (s->version >= 5 ? NCCL_P2P_API : NCCL_P2P)))
		atomic_fetch_or_explicit(&s->seen, NCI_SEEN_PAUSE | (s->modern ? NCI_SEEN_END : 0),
					 memory_order_relaxed);
	SET(p->folds, s->now.folds);
	atomic_store_explicit(&p->wanted, wanted, memory_order_release);
}

/* Put into force what environment and control file come to now. */
static void steer_resolve(struct plugin_process *p, const struct steer_moment *now, bool first)
{
	struct plugin_steer *s = &p->steer;
	const struct nci_control *file = &s->orders.file;
	struct nci_steer *out = &p->ring.header->steer;
	struct orders_result r = { .level = s->start.level, .sample = NCI_SAMPLE_BUDGET };
	bool planned = file->burst_period_ms && now->mono_ns < file->burst_until_mono_ns;

	orders_apply(file, p->ring.header->instance, now->mono_ns, &r);
	if (planned && (!r.until_mono_ns || file->burst_until_mono_ns < r.until_mono_ns))
		r.until_mono_ns = file->burst_until_mono_ns;
	s->period_ns = (planned ? file->burst_period_ms : STEER_PERIOD_MS) * UINT64_C(1000000);
	s->length_ns = (planned ? file->burst_length_us : STEER_LENGTH_US) * UINT64_C(1000);
	if (first || r.level != s->now.level || r.sample != s->sample)
		SET(out->since, now->ticks);
	if (first || r.level != s->now.level)
		steer_take_level(p, r.level);
	s->sample = r.sample;
	s->until_ns = r.until_mono_ns;
	SET(p->ring.live->level, s->now.level);
	SET(out->sequence, file->sequence);
	SET(out->until_mono_ns, r.until_mono_ns);
	SET(out->source, r.asked ? NCI_SOURCE_CONTROL : s->env.has_level || s->env.has_mask ?
	    NCI_SOURCE_ENVIRONMENT : NCI_SOURCE_DEFAULT);
	SET(out->cause, r.cause);
	SET(out->sample, s->sample);
}

static void steer_look_at_control(struct plugin_process *p, const struct steer_moment *now,
				  bool first)
{
	struct plugin_steer *s = &p->steer;
	struct nci_steer *out = &p->ring.header->steer;
	bool changed = first || (s->until_ns && now->mono_ns >= s->until_ns);

	if (first || now->mono_ns - s->looked_ns >= ORDERS_LOOK_NS) {
		enum orders_read r = orders_read(&s->orders, now->mono_ns);

		s->looked_ns = now->mono_ns;
		ADD(out->control_reads, r != ORDERS_NONE);
		ADD(out->control_refused, r == ORDERS_REFUSED);
		changed = changed || r == ORDERS_NEW;
	}
	if (changed)
		steer_resolve(p, now, first);
}

static void steer_pass_time(struct plugin_steer *s, uint64_t mono_ns)
{
	uint64_t passed = mono_ns - s->decided_ns;

	s->active_ns += passed < ACTIVE_NS ? passed : ACTIVE_NS;
	s->decided_ns = mono_ns;
	if (!s->first_end_ns)
		s->first_end_ns = mono_ns + s->mode_s * SECOND_NS;
	if (s->mode == NCI_MODE_FIRST && mono_ns >= s->first_end_ns &&
	    !(GET(s->seen) & NCI_SEEN_GRAPHS))
		atomic_fetch_or_explicit(&s->seen, NCI_SEEN_END, memory_order_relaxed);
}

static void steer_tell(struct plugin_process *p, uint64_t mono_ns)
{
	const struct plugin_steer *s = &p->steer;
	uint64_t settle_ns = s->env.settle_s * SECOND_NS;
	bool settles = s->mode == NCI_MODE_BURST && s->active_ns < settle_ns &&
		       s->now.mask & NCCL_KERNEL_CH;

	SET(p->ring.live->seen, GET(s->seen));
	SET(p->ring.header->steer.settles_mono_ns,
	    settles ? mono_ns + settle_ns - s->active_ns : 0);
}

static void steer_decide(struct plugin_process *p, const struct steer_moment *now)
{
	struct plugin_steer *s = &p->steer;
	uint32_t old = steer_asked(s);
	bool on, was_on = old & NCCL_KERNEL_CH;

	STEER_POINT();
	if (!steer_is_outside(p, old, now->ticks)) {
		steer_look_at_control(p, now, false);
		steer_pass_time(s, now->mono_ns);
		on = steer_wants_kernels(s, now);
		if (on != was_on && !steer_may_switch(s, on, now->sent))
			on = !on;
		steer_store(p, old, steer_mask_of(s, on), now->ticks);
	}
	s->decided_ticks = now->ticks;
	steer_tell(p, now->mono_ns);
}

/* ---- when ------------------------------------------------------------------------------ */

static bool steer_try(struct plugin_steer *s)
{
	return !atomic_exchange_explicit(&s->busy, 1, memory_order_acquire);
}

static void steer_leave(struct plugin_steer *s)
{
	atomic_store_explicit(&s->busy, 0, memory_order_release);
}

static struct steer_moment steer_now(const struct plugin_process *p, bool sent)
{
	return (struct steer_moment){
		.mono_ns = clock_ns(CLOCK_MONOTONIC), .real_ns = clock_ns(CLOCK_REALTIME),
		.ticks = clock_ticks(p->clock), .sent = sent,
	};
}

RARE void steer_look(struct plugin_steer *s, bool sent)
{
	struct steer_moment now;
	uint64_t coarse_ns, at_ns, edge_ns;

	if (!steer_try(s))
		return;
	now = steer_now(&process_self, sent);
	steer_decide(&process_self, &now);
	/* The next look comes before the next edge of a burst, by a clock that may be late. */
	coarse_ns = clock_ns(CLOCK_REALTIME_COARSE);
	at_ns = coarse_ns % s->period_ns;
	edge_ns = coarse_ns - at_ns - COARSE_NS +
		  (at_ns < s->length_ns ? s->length_ns : s->period_ns);
	SET(s->due_ns, edge_ns - coarse_ns < QUIET_NS ? edge_ns : coarse_ns + QUIET_NS);
	steer_leave(s);
}

/* A clock that was set back must not keep us quiet. */
static bool steer_is_due(const struct plugin_steer *s)
{
	uint64_t now = clock_ns(CLOCK_REALTIME_COARSE), due = GET(s->due_ns);

	return now >= due || due - now > QUIET_NS ||
	       (GET(s->waits) && GET(s->sender) == STEER_SELF);
}

void steer_stopped(uint64_t took)
{
	struct plugin_steer *s = &process_self.steer;
	struct steer_thread *t = &STEER_SELF->steer;

	if (t->open)
		ADD(s->open, -1u);
	t->over = t->launched || took >= LAUNCH_TICKS;
	t->sent = t->sent && !t->launched;
	t->open = t->launched = false;
	if (GET(s->mask) && steer_is_due(s))
		steer_look(s, t->sent);
}

/* ---- what is posted ---------------------------------------------------------------------- */

/* True: for the first time. */
static bool steer_saw(struct plugin_steer *s, uint32_t what)
{
	if (GET(s->seen) & what)
		return false;
	atomic_fetch_or_explicit(&s->seen, what, memory_order_relaxed);
	SET(s->due_ns, 0);
	return true;
}

/* Whoever has found that nobody else sends, and is about to store, must not. */
RARE void steer_begin_to_send(struct plugin_steer *s, struct steer_thread *t)
{
	const struct process_thread *first = NULL;

	t->sends = true;
	STEER_POINT();
	if (!atomic_compare_exchange_strong_explicit(&s->sender, &first, STEER_SELF,
			memory_order_acq_rel, memory_order_relaxed) && first != STEER_SELF)
		steer_saw(s, NCI_SEEN_SENDERS);
	for (int i = 0; i < TRIES; i++) {
		uint32_t old = steer_asked(s);

		/* Not of s->value: whoever decides has stored in the mask already, or not yet. */
		if (steer_swap(s, old, steer_with_spare_bits(s, level_essence(old))))
			break;
	}
}

static struct steer_comm *steer_comm_of(struct plugin_steer *s, uint64_t comm)
{
	return &s->comm[comm < NCI_COMM_NUMBERS ? comm % SHMRING_COMMS : SHMRING_COMMS];
}

/*
 * Several roots in one group become AllGatherV from NCCL 2.29.2 on, which speaks version 6.
 * With version 7 no Broadcast is counted, since none is watched; and none is waited for.
 */
static void steer_saw_broadcast(struct plugin_steer *s, const struct steer_thread *t, uint64_t comm,
				int root, uint64_t ticks)
{
	struct steer_comm *c = steer_comm_of(s, comm);
	uint64_t seen = GET(c->broadcast), now = (uint64_t)t->group << 32 | (uint32_t)root;

	SET(c->broadcast, now);
	if (s->version >= 7) {
		steer_drifts(comm, ticks);
	} else if (seen >> 32 == t->group && seen != now) {
		steer_drifts(comm, ticks);
		if (steer_saw(s, NCI_SEEN_ALLGATHERV))
			steer_look(s, t->sent);	/* decides for the rest of this group */
	} else if (GET(c->send) == t->group) {
		steer_saw(s, NCI_SEEN_ALLGATHERV);
	}
}

static void steer_saw_send(struct plugin_steer *s, struct steer_thread *t, uint64_t comm)
{
	struct steer_comm *c = steer_comm_of(s, comm);

	if (!t->sends)
		steer_begin_to_send(s, t);
	t->sent = true;
	SET(c->send, t->group);
	if (s->version == 6 && GET(c->broadcast) >> 32 == t->group)
		steer_saw(s, NCI_SEEN_ALLGATHERV);
}

static void steer_begin_group(struct plugin_steer *s, struct steer_thread *t,
			      const struct nccl_descr_v6 *d, uint64_t ticks)
{
	if (d->groupApi.groupDepth <= 1)
		t->sent = false;
	if (d->groupApi.groupDepth <= 1 || t->over || !t->group)
		t->group = ADD(s->groups, 1) + 1;
	ADD(s->open, !t->open);
	t->open = true;
	t->launched = d->groupApi.groupDepth <= 1;
	t->switches = GET(s->switches);
	t->watched = steer_is_on(s) && ticks - GET(s->switched) >= SURE_TICKS &&
		     !(GET(s->seen) & (NCI_SEEN_LIBRARIES | NCI_SEEN_OUTSIDE));
	if (*(const uint8_t *)&d->groupApi.graphCaptured)	/* a bool that may hold anything */
		steer_saw(s, NCI_SEEN_GRAPHS);
}

void steer_started(uint64_t comm, const struct nccl_descr_v6 *d, uint64_t ticks)
{
	struct plugin_steer *s = &process_self.steer;
	struct steer_thread *t = &STEER_SELF->steer;

	if (d->type == NCCL_GROUP_API) {
		steer_begin_group(s, t, d, ticks);
		return;
	}
	if (d->type == NCCL_P2P_API) {
		steer_saw_send(s, t, comm);
	} else if (d->type == NCCL_P2P) {
		if (d->p2p.peer != d->rank)
			return;
		steer_saw(s, NCI_SEEN_SELF);
		steer_drifts(comm, ticks);
	} else if (s->version >= 6 && d->collApi.func && d->collApi.func[0] == 'B') {
		steer_saw_broadcast(s, t, comm, d->collApi.root, ticks);
	}
}

bool steer_launched(uint64_t ticks)
{
	struct plugin_steer *s = &process_self.steer;
	struct steer_thread *t = &STEER_SELF->steer;

	t->launched = true;
	if (t->open)
		return t->watched && t->switches == GET(s->switches);
	/* Launched by another thread than the caller: what has long been so was so then. */
	return steer_is_on(s) && (int64_t)(ticks - GET(s->switched)) >= (int64_t)RECENT_TICKS &&
	       !(GET(s->seen) & (NCI_SEEN_LIBRARIES | NCI_SEEN_OUTSIDE));
}

/* ---- begin and end ------------------------------------------------------------------------ */

/* A mask or level that somebody chose for its every event is taken at its word. */
static bool steer_is_by_name(const struct plugin_steer *s)
{
	return s->env.has_mask || (s->env.has_level && s->env.level == NCI_LEVEL_TRACE);
}

/* The environment's word, then the daemon's, then what is usual for this NCCL. */
static void steer_choose_mode(struct plugin_steer *s, uint64_t spare_bytes)
{
	const struct nci_control *file = &s->orders.file;
	uint32_t named = s->env.mode ? s->env.mode : steer_is_by_name(s) ? NCI_MODE_ALWAYS : 0;

	s->mode = named ? named : file->mode < NCI_MODES ? file->mode : 0;
	s->mode_s = named ? s->env.mode_s : file->mode_s;
	if (!s->mode)
		s->mode = NCI_MODE_BURST;
	if (s->mode == NCI_MODE_BURST && s->modern) {
		s->mode = NCI_MODE_FIRST;
		s->mode_s = STEER_FIRST_S;
	}
	if (steer_is_by_name(s))
		return;
	if (s->version < FIRST_API_WITH_SAFE_KERNEL_CH) {
		s->mode = NCI_MODE_NEVER;
		steer_saw(s, NCI_SEEN_API);
	} else if (spare_bytes < SPARE_BYTES && !s->modern) {
		steer_saw(s, NCI_SEEN_SCARCE);
	}
}

static void steer_take_environment(const struct plugin_steer *s, int version, struct level *lv)
{
	if (s->env.has_mask)
		level_take_mask(lv, version, s->env.mask);
	else
		level_take(lv, version, s->env.level);
}

void steer_begin(struct plugin_process *p, int version, uint32_t nccl_version, uint64_t spare_bytes)
{
	struct nci_steer *out = &p->ring.header->steer;
	struct steer_moment now = steer_now(p, false);
	struct plugin_steer *s = &p->steer;

	if (s->version)
		orders_close(&s->orders);
	/* Bits set by threads and libraries stay: these are still there. */
	SET(s->seen, GET(s->seen) & (NCI_SEEN_SENDERS | NCI_SEEN_LIBRARIES));
	s->version = version;
	s->modern = version >= 7 || nccl_version >= FIRST_MODERN_NCCL;
	environment_read(&s->env);
	steer_take_environment(s, version, &s->start);
	s->active_ns = s->first_end_ns = 0;
	s->decided_ns = now.mono_ns;
	orders_init(&s->orders, getenv("NCCLINSP_CONTROL"), p->ring.header->boot_id, now.mono_ns);
	SET(p->wanted, 0);
	p->group = version >= 5 ? NCI_EV_GROUP_API : NCI_EV_GROUP;
	steer_look_at_control(p, &now, true);
	steer_choose_mode(s, spare_bytes);
	SET(s->value, steer_mask_of(s, steer_wants_kernels(s, &now)));
	s->before = GET(s->value);
	SET(p->ring.live->api_version, (uint32_t)version);
	SET(p->ring.live->mask, GET(s->value));
	SET(out->mode, s->mode);
	SET(out->mode_s, s->mode_s);
	SET(out->nccl_version, nccl_version);
	SET(s->due_ns, 0);
	steer_tell(p, now.mono_ns);
}

/* Callbacks decide within microseconds, if they are let run. */
static bool steer_wait(struct plugin_steer *s)
{
	for (int i = 0; i < PATIENCE; i++) {
		if (steer_try(s))
			return true;
		sched_yield();
	}
	return false;
}

void steer_end(struct plugin_process *p)
{
	struct plugin_steer *s = &p->steer;

	atomic_store_explicit(&s->mask, NULL, memory_order_release);
	if (steer_wait(s))	/* a thread that has begun to decide still has the pointer */
		steer_leave(s);
}

void steer_forget(struct plugin_process *p)
{
	orders_close(&p->steer.orders);
	memset(&p->steer, 0, sizeof(p->steer));
	STEER_SELF->steer = (struct steer_thread){ .open = false };
}

bool steer_one_more(struct plugin_process *p, uint64_t spare_bytes)
{
	struct plugin_steer *s = &p->steer;

	return spare_bytes < SPARE_BYTES && !s->modern && s->mode != NCI_MODE_NEVER &&
	       !steer_is_by_name(s) && s->start.mask & NCCL_KERNEL_CH &&
	       steer_saw(s, NCI_SEEN_SCARCE);
}

bool steer_mask(struct plugin_process *p, int version, int *mask)
{
	struct plugin_steer *s = &p->steer;
	int *known = GET(s->mask);
	struct level own;

	if (known == mask && version == s->version)
		return true;	/* it holds what is in force; groups may be under way */
	if (!known && !(GET(s->seen) & NCI_SEEN_LIBRARIES)) {
		__atomic_store_n(mask, (int)steer_with_spare_bits(s, GET(s->value)),
				 __ATOMIC_RELAXED);
		atomic_store_explicit(&s->mask, mask, memory_order_release);
		return true;
	}
	steer_saw(s, NCI_SEEN_LIBRARIES);
	steer_take_environment(s, version, &own);
	if (s->mode != NCI_MODE_ALWAYS ||
	    (version < FIRST_API_WITH_SAFE_KERNEL_CH && !steer_is_by_name(s)))
		own.mask &= ~(uint32_t)NCCL_KERNELS;
	__atomic_store_n(mask, (int)own.mask, __ATOMIC_RELAXED);
	return known == mask;
}
