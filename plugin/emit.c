/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A started event is a slot that holds the record it is going to become; states
 * change the slot; its stop copies it to the stopping thread's ring.
 *
 * Reading the counter is nearly all that a callback costs.  What comes before it
 * and hangs on memory hides behind it, what comes after does not: hence the order
 * of the first lines.  A slot is taken after it: where that lies in no cache, the
 * counter would wait for it.
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
		shmring_count(&lane->out->line->stale);
	else
		count_no_lane();
}

RARE int event_refuse_other(uint64_t type, uint32_t events, void **handle,
			    const struct nccl_descr_v6 *d)
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

int emit_refuse(uint64_t type, uint32_t events, void **handle, const struct nccl_descr_v6 *d)
{
	const uint64_t others = events & ~(uint64_t)(NCCL_GROUP | NCCL_GROUP_API);

	return likely(type & others && !(type & (type - 1))) ? NCCL_SUCCESS :
	       event_refuse_other(type, events, handle, d);
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
		fill_second_line((struct nci_record *)ev);
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

/* ---- start -------------------------------------------------------------------- */

/*
 * The usual start: its thread has a lane and that a slot, the communicator is an open one of
 * ours.  All else begins again in event_start_rare(): nothing has happened until then but, for
 * `steered`, that the steering knows.
 */
static int event_start_rare(uint64_t context, void **handle, const struct nccl_descr_v6 *d,
			    const struct adapt_extra *extra, bool steered);

INLINE uint32_t event_type(const struct nccl_descr_v6 *d)
{
	return (uint32_t)__builtin_ctzll(d->type) + 1;
}

/* The head of a slot that was taken, but its first word, its token and its parent. */
INLINE void slot_begin(struct nci_record *rec, uint64_t ticks)
{
	rec->start = ticks;
	rec->stop = 0;
}

INLINE int event_start_at(uint64_t context, void **handle, const struct nccl_descr_v6 *d,
			  const struct adapt_extra *extra, struct shmring_lane *lane,
			  uint64_t ticks, bool steered)
{
	uint64_t comm = context - process_self.contexts, token;
	struct nci_record *rec;

	if (unlikely(!event_is_plain(comm, d)))
		return event_start_rare(context, handle, d, extra, steered);
	rec = shmring_take(lane, &token);
	if (unlikely(!rec))
		return event_start_rare(context, handle, d, extra, steered);
	rec->parent = adapt_number(d->parentObj);
	slot_begin(rec, ticks);
	*handle = (void *)token;
	return fill_events[event_type(d)](rec, d, extra, fill_head(event_type(d), 0, comm), token);
}

static __attribute__((noinline)) int event_start_steered(uint64_t context, void **handle,
		const struct nccl_descr_v6 *d, const struct adapt_extra *extra,
		struct shmring_lane *lane, uint64_t ticks)
{
	steer_started(context - process_self.contexts, d, ticks);
	return event_start_at(context, handle, d, extra, lane, ticks, true);
}

int emit_start(uint64_t context, void **handle, const struct nccl_descr_v6 *d,
	       const struct adapt_extra *extra)
{
	struct shmring_lane *lane;
	uint64_t ticks;

	if (unlikely(d->type == NCCL_PROXY_STEP))
		return emit_step(context, handle, d);
	lane = process_lane_usual();
	if (unlikely(!lane))
		return event_start_rare(context, handle, d, extra, false);
	ticks = clock_ticks(PROCESS_COUNTER);
	if (d->type & STEER_EVENTS)
		return event_start_steered(context, handle, d, extra, lane, ticks);
	return event_start_at(context, handle, d, extra, lane, ticks, false);
}

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

/* No lane or no slot for it.  What is decided when groups stop does not hang on that. */
RARE int event_refuse(void **handle, uint32_t type)
{
	if (type == process_self.group)
		*handle = (void *)NCI_TOKEN_UNRECORDED;
	else if (type == NCI_EV_COLL || type == NCI_EV_P2P)
		steer_launched(0);
	return NCCL_SUCCESS;
}

/* A slot in the lane, whatever it takes; `note`: where the number of it is kept, or NULL. */
RARE int slot_start(struct shmring_lane *lane, void **handle, const struct nccl_descr_v6 *d,
		    const struct adapt_extra *extra, uint64_t head, uint16_t *note, uint64_t ticks)
{
	uint64_t token;
	struct nci_record *rec = shmring_take(lane, &token);

	if (!rec)
		rec = shmring_take_slowly(lane, &token, slot_is_abandoned, &ticks);
	if (!rec)
		return event_refuse(handle, event_type(d));
	if (note)
		*note = (uint16_t)(nci_token_slot(token) + 1);
	rec->parent = adapt_number(d->parentObj);
	slot_begin(rec, ticks);
	*handle = (void *)token;
	return fill_events[event_type(d)](rec, d, extra, head, token);
}

RARE int step_start_rare(struct shmring_lane *lane, void **handle, const struct nccl_descr_v6 *d,
			 uint64_t head, uint64_t ticks)
{
	uint64_t parent = adapt_number(d->parentObj), open;
	struct nci_ev_proxy_op *op = steps_find(parent);
	uint16_t *place = NULL;

	if (op)
		head = steps_head(steps_op_head(op));
	if (op && nci_token_lane(parent) == lane->index)
		place = steps_place(op, d->proxyStep.step);
	if (place && *place) {
		open = steps_settle_place(lane, *place, parent, d->proxyStep.step, ticks);
		if (open) {
			*handle = (void *)open;
			return NCCL_SUCCESS;
		}
	}
	return slot_start(lane, handle, d, &adapt_no_extra, head, place, ticks);
}

/* A step has the communicator of its operation, whose books the same thread keeps. */
int emit_step(uint64_t context, void **handle, const struct nccl_descr_v6 *d)
{
	const uint32_t own_op = NCI_FORM_FOREIGN << 8 | 0xff;
	struct shmring_lane *lane = process_lane_usual();
	uint64_t ticks, token;
	struct nci_ev_proxy_op *op;
	struct nci_record *rec;
	uint16_t *place;
	uint32_t head;

	if (unlikely(!lane))
		return event_start_rare(context, handle, d, &adapt_no_extra, false);
	op = (struct nci_ev_proxy_op *)shmring_find_own(lane, adapt_number(d->parentObj));
	if (unlikely(!op))
		return event_start_rare(context, handle, d, &adapt_no_extra, false);
	head = steps_op_head(op);
	place = steps_place(op, d->proxyStep.step);
	if (unlikely((head & own_op) != NCI_EV_PROXY_OP || *place))
		return event_start_rare(context, handle, d, &adapt_no_extra, false);
	ticks = clock_ticks(PROCESS_COUNTER);
	rec = shmring_take(lane, &token);
	if (unlikely(!rec)) {
		*handle = NULL;
		return step_start_rare(lane, handle, d, steps_head(head), ticks);
	}
	*place = (uint16_t)(nci_token_slot(token) + 1);
	rec->parent = adapt_number(d->parentObj);
	slot_begin(rec, ticks);
	*handle = (void *)token;
	fill_step(rec, d->proxyStep.step);
	fill_open(rec, steps_head(head), 1, token);
	return cost_end(NCI_EV_PROXY_STEP, ticks);
}

RARE int event_start_any(uint64_t context, void **handle, const struct nccl_descr_v6 *d,
			 const struct adapt_extra *extra, uint64_t ticks)
{
	struct shmring_lane *lane = process_lane();
	uint64_t comm = context - process_self.contexts;
	uint32_t type = event_type(d);
	struct adapt_extra foreign;
	int strange = 0;

	if (!lane) {
		count_no_lane();
		return event_refuse(handle, type);
	}
	if (!event_is_plain(comm, d)) {
		strange = event_place_strange(context, d);
		if (strange == PLACE_REFUSED)
			return NCCL_SUCCESS;
		comm = NCI_COMM_NONE;
	}
	if (type == NCI_EV_PROXY_STEP)
		return step_start_rare(lane, handle, d, fill_head(type, (uint32_t)strange, comm),
				       ticks);
	if (strange) {
		foreign = *extra;
		foreign.origin = context;
		extra = &foreign;
	}
	return slot_start(lane, handle, d, extra, fill_head(type, (uint32_t)strange, comm), NULL,
			  ticks);
}

RARE int event_start_rare(uint64_t context, void **handle, const struct nccl_descr_v6 *d,
			  const struct adapt_extra *extra, bool steered)
{
	uint64_t ticks = clock_ticks(process_self.clock);

	*handle = NULL;
	if (!emit_wants(d->type))
		return NCCL_SUCCESS;	/* a step: who has an operation wants its steps */
	if (d->type & STEER_EVENTS && !steered)
		steer_started(context - process_self.contexts, d, ticks);
	return event_start_any(context, handle, d, extra, ticks);
}

/* ---- state -------------------------------------------------------------------- */

RARE int count_unknown_state(void)
{
	PROCESS_COUNT(unknown_state);
	return NCCL_SUCCESS;
}

/* Whether a state asks for the clock; one that does not has been taken. */
INLINE bool state_asks_clocked(struct nci_record *rec, void *at, uint32_t state)
{
	(void)rec;
	(void)at;
	(void)state;
	return true;
}

INLINE bool state_asks_polled(struct nci_record *rec, void *at, uint32_t state)
{
	struct nci_ev_proxy_step *step = (struct nci_ev_proxy_step *)rec;

	(void)state;
	if (!*(const uint32_t *)at)
		return true;
	if (step->repeats < UINT32_MAX)
		step->repeats++;
	return false;
}

INLINE bool state_asks_begun(struct nci_record *rec, void *at, uint32_t state)
{
	*(uint32_t *)at = nci_span(0, 0);
	rec->serial = state + 1;
	rec->stop = rec->start;
	return false;
}

/* Any state, at any time by any clock. */
RARE int state_take_any(struct nci_record *rec, uint32_t state, const void *args, uint64_t ticks)
{
	uint32_t span = nci_span(rec->start, ticks);

	switch (state) {
#define X(value, EVENT, name, field, when, what)					\
	case NCCL_##value: {								\
		void *at = &((struct nci_ev_##name *)rec)->field;			\
											\
		if (rec->type != NCI_EV_##EVENT)					\
			return count_unknown_state();					\
		if (!state_asks_##when(rec, at, state))					\
			return NCCL_SUCCESS;						\
		states_##what(rec, at, state, span, args);				\
		break;									\
	}
	STATES_OFTEN(X)
	STATES_SELDOM(X)
#undef X
	default:
		return count_unknown_state();
	}
	rec->serial = state + 1;
	rec->stop = ticks;
	return NCCL_SUCCESS;
}

RARE int event_state_seldom(struct nci_record *rec, uint32_t state, const void *args)
{
	uint64_t from = clock_ticks(process_self.clock);

	state_take_any(rec, state, args, from);
	return cost_end(rec->type, from);
}

/* Takes a state by the machine's counter and an exact span; else as any other state. */
INLINE int state_take_often(struct nci_record *rec, void *at, uint32_t event, uint32_t state,
			    const void *args, states_fn *fn)
{
	uint64_t ticks = clock_ticks(PROCESS_COUNTER), passed = ticks - rec->start;

	if (unlikely(passed - 1 >= NCI_SPAN_COARSE - 1))
		return event_state_seldom(rec, state, fn == states_span ? NULL : args);
	rec->serial = state + 1;
	rec->stop = ticks;
	fn(rec, at, state, (uint32_t)passed, args);
	return cost_end(event, ticks);
}

#define X(value, EVENT, name, field, when, what)					\
	static int state_take_##value(struct nci_record *rec, uint32_t state, const void *args) \
	{										\
		void *at = &((struct nci_ev_##name *)rec)->field;			\
											\
		(void)state;								\
		if (unlikely(rec->type != NCI_EV_##EVENT))				\
			return count_unknown_state();					\
		if (!state_asks_##when(rec, at, NCCL_##value))				\
			return NCCL_SUCCESS;						\
		return state_take_often(rec, at, NCI_EV_##EVENT, NCCL_##value, args,	\
					states_##what);					\
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

int emit_state(void *handle, int number, union nccl_args_v4 *args)
{
	struct nci_record *rec = shmring_find(&process_self.ring, adapt_number(handle));
	uint32_t state = (uint32_t)number;

	if (unlikely(!rec))
		return state_take_strange(adapt_number(handle), state, args);
	if (unlikely(state >= process_self.quick_states))
		return event_state_seldom(rec, state, args);
	return state_fns[state](rec, state, args);
}

/* ---- stop --------------------------------------------------------------------- */

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
static uint64_t event_ending_ticks(const struct nci_record *rec, uint64_t ticks)
{
	uint32_t span = ((const struct nci_ev_group_api *)rec)->end_span;

	return rec->type == NCI_EV_GROUP_API && span ?
	       ticks - rec->start - nci_span_ticks(span) : 0;
}

static __attribute__((noinline)) int group_stop(struct shmring_lane *lane, struct nci_record *rec,
						uint64_t token, uint64_t ticks)
{
	uint64_t took = event_ending_ticks(rec, ticks);

	if (unlikely(!shmring_close(lane, rec, token, ticks)))
		shmring_count(&lane->out->line->stale);
	else
		steer_stopped(took);
	return cost_end(process_self.group, ticks);
}

static __attribute__((noinline)) int op_stop(struct shmring_lane *lane, struct nci_record *rec,
					     uint64_t token, uint64_t ticks)
{
	steps_close_parts(lane, rec, token, ticks);
	if (unlikely(!shmring_close(lane, rec, token, ticks)))
		shmring_count(&lane->out->line->stale);
	return cost_end(NCI_EV_PROXY_OP, ticks);
}

/* Stops by another thread than the starter, as a thread's first event, or by an odd clock. */
RARE int event_stop_rare(uint64_t handle)
{
	struct nci_record *rec = shmring_find(&process_self.ring, handle);
	struct steps_ending e = { 0 };
	struct shmring_lane *lane;
	uint64_t ticks;
	uint32_t type;

	if (!rec) {
		event_stop_unrecorded(handle);
		return NCCL_SUCCESS;
	}
	type = rec->type;
	lane = process_lane_known();
	if (type == NCI_EV_PROXY_STEP)
		e = steps_begin_end(lane, rec, handle);
	ticks = clock_ticks(process_self.clock);	/* making a lane is no part of the event */
	if (!lane)
		lane = process_lane();
	if (!lane) {
		slot_drop(rec, handle);
		return NCCL_SUCCESS;
	}
	if (type == NCI_EV_PROXY_OP)
		return op_stop(lane, rec, handle, ticks);
	if (type == process_self.group)
		return group_stop(lane, rec, handle, ticks);
	if (!(type == NCI_EV_PROXY_STEP ? steps_end(lane, rec, handle, &e, ticks) :
	      shmring_close(lane, rec, handle, ticks)))
		shmring_count(&lane->out->line->stale);
	return cost_end(type, ticks);
}

/* A step that leaves a record. */
static __attribute__((noinline)) int step_stop_recorded(struct nci_record *rec,
							struct shmring_lane *lane,
							struct nci_ev_proxy_op *op)
{
	uint64_t ticks;

	if (unlikely(op->type != NCI_EV_PROXY_OP))
		return event_stop_rare(rec->token);
	steps_count_own(op, rec);
	ticks = clock_ticks(PROCESS_COUNTER);
	shmring_close_own(lane, rec, rec->token, ticks);
	return cost_end(NCI_EV_PROXY_STEP, ticks);
}

/* A step that took long: only the end of it is told. */
RARE int step_stop_late(struct shmring_lane *lane, struct nci_record *rec,
			struct nci_ev_proxy_sums *sums, uint64_t ticks)
{
	const struct nci_ev_proxy_step *step = (const struct nci_ev_proxy_step *)rec;

	nci_sums_leave(sums, step, nci_sums_times(step), ticks);
	shmring_empty(lane, rec, rec->token);
	return cost_end(NCI_EV_PROXY_STEP, ticks);
}

/* A plain step adds to the sums of its operation. */
INLINE int step_stop_added(struct nci_record *rec, struct shmring_lane *lane,
			   struct nci_ev_proxy_op *op, struct nci_ev_proxy_sums *sums,
			   const struct nci_sums_plain *plain)
{
	const struct nci_ev_proxy_step *step = (const struct nci_ev_proxy_step *)rec;
	uint64_t ticks;

	nci_sums_enter_plain(sums, step, plain);
	op->steps_done++;
	op->bytes += plain->bytes;
	*steps_place(op, step->step) = 0;
	ticks = clock_ticks(PROCESS_COUNTER);
	if (unlikely(!nci_sums_leave_plain(sums, step, ticks)))
		return step_stop_late(lane, rec, sums, ticks);
	shmring_empty(lane, rec, rec->token);
	return cost_end(NCI_EV_PROXY_STEP, ticks);
}

/* The first step of its operation, or one that has not told all. */
static __attribute__((noinline)) int step_stop_first(struct nci_record *rec,
						     struct shmring_lane *lane,
						     struct nci_ev_proxy_op *op)
{
	const struct nci_ev_proxy_step *step = (const struct nci_ev_proxy_step *)rec;
	struct nci_ev_proxy_sums *sums = NULL;
	struct nci_sums_plain plain;

	if (op->type == NCI_EV_PROXY_OP && !(op->token & NCI_TOKEN_NO_EVENT) &&
	    nci_sums_is_plain(step, &plain))
		sums = steps_open_sums(lane, op, step);
	return sums ? step_stop_added(rec, lane, op, sums, &plain) : event_stop_rare(rec->token);
}

/* The parent is any number that a slot of this thread's has: only an operation has sums. */
INLINE int step_stop(struct nci_record *rec, struct shmring_lane *lane)
{
	uint64_t parent = rec->parent;
	struct nci_ev_proxy_op *op = steps_parent(lane, parent);
	struct nci_ev_proxy_sums *sums;
	struct nci_sums_plain plain;

	if (unlikely(!op))
		return event_stop_rare(rec->token);
	sums = steps_sums(lane, op, parent);
	if (likely(sums && nci_sums_is_plain((const struct nci_ev_proxy_step *)rec, &plain)))
		return step_stop_added(rec, lane, op, sums, &plain);
	return op->sums == STEPS_NO_SUMS ? step_stop_recorded(rec, lane, op) :
	       step_stop_first(rec, lane, op);
}

/* An operation whose steps have all stopped: only its sums are to be closed first. */
static __attribute__((noinline)) int op_stop_own(struct shmring_lane *lane,
						 struct nci_record *rec, uint64_t token,
						 uint64_t ticks)
{
	const struct nci_ev_proxy_op *op = (const struct nci_ev_proxy_op *)rec;
	struct nci_ev_proxy_sums *sums;

	if (unlikely(steps_are_open(op)))
		return op_stop(lane, rec, token, ticks);
	sums = steps_sums(lane, op, token);
	if (sums && likely(!(sums->token & NCI_TOKEN_NO_EVENT)))
		shmring_close_own(lane, (struct nci_record *)sums, sums->token, sums->stop);
	shmring_close_own(lane, rec, token, ticks);
	return cost_end(NCI_EV_PROXY_OP, ticks);
}

static __attribute__((noinline)) int event_stop_found(struct nci_record *rec,
						      struct shmring_lane *lane)
{
	uint64_t ticks = clock_ticks(PROCESS_COUNTER);

	if (rec->type == NCI_EV_PROXY_OP)
		return op_stop_own(lane, rec, rec->token, ticks);
	if (rec->type == process_self.group)
		return group_stop(lane, rec, rec->token, ticks);
	shmring_close_own(lane, rec, rec->token, ticks);
	return cost_end(rec->type, ticks);
}

int emit_stop(void *handle)
{
	uint64_t token = adapt_number(handle);
	struct shmring_lane *lane = process_lane_usual();
	struct nci_record *rec;

	if (unlikely(!lane))
		return event_stop_rare(token);
	rec = shmring_find_own(lane, token);
	if (unlikely(!rec))
		return event_stop_rare(token);
	return rec->type == NCI_EV_PROXY_STEP ? step_stop(rec, lane) :
	       event_stop_found(rec, lane);
}
