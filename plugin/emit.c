/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A started event is a slot that holds the record it is going to become; states
 * change the slot; its stop copies it to the stopping thread's ring.
 *
 * A ProxyOp's slot keeps the books of its steps: which slot each open one has.
 * NCCL keeps 8 places per operation (step mod 8), starts a receive's step again
 * when the network was not ready, and some releases never stop a receive's steps.
 * So a start for the step that is open gives the same handle again; one for
 * another step in that place, and the stop of the operation, close what is open.
 *
 * Reading the counter is nearly all that a callback costs.  What comes before it
 * and hangs on memory hides behind it, what comes after does not: hence the order
 * of the first lines.
 */
#include "plugin/emit.h"

#include "plugin/fill.h"
#include "plugin/states.h"

#define STEPS_OPEN	8

#define INLINE	static inline __attribute__((always_inline))
#define RARE	static __attribute__((noinline))	/* out of the callbacks' way */

static uint64_t number(const void *pointer)
{
	return (uint64_t)(uintptr_t)pointer;
}

RARE void count_stale(uint64_t handle)
{
	struct shmring_lane *lane;

	if (!handle)
		return;		/* NCCL's word for an event that was refused */
	lane = process_lane();
	if (lane)
		shmring_count(&lane->line->stale);
	else
		PROCESS_COUNT(no_lane);
}

int emit_refuse(uint64_t type, uint32_t events)
{
	if (!type || type & (type - 1) || type & ~(uint64_t)events)
		PROCESS_COUNT(unknown_event);
	return NCCL_SUCCESS;
}

/* The live event of a token if it is of that type, else NULL. */
static struct nci_record *find_typed(uint64_t token, uint8_t type)
{
	struct nci_record *rec = shmring_find(&process_self.ring, token);

	return rec && rec->type == type ? rec : NULL;
}

/* ---- which communicator ------------------------------------------------------- */

static bool is_issued_here(int32_t pid)
{
	return pid == process_self.pid || pid == process_self.loaded_pid;
}

static bool is_ours(uint64_t context, const struct nccl_descr_v6 *d)
{
	return context >> 32 == process_self.contexts >> 32 &&
	       !(d->type == NCCL_PROXY_OP && !is_issued_here(d->proxyOp.pid));
}

/* Steps and net events carry the issuer's context: their parent knows better. */
static bool is_child_of_foreign(const struct nccl_descr_v6 *d)
{
	const struct nci_record *parent;

	if (!(d->type & (NCCL_PROXY_STEP | NCCL_NET_PLUGIN)))
		return false;
	parent = shmring_find(&process_self.ring, number(d->parentObj));
	return parent && parent->form & NCI_FORM_FOREIGN;
}

enum { PLACE_REFUSED = -1 };

/*
 * A context that is not simply an open communicator's: an event without one in
 * the table, and the NCI_FORM_* that tells so; or PLACE_REFUSED.
 */
RARE int place_strange(uint64_t context, const struct nccl_descr_v6 *d)
{
	uint32_t comm = nci_context_comm(context);

	if (is_ours(context, d)) {
		if (comm == NCI_COMM_NONE)
			return 0;	/* the table was full at its init */
		if (comm < atomic_load_explicit(&process_self.comms, memory_order_acquire))
			PROCESS_COUNT(closed_comm);
		else
			PROCESS_COUNT(bad_context);
		return PLACE_REFUSED;
	}
	if ((d->type == NCCL_PROXY_OP && context) || is_child_of_foreign(d)) {
		PROCESS_COUNT(foreign);
		return NCI_FORM_FOREIGN;
	}
	PROCESS_COUNT(bad_context);
	return PLACE_REFUSED;
}

static inline bool is_plain(uint64_t comm, const struct nccl_descr_v6 *d)
{
	return comm < atomic_load_explicit(&process_self.comms, memory_order_acquire) &&
	       !process_is_closed((uint32_t)comm) &&
	       (d->type != NCCL_PROXY_OP || is_issued_here(d->proxyOp.pid));
}

