/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A started event is a slot that holds the record it is going to become; states
 * change the slot; its stop copies it to the stopping thread's ring.
 *
 * Reading the counter is nearly all that a callback costs.  What comes before it
 * and hangs on memory hides behind it, what comes after does not: hence the order
 * of the first lines.
 */
#include "plugin/emit.h"

#include <string.h>

#include "plugin/cost.h"
#include "plugin/fill.h"
#include "plugin/states.h"
#include "plugin/steps.h"

#define ASK_AGAIN	256	/* events that a thread without a lane drops meanwhile */
#define LEAKED_TICKS	(UINT64_C(1) << 38)	/* a minute and a half at 3 GHz */

RARE void count_no_lane(void)
{
	PROCESS_COUNT(no_lane);
	if (++process_thread.refused % ASK_AGAIN == 0)
		process_thread.generation--;	/* the thread has no lane for that one yet */
}

RARE void count_stale(uint64_t handle)
{
	struct shmring_lane *lane;

	if (!handle || (handle & (NCI_TOKEN_OWN | NCI_TOKEN_FREE)) == NCI_TOKEN_OWN)
		return;		/* NCCL's word for an event that was refused, and ours */
	lane = process_lane();
	if (lane)
		shmring_count(&lane->line->stale);
	else
		count_no_lane();
}

int emit_refuse(uint64_t type, uint32_t events, void **handle, const struct nccl_descr_v6 *d)
{
	const struct plugin_process *p = &process_self;

	if (!type || type & (type - 1) || type & ~(uint64_t)events)
		PROCESS_COUNT(unknown_event);
	else if (p->group && type == NCI_EVENT_BIT(p->group) &&
		 atomic_load_explicit(&p->steer.mask, memory_order_relaxed)) {
		*handle = (void *)NCI_TOKEN_UNRECORDED;
		if (type == NCCL_GROUP_API)
			steer_started(NCI_COMM_NONE, d, clock_ticks(p->clock));
	}
	return NCCL_SUCCESS;
}

/* ---- parts of kernels: noted in their KernelCh, whose second line they make ------------ */

RARE struct nci_ev_kernel_ch *kernel_find(uint64_t token)
{
	struct nci_record *rec = shmring_find(&process_self.ring, token);

	return rec && rec->type == NCI_EV_KERNEL_CH ? (struct nci_ev_kernel_ch *)rec : NULL;
}

int emit_phase(void **handle, uint64_t kernel, const struct nccl_kernel_phase *phase)
{
	struct nci_ev_kernel_ch *ev = kernel_find(kernel);

	if (!ev || phase->phaseId >= NCI_PHASES)
		return NCCL_SUCCESS;
	if (NCI_FORM_LINES(ev->form) == 1) {
		memset(&ev->cont, 0, NCI_LINE_BYTES);
		ev->cont = NCI_LINE_CONT;
		ev->form++;
	}
	ev->last_phase = phase->phaseId;
	ev->phase[phase->phaseId].start = phase->pTimer;
	*handle = (void *)(kernel | NCI_TOKEN_OWN);
	return NCCL_SUCCESS;
}

/* A state on a handle that has no slot: of a phase, or of nothing. */
RARE int state_take_strange(uint64_t handle, uint32_t state, const void *args)
{
	struct nci_ev_kernel_ch *ev = handle != NCI_TOKEN_UNRECORDED && handle & NCI_TOKEN_OWN ?
				      kernel_find(handle & ~NCI_TOKEN_OWN) : NULL;

	if (!ev)
		count_stale(handle);
	else if (state == NCCL_KERNEL_PHASE_STOP && args && NCI_FORM_LINES(ev->form) == 2)
		memcpy(&ev->phase[ev->last_phase % NCI_PHASES].stop, args, sizeof(uint64_t));
	return NCCL_SUCCESS;
}

/* ---- which communicator ------------------------------------------------------- */

static bool pid_is_ours(int32_t pid)
{
	return pid == process_self.pid || pid == process_self.loaded_pid;
}

static bool event_is_ours(uint64_t context, const struct nccl_descr_v6 *d)
{
	return context >> 32 == process_self.contexts >> 32 &&
	       !(d->type == NCCL_PROXY_OP && !pid_is_ours(d->proxyOp.pid));
}

/* Steps and net events carry the issuer's context: their parent knows better. */
static bool event_is_child_of_foreign(const struct nccl_descr_v6 *d)
{
	const struct nci_record *parent;

	if (!(d->type & (NCCL_PROXY_STEP | NCCL_NET_PLUGIN)))
		return false;
	parent = shmring_find(&process_self.ring, adapt_number(d->parentObj));
	return parent && parent->form & NCI_FORM_FOREIGN;
}

