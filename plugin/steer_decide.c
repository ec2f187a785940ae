/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is to be in force, and the one store that puts it in force.  All of this runs
 * in whoever has steer_try(), 40 times a second at most, but around the edges of
 * bursts.
 */
#include "plugin/process.h"
#include "plugin/steer_impl.h"

#define FRESH_NS	UINT64_C(2000000000)	/* that a new communicator is waited for */
#define FIRST_API_WITH_SAFE_KERNEL_CH	5

#define SET(field, value) atomic_store_explicit(&(field), (value), memory_order_relaxed)
#define GET(field) atomic_load_explicit(&(field), memory_order_relaxed)

bool steer_try(struct steer *s)
{
	return !atomic_exchange_explicit(&s->busy, 1, memory_order_acquire);
}

void steer_leave(struct steer *s)
{
	atomic_store_explicit(&s->busy, 0, memory_order_release);
}

/* ---- the store ------------------------------------------------------------------- */

static bool is_on(const struct steer *s)
{
	return GET(s->value) & NCCL_KERNEL_CH;
}

static bool in_bursts(const struct steer *s)
{
	return s->sample == NCI_SAMPLE_BUDGET && !s->keeps_graphs &&
	       (s->now.level == NCI_LEVEL_KERNEL || s->now.level == NCI_LEVEL_NET);
}

static void count_switch(struct nci_steer *out, bool on, uint64_t ticks)
{
	uint64_t begun = GET(out->burst_start);

	if (on) {
		atomic_fetch_add_explicit(&out->bursts, 1, memory_order_relaxed);
	} else if (begun) {
		atomic_fetch_add_explicit(&out->burst_ticks, ticks - begun, memory_order_relaxed);
	}
	SET(out->burst_start, on ? ticks : 0);
}

uint32_t steer_asked(const struct steer *s)
{
	int *mask = atomic_load_explicit(&s->mask, memory_order_acquire);

	return mask ? (uint32_t)__atomic_load_n(mask, __ATOMIC_ACQUIRE) : GET(s->value);
}

bool steer_store(struct process *p, uint32_t old, uint32_t value, uint64_t ticks)
{
	struct steer *s = &p->steer;
	struct nci_steer *out = &p->ring.header->steer;
	int *mask = atomic_load_explicit(&s->mask, memory_order_acquire);
	int seen = (int)old;

	if (!mask || value == old)
		return true;
	if ((value ^ old) & NCCL_KERNEL_CH) {
		/* Before the store: what is watched meanwhile is not taken for sure. */
		SET(s->switched, ticks);
		atomic_fetch_add_explicit(&s->switches, 1, memory_order_relaxed);
	}
	if (!__atomic_compare_exchange_n(mask, &seen, (int)value, false, __ATOMIC_ACQ_REL,
					 __ATOMIC_RELAXED))
		return false;
	if ((value ^ old) & NCCL_KERNEL_CH)
		count_switch(out, value & NCCL_KERNEL_CH, ticks);
	SET(s->value, value);
	SET(p->ring.live->mask, value);
	atomic_fetch_add_explicit(&out->switches, 1, memory_order_relaxed);
	return true;
}

/* ---- KernelCh ---------------------------------------------------------------------- */

/* It stays as it is in this process. */
static bool is_pinned(const struct steer *s)
{
	return s->version < FIRST_API_WITH_SAFE_KERNEL_CH ||
	       GET(s->flags) & (STEER_SENDERS | STEER_LIBRARIES);
}

/* Graphs keep what they were captured with, so that toggling makes NCCL's counters drift. */
static bool is_barred(const struct steer *s)
{
	return GET(s->flags) & STEER_CAPTURES && !s->keeps_graphs && !s->now.by_name;
}

static bool is_fresh(struct steer *s, uint64_t mono_ns)
{
	if (!GET(s->fresh))
		return false;
	if (!s->fresh_ns)
		s->fresh_ns = mono_ns;
	if (mono_ns - s->fresh_ns < FRESH_NS)
		return true;
	SET(s->fresh, 0);
	return false;
}

static bool is_settling(const struct steer *s, uint64_t mono_ns)
{
	return mono_ns < s->settled_ns;
}

static bool wants_kernels(struct steer *s, const struct steer_moment *now)
{
	if (!(s->now.mask & NCCL_KERNEL_CH) || is_barred(s))
		return false;
	if (!in_bursts(s))
		return true;
	if (is_settling(s, now->mono_ns))
		return false;
	if (!s->plan.period_ms)		/* as long as it looks as if all were watched anyway */
		return s->seems_whole && (is_on(s) || is_fresh(s, now->mono_ns));
	if (burst_is_whole(s->plan))
		return true;
	return s->plan.length_us &&
	       (is_fresh(s, now->mono_ns) || burst_is_on(s->plan, now->real_ns));
}

