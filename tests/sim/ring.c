/* SPDX-License-Identifier: Apache-2.0 */
/* The GPU's side of the counters: it counts every kernel's works, and stamps the watched ones. */
#include "tests/sim/ring.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#define KEPT	4096		/* works of a channel; older ones are forgotten */

/* One work: a part of a kernel. */
struct work {
	struct plan_span span;
	int64_t launched;
	int64_t enqueued;		/* its call, whose mask it has; PLAN_NEVER: watched */
	bool unwatched;			/* whatever the mask was */
};

struct channel {
	uint64_t count;			/* works so far */
	struct work *work;		/* work k is at k % KEPT; NULL: none so far */
};

/* What holds from a time on, until the next. */
struct change {
	int64_t from;
	int64_t value;
};

struct changes {
	struct change *change;		/* by time */
	int n, room;
};

struct ring {
	const struct scenario *scn;
	const struct sim_comm *comm;
	int rank;
	struct plan *plan;
	int64_t walked;			/* all launched before this is known */
	struct channel channel[RING_CHANNELS];
	/* what the threads that call and launch have told */
	pthread_mutex_t mutex;
	struct changes watched;		/* by calls; before the first one all is watched */
	struct changes late;		/* by launches: so many ns behind the model */
	int64_t launched;		/* the newest of them */
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
	pthread_mutex_init(&ring->mutex, NULL);
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
	free(ring->watched.change);
	free(ring->late.change);
	free(ring);
}

/* ---- what the host does ---- */

static void changes_add(struct changes *c, int64_t from, int64_t value)
{
	struct change *p;

	if (c->n && c->change[c->n - 1].value == value)
		return;
	if (c->n == c->room) {
		p = realloc(c->change, (c->room * 2 + 16) * sizeof(*p));
		c->change = p ? p : c->change;
		c->room = p ? c->room * 2 + 16 : c->room;
	}
	if (c->n < c->room)
		c->change[c->n++] = (struct change){ from, value };
}

static int64_t changes_at(const struct changes *c, int64_t at, int64_t before_all)
{
	for (int i = c->n - 1; i >= 0; i--)
		if (c->change[i].from <= at)
			return c->change[i].value;
	return before_all;
}

void ring_note_mask(struct ring *ring, int64_t enqueued, bool watched)
{
	pthread_mutex_lock(&ring->mutex);
	changes_add(&ring->watched, enqueued, watched);
	pthread_mutex_unlock(&ring->mutex);
}

void ring_note_launch(struct ring *ring, int64_t launched, int64_t late_ns)
{
	pthread_mutex_lock(&ring->mutex);
	changes_add(&ring->late, launched, late_ns);
	if (launched > ring->launched)
		ring->launched = launched;
	pthread_mutex_unlock(&ring->mutex);
}

/* A GPU stamps what NCCL has told it to; what is yet to be called goes as the last call did. */
static bool work_is_stamped(struct ring *ring, const struct work *work)
{
	bool watched;

	if (work->unwatched || work->enqueued == PLAN_NEVER)
		return !work->unwatched;
	pthread_mutex_lock(&ring->mutex);
	watched = changes_at(&ring->watched, work->enqueued, true);
	pthread_mutex_unlock(&ring->mutex);
	return watched;
}

static int64_t ring_launched(struct ring *ring)
{
	int64_t launched;

	pthread_mutex_lock(&ring->mutex);
	launched = ring->launched;
	pthread_mutex_unlock(&ring->mutex);
	return launched;
}

static int64_t work_late_ns(struct ring *ring, const struct work *work)
{
	int64_t late;

	pthread_mutex_lock(&ring->mutex);
	late = changes_at(&ring->late, work->launched, 0);
	pthread_mutex_unlock(&ring->mutex);
	return late;
}

/* ---- the walk ---- */

static void add_work(struct ring *ring, const struct plan_op *op, const struct plan_side *side,
		     int index, const struct work *like)
{
	struct channel *ch = &ring->channel[plan_channel_number(op, index)];
	struct work *work;

	if (!ch->work)
		ch->work = calloc(KEPT, sizeof(*ch->work));
	ch->count++;
	if (!ch->work)
		return;
	work = &ch->work[ch->count % KEPT];
	*work = *like;
	plan_channel(ring->scn, op, side, index, &work->span);
}

