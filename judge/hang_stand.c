/* SPDX-License-Identifier: Apache-2.0 */
/* The position of each rank of a group in the group's operation. */
#include "judge/hang.h"

#include <string.h>

/* A send's other side is a receive from its rank, which has no number either. */
static bool row_is_same_op(const struct hang_row *op, const struct hang_row *wanted)
{
	if (op->is_p2p != wanted->is_p2p)
		return false;
	if (!op->is_p2p)
		return op->func == wanted->func && op->seq == wanted->seq;
	return (op->token == wanted->token && op->key == wanted->key) ||
	       (op->func != wanted->func && op->peer == wanted->rank && op->rank == wanted->peer);
}

/* ---- where a rank stands -------------------------------------------------------- */

/* Does a rank take part, and can anything be said about it? */
static bool rank_takes_part(const struct hang_group *g, const struct hang_rank *r)
{
	const struct hang_row *op = &g->op;
	bool tells = r->counts && r->seen_ns >= op->enqueued_ns + g->least_ns;

	if (!r->op && !r->ended && !tells)
		return false;
	return !op->is_p2p || r->rank == op->rank || r->rank == op->peer;
}

static bool rank_has_posted(const struct hang *h, const struct hang_rank *r,
			    const struct hang_row *op)
{
	const struct hang_group *g = &h->groups.at[r->group];
	uint64_t last = hang_last_seq(r, op->func);

	if (r->op)
		return true;
	if (op->is_p2p)
		return r->has_p2p;	/* it may have done its part */
	if (g->by_calls)
		return r->calls > g->call;
	if (op->seq == UNKNOWN_U64)
		return true;	/* nothing tells; no accusation without a sign */
	return last != UNKNOWN_U64 && last >= op->seq;
}

/* Has only this rank of the group come so far with that function? */
static bool rank_is_ahead(const struct hang *h, const struct hang_rank *r, name_t func)
{
	const struct hang_group *g = &h->groups.at[r->group];

	for (uint32_t i = g->first; i < g->first + g->n; i++)
		if (&h->ranks.at[i] != r && h->ranks.at[i].counts &&
		    hang_next_seq(&h->ranks.at[i], func) >= hang_next_seq(r, func))
			return false;
	return g->n > 1;
}

/* The function it has posted here instead of the group's operation. */
static name_t rank_other_func(const struct hang *h, const struct hang_rank *r)
{
	const struct hang_row *op = &h->groups.at[r->group].op;

	for (uint32_t i = 0; !op->is_p2p && i < r->nlast; i++)
		if (r->last[i].func != op->func && rank_is_ahead(h, r, r->last[i].func))
			return r->last[i].func;
	return NULL;
}

static bool rank_is_on_same_gpu(const struct hang_rank *a, const struct hang_rank *b)
{
	return a->process == b->process && (!a->gpu || !b->gpu || a->gpu == b->gpu);
}

/* When it made the call that its group is about; 0: not known. */
static uint64_t rank_called_ns(const struct hang *h, const struct hang_rank *r)
{
	const struct hang_call *call = hang_call(r, h->groups.at[r->group].call);

	return call ? call->at_ns : 0;
}

/* The time since which it waits on its own communicator; 0: it does not. */
static uint64_t rank_waits_since(const struct hang *h, const struct hang_rank *r)
{
	const struct hang_group *g = &h->groups.at[r->group];

	if (r->has_oldest)
		return r->oldest.enqueued_ns;
	if (g->by_calls)
		return rank_called_ns(h, r);
	return g->unwatched && rank_has_posted(h, r, &g->op) ? g->op.enqueued_ns : 0;
}

/*
 * The same where nothing tells of the end: it has posted what others are still in, and nothing
 * since.
 */
static uint64_t rank_may_wait_since(const struct hang *h, const struct hang_rank *r)
{
	const struct hang_group *g = &h->groups.at[r->group];
	uint64_t since_ns = rank_waits_since(h, r);

	if (since_ns || !g->has_op || g->op.is_p2p || g->op.seq == UNKNOWN_U64 ||
	    hang_last_seq(r, g->op.func) != g->op.seq)
		return since_ns;
	return r->last_op_ns;
}

struct hang_own hang_own(const struct hang *h, uint64_t process)
{
	const struct hang_rank *const *all = h->by_process;
	uint32_t low = 0, high = h->ranks.n;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (all[middle]->process < process)
			low = middle + 1;
		else
			high = middle;
	}
	while (high < h->ranks.n && all[high]->process == process)
		high++;
	return (struct hang_own){ &all[low], high - low };
}

typedef uint64_t waits_since_fn(const struct hang *h, const struct hang_rank *r);

