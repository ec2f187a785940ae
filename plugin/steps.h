/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PLUGIN_STEPS_H
#define PLUGIN_STEPS_H

/*
 * A ProxyOp's slot keeps the books of its steps: which slot each open one has.
 * NCCL keeps 8 places per operation (step mod 8), starts a receive's step again
 * when the network was not ready, and some releases never stop a receive's steps.
 * So a start for the step that is open gives the same handle again; one for
 * another step in that place, and the stop of the operation, close what is open.
 *
 * Steps that are to leave no record are added up in a slot of its own, which the
 * operation's slot has the number of.  It becomes a record when the operation stops.
 *
 * Here is what every step goes through, for emit.c; steps.c has what is rare.
 */

#include "nci/sums.h"
#include "plugin/adapt.h"
#include "plugin/process.h"

#define STEPS_OPEN	8
#define STEPS_NO_SUMS	0xffff	/* takes a note's place: each step leaves a record */

/* The live event of a token if it is of that type, else NULL. */
static inline struct nci_record *steps_find(uint64_t token, uint8_t type)
{
	struct nci_record *rec = shmring_find(&process_self.ring, token);

	return rec && rec->type == type ? rec : NULL;
}

/* The live event of that type that a note of an operation speaks of, or NULL. */
static inline struct nci_record *steps_noted(struct nci_slot *pool, uint16_t note,
					     uint8_t type, uint64_t op, uint64_t *token)
{
	struct nci_record *rec;

	if (!note || note > SHMRING_SLOTS)
		return NULL;
	rec = shmring_slot(pool, note - 1u);
	*token = atomic_load_explicit(shmring_token(rec), memory_order_acquire);
	if (*token & NCI_TOKEN_FREE || rec->type != type || rec->parent != op)
		return NULL;
	return rec;
}

/* The sums of an operation that has none yet, in a new slot; NULL: no slot is free. */
struct nci_record *steps_open_sums(struct shmring_lane *lane, struct nci_ev_proxy_op *op,
				   const struct nci_ev_proxy_step *first);

/*
 * The place of a step that starts has a note already.  That very step is open:
 * its handle.  Another one is: it is closed, and 0.
 */
uint64_t steps_settle_place(struct shmring_lane *lane, uint16_t note, uint64_t op, int step,
			    uint64_t ticks);

/* Close what belongs to an operation that stops: its record comes right behind the sums'. */
void steps_close_parts(struct shmring_lane *lane, const struct nci_record *rec,
		       uint64_t token, uint64_t ticks);

/*
 * The place where the operation of a step that starts keeps its note of it; NULL: the
 * operation is not live, or the books are another thread's.  *form gains what is inherited.
 */
INLINE uint16_t *steps_place(const struct nccl_descr_v6 *d, const struct shmring_lane *lane,
			     uint32_t *form)
{
	uint64_t parent = adapt_number(d->parentObj);
	struct nci_record *rec = steps_find(parent, NCI_EV_PROXY_OP);

	if (unlikely(!rec))
		return NULL;
	*form |= rec->form & (NCI_FORM_SEND | NCI_FORM_FOREIGN);
	if (unlikely(nci_token_lane(parent) != lane->index))
		return NULL;
	return &((struct nci_ev_proxy_op *)rec)
		->open_step[(uint32_t)d->proxyStep.step % STEPS_OPEN];
}

/*
 * A step that is about to stop, and where its times go; NULL: nowhere.  An operation
 * is of one kind to its end: its level may have been switched.
 */
struct steps_ending {
	bool folds;		/* it leaves no record of its own */
	struct nci_ev_proxy_sums *sums;
	struct nci_sums_times times;
};

/* Only in the thread that keeps the operation's books. */
INLINE struct steps_ending steps_enter(struct shmring_lane *lane, struct nci_ev_proxy_op *op,
				       const struct nci_ev_proxy_step *step)
{
	struct steps_ending e = { .folds = true };
	struct nci_record *sums;
	uint64_t token;

	if (unlikely(!lane || !nci_sums_counts(step) ||
		     nci_token_lane(step->parent) != lane->index))
		return e;
	sums = steps_noted(lane->pool, op->sums, NCI_EV_PROXY_SUMS, step->parent, &token);
	if (unlikely(!sums))
		sums = steps_open_sums(lane, op, step);
	if (unlikely(!sums))
		return e;
	e.sums = (struct nci_ev_proxy_sums *)sums;
	e.times = nci_sums_enter(e.sums, step);
	if (unlikely(!op->state_span[0]))
		op->state_span[0] = nci_span(op->start, e.times.covered);
	return e;
}

/*
 * A stopped step counts for its operation, which keeps no note of it any more.  It
 * leaves a record, or it leaves its times in the operation's sums.  All of this that
 * needs no clock: see emit.c.
 */
INLINE struct steps_ending steps_begin_end(struct shmring_lane *lane,
					   const struct nci_record *rec, uint64_t token)
{
	const struct nci_ev_proxy_step *step = (const struct nci_ev_proxy_step *)rec;
	struct nci_record *parent = steps_find(rec->parent, NCI_EV_PROXY_OP);
	struct nci_ev_proxy_op *op = (struct nci_ev_proxy_op *)parent;
	uint16_t *place;

	if (!op)
		return (struct steps_ending){ .folds = atomic_load_explicit(
				&process_self.folds, memory_order_relaxed) };
	op->steps_done++;
	if (step->bytes != NCI_BYTES_UNKNOWN)
		op->bytes += step->bytes;
	place = &op->open_step[(uint32_t)step->step % STEPS_OPEN];
	if (*place == nci_token_slot(token) + 1)
		*place = 0;
	return op->sums != STEPS_NO_SUMS ? steps_enter(lane, op, step) :
	       (struct steps_ending){ 0 };
}

INLINE bool steps_end(struct shmring_lane *lane, struct nci_record *rec, uint64_t token,
		      const struct steps_ending *e, uint64_t ticks)
{
	if (!e->folds)
		return shmring_close(lane, rec, token, ticks);
	if (likely(e->sums))
		nci_sums_leave(e->sums, (const struct nci_ev_proxy_step *)rec, e->times, ticks);
	return shmring_discard(lane, rec, token);
}

#endif