/* ---- steps and their operation ------------------------------------------------ */

/* A stopped step counts for its operation, which keeps no note of it any more. */
static void fold_step(const struct nci_record *rec, uint64_t token)
{
	const struct nci_ev_proxy_step *step = (const struct nci_ev_proxy_step *)rec;
	struct nci_record *parent = find_typed(rec->parent, NCI_EV_PROXY_OP);
	struct nci_ev_proxy_op *op = (struct nci_ev_proxy_op *)parent;
	uint16_t *place;

	if (!op)
		return;
	op->steps_done++;
	if (step->bytes != NCI_BYTES_UNKNOWN)
		op->bytes += step->bytes;
	place = &op->open_step[(uint32_t)step->step % STEPS_OPEN];
	if (*place == nci_token_slot(token) + 1)
		*place = 0;
}

/* NCCL lost sight of a step: its record says so. */
RARE void close_step(struct shmring_lane *lane, struct nci_record *rec, uint64_t token,
		       uint64_t ticks)
{
	rec->form |= NCI_FORM_UNSTOPPED;
	fold_step(rec, token);
	shmring_close(lane, rec, token, ticks);
}

/* The open step that a note of this lane's operation speaks of, or NULL. */
static struct nci_record *noted_step(struct nci_slot *pool, uint16_t note, uint64_t op,
				     uint64_t *token)
{
	struct nci_record *rec;

	if (!note || note > SHMRING_SLOTS)
		return NULL;
	rec = shmring_slot(pool, note - 1u);
	*token = atomic_load_explicit(shmring_token(rec), memory_order_acquire);
	if (*token & NCI_TOKEN_FREE || rec->type != NCI_EV_PROXY_STEP || rec->parent != op)
		return NULL;
	return rec;
}

/*
 * The place of a step that starts has a note already.  That very step is open:
 * its handle.  Another one is: it is closed, and 0.
 */
RARE uint64_t settle_place(struct shmring_lane *lane, uint16_t note, uint64_t op, int step,
			   uint64_t ticks)
{
	uint64_t token;
	struct nci_record *open = noted_step(lane->pool, note, op, &token);

	if (!open)
		return 0;
	if (((struct nci_ev_proxy_step *)open)->step != step) {
		close_step(lane, open, token, ticks);
		return 0;
	}
	if (!(open->form & NCI_FORM_SEND))
		((struct nci_ev_proxy_step *)open)->repeats++;
	return token;
}

RARE void close_open_steps(struct shmring_lane *lane, struct nci_record *rec, uint64_t token,
			     uint64_t ticks)
{
	struct nci_ev_proxy_op *op = (struct nci_ev_proxy_op *)rec;
	struct nci_slot *pool = atomic_load_explicit(
			&process_self.ring.pool[nci_token_lane(token)], memory_order_acquire);

	for (int i = 0; i < STEPS_OPEN; i++) {
		uint64_t step;
		struct nci_record *open = noted_step(pool, op->open_step[i], token, &step);

		if (open)
			close_step(lane, open, step, ticks);
	}
}

/* ---- the callbacks ------------------------------------------------------------ */

/*
 * What a dry pool may push out: events of communicators that are gone, and
 * operations that nothing was heard of, since those of some transports start and
 * never do anything more.
 */
static bool is_abandoned(const struct nci_record *rec, void *arg)
{
	const struct nci_ev_proxy_op *op = (const struct nci_ev_proxy_op *)rec;

	(void)arg;
	if (rec->comm != NCI_COMM_NONE && process_is_closed(rec->comm))
		return true;
	return rec->type == NCI_EV_PROXY_OP && !rec->serial && !op->steps_done;
}

RARE struct nci_record *take_slowly(struct shmring_lane *lane, uint64_t *token)
{
	return shmring_take_slowly(lane, token, is_abandoned, NULL);
}

RARE void count_no_lane(void)
{
	PROCESS_COUNT(no_lane);
}