/* The communicator where this rank's GPU has waited for longest, and since before that. */
static uint32_t rank_elsewhere(const struct hang *h, const struct hang_rank *r, uint64_t before_ns,
			       waits_since_fn *waits_since)
{
	const struct hang_own own = hang_own(h, r->process);
	uint32_t group = HANG_NONE;
	uint64_t oldest_ns = before_ns;

	for (uint32_t i = 0; i < own.n; i++) {
		const struct hang_rank *other = own.at[i];
		uint64_t since_ns;

		if (other->group == r->group || !rank_is_on_same_gpu(r, other))
			continue;
		since_ns = waits_since(h, other);
		if (!since_ns || since_ns >= oldest_ns)
			continue;
		oldest_ns = since_ns;
		group = other->group;
	}
	return group;
}

/* The rank of the same GPU, in whichever communicator, that posted last. */
static const struct hang_rank *rank_newest(const struct hang *h, const struct hang_rank *r)
{
	const struct hang_own own = hang_own(h, r->process);
	const struct hang_rank *newest = r;

	for (uint32_t i = 0; i < own.n; i++)
		if (rank_is_on_same_gpu(r, own.at[i]) &&
		    own.at[i]->last_op_ns > newest->last_op_ns)
			newest = own.at[i];
	return newest;
}

/*
 * May it still be inside the last thing that it posted?  That is of another communicator, nobody
 * tells its end, and none of those who are in it too has posted anything since.
 */
static bool rank_may_wait(const struct hang *h, const struct hang_rank *r)
{
	const struct hang_rank *newest = rank_newest(h, r);
	const struct hang_group *g = &h->groups.at[newest->group];

	if (newest->group == r->group || !newest->last_unwatched || g->n < 2)
		return false;
	for (uint32_t i = g->first; i < g->first + g->n; i++)
		if (rank_newest(h, &h->ranks.at[i]) != &h->ranks.at[i])
			return false;
	return true;
}

/* ---- what its transfers wait for --------------------------------------------------- */

static const struct {
	name_t state;
	enum hang_wait wait;
} waits[] = {
	{ "SendGPUWait", WAIT_PRODUCE },
	{ "SendPosted", WAIT_PRODUCE },
	{ "SendPeerWait", WAIT_CREDIT },
	{ "SendRemFifoWait", WAIT_CREDIT },
	{ "SendWait", WAIT_WIRE },
	{ "SendTransmitted", WAIT_WIRE },
	{ "RecvWait", WAIT_RECV },
	{ "RecvPosted", WAIT_RECV },
	{ "RecvFlushWait", WAIT_FLUSH },
	{ "RecvReceived", WAIT_FLUSH },
	{ "RecvGPUWait", WAIT_CONSUME },
	{ "RecvTransmitted", WAIT_CONSUME },
};

enum hang_wait hang_row_wait(const struct hang_row *row)
{
	for (size_t i = 0; row && row->state && i < ARRAY_LEN(waits); i++)
		if (!strcmp(waits[i].state, row->state))
			return waits[i].wait;
	return WAIT_NONE;
}

/*
 * Do transfers of an operation, or of all sends and receives (NULL), tell that the GPU has
 * begun it?  It has given one to the network, or the first is over: several are waited for
 * at a time.  What is received needs no GPU at first.
 */
static bool rank_tells_begun(const struct hang_rank *r, const struct hang_row *op)
{
	int32_t least = INT32_MAX;

	for (size_t i = 0; i < r->nrows; i++) {
		const struct hang_row *row = &r->rows[i];
		enum hang_wait wait = hang_row_wait(row);

		if (row->is_op || (op ? row->func != op->func || row->seq != op->seq :
					row->seq != UNKNOWN_U64))
			continue;
		if (wait == WAIT_CREDIT || wait == WAIT_WIRE)
			return true;
		if (wait == WAIT_PRODUCE && row->step != UNKNOWN_I32 && row->step < least)
			least = row->step;
	}
	return least > 0 && least != INT32_MAX;
}

/* ---- sends and receives that nobody answers ----------------------------------- */

const struct hang_rank *hang_group_rank(const struct hang *h, uint32_t group, int32_t rank)
{
	const struct hang_group *g = &h->groups.at[group];

	for (uint32_t i = g->first; i < g->first + g->n; i++)
		if (h->ranks.at[i].rank == rank)
			return &h->ranks.at[i];
	return NULL;
}

/*
 * Has the GPU come to the sends and receives of this rank?  Those of a group are one
 * kernel, of which NCCL tells the operations one after another.  Where kernels are not told
 * of, it has, unless their transfers do not tell so, and there is something older elsewhere.
 */
