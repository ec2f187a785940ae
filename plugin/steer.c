/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The part that callbacks run: what a thread is in the middle of, and when somebody
 * decides.  One thread decides at a time; who finds another one at it goes on, and
 * looks again with its next group.
 */
#include "plugin/steer.h"

#include "plugin/process.h"
#include "plugin/steer_impl.h"

#define COARSE_NS	UINT64_C(10000000)	/* a coarse clock is no later than that */
#define QUIET_NS	UINT64_C(25000000)	/* the longest time without a look */
#define RECENT_TICKS	(UINT64_C(1) << 31)	/* 0.7 s at 3 GHz; never too short by much */
#define CLAIMS		8	/* who changes it meanwhile is the one that decides, or few */
#define TIMES_USUAL	16	/* no callback of ours takes longer by itself */
#define NO_GROUPS	(NCCL_GROUP_API | NCCL_PROXY_CTRL)
#define SURE_TICKS	(UINT64_C(1) << 16)	/* what a call may take until we hear of it */

/* ---- what is counted ---------------------------------------------------------- */

static void count_group(const struct steer_thread *t)
{
	struct nci_steer *out = &process_self.ring.header->steer;

	if (t->watched) {
		atomic_fetch_add_explicit(&out->groups_inside, 1, memory_order_relaxed);
		atomic_fetch_add_explicit(&out->ops_inside, t->ops, memory_order_relaxed);
	} else {
		atomic_fetch_add_explicit(&out->groups_outside, 1, memory_order_relaxed);
		atomic_fetch_add_explicit(&out->ops_outside, t->ops, memory_order_relaxed);
	}
}

/*
 * A callback that the kernel did not let run says nothing of what we cost.  The usual
 * time goes one step up or down with each that is measured, which keeps it near the
 * median; none counts for much more than that.
 */
static uint64_t clip(_Atomic uint64_t *usual, uint64_t took)
{
	uint64_t u = atomic_load_explicit(usual, memory_order_relaxed), step = u / 16;

	step += !step;
	atomic_store_explicit(usual, took > u ? u + step : u > step ? u - step : u,
			      memory_order_relaxed);
	return took < u * TIMES_USUAL ? took : u * TIMES_USUAL;
}

void steer_timed(uint32_t type, uint64_t ticks)
{
	const uint32_t proxy = NCCL_PROXY_OP | NCCL_PROXY_STEP | NCCL_PROXY_CTRL |
			       NCCL_KERNEL_CH | NCCL_NET_PLUGIN;
	uint64_t took = clock_ticks(process_self.clock) - ticks;
	int who = NCI_EVENT_BIT(type) & proxy ? NCI_THREADS_PROXY : NCI_THREADS_USER;
	struct nci_timed *out = &process_self.ring.header->steer.timed[who];

	took = clip(&process_self.steer.usual[who], took);
	atomic_fetch_add_explicit(&out->count, 1, memory_order_relaxed);
	atomic_fetch_add_explicit(&out->ticks, took, memory_order_relaxed);
}

/* ---- a thread's first send or receive ------------------------------------------ */

static bool is_on(const struct steer *s)
{
	return atomic_load_explicit(&s->value, memory_order_relaxed) & NCCL_KERNEL_CH;
}

/* Another thread's look at the clock may be the later one. */
static bool is_since(uint64_t then, uint64_t ticks, uint64_t span)
{
	return (int64_t)(ticks - then) >= (int64_t)span;
}

static bool changed_recently(const struct steer *s, uint64_t ticks)
{
	uint64_t switched = atomic_load_explicit(&s->switched, memory_order_relaxed);

	return switched && !is_since(switched, ticks, RECENT_TICKS);
}

static bool is_sender(const struct steer *s)
{
	return atomic_load_explicit(&s->sender, memory_order_relaxed) == &process_thread;
}

/*
 * The call may have read the mask before the last change.  The rest of its group is
 * to read what does no harm beside either value; a sender that is within a group of
 * its own has read the new one, and needs it to stay.
 */
static uint32_t rescue(const struct steer *s, uint32_t asked, bool sends, uint64_t ticks)
{
	bool stays = atomic_load_explicit(&s->sending, memory_order_relaxed) && !is_sender(s);

	if (stays || !changed_recently(s, ticks))
		return asked;
	return sends ? asked | NCCL_KERNEL_CH : asked & ~(uint32_t)NCCL_KERNEL_CH;
}

/*
 * Who has found that nobody sends, and is about to change the mask, must not: so it gets
 * another value in any case.  NCCL shows us groups for all that is not NO_GROUPS, whether
 * or not their own bit is set, and so that one is free to say so.
 */
static void claim_mask(const struct steer *s, bool sends, uint64_t ticks)
{
	for (int i = 0; i < CLAIMS; i++) {
		uint32_t old = steer_asked(s), value = rescue(s, old, sends, ticks);

		if (old & value & ~(uint32_t)NO_GROUPS)
			value ^= NCCL_GROUP_API;
		if (steer_store(&process_self, old, value, ticks))
			return;
	}
}