enum { PLACE_REFUSED = -1 };

/*
 * A context that is not simply an open communicator's: an event without one in
 * the table, and the NCI_FORM_* that tells so; or PLACE_REFUSED.
 */
RARE int event_place_strange(uint64_t context, const struct nccl_descr_v6 *d)
{
	uint32_t comm = nci_context_comm(context);

	if (event_is_ours(context, d)) {
		if (comm == NCI_COMM_NONE)
			return 0;	/* the table was full at its init */
		if (process_was_open(comm))
			PROCESS_COUNT(closed_comm);
		else
			PROCESS_COUNT(bad_context);
		return PLACE_REFUSED;
	}
	if ((d->type == NCCL_PROXY_OP && context) || event_is_child_of_foreign(d)) {
		PROCESS_COUNT(foreign);
		return NCI_FORM_FOREIGN;
	}
	PROCESS_COUNT(bad_context);
	return PLACE_REFUSED;
}

static inline bool event_is_plain(uint64_t comm, const struct nccl_descr_v6 *d)
{
	return process_is_open(comm) &&
	       (d->type != NCCL_PROXY_OP || pid_is_ours(d->proxyOp.pid));
}

/* ---- the callbacks ------------------------------------------------------------ */

/*
 * A dry pool may push out events of communicators that are gone, operations that
 * nothing was heard of, since those of some transports start and never do anything
 * more, and what is so old that NCCL must have forgotten it: a job that hangs starts
 * no events that would dry a pool.
 */
static bool slot_is_abandoned(const struct nci_record *rec, void *arg)
{
	const struct nci_ev_proxy_op *op = (const struct nci_ev_proxy_op *)rec;
	const uint64_t *ticks = arg;

	if (*ticks > rec->start && *ticks - rec->start > LEAKED_TICKS)
		return true;
	if (rec->comm != NCI_COMM_NONE && !process_is_open(rec->comm))
		return true;
	return rec->type == NCI_EV_PROXY_OP && !rec->serial && !op->steps_done;
}

RARE struct nci_record *slot_take_slowly(struct shmring_lane *lane, uint64_t *token)
{
	uint64_t ticks = clock_ticks(process_self.clock);

	return shmring_take_slowly(lane, token, slot_is_abandoned, &ticks);
}

/* No lane or no slot for it.  What is decided when groups stop does not hang on that. */
RARE int event_refuse(void **handle, uint32_t type)
{
	if (type == process_self.group)
		*handle = (void *)NCI_TOKEN_UNRECORDED;
	else if (type == NCI_EV_COLL || type == NCI_EV_P2P)
		steer_launched(0);
	return NCCL_SUCCESS;
}

/* All of the slot but its token.  The head is one store; the machine is little-endian. */
INLINE void slot_fill(struct nci_record *rec, const struct nccl_descr_v6 *d,
		      const struct adapt_extra *extra, uint32_t type, uint32_t form,
		      uint64_t comm, uint64_t ticks)
{
	uint64_t head = type | form << 8 | comm << 16;

	_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "type, form, comm, serial");
	rec->parent = adapt_number(d->parentObj);
	rec->start = ticks;
	rec->stop = 0;
	*(uint64_t *)rec = head | fill_events[type](rec, d, extra) << 8;
}

/*
 * The cost of callbacks is measured on some of them: a callback's own look at the clock
 * decides, and a start or state begins anew in a copy, so that the others keep nothing
 * for it.
 */
static int event_start_measured(uint64_t context, void **handle, const struct nccl_descr_v6 *d,
				const struct adapt_extra *extra, uint32_t clock);

INLINE int event_start(uint64_t context, void **handle, const struct nccl_descr_v6 *d,
		       const struct adapt_extra *extra, uint32_t clock, bool timed)
{
	struct shmring_lane *lane = process_lane();
	uint64_t ticks = clock_ticks(clock), comm = context - process_self.contexts, token;
	uint32_t type = (uint32_t)__builtin_ctzll(d->type) + 1, form = 0;
	uint16_t *place = NULL;
	struct nci_record *rec;

	if (unlikely(cost_is_measured(ticks)) && !timed)
		return event_start_measured(context, handle, d, extra, clock);
	if (unlikely(d->type & STEER_EVENTS))
		steer_started(comm, d, ticks);
	if (unlikely(!lane)) {
		count_no_lane();
		return event_refuse(handle, type);
	}
	if (unlikely(!event_is_plain(comm, d))) {
		int strange = event_place_strange(context, d);

		if (strange == PLACE_REFUSED)
			return NCCL_SUCCESS;
		form = (uint32_t)strange;
		comm = NCI_COMM_NONE;
	}
	if (type == NCI_EV_PROXY_STEP)
		place = steps_place(d, lane, &form);
	if (place && unlikely(*place)) {
		token = steps_settle_place(lane, *place, adapt_number(d->parentObj),
					   d->proxyStep.step, ticks);
		if (token) {
			*handle = (void *)token;
			return NCCL_SUCCESS;
		}
	}
	rec = shmring_take(lane, &token);
	if (unlikely(!rec)) {
		rec = slot_take_slowly(lane, &token);
		if (!rec)
			return event_refuse(handle, type);
	}
	if (place)
		*place = (uint16_t)(nci_token_slot(token) + 1);
	slot_fill(rec, d, extra, type, form, comm, ticks);
	if (unlikely(form & NCI_FORM_FOREIGN) && type == NCI_EV_PROXY_OP)
		((struct nci_ev_proxy_op *)rec)->origin = context;
	shmring_open(rec, token);
	*handle = (void *)token;
	return NCCL_SUCCESS;
}