/* See steer.h.  Another thread than the sender, or its inner end: the sender's turn. */
static bool may_switch(struct steer *s, bool on, const struct steer_moment *now)
{
	const struct process_thread *sender = GET(s->sender);

	SET(s->waits, 0);
	if (is_pinned(s) || (on && is_settling(s, now->mono_ns)))
		return false;
	if (!sender || (sender == &process_thread && now->outermost))
		return true;
	SET(s->waits, 1);
	return false;
}

uint32_t steer_reason(const struct steer *s)
{
	bool wanted = s->now.mask & NCCL_KERNEL_CH;

	if (s->now.reason || !wanted)
		return s->now.reason;
	if (is_barred(s) && !is_on(s))
		return NCI_REASON_GRAPHS;
	if (s->version < FIRST_API_WITH_SAFE_KERNEL_CH || (!in_bursts(s) && is_on(s)))
		return NCI_REASON_NONE;
	if (GET(s->flags) & STEER_LIBRARIES)
		return NCI_REASON_LIBRARIES;
	return GET(s->flags) & STEER_SENDERS ? NCI_REASON_THREADS : NCI_REASON_NONE;
}

/* KernelCh is to be on, and only waits for those who send to show up. */
static bool waits_to_settle(const struct steer *s, const struct steer_moment *now)
{
	return is_settling(s, now->mono_ns) && s->now.mask & NCCL_KERNEL_CH && !is_on(s) &&
	       !is_pinned(s) && !is_barred(s) && (s->budget_ppm || !in_bursts(s));
}

static uint32_t kernels_state(const struct steer *s)
{
	if (is_pinned(s) || !in_bursts(s) || is_barred(s) || burst_is_whole(s->plan) ||
	    !(s->now.mask & NCCL_KERNEL_CH))
		return is_on(s) ? NCI_KERNELS_ALWAYS : NCI_KERNELS_NEVER;
	return is_on(s) ? NCI_KERNELS_INSIDE : NCI_KERNELS_OUTSIDE;
}

/* ---- level and sampling -------------------------------------------------------------- */

static void take_level(struct process *p, uint32_t level)
{
	struct steer *s = &p->steer;
	bool blind = !(s->now.wanted & NCCL_P2P_API);

	if (level == s->env.level) {
		s->now = s->env;
		if (s->scarce)
			level_shrink(&s->now, 0);
	} else {
		level_switch(&s->now, s->version, level, s->scarce);
	}
	s->unsettled = s->unsettled || blind;
}

/*
 * Once given, a handle stays good, whatever is wanted now.  The parts of operations in
 * flight go on coming and belong to them: what was wanted once stays so.  But at `off`
 * groups are nothing to record, they are only there for us.
 */
static void publish_wanted(struct process *p)
{
	uint32_t wanted = GET(p->wanted) | p->steer.now.wanted;

	if (p->steer.now.level == NCI_LEVEL_OFF)
		wanted &= ~NCI_EVENT_BIT(p->group);
	SET(p->folds, p->steer.now.folds);
	atomic_store_explicit(&p->wanted, wanted, memory_order_release);
}

static void publish_wish(struct process *p, const struct orders_wish *w, uint64_t ticks,
			 bool changed)
{
	struct steer *s = &p->steer;
	struct nci_steer *out = &p->ring.header->steer;

	if (changed)
		SET(out->since, ticks);
	SET(p->ring.live->level, s->now.level);
	SET(out->sequence, s->orders.file.sequence);
	SET(out->until_mono_ns, w->until_mono_ns);
	SET(out->source, w->asked ? NCI_SOURCE_CONTROL : s->from_environment ?
	    NCI_SOURCE_ENVIRONMENT : NCI_SOURCE_DEFAULT);
	SET(out->wish, w->wish);
	SET(out->sample, s->sample);
	SET(out->budget_ppm, s->budget_ppm);
	SET(out->kernel_cost_ns, s->cost_ns);
}

