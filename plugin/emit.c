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
 */
#include "plugin/emit.h"

#include "plugin/fill.h"
#include "plugin/states.h"

#define STEPS_OPEN	8

struct start {
	uint64_t context;
	const struct nccl_descr_v6 *d;
	struct shmring_lane *lane;
	uint64_t ticks;
	uint16_t *open_step;	/* where the new slot is noted; NULL: nowhere */
	uint32_t comm;
	uint32_t form;		/* NCI_FORM_* that do not come from the descriptor */
};

static uint64_t number(const void *pointer)
{
	return (uint64_t)(uintptr_t)pointer;
}

static void count_stale(void)
{
	struct shmring_lane *lane = process_lane();

	if (lane)
		shmring_count(&lane->line->stale);
	else
		PROCESS_COUNT(no_lane);
}

void emit_refuse(uint64_t type, uint32_t events)
{
	if (!type || type & (type - 1) || type & ~(uint64_t)events)
		PROCESS_COUNT(unknown_event);
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

static bool is_ours(const struct start *s)
{
	return s->context >> 32 == process_self.contexts >> 32 &&
	       !(s->d->type == NCCL_PROXY_OP && !is_issued_here(s->d->proxyOp.pid));
}

/* Steps and net events carry the issuer's context: their parent knows better. */
static bool is_child_of_foreign(const struct start *s)
{
	const struct nci_record *parent;

	if (!(s->d->type & (NCCL_PROXY_STEP | NCCL_NET_PLUGIN)))
		return false;
	parent = shmring_find(&process_self.ring, number(s->d->parentObj));
	return parent && parent->form & NCI_FORM_FOREIGN;
}

/* A context that is not simply an open communicator's.  False: refuse the event. */
static bool place_strange(struct start *s)
{
	uint32_t comm = nci_context_comm(s->context);

	if (is_ours(s)) {
		s->comm = NCI_COMM_NONE;
		if (comm == NCI_COMM_NONE)
			return true;	/* the table was full at its init */
		if (comm < atomic_load_explicit(&process_self.comms, memory_order_acquire))
			PROCESS_COUNT(closed_comm);
		else
			PROCESS_COUNT(bad_context);
		return false;
	}
	if ((s->d->type == NCCL_PROXY_OP && s->context) || is_child_of_foreign(s)) {
		s->comm = NCI_COMM_NONE;
		s->form |= NCI_FORM_FOREIGN;
		PROCESS_COUNT(foreign);
		return true;
	}
	PROCESS_COUNT(bad_context);
	return false;
}

static inline bool place(struct start *s)
{
	uint64_t comm = s->context - process_self.contexts;

	if (likely(comm < atomic_load_explicit(&process_self.comms, memory_order_acquire)) &&
	    likely(!process_is_closed((uint32_t)comm)) &&
	    likely(s->d->type != NCCL_PROXY_OP || is_issued_here(s->d->proxyOp.pid))) {
		s->comm = (uint32_t)comm;
		return true;
	}
	return place_strange(s);
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
static void close_step(struct shmring_lane *lane, struct nci_record *rec, uint64_t token,
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

/* True: that very step is open already, and *token is its handle. */
static bool reopen_step(struct start *s, uint64_t *token)
{
	uint64_t parent = number(s->d->parentObj);
	struct nci_record *rec = find_typed(parent, NCI_EV_PROXY_OP), *open;

	if (!rec)
		return false;
	s->form |= rec->form & (NCI_FORM_SEND | NCI_FORM_FOREIGN);
	if (unlikely(nci_token_lane(parent) != s->lane->index))
		return false;	/* the books are the owner's */
	s->open_step = &((struct nci_ev_proxy_op *)rec)
			->open_step[(uint32_t)s->d->proxyStep.step % STEPS_OPEN];
	open = noted_step(s->lane->pool, *s->open_step, parent, token);
	if (likely(!open))
		return false;
	if (((struct nci_ev_proxy_step *)open)->step != s->d->proxyStep.step) {
		close_step(s->lane, open, *token, s->ticks);
		return false;
	}
	if (!(open->form & NCI_FORM_SEND))
		((struct nci_ev_proxy_step *)open)->repeats++;
	return true;
}

static void close_open_steps(struct shmring_lane *lane, struct nci_record *rec, uint64_t token,
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

/* Little-endian: type, form, comm, and no state seen yet, as one store. */
static void set_head(struct nci_record *rec, uint32_t type, uint32_t form, uint32_t comm)
{
	_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "the head is one word");
	*(uint64_t *)rec = type | form << 8 | (uint64_t)comm << 16;
}

void emit_start(uint64_t context, void **handle, const struct nccl_descr_v6 *d,
		const struct adapt_extra *extra)
{
	struct start s = { .context = context, .d = d, .ticks = process_ticks() };
	uint32_t type = (uint32_t)__builtin_ctzll(d->type) + 1;
	const struct fill_row *row = &fill_rows[type];
	struct nci_record *rec;
	uint64_t token;

	*handle = NULL;
	s.lane = process_lane();
	if (unlikely(!s.lane)) {
		PROCESS_COUNT(no_lane);
		return;
	}
	if (unlikely(!place(&s)))
		return;
	if (type == NCI_EV_PROXY_STEP && unlikely(reopen_step(&s, &token))) {
		*handle = (void *)token;
		return;
	}
	rec = shmring_take(s.lane, &token);
	if (unlikely(!rec)) {
		rec = shmring_take_slowly(s.lane, &token, is_abandoned, NULL);
		if (!rec)
			return;
	}
	s.form |= row->fill(rec, d, extra) | row->lines;
	set_head(rec, type, s.form, s.comm);
	rec->parent = number(d->parentObj);
	rec->start = s.ticks;
	rec->stop = 0;
	if (unlikely(s.form & NCI_FORM_FOREIGN) && type == NCI_EV_PROXY_OP)
		((struct nci_ev_proxy_op *)rec)->origin = context;
	if (s.open_step)
		*s.open_step = (uint16_t)(nci_token_slot(token) + 1);
	shmring_open(rec, token);
	*handle = (void *)token;
}

static void take_span(struct nci_record *rec, const struct states_row *row, uint64_t ticks)
{
	uint32_t *span = (uint32_t *)((uint8_t *)rec + row->offset);

	*span = nci_span(rec->start, ticks);
}

/* True: this state was seen before and the first counts; that it came is counted. */
static bool is_repeat(struct nci_record *rec, const struct states_row *row)
{
	struct nci_ev_proxy_step *step = (struct nci_ev_proxy_step *)rec;

	if (!row->repeats || !*(uint32_t *)((uint8_t *)rec + row->offset))
		return false;
	if (step->repeats < UINT32_MAX)
		step->repeats++;
	return true;
}

void emit_state(uint64_t handle, uint32_t state, const void *args)
{
	struct nci_record *rec = shmring_find(&process_self.ring, handle);
	const struct states_row *row;
	uint64_t ticks;

	if (unlikely(!rec)) {
		if (handle)
			count_stale();
		return;
	}
	row = &states_rows[state < NCCL_STATE_END ? state : 0];
	if (unlikely(state >= NCCL_STATE_END || row->event != rec->type)) {
		PROCESS_COUNT(unknown_state);
		return;
	}
	if (unlikely(row->repeats) && is_repeat(rec, row))
		return;
	ticks = process_ticks();
	rec->serial = state + 1;
	rec->stop = ticks;
	if (row->span)
		take_span(rec, row, ticks);
	if (row->take)
		row->take(rec, (uint8_t)state, row->offset, ticks, args);
}

/* No lane to publish in: the event is lost, its slot is not. */
static void drop(struct nci_record *rec, uint64_t token)
{
	PROCESS_COUNT(no_lane);
	atomic_compare_exchange_strong_explicit(shmring_token(rec), &token,
						token | NCI_TOKEN_FREE, memory_order_acq_rel,
						memory_order_relaxed);
}

void emit_stop(uint64_t handle)
{
	struct nci_record *rec = shmring_find(&process_self.ring, handle);
	struct shmring_lane *lane;
	uint64_t ticks;

	if (unlikely(!rec)) {
		if (handle)
			count_stale();
		return;
	}
	ticks = process_ticks();
	lane = process_lane();
	if (unlikely(!lane)) {
		drop(rec, handle);
		return;
	}
	if (rec->type == NCI_EV_PROXY_STEP)
		fold_step(rec, handle);
	else if (rec->type == NCI_EV_PROXY_OP)
		close_open_steps(lane, rec, handle, ticks);
	if (unlikely(!shmring_close(lane, rec, handle, ticks)))
		shmring_count(&lane->line->stale);
}
