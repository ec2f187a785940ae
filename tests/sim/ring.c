/* SPDX-License-Identifier: Apache-2.0 */
/* The GPU's side of the counters: every kernel's works, whoever asked for KernelCh. */
#include "tests/sim/ring.h"

#include <errno.h>
#include <stdlib.h>

#define KEPT	4096		/* works of a channel; older ones are forgotten */

struct channel {
	uint64_t count;			/* works so far */
	struct plan_span *work;		/* work k is at k % KEPT; NULL: none so far */
};

struct ring {
	const struct scenario *scn;
	const struct sim_comm *comm;
	int rank;
	struct plan *plan;
	int64_t walked;			/* all launched before this is known */
	struct channel channel[RING_CHANNELS];
};

int ring_new(struct ring **ringp, const struct scenario *scn, const struct sim_comm *comm,
	     int rank)
{
	struct ring *ring = calloc(1, sizeof(*ring));
	int r;

	if (!ring)
		return -ENOMEM;
	ring->scn = scn;
	ring->comm = comm;
	ring->rank = rank;
	r = plan_new(&ring->plan, scn);
	if (r)
		ring_free(ring);
	else
		*ringp = ring;
	return r;
}

void ring_free(struct ring *ring)
{
	if (!ring)
		return;
	plan_free(ring->plan);
	for (int c = 0; c < RING_CHANNELS; c++)
		free(ring->channel[c].work);
	free(ring);
}

/* ---- the walk ---- */

static void add_work(struct ring *ring, const struct plan_op *op, const struct plan_side *side,
		     int index)
{
	struct channel *ch = &ring->channel[plan_channel_number(op, index)];

	if (!ch->work)
		ch->work = calloc(KEPT, sizeof(*ch->work));
	ch->count++;
	if (ch->work)
		plan_channel(ring->scn, op, side, index, &ch->work[ch->count % KEPT]);
}

/* A rank's works of one round: its send and its receive are one. */
static void add_side(struct ring *ring, const struct plan_op *op, const struct plan_side *side)
{
	for (int i = 0; i < op->nchannels; i++)
		add_work(ring, op, side, i);
	if (side->launched > ring->walked)
		ring->walked = side->launched;
}

/* Our side that a kernel runs; `round`: of the p2p schedule, -1: collectives. */
static const struct plan_side *kernel_side(const struct ring *ring, const struct plan_op *op,
					   int round)
{
	const struct plan_side *side = plan_side_of(op, ring->rank, 0);

	if (op->comm != ring->comm || !side || side->arrival == PLAN_NEVER || !side->moves)
		return NULL;
	if (side->peer < 0)
		return round < 0 && side->has_seq ? side : NULL;
	return round == op->round ? side : NULL;
}

static void add_step(struct ring *ring, const struct plan_step *step)
{
	for (int round = -1; round < ring->comm->nranks; round++)
		for (int i = 0; i < step->nops; i++) {
			const struct plan_side *side = kernel_side(ring, &step->op[i], round);

			if (side)
				add_side(ring, &step->op[i], side);
			if (side && round >= 0)		/* the other one of the pair is in it */
				break;
		}
}

/* Until all that is launched by then is known. */
static void walk(struct ring *ring, int64_t until)
{
	const struct plan_step *step;

	while (ring->walked <= until) {
		if (plan_next(ring->plan, &step) || step->kind == PLAN_END)
			ring->walked = PLAN_NEVER;
		else if (step->kind == PLAN_LAUNCH || step->kind == PLAN_REPLAY)
			add_step(ring, step);
	}
}

/* ---- the slots ---- */

static int64_t edge_ns(const struct plan_span *span, bool end)
{
	return end ? span->stop : span->start;
}

/* The first work that this slot held from `count` on, as far as works are kept. */
static uint64_t first_kept(const struct channel *ch, uint64_t count)
{
	uint64_t oldest = ch->count >= KEPT ? ch->count - KEPT + 1 : 1;

	if (count < oldest)
		count += (oldest - count + RING_SLOTS - 1) / RING_SLOTS * RING_SLOTS;
	return count;
}

int64_t ring_ready(struct ring *ring, int channel, uint64_t count, bool end, int64_t posted)
{
	const struct channel *ch = &ring->channel[channel];

	walk(ring, posted);
	count = first_kept(ch, count);
	if (!ch->work || count > ch->count)
		return PLAN_NEVER;
	return edge_ns(&ch->work[count % KEPT], end);
}

uint64_t ring_stamp(struct ring *ring, int channel, uint64_t count, bool end, int64_t at)
{
	const struct channel *ch = &ring->channel[channel];
	uint64_t stamp = 0;

	walk(ring, at);
	for (count = first_kept(ch, count); ch->work && count <= ch->count; count += RING_SLOTS) {
		const struct plan_span *span = &ch->work[count % KEPT];

		if (edge_ns(span, end) > at)
			break;
		stamp = end ? span->gpu_stop : span->gpu_start;
	}
	return stamp;
}