RARE int count_unknown_state(void)
{
	PROCESS_COUNT(unknown_state);
	return NCCL_SUCCESS;
}

/*
 * A state has been looked up.  `from`: when the callback began, where somebody measures it
 * or it may be of any clock and any time; 0: it has not looked at the clock yet.
 */
static int event_state_measured(struct nci_record *rec, uint32_t state, const void *args);
static int event_state_seldom(struct nci_record *rec, uint32_t state, const void *args);

INLINE int state_clocked(struct nci_record *rec, void *at, uint32_t state, const void *args,
			 uint64_t from, states_fn *fn)
{
	uint64_t ticks = from ? from : clock_ticks(PROCESS_COUNTER);
	uint64_t passed = ticks - rec->start;
	uint32_t span = from ? nci_span(rec->start, ticks) : (uint32_t)passed;

	if (!from && unlikely(cost_is_measured(ticks)))
		return event_state_measured(rec, state, args);
	if (!from && unlikely(passed - 1 >= NCI_SPAN_COARSE - 1))
		return event_state_seldom(rec, state, args);
	rec->serial = state + 1;
	rec->stop = ticks;
	fn(rec, at, state, span, args);
	return NCCL_SUCCESS;
}

INLINE int state_polled(struct nci_record *rec, uint32_t *span, uint32_t state, const void *args,
			uint64_t from, states_fn *fn)
{
	struct nci_ev_proxy_step *step = (struct nci_ev_proxy_step *)rec;

	if (!*span)
		return state_clocked(rec, span, state, args, from, fn);
	if (step->repeats < UINT32_MAX)
		step->repeats++;
	return NCCL_SUCCESS;
}

INLINE int state_begun(struct nci_record *rec, uint32_t *span, uint32_t state, const void *args,
		       uint64_t from, states_fn *fn)
{
	(void)args;
	(void)from;
	(void)fn;
	*span = nci_span(0, 0);
	rec->serial = state + 1;
	rec->stop = rec->start;
	return NCCL_SUCCESS;
}