static bool rank_has_begun_p2p(const struct hang *h, const struct hang_rank *r)
{
	bool begun = false;

	if (!r->p2p_has_kernel)
		return rank_tells_begun(r, NULL) ||
		       rank_elsewhere(h, r, r->oldest.enqueued_ns,
				      rank_may_wait_since) == HANG_NONE;
	for (size_t i = 0; i < r->nrows && !begun; i++)
		begun = r->rows[i].seq == UNKNOWN_U64 && r->rows[i].kernel_started > 0;
	return begun;
}

/* Nobody here could say that it is not, unless the other side is seen here. */
static bool row_is_answered(const struct hang *h, const struct hang_rank *r,
			    const struct hang_row *op)
{
	const struct hang_rank *peer = hang_group_rank(h, r->group, op->peer);

	if (!peer || peer == r || !peer->counts)
		return true;
	return peer->has_p2p && peer->p2p_has_begun;
}

/*
 * Most of many sends and receives, as in an AlltoAll, only wait for those of one rank:
 * one that has not posted its side, or whose GPU has not come to it.
 */
static void group_side_with_unanswered(const struct hang *h, struct hang_group *g)
{
	const struct hang_row *oldest = NULL;

	if (!g->has_op || !g->op.is_p2p)
		return;
	for (uint32_t i = g->first; i < g->first + g->n; i++) {
		const struct hang_rank *r = &h->ranks.at[i];

		for (size_t k = 0; !r->ended && k < r->nrows; k++) {
			const struct hang_row *op = &r->rows[k];

			if (op->is_op && op->is_p2p && op->enqueued_ns &&
			    (!oldest || op->enqueued_ns < oldest->enqueued_ns) &&
			    !row_is_answered(h, r, op))
				oldest = op;
		}
	}
	if (oldest)
		g->op = *oldest;
}

bool hang_is_of(const struct hang_row *row, const struct hang_rank *r)
{
	return r->op && row->func == r->op->func && row->seq == r->op->seq;
}

/* Neither its own GPU nor another rank has to do anything first. */
static bool wait_is_sure(enum hang_wait wait)
{
	return wait >= WAIT_CONSUME;
}

/*
 * The surest sign of where the cause lies goes first (the order of enum hang_wait).
 * Of what waits for something else the step that is furthest behind: what comes after
 * it may wait for no other reason.
 */
static bool row_tells_more(const struct hang_row *row, const struct hang_row *than)
{
	enum hang_wait a = hang_row_wait(row), b = hang_row_wait(than);

	if (!than)
		return true;
	if (a != b && (wait_is_sure(a) || wait_is_sure(b) || row->step == than->step))
		return a > b;
	return row->step < than->step;
}

static void rank_find_rows(const struct hang_group *g, struct hang_rank *r)
{
	for (size_t i = 0; g->has_op && !r->op && i < r->nrows; i++)
		if (r->rows[i].is_op && row_is_same_op(&r->rows[i], &g->op))
			r->op = &r->rows[i];
	for (size_t i = 0; r->op && i < r->nrows; i++) {
		const struct hang_row *row = &r->rows[i];

		if (!row->is_op && hang_is_of(row, r) && hang_row_wait(row) &&
		    row_tells_more(row, r->transfer))
			r->transfer = row;
	}
}

/* The transfer furthest behind, of those that wait so. */
static struct hang_wait_for rank_find_wait(const struct hang_rank *r, enum hang_wait wait)
{
	struct hang_wait_for found = { UNKNOWN_I32, INT32_MAX };

	for (size_t i = 0; r->op && i < r->nrows; i++) {
		const struct hang_row *row = &r->rows[i];

		if (!row->is_op && hang_is_of(row, r) && hang_row_wait(row) == wait &&
		    row->step < found.step)
			found = (struct hang_wait_for){ row->peer, row->step };
	}
	return found;
}

/*
 * A GPU that takes nothing more may have no room at the next one, with which it shares the node:
 * the network is not in between where it sends nothing on that channel.
 */
static bool rank_passes_on(const struct hang_rank *r)
{
	if (!r->op || r->op->is_p2p || hang_row_wait(r->transfer) != WAIT_CONSUME)
		return false;
	for (size_t i = 0; i < r->nrows; i++) {
		const struct hang_row *row = &r->rows[i];

		if (!row->is_op && hang_is_of(row, r) && row->channel == r->transfer->channel &&
		    row->direction && !strcmp(row->direction, "send"))
			return false;
	}
	return true;
}

/* ---- for the decision ----------------------------------------------------------------- */

static uint32_t rank_kernels(const struct hang_rank *r)
{
	if (r->op->is_p2p)
		return r->p2p_has_begun;
	return r->op->kernel_started > 0 ? (uint32_t)r->op->kernel_started : 0;
}

