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

#define STEPS_INHERITED	((NCI_FORM_SEND | NCI_FORM_FOREIGN) << 8)	/* a head's forms */

/* The operation with that token, if it is live; NULL: it is not, or no operation. */
static inline struct nci_ev_proxy_op *steps_find(uint64_t token)
{
	struct nci_record *rec = shmring_find(&process_self.ring, token);

	return rec && rec->type == NCI_EV_PROXY_OP ? (struct nci_ev_proxy_op *)rec : NULL;
}

/* The place where an operation keeps its note of a step. */
INLINE uint16_t *steps_place(struct nci_ev_proxy_op *op, int step)
{
	return &op->open_step[(uint32_t)step % STEPS_OPEN];
}

/* The first word of an operation's head, and of its step's, but for the lines. */
INLINE uint32_t steps_op_head(const struct nci_ev_proxy_op *op)
{
	return *(const uint32_t *)op;
}

INLINE uint64_t steps_head(uint32_t op_head)
{
	return (op_head & (0xffff0000 | STEPS_INHERITED)) | NCI_EV_PROXY_STEP;
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
	if (*token & NCI_TOKEN_NO_EVENT || rec->type != type || rec->parent != op)
		return NULL;
	return rec;
}

/*
 * The place of a step that starts has a note already.  That very step is open:
 * its handle.  Another one is: it is closed, and 0.
 */
uint64_t steps_settle_place(struct shmring_lane *lane, uint16_t note, uint64_t op, int step,
			    uint64_t ticks);

/* Whether an operation has notes of open steps. */
INLINE bool steps_are_open(const struct nci_ev_proxy_op *op)
{
	const uint64_t *notes = (const uint64_t *)op->open_step;

	_Static_assert(sizeof(op->open_step) == 2 * sizeof(*notes), "all notes are looked at");
	_Static_assert(offsetof(struct nci_ev_proxy_op, open_step) % 8 == 0, "aligned");
	return notes[0] | notes[1];
}

/* Close what belongs to an operation that stops: its record comes right behind the sums'. */
void steps_close_parts(struct shmring_lane *lane, const struct nci_record *rec,
		       uint64_t token, uint64_t ticks);

/*
 * A step that is about to stop, and where its times go; NULL: nowhere.  An operation
 * is of one kind to its end: its level may have been switched.
 */
struct steps_ending {
	bool folds;		/* it leaves no record of its own */
	struct nci_ev_proxy_sums *sums;
	struct nci_sums_times times;
};

/*
 * The operation that a step names as its parent, if a slot has that number at all.  Its books
 * are this thread's if it has the step's sums: only such a one that is live gets any.
 */
INLINE struct nci_ev_proxy_op *steps_parent(struct shmring_lane *lane, uint64_t token)
{
	struct nci_record *rec = shmring_slot(lane->pool, token & (SHMRING_SLOTS - 1));

	return shmring_has(rec, token) ? (struct nci_ev_proxy_op *)rec : NULL;
}

/* The sums of an operation that has none yet, in a new slot; NULL: no slot is free. */
struct nci_ev_proxy_sums *steps_open_sums(struct shmring_lane *lane, struct nci_ev_proxy_op *op,
					  const struct nci_ev_proxy_step *first);

/* The sums that an operation with these books has already, or NULL. */
INLINE struct nci_ev_proxy_sums *steps_sums(struct shmring_lane *lane,
					    const struct nci_ev_proxy_op *op, uint64_t token)
{
	uint32_t slot = op->sums - 1u;
	struct nci_record *sums;

	if (unlikely(slot >= SHMRING_SLOTS))
		return NULL;	/* there are none, or none are wanted */
	/* One that was pushed out has another parent: an empty slot has the next one there. */
	sums = shmring_slot(lane->pool, slot);
	return likely(sums->type == NCI_EV_PROXY_SUMS && sums->parent == token) ?
	       (struct nci_ev_proxy_sums *)sums : NULL;
}

INLINE void steps_count(struct nci_ev_proxy_op *op, const struct nci_ev_proxy_step *step)
{
	op->steps_done++;
	if (likely(step->bytes != NCI_BYTES_UNKNOWN))
		op->bytes += step->bytes;
}

/* The same in the thread that keeps the books: the note that the operation has is of it. */
INLINE void steps_count_own(struct nci_ev_proxy_op *op, const struct nci_record *rec)
{
	const struct nci_ev_proxy_step *step = (const struct nci_ev_proxy_step *)rec;

	steps_count(op, step);
	*steps_place(op, step->step) = 0;
}

/*
 * A stopped step counts for its operation, which keeps no note of it any more.  It
 * leaves a record, or it leaves its times in the operation's sums.  All of this that
 * needs no clock: see emit.c.
 */
struct steps_ending steps_begin_end(struct shmring_lane *lane, const struct nci_record *rec,
				    uint64_t token);
bool steps_end(struct shmring_lane *lane, struct nci_record *rec, uint64_t token,
	       const struct steps_ending *e, uint64_t ticks);

#endif