/* A rank's works of one round: its send and its receive are one. */
static void add_side(struct ring *ring, const struct plan_op *op, const struct plan_side *side,
		     bool replay)
{
	const struct work like = { .launched = side->launched,
				   .enqueued = replay ? PLAN_NEVER : side->enqueued,
				   .unwatched = plan_is_hidden(ring->scn, op->spec) };

	for (int i = 0; i < op->nchannels; i++)
		add_work(ring, op, side, i, &like);
	if (side->launched > ring->walked)
		ring->walked = side->launched;
}

/*
 * NCCL counts a Broadcast that it tells nothing of, and the GPU does not stamp it; but not
 * several of one group that have different roots, nor any from 2.31 on.
 */
static bool is_counted_by_gpu_alone(const struct ring *ring, const struct plan_step *step,
				    const struct plan_op *op)
{
	if (op->spec->func != FUNC_BROADCAST || !plan_is_hidden(ring->scn, op->spec))
		return false;
	for (int i = 0; i < step->nops; i++)
		if (step->op[i].comm == op->comm && step->op[i].spec->func == FUNC_BROADCAST &&
		    step->op[i].spec->root != op->spec->root)
			return true;
	return ring->scn->release >= 31;
}

/* Our side that a kernel runs; `round`: of the p2p schedule, -1: collectives. */
static const struct plan_side *kernel_side(const struct ring *ring, const struct plan_step *step,
					   const struct plan_op *op, int round)
{
	const struct plan_side *side = plan_side_of(op, ring->rank, 0);

	if (op->comm != ring->comm || !side || side->arrival == PLAN_NEVER || !side->moves ||
	    op->spec->symmetric)
		return NULL;
	if (side->peer < 0)
		return round < 0 && (side->has_seq || is_counted_by_gpu_alone(ring, step, op)) ?
		       side : NULL;
	return round == op->round ? side : NULL;
}

static void add_step(struct ring *ring, const struct plan_step *step)
{
	for (int round = -1; round < ring->comm->nranks; round++)
		for (int i = 0; i < step->nops; i++) {
			const struct plan_side *side = kernel_side(ring, step, &step->op[i], round);

			if (side)
				add_side(ring, &step->op[i], side, step->kind == PLAN_REPLAY);
			if (side && round >= 0)		/* the other one of the pair is in it */
				break;
		}
}

static void ring_walk_on(struct ring *ring)
{
	const struct plan_step *step;

	if (plan_next(ring->plan, &step) || step->kind == PLAN_END)
		ring->walked = PLAN_NEVER;
	else if (step->kind == PLAN_LAUNCH || step->kind == PLAN_REPLAY)
		add_step(ring, step);
}

/* Until all that is launched by then is known. */
static void ring_walk(struct ring *ring, int64_t until)
{
	while (ring->walked <= until)
		ring_walk_on(ring);
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
	uint64_t most;

	ring_walk(ring, posted);
	most = ch->count + KEPT / 2;		/* how far a later one is waited for */
	for (count = first_kept(ch, count); count < most; count += RING_SLOTS) {
		while (ch->count < count && ring->walked != PLAN_NEVER)
			ring_walk_on(ring);
		if (!ch->work || ch->count < count)
			break;
		if (work_is_stamped(ring, &ch->work[count % KEPT]))
			return edge_ns(&ch->work[count % KEPT].span, end);
	}
	return PLAN_NEVER;
}

uint64_t ring_stamp(struct ring *ring, int channel, uint64_t count, bool end, int64_t at)
{
	const struct channel *ch = &ring->channel[channel];
	int64_t launched = ring_launched(ring);
	uint64_t stamp = 0;

	ring_walk(ring, launched < at ? launched : at);
	for (count = first_kept(ch, count); ch->work && count <= ch->count; count += RING_SLOTS) {
		const struct work *work = &ch->work[count % KEPT];
		int64_t late = work_late_ns(ring, work);

		if (work->launched > launched || edge_ns(&work->span, end) > at - late)
			break;
		if (work_is_stamped(ring, work))
			stamp = (end ? work->span.gpu_stop : work->span.gpu_start) +
				(uint64_t)late;
	}
	return stamp;
}
