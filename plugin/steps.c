/* SPDX-License-Identifier: Apache-2.0 */
/*
 * NCCL repeats steps, and leaves some without a stop: the repairs lie here, out of the way
 * of the callbacks, which steps.h has.
 */
#include "plugin/steps.h"

#include "plugin/fill.h"

struct nci_ev_proxy_sums *steps_open_sums(struct shmring_lane *lane, struct nci_ev_proxy_op *op,
					  const struct nci_ev_proxy_step *first)
{
	uint64_t token, head = fill_head(NCI_EV_PROXY_SUMS, op->form & STEPS_INHERITED >> 8,
					 op->comm);
	struct nci_record *rec = shmring_take(lane, &token);

	if (!rec)
		return NULL;
	rec->parent = first->parent;
	rec->start = first->start;
	rec->stop = 0;
	op->sums = (uint16_t)(nci_token_slot(token) + 1);
	fill_sums(rec, head, token);
	if (!op->state_span[0])
		op->state_span[0] = nci_span(op->start, nci_sums_times(first).covered);
	return (struct nci_ev_proxy_sums *)rec;
}

/* Only in the thread that keeps the operation's books. */
static struct steps_ending steps_enter(struct shmring_lane *lane, struct nci_ev_proxy_op *op,
				       const struct nci_ev_proxy_step *step)
{
	struct steps_ending e = { .folds = true };

	if (!nci_sums_counts(step))
		return e;
	e.sums = steps_sums(lane, op, step->parent);
	if (!e.sums)
		e.sums = steps_open_sums(lane, op, step);
	if (e.sums)
		e.times = nci_sums_enter(e.sums, step);
	return e;
}

struct steps_ending steps_begin_end(struct shmring_lane *lane, const struct nci_record *rec,
				    uint64_t token)
{
	const struct nci_ev_proxy_step *step = (const struct nci_ev_proxy_step *)rec;
	struct nci_ev_proxy_op *op = steps_find(rec->parent);
	uint16_t *place;

	if (!op)
		return (struct steps_ending){ .folds = atomic_load_explicit(
				&process_self.folds, memory_order_relaxed) };
	steps_count(op, step);
	place = steps_place(op, step->step);
	if (*place == nci_token_slot(token) + 1)
		*place = 0;
	if (op->sums == STEPS_NO_SUMS)
		return (struct steps_ending){ 0 };
	if (!lane || nci_token_lane(step->parent) != lane->index)
		return (struct steps_ending){ .folds = true };
	return steps_enter(lane, op, step);
}

bool steps_end(struct shmring_lane *lane, struct nci_record *rec, uint64_t token,
	       const struct steps_ending *e, uint64_t ticks)
{
	if (!e->folds)
		return shmring_close(lane, rec, token, ticks);
	if (e->sums)
		nci_sums_leave(e->sums, (const struct nci_ev_proxy_step *)rec, e->times, ticks);
	return shmring_discard(lane, rec, token);
}

/* NCCL lost sight of a step: its record says so. */
static void step_close(struct shmring_lane *lane, struct nci_record *rec, uint64_t token,
		       uint64_t ticks)
{
	struct steps_ending e;

	rec->form |= NCI_FORM_UNSTOPPED;
	e = steps_begin_end(lane, rec, token);
	steps_end(lane, rec, token, &e, ticks);
}

uint64_t steps_settle_place(struct shmring_lane *lane, uint16_t note, uint64_t op, int step,
			    uint64_t ticks)
{
	uint64_t token;
	struct nci_record *open = steps_noted(lane->pool, note, NCI_EV_PROXY_STEP, op, &token);

	if (!open)
		return 0;
	if (((struct nci_ev_proxy_step *)open)->step != step) {
		step_close(lane, open, token, ticks);
		return 0;
	}
	if (!(open->form & NCI_FORM_SEND))
		((struct nci_ev_proxy_step *)open)->repeats++;
	return token;
}

static void steps_close_open(struct shmring_lane *lane, const struct nci_ev_proxy_op *op,
			     struct nci_slot *pool, uint64_t token, uint64_t ticks)
{
	for (int i = 0; i < STEPS_OPEN; i++) {
		uint64_t step;
		struct nci_record *open = steps_noted(pool, op->open_step[i],
						      NCI_EV_PROXY_STEP, token, &step);

		if (open)
			step_close(lane, open, step, ticks);
	}
}

void steps_close_parts(struct shmring_lane *lane, const struct nci_record *rec, uint64_t token,
		       uint64_t ticks)
{
	const struct nci_ev_proxy_op *op = (const struct nci_ev_proxy_op *)rec;
	struct nci_slot *pool = process_self.ring.slots +
				nci_token_lane(token) * SHMRING_LANE_SLOTS;
	struct nci_record *sums;
	uint64_t sums_token;

	steps_close_open(lane, op, pool, token, ticks);
	sums = steps_noted(pool, op->sums, NCI_EV_PROXY_SUMS, token, &sums_token);
	if (sums)
		shmring_close(lane, sums, sums_token, sums->stop);
}