/*
 * Where the operation of a step that starts keeps its note of it, or NULL: that
 * is not live, or the books are another thread's.  *form gains what is inherited.
 */
INLINE uint16_t *place_of_step(const struct nccl_descr_v6 *d, const struct shmring_lane *lane,
			       uint32_t *form)
{
	uint64_t parent = number(d->parentObj);
	struct nci_record *rec = find_typed(parent, NCI_EV_PROXY_OP);

	if (unlikely(!rec))
		return NULL;
	*form |= rec->form & (NCI_FORM_SEND | NCI_FORM_FOREIGN);
	if (unlikely(nci_token_lane(parent) != lane->index))
		return NULL;
	return &((struct nci_ev_proxy_op *)rec)
		->open_step[(uint32_t)d->proxyStep.step % STEPS_OPEN];
}

/* All of the slot but its token.  The head is one store; the machine is little-endian. */
INLINE void fill_slot(struct nci_record *rec, const struct nccl_descr_v6 *d,
		      const struct adapt_extra *extra, uint32_t type, uint32_t form,
		      uint64_t comm, uint64_t ticks)
{
	const struct fill_row *row = &fill_rows[type];
	uint64_t head = type | (form | row->lines) << 8 | comm << 16;

	_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "type, form, comm, serial");
	rec->parent = number(d->parentObj);
	rec->start = ticks;
	rec->stop = 0;
	*(uint64_t *)rec = head | row->fill(rec, d, extra) << 8;
}

INLINE int do_start(uint64_t context, void **handle, const struct nccl_descr_v6 *d,
		    const struct adapt_extra *extra, uint32_t clock)
{
	struct shmring_lane *lane = process_lane();
	uint64_t ticks = clock_ticks(clock), comm = context - process_self.contexts, token;
	uint32_t type = (uint32_t)__builtin_ctzll(d->type) + 1, form = 0;
	uint16_t *place = NULL;
	struct nci_record *rec;

	if (unlikely(!lane)) {
		count_no_lane();
		return NCCL_SUCCESS;
	}
	if (unlikely(!is_plain(comm, d))) {
		int strange = place_strange(context, d);

		if (strange == PLACE_REFUSED)
			return NCCL_SUCCESS;
		form = (uint32_t)strange;
		comm = NCI_COMM_NONE;
	}
	if (type == NCI_EV_PROXY_STEP)
		place = place_of_step(d, lane, &form);
	if (place && unlikely(*place)) {
		token = settle_place(lane, *place, number(d->parentObj), d->proxyStep.step,
				     ticks);
		if (token) {
			*handle = (void *)token;
			return NCCL_SUCCESS;
		}
	}
	rec = shmring_take(lane, &token);
	if (unlikely(!rec)) {
		rec = take_slowly(lane, &token);
		if (!rec)
			return NCCL_SUCCESS;
	}
	if (place)
		*place = (uint16_t)(nci_token_slot(token) + 1);
	fill_slot(rec, d, extra, type, form, comm, ticks);
	if (unlikely(form & NCI_FORM_FOREIGN) && type == NCI_EV_PROXY_OP)
		((struct nci_ev_proxy_op *)rec)->origin = context;
	shmring_open(rec, token);
	*handle = (void *)token;
	return NCCL_SUCCESS;
}

static void take_span(struct nci_record *rec, const struct states_row *row, uint64_t ticks)
{
	uint32_t *span = (uint32_t *)((uint8_t *)rec + row->offset);

	*span = nci_span(rec->start, ticks);
}

/* States of a ProxyStep that need no look at the clock.  False: this one does. */
static bool take_unclocked(struct nci_record *rec, const struct states_row *row, uint32_t state)
{
	struct nci_ev_proxy_step *step = (struct nci_ev_proxy_step *)rec;
	uint32_t *span = (uint32_t *)((uint8_t *)rec + row->offset);

	if (row->when == STATES_STARTED) {
		*span = nci_span(0, 0);
		rec->serial = state + 1;
		rec->stop = rec->start;
		return true;
	}
	if (!*span)
		return false;
	if (step->repeats < UINT32_MAX)
		step->repeats++;
	return true;
}