#define STATE_TAKE(rec, EVENT, name, field, when, what, state, args, from)		\
	((rec)->type == NCI_EV_##EVENT ?						\
	 state_##when((rec), (void *)&((struct nci_ev_##name *)(rec))->field, (state),	\
		      (args), (from), states_##what) : count_unknown_state())

RARE int state_take_any(struct nci_record *rec, uint32_t state, const void *args, uint64_t from)
{
	switch (state) {
#define X(value, EVENT, name, field, when, what)					\
	case NCCL_##value:								\
		return STATE_TAKE(rec, EVENT, name, field, when, what, state, args, from);
	STATES_OFTEN(X)
	STATES_SELDOM(X)
#undef X
	}
	return count_unknown_state();
}

RARE int event_state_measured(struct nci_record *rec, uint32_t state, const void *args)
{
	uint64_t from = clock_ticks(process_self.clock);

	state_take_any(rec, state, args, from);
	cost_add(rec->type, from);
	return NCCL_SUCCESS;
}

RARE int event_state_seldom(struct nci_record *rec, uint32_t state, const void *args)
{
	uint64_t from = clock_ticks(process_self.clock);

	state_take_any(rec, state, args, from);
	if (cost_is_measured(from))
		cost_add(rec->type, from);
	return NCCL_SUCCESS;
}

#define X(value, EVENT, name, field, when, what)					\
	static int state_take_##value(struct nci_record *rec, uint32_t state, const void *args) \
	{										\
		(void)state;								\
		return STATE_TAKE(rec, EVENT, name, field, when, what, NCCL_##value, args, 0); \
	}
STATES_OFTEN(X)
#undef X

static int (*const state_fns[NCCL_STATE_END])(struct nci_record *rec, uint32_t state,
					      const void *args) = {
#define X(value, EVENT, name, field, when, what) [NCCL_##value] = state_take_##value,
	STATES_OFTEN(X)
#undef X
#define X(value, EVENT, name, field, when, what) [NCCL_##value] = event_state_seldom,
	STATES_SELDOM(X)
#undef X
	[NCCL_KERNEL_PHASE_STOP] = event_state_seldom,
};

int emit_state(uint64_t handle, uint32_t state, const void *args)
{
	struct nci_record *rec = shmring_find(&process_self.ring, handle);

	if (unlikely(!rec))
		return state_take_strange(handle, state, args);
	if (unlikely(state >= NCCL_STATE_END || process_self.clock != PROCESS_COUNTER))
		return event_state_seldom(rec, state, args);
	return state_fns[state](rec, state, args);
}

/* No lane to publish in: the event is lost, its slot is not. */
RARE void slot_drop(struct nci_record *rec, uint64_t token)
{
	count_no_lane();
	shmring_empty_elsewhere(rec, token);
}

/* A stop that finds no event: most likely its second, or a group's without a record. */
RARE void event_stop_unrecorded(uint64_t handle)
{
	if (handle == NCI_TOKEN_UNRECORDED)
		steer_stopped(0);
	else
		count_stale(handle);
}

/* Ticks that NCCL was at it after the application had ended its group; 0: not told. */
RARE uint64_t event_ending_ticks(const struct nci_record *rec, uint64_t ticks)
{
	uint32_t span = ((const struct nci_ev_group_api *)rec)->end_span;

	return rec->type == NCI_EV_GROUP_API && span ?
	       ticks - rec->start - nci_span_ticks(span) : 0;
}

INLINE int event_stop(uint64_t handle, uint32_t clock)
{
	struct nci_record *rec = shmring_find(&process_self.ring, handle);
	struct steps_ending e = { 0 };
	struct shmring_lane *lane;
	uint64_t ticks, took = 0;
	uint32_t type;

	if (unlikely(!rec)) {
		event_stop_unrecorded(handle);
		return NCCL_SUCCESS;
	}
	type = rec->type;
	lane = process_lane_known();
	if (type == NCI_EV_PROXY_STEP)
		e = steps_begin_end(lane, rec, handle);
	ticks = clock_ticks(clock);	/* making a lane is no part of the event */
	if (unlikely(!lane))
		lane = process_lane();
	if (unlikely(!lane)) {
		slot_drop(rec, handle);
		return NCCL_SUCCESS;
	}
	if (type == NCI_EV_PROXY_OP)
		steps_close_parts(lane, rec, handle, ticks);
	else if (unlikely(type == process_self.group))
		took = event_ending_ticks(rec, ticks);
	if (unlikely(!(type == NCI_EV_PROXY_STEP ?
		       steps_end(lane, rec, handle, &e, ticks) :
		       shmring_close(lane, rec, handle, ticks))))
		shmring_count(&lane->line->stale);
	else if (unlikely(type == process_self.group))
		steer_stopped(took);
	if (unlikely(cost_is_measured(ticks)))
		cost_add(type, ticks);
	return NCCL_SUCCESS;
}

static __attribute__((noinline)) int event_start_measured(uint64_t context, void **handle,
		const struct nccl_descr_v6 *d, const struct adapt_extra *extra, uint32_t clock)
{
	uint64_t ticks = clock_ticks(clock);

	event_start(context, handle, d, extra, clock, true);
	cost_add((uint32_t)__builtin_ctzll(d->type) + 1, ticks);
	return NCCL_SUCCESS;
}

/* ---- compiled for the machine's counter, and once more for where there is none --- */

RARE int event_start_monotonic(uint64_t context, void **handle, const struct nccl_descr_v6 *d,
			       const struct adapt_extra *extra)
{
	return event_start(context, handle, d, extra, NCI_CLOCK_MONOTONIC, false);
}

RARE int event_stop_monotonic(uint64_t handle)
{
	return event_stop(handle, NCI_CLOCK_MONOTONIC);
}

int emit_start(uint64_t context, void **handle, const struct nccl_descr_v6 *d,
	       const struct adapt_extra *extra)
{
	if (unlikely(process_self.clock != PROCESS_COUNTER))
		return event_start_monotonic(context, handle, d, extra);
	return event_start(context, handle, d, extra, PROCESS_COUNTER, false);
}

__attribute__((flatten)) int emit_stop(uint64_t handle)
{
	if (unlikely(process_self.clock != PROCESS_COUNTER))
		return event_stop_monotonic(handle);
	return event_stop(handle, PROCESS_COUNTER);
}