/* What environment and control file come to now. */
static void resolve(struct process *p, const struct steer_moment *now, bool first)
{
	struct steer *s = &p->steer;
	struct orders_wish w = {
		.level = s->env.level, .sample = s->env_sample,
		.budget_ppm = s->env_budget_ppm, .kernel_cost_ns = BURST_COST_NS,
	};
	bool changed;

	orders_apply(&s->orders.file, p->ring.header->instance, now->mono_ns, &w);
	changed = w.level != s->now.level || w.sample != s->sample;
	if (w.level != s->now.level)
		take_level(p, w.level);
	if (w.budget_ppm != s->budget_ppm || w.kernel_cost_ns != s->cost_ns)
		s->replan = true;
	s->sample = w.sample;
	s->budget_ppm = w.budget_ppm;
	s->cost_ns = w.kernel_cost_ns;
	if (changed || first)
		publish_wanted(p);
	publish_wish(p, &w, now->ticks, changed || first);
	s->until_ns = w.until_mono_ns;
}

static void look_at_control(struct process *p, const struct steer_moment *now)
{
	struct steer *s = &p->steer;
	struct nci_steer *out = &p->ring.header->steer;
	bool expired = s->until_ns && now->mono_ns >= s->until_ns;

	if (now->mono_ns - s->looked_ns >= ORDERS_LOOK_NS) {
		enum orders_read r = orders_read(&s->orders, now->mono_ns);

		s->looked_ns = now->mono_ns;
		if (r != ORDERS_NONE)
			atomic_fetch_add_explicit(&out->control_reads, 1, memory_order_relaxed);
		if (r == ORDERS_REFUSED)
			atomic_fetch_add_explicit(&out->control_refused, 1,
						  memory_order_relaxed);
		expired = expired || r == ORDERS_NEW;
	}
	if (expired)
		resolve(p, now, false);
}

static void replan(struct process *p, const struct steer_moment *now)
{
	struct steer *s = &p->steer;
	struct nci_steer *out = &p->ring.header->steer;
	uint64_t groups = GET(out->groups_inside) + GET(out->groups_outside);
	struct burst_plan none = { 0 }, guess = none;
	bool measured = burst_measure(&s->rate, groups, now->real_ns);

	if ((measured || s->replan) && s->rate.rate)
		s->plan = burst_choose(measured && s->rate.anew ? none : s->plan, s->rate.rate,
				       s->cost_ns, s->budget_ppm);
	s->replan = false;
	if (!s->plan.period_ms)
		guess = burst_choose(none, burst_guess(&s->rate, groups, now->real_ns), s->cost_ns,
				     s->budget_ppm);
	s->seems_whole = burst_is_whole(guess);
	SET(out->burst_period_ms, s->plan.period_ms);
	SET(out->burst_length_ms, (s->plan.length_us + 500) / 1000);
}

/* Who sends has only just been seen, or calls have: the others may be about to show up. */
static void settle(struct steer *s, uint64_t mono_ns)
{
	bool sends = GET(s->sender);

	if ((sends && !s->settles) || s->unsettled)
		s->settled_ns = mono_ns + s->settle_ns;
	s->settles = sends;
	s->unsettled = false;
}

static void tell(struct process *p, bool settles)
{
	const struct steer *s = &p->steer;
	struct nci_steer *out = &p->ring.header->steer;

	SET(out->settles_mono_ns, settles ? s->settled_ns : 0);
	SET(p->ring.live->reason, settles ? NCI_REASON_SETTLING : steer_reason(s));
	SET(out->kernels, kernels_state(s));
}

void steer_decide(struct process *p, const struct steer_moment *now)
{
	struct steer *s = &p->steer;
	uint32_t old = steer_asked(s), value;
	bool on;

	SET(s->value, old);		/* NCCL 2.31 alters it as well */
	look_at_control(p, now);
	settle(s, now->mono_ns);
	replan(p, now);
	on = wants_kernels(s, now);
	if (on != is_on(s) && !may_switch(s, on, now))
		on = !on;
	value = s->now.mask & ~(uint32_t)NCCL_KERNEL_CH;
	steer_store(p, old, on ? value | NCCL_KERNEL_CH : value, now->ticks);
	tell(p, waits_to_settle(s, now));
}

void steer_start(struct process *p, const struct steer_moment *now)
{
	struct steer *s = &p->steer;

	s->looked_ns = now->mono_ns;
	orders_read(&s->orders, now->mono_ns);
	resolve(p, now, true);
	s->unsettled = false;
	s->seems_whole = s->budget_ppm;
	SET(s->value, wants_kernels(s, now) ? s->now.mask :
	    s->now.mask & ~(uint32_t)NCCL_KERNEL_CH);
	s->fresh_ns = 0;		/* the first group may be long in coming */
	count_switch(&p->ring.header->steer, is_on(s), now->ticks);
	SET(p->ring.live->mask, GET(s->value));
	tell(p, false);
}