RARE void begin_to_send(struct steer *s, struct steer_thread *t,
			const char *func, uint64_t ticks)
{
	const struct process_thread *expected = NULL;

	t->epoch = atomic_load_explicit(&s->epoch, memory_order_relaxed);
	if (!atomic_compare_exchange_strong_explicit(&s->sender, &expected, &process_thread,
			memory_order_acq_rel, memory_order_relaxed) &&
	    expected != &process_thread)
		atomic_fetch_or_explicit(&s->flags, STEER_SENDERS, memory_order_relaxed);
	else if (t->open)
		atomic_store_explicit(&s->sending, 1, memory_order_relaxed);
	claim_mask(s, func && func[0] == 'S', ticks);
	atomic_store_explicit(&s->quiet_ns, 0, memory_order_relaxed);
}

/* ---- groups ---------------------------------------------------------------------- */

static void begin_group(struct steer *s, struct steer_thread *t,
			const struct nccl_descr_v6 *d, uint64_t ticks)
{
	t->open = true;
	t->ends = d->groupApi.groupDepth <= 1;
	t->ops = 0;
	t->switches = atomic_load_explicit(&s->switches, memory_order_relaxed);
	t->watched = is_on(s) && is_since(atomic_load_explicit(&s->switched,
				memory_order_relaxed), ticks, SURE_TICKS) &&
		     !(atomic_load_explicit(&s->flags, memory_order_relaxed) & STEER_LIBRARIES);
	if (is_sender(s))
		atomic_store_explicit(&s->sending, 1, memory_order_relaxed);
	if (!*(const uint8_t *)&d->groupApi.graphCaptured ||	/* a bool that may hold anything */
	    atomic_load_explicit(&s->flags, memory_order_relaxed) & STEER_CAPTURES)
		return;
	atomic_fetch_or_explicit(&s->flags, STEER_CAPTURES, memory_order_relaxed);
	atomic_store_explicit(&s->quiet_ns, 0, memory_order_relaxed);
}

void steer_started(const struct nccl_descr_v6 *d, uint64_t ticks)
{
	struct steer *s = &process_self.steer;
	struct steer_thread *t = &process_thread.steer;

	if (d->type == NCCL_GROUP_API) {
		begin_group(s, t, d, ticks);
		return;
	}
	t->ops++;
	if (d->type == NCCL_P2P_API &&
	    t->epoch != atomic_load_explicit(&s->epoch, memory_order_relaxed))
		begin_to_send(s, t, d->p2pApi.func, ticks);
}

bool steer_launched(uint64_t ticks)
{
	const struct steer *s = &process_self.steer;
	struct steer_thread *t = &process_thread.steer;
	uint64_t switched = atomic_load_explicit(&s->switched, memory_order_relaxed);

	t->ends = true;
	if (t->open)
		return t->watched && t->switches == atomic_load_explicit(&s->switches,
								       memory_order_relaxed);
	/* Launched by another thread than the caller: what has long been so was so then. */
	return is_on(s) && is_since(switched, ticks, RECENT_TICKS) &&
	       !(atomic_load_explicit(&s->flags, memory_order_relaxed) & STEER_LIBRARIES);
}

static bool is_quiet(const struct steer *s, bool may_switch)
{
	uint64_t now = clock_ns(CLOCK_REALTIME_COARSE);

	if (now - atomic_load_explicit(&s->quiet_from, memory_order_relaxed) >=
	    atomic_load_explicit(&s->quiet_ns, memory_order_relaxed))
		return false;
	return !(may_switch && atomic_load_explicit(&s->waits, memory_order_relaxed));
}

/* As long as a communicator is new, each group that was watched counts. */
static void count_fresh(struct steer *s)
{
	uint32_t fresh = atomic_load_explicit(&s->fresh, memory_order_relaxed);

	if (!fresh || !atomic_compare_exchange_strong_explicit(&s->fresh, &fresh, fresh - 1,
			memory_order_relaxed, memory_order_relaxed))
		return;
	if (fresh == 1)
		atomic_store_explicit(&s->quiet_ns, 0, memory_order_relaxed);
}

/* When the next look is due: before the next edge, by a clock that may be late. */
static void go_quiet(struct steer *s, uint64_t coarse_ns)
{
	uint64_t edge = burst_edge(s->plan, coarse_ns), quiet = QUIET_NS;

	if (edge - coarse_ns < QUIET_NS + COARSE_NS)
		quiet = edge - coarse_ns < COARSE_NS ? 0 : edge - coarse_ns - COARSE_NS;
	atomic_store_explicit(&s->quiet_from, coarse_ns, memory_order_relaxed);
	atomic_store_explicit(&s->quiet_ns, quiet, memory_order_relaxed);
}

RARE void look(struct steer *s, bool outermost)
{
	struct steer_moment now;

	if (!steer_try(s))
		return;
	now = (struct steer_moment){
		.mono_ns = clock_ns(CLOCK_MONOTONIC), .real_ns = clock_ns(CLOCK_REALTIME),
		.ticks = clock_ticks(process_self.clock), .outermost = outermost,
	};
	steer_decide(&process_self, &now);
	go_quiet(s, clock_ns(CLOCK_REALTIME_COARSE));
	steer_leave(s);
}

void steer_stopped(void)
{
	struct steer *s = &process_self.steer;
	struct steer_thread *t = &process_thread.steer;
	bool outermost = t->ends;

	if (t->open) {
		count_group(t);
		if (t->watched)
			count_fresh(s);
	}
	t->open = t->ends = false;
	if (is_sender(s))
		atomic_store_explicit(&s->sending, 0, memory_order_relaxed);
	if (atomic_load_explicit(&s->mask, memory_order_relaxed) &&
	    !is_quiet(s, outermost && is_sender(s)))
		look(s, outermost);
}