RARE void count_unknown_state(void)
{
	PROCESS_COUNT(unknown_state);
}

INLINE int do_state(uint64_t handle, uint32_t state, const void *args, uint32_t clock)
{
	struct nci_record *rec = shmring_find(&process_self.ring, handle);
	const struct states_row *row;
	uint64_t ticks;

	if (unlikely(!rec)) {
		count_stale(handle);
		return NCCL_SUCCESS;
	}
	row = &states_rows[state < NCCL_STATE_END ? state : 0];
	if (unlikely(state >= NCCL_STATE_END || row->event != rec->type)) {
		count_unknown_state();
		return NCCL_SUCCESS;
	}
	if (row->when != STATES_ANY && take_unclocked(rec, row, state))
		return NCCL_SUCCESS;
	ticks = clock_ticks(clock);
	rec->serial = state + 1;
	rec->stop = ticks;
	if (row->span)
		take_span(rec, row, ticks);
	if (row->take)
		row->take(rec, (uint8_t)state, row->offset, ticks, args);
	return NCCL_SUCCESS;
}

/* No lane to publish in: the event is lost, its slot is not. */
RARE void drop(struct nci_record *rec, uint64_t token)
{
	PROCESS_COUNT(no_lane);
	atomic_compare_exchange_strong_explicit(shmring_token(rec), &token,
						token | NCI_TOKEN_FREE, memory_order_acq_rel,
						memory_order_relaxed);
}

INLINE int do_stop(uint64_t handle, uint32_t clock)
{
	struct nci_record *rec = shmring_find(&process_self.ring, handle);
	struct shmring_lane *lane;
	uint64_t ticks;

	if (unlikely(!rec)) {
		count_stale(handle);
		return NCCL_SUCCESS;
	}
	lane = process_lane_known();
	ticks = clock_ticks(clock);	/* making a lane is no part of the event */
	if (unlikely(!lane))
		lane = process_lane();
	if (unlikely(!lane)) {
		drop(rec, handle);
		return NCCL_SUCCESS;
	}
	if (rec->type == NCI_EV_PROXY_STEP)
		fold_step(rec, handle);
	else if (rec->type == NCI_EV_PROXY_OP)
		close_open_steps(lane, rec, handle, ticks);
	if (unlikely(!shmring_close(lane, rec, handle, ticks)))
		shmring_count(&lane->line->stale);
	return NCCL_SUCCESS;
}

/* ---- compiled for the machine's counter, and once more for where there is none --- */

RARE int start_monotonic(uint64_t context, void **handle, const struct nccl_descr_v6 *d,
			 const struct adapt_extra *extra)
{
	return do_start(context, handle, d, extra, NCI_CLOCK_MONOTONIC);
}

RARE int state_monotonic(uint64_t handle, uint32_t state, const void *args)
{
	return do_state(handle, state, args, NCI_CLOCK_MONOTONIC);
}

RARE int stop_monotonic(uint64_t handle)
{
	return do_stop(handle, NCI_CLOCK_MONOTONIC);
}

int emit_start(uint64_t context, void **handle, const struct nccl_descr_v6 *d,
	       const struct adapt_extra *extra)
{
	if (unlikely(process_self.clock != PROCESS_COUNTER))
		return start_monotonic(context, handle, d, extra);
	return do_start(context, handle, d, extra, PROCESS_COUNTER);
}

int emit_state(uint64_t handle, uint32_t state, const void *args)
{
	if (unlikely(process_self.clock != PROCESS_COUNTER))
		return state_monotonic(handle, state, args);
	return do_state(handle, state, args, PROCESS_COUNTER);
}

__attribute__((flatten)) int emit_stop(uint64_t handle)
{
	if (unlikely(process_self.clock != PROCESS_COUNTER))
		return stop_monotonic(handle);
	return do_stop(handle, PROCESS_COUNTER);
}