/* Nothing else is known of it than how it was called.  NULL: that was long ago. */
static void standing_take_call(struct hang_standing *s, const struct hang_call *call,
			       const struct hang_row *op)
{
	if (!call)
		return;
	s->posted = call->func == op->func;
	if (!s->posted) {
		s->other_func = call->func;
		return;
	}
	s->count = call->count;
	s->datatype = call->datatype;
	s->root = call->root;
}

static void standing_may_be_away(const struct hang *h, const struct hang_rank *r,
				 uint64_t posted_ns, struct hang_standing *s)
{
	s->elsewhere = rank_elsewhere(h, r, posted_ns, rank_may_wait_since);
	s->may_be_away = s->elsewhere != HANG_NONE;
}

static struct hang_standing rank_stand(const struct hang *h, const struct hang_rank *r)
{
	const struct hang_group *g = &h->groups.at[r->group];
	struct hang_standing s = {
		.rank = r->rank,
		.process = r->process,
		.ended = r->ended,
		.stopped = r->halt.stopped,
		.posted = rank_has_posted(h, r, &g->op),
		.wait = hang_row_wait(r->transfer),
		.peer = r->transfer ? r->transfer->peer : UNKNOWN_I32,
		.step = r->transfer ? r->transfer->step : UNKNOWN_I32,
		.host = r->host,
		.passes_on = rank_passes_on(r),
		.room = rank_find_wait(r, WAIT_CREDIT), .data = rank_find_wait(r, WAIT_RECV),
		.count = UNKNOWN_U64,
		.root = UNKNOWN_I32,
		.elsewhere = HANG_NONE,
	};

	if (g->by_calls && s.posted) {
		standing_take_call(&s, hang_call(r, g->call), &g->op);
		if (s.posted)
			standing_may_be_away(h, r, rank_called_ns(h, r), &s);
		return s;
	}
	s.done = s.posted && !r->op;
	if (!s.posted) {
		s.other_func = rank_other_func(h, r);
		s.elsewhere = rank_elsewhere(h, r, UINT64_MAX, rank_waits_since);
		s.may_wait = s.elsewhere == HANG_NONE && rank_may_wait(h, r);
		return s;
	}
	if (!r->op) {
		standing_may_be_away(h, r, r->last_op_ns, &s);
		return s;
	}
	if (!r->op->is_p2p && hang_is_swapped(h, r)) {
		s.posted = false;	/* not at this place */
		s.other_func = r->oldest.func;
		return s;
	}
	s.wants_kernel = r->op->kernel_started != UNKNOWN_I32;
	s.kernel_started = rank_kernels(r);
	if (s.wants_kernel && !s.kernel_started)
		s.elsewhere = rank_elsewhere(h, r, r->op->enqueued_ns, rank_waits_since);
	else if (!s.wants_kernel && !rank_tells_begun(r, r->op->is_p2p ? NULL : r->op))
		standing_may_be_away(h, r, r->op->enqueued_ns, &s);
	if (r->op->is_p2p)
		return s;		/* the two sides need not agree in all else */
	s.count = r->op->count;
	s.datatype = r->op->datatype;
	s.algo = r->op->algo;
	s.proto = r->op->proto;
	s.root = r->op->root;
	s.channels = r->op->channels;
	return s;
}

/* A send and its receive are two, wherever they are. */
static int32_t group_participants(const struct hang *h, const struct hang_group *g)
{
	const struct hang_rank *r = &h->ranks.at[g->first];

	if (g->op.is_p2p)
		return 2;
	return r->has_id ? r->nranks : UNKNOWN_I32;
}

static void group_stand(struct hang *h, const struct hang_group *g, struct hang_comm *out)
{
	*out = (struct hang_comm){ .ranks = &h->standings.at[h->standings.n] };
	if (!g->has_op)
		return;
	out->nranks = group_participants(h, g);
	for (uint32_t i = g->first; i < g->first + g->n; i++) {
		if (!rank_takes_part(g, &h->ranks.at[i]))
			continue;
		*list_must_add(&h->standings) = rank_stand(h, &h->ranks.at[i]);
		out->n++;
	}
}

void hang_place(struct hang *h)
{
	for (uint32_t i = 0; i < h->ranks.n; i++)
		h->ranks.at[i].p2p_has_begun = rank_has_begun_p2p(h, &h->ranks.at[i]);
	for (uint32_t i = 0; i < h->groups.n; i++)
		group_side_with_unanswered(h, &h->groups.at[i]);
	for (uint32_t i = 0; i < h->ranks.n; i++)
		rank_find_rows(&h->groups.at[h->ranks.at[i].group], &h->ranks.at[i]);
	for (uint32_t i = 0; i < h->groups.n; i++)
		group_stand(h, &h->groups.at[i], &h->comms[i]);
}
