/* SPDX-License-Identifier: Apache-2.0 */
/*
 * NCCL repeats steps, and leaves some without a stop: the repairs lie here, out of the way
 * of the callbacks, which steps.h has.
 */
#include "plugin/steps.h"

#include "plugin/fill.h"

struct nci_record *steps_open_sums(struct shmring_lane *lane, struct nci_ev_proxy_op *op,
				   const struct nci_ev_proxy_step *first)
{
	struct nci_record *rec;
	uint64_t token;

	rec = shmring_take(lane, &token);
	if (!rec)
		return NULL;
	rec->type = NCI_EV_PROXY_SUMS;
	rec->comm = op->comm;
	rec->serial = 0;
	rec->parent = first->parent;
	rec->start = first->start;
	rec->stop = 0;
	rec->form = (uint8_t)(fill_events[NCI_EV_PROXY_SUMS](rec, NULL, NULL) |
			      (op->form & (NCI_FORM_SEND | NCI_FORM_FOREIGN)));
	op->sums = (uint16_t)(nci_token_slot(token) + 1);
	shmring_open(rec, token);
	return rec;
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
	struct nci_slot *pool = atomic_load_explicit(
			&process_self.ring.pool[nci_token_lane(token)], memory_order_acquire);
	struct nci_record *sums;
	uint64_t sums_token;

	steps_close_open(lane, op, pool, token, ticks);
	sums = steps_noted(pool, op->sums, NCI_EV_PROXY_SUMS, token, &sums_token);
	if (sums)
		shmring_close(lane, sums, sums_token, sums->stop);
}
