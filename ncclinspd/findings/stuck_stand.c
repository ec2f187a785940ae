/* SPDX-License-Identifier: Apache-2.0 */
/* The position of each rank of a group in the group's operation. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "ncclinspd/findings/diagnose.h"
#include "ncclinspd/findings/stuck.h"
#include "util/list.h"
#include "util/nccl_names.h"

#define SEARCHES	512	/* searches in a look: each goes through a process's operations */

/* A send's other side is a receive from its rank, which has no number either. */
static bool is_same_op(const struct op *op, const struct op *wanted)
{
	if (op->is_p2p != wanted->is_p2p)
		return false;
	if (!op->is_p2p)
		return op->func == wanted->func && op->seq == wanted->seq;
	return op->token == wanted->token ||
	       (op->func != wanted->func && op->peer == wanted->rank && op->rank == wanted->peer);
}

/* ---- sends and receives that nobody answers ----------------------------------- */

struct unanswered {
	const struct stuck *view;
	const struct diagnose_source *source;
	struct stuck_rank *rank;	/* the rank whose operations are gone through */
	uint32_t *searches;		/* so far, in all groups */
	bool found;
	struct op op;			/* the oldest */
};

static struct stuck_rank *rank_of(const struct stuck *v, const struct stuck_group *g, int32_t rank)
{
	for (uint32_t i = g->first; i < g->first + g->n; i++)
		if (v->ranks.at[i].comm->rank == rank)
			return &v->ranks.at[i];
	return NULL;
}

/*
 * Has the GPU come to the sends and receives of this rank?  Those of a group are one
 * kernel, of which NCCL tells the operations one after another.
 */
static bool has_begun(const struct stuck *v, const struct stuck_rank *r)
{
	if (!r->p2p_expects_kernel)
		return true;
	for (size_t i = r->first_row; i < r->end_row; i++) {
		const struct inflight *row = &v->rows.at[i];

		if (row->comm_id == r->comm->id &&
		    row->rank == r->comm->rank && row->seq == UNKNOWN_U64 &&
		    row->kernel_started > 0)
			return true;
	}
	return false;
}

/* Nobody here could say that it is not, unless the other side is of this node. */
static bool is_answered(const struct unanswered *u, const struct op *op)
{
	const struct stuck_group *g = &u->view->groups.at[u->rank->group];
	const struct stuck_rank *peer = rank_of(u->view, g, op->peer);

	if (!peer || peer == u->rank || !stuck_tells(peer) || ++*u->searches > SEARCHES)
		return true;
	return peer->has_p2p && has_begun(u->view, peer);
}

static bool take_unanswered(const struct op *op, void *arg)
{
	struct unanswered *u = arg;

	if (op->comm_index != u->rank->index || !op->is_p2p || !op->enqueued_ns ||
	    (u->found && u->op.enqueued_ns <= op->enqueued_ns) || is_answered(u, op))
		return true;
	u->found = true;
	u->op = *op;
	return true;
}

/*
 * Most of many sends and receives, as in an AlltoAll, only wait for those of one rank:
 * one that has not posted its side, or whose GPU has not come to it.
 */
static void side_with_unanswered(const struct stuck *v, const struct diagnose_source *source,
				 struct stuck_group *g, uint32_t *searches)
{
	struct unanswered u = { .view = v, .source = source, .searches = searches };

	if (!g->has_op || !g->op.is_p2p)
		return;
	for (uint32_t i = g->first; i < g->first + g->n; i++) {
		u.rank = &v->ranks.at[i];
		if (!u.rank->ended)
			reconstruct_open(source->reconstruct, u.rank->process, take_unanswered, &u);
	}
	if (u.found)
		g->op = u.op;
}

/* ---- where a rank stands -------------------------------------------------------- */

/* Does a rank of this node take part, and can anything be said about it? */
static bool takes_part(const struct stuck_rank *r, const struct op *op)
{
	if (!r->has_op && !r->ended && !stuck_tells(r))
		return false;
	return !op->is_p2p || r->comm->rank == op->rank || r->comm->rank == op->peer;
}

static bool has_posted(const struct stuck *v, const struct stuck_rank *r, const struct op *op)
{
	uint64_t last = stuck_last_seq(&r->progress, op->func);

	if (r->has_op)
		return true;
	if (op->is_p2p)
		return r->has_p2p;	/* it may have done its part */
	if (v->groups.at[r->group].by_calls)
		return r->progress.calls > v->groups.at[r->group].call;
	if (op->seq == UNKNOWN_U64)
		return true;	/* nothing tells; no accusation without a sign */
	return last != UNKNOWN_U64 && last >= op->seq;
}

/* Has only this rank of the group come so far with that function? */
static bool is_ahead(const struct stuck *v, const struct stuck_rank *r, name_t func)
{
	const struct stuck_group *g = &v->groups.at[r->group];

	for (uint32_t i = g->first; i < g->first + g->n; i++)
		if (&v->ranks.at[i] != r && stuck_tells(&v->ranks.at[i]) &&
		    stuck_next_seq(&v->ranks.at[i], func) >= stuck_next_seq(r, func))
			return false;
	return g->n > 1;
}

/* The function it has posted here instead of the group's operation. */
static name_t other_func(const struct stuck *v, const struct stuck_rank *r)
{
	const struct op *op = &v->groups.at[r->group].op;

	for (uint32_t i = 0; !op->is_p2p && i < r->progress.nfuncs; i++) {
		name_t func = r->progress.last_seq[i].func;

		if (func != op->func && is_ahead(v, r, func))
			return func;
	}
	return NULL;
}

static bool is_same_device(const struct stuck_rank *a, const struct stuck_rank *b)
{
	if (a->process != b->process)
		return false;
	return !a->comm->has_gpu || !b->comm->has_gpu ||
	       !memcmp(a->comm->gpu_uuid, b->comm->gpu_uuid, sizeof(a->comm->gpu_uuid));
}

/* The time since which it waits on its own communicator; 0: it does not. */
static uint64_t waits_since(const struct stuck *v, const struct stuck_rank *r)
{
	const struct stuck_group *g = &v->groups.at[r->group];

	if (r->has_oldest)
		return r->oldest.enqueued_ns;
	return g->unwatched && has_posted(v, r, &g->op) ? g->op.enqueued_ns : 0;
}

/* The communicator where this rank's GPU has waited for longest, and since before that. */
static uint32_t elsewhere(const struct stuck *v, const struct stuck_rank *r, uint64_t before_ns)
{
	uint32_t group = DESYNC_NONE;
	uint64_t oldest_ns = before_ns;

	for (uint32_t i = 0; i < v->ranks.n; i++) {
		const struct stuck_rank *other = &v->ranks.at[i];
		uint64_t since_ns;

		if (other->group == r->group || !is_same_device(r, other))
			continue;
		since_ns = waits_since(v, other);
		if (!since_ns || since_ns >= oldest_ns)
			continue;
		oldest_ns = since_ns;
		group = other->group;
	}
	return group;
}

/* ---- what its transfers wait for --------------------------------------------------- */

static const struct {
	name_t state;
	enum desync_wait wait;
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

static enum desync_wait wait_of(const struct inflight *row)
{
	for (size_t i = 0; row && row->state && i < ARRAY_LEN(waits); i++)
		if (!strcmp(waits[i].state, row->state))
			return waits[i].wait;
	return WAIT_NONE;
}

bool stuck_is_of(const struct inflight *row, const struct stuck_rank *r)
{
	return r->has_op && row->process == r->process && row->has_comm_id == r->comm->has_id &&
	       row->comm_id == r->comm->id && row->rank == r->comm->rank &&
	       row->func == r->op.func && row->seq == r->op.seq;
}

/* Neither its own GPU nor another rank has to do anything first. */
static bool is_sure(enum desync_wait wait)
{
	return wait >= WAIT_CONSUME;
}

/*
 * The surest sign of where the cause lies goes first (the order of enum desync_wait).
 * Of what waits for something else the step that is furthest behind: what comes after
 * it may wait for no other reason.
 */
static bool tells_more(const struct inflight *row, const struct inflight *than)
{
	enum desync_wait a = wait_of(row), b = wait_of(than);

	if (!than)
		return true;
	if (a != b && (is_sure(a) || is_sure(b) || row->step == than->step))
		return a > b;
	return row->step < than->step;
}

static void find_rows(const struct stuck *v, struct stuck_rank *r)
{
	name_t step = nccl_event_name(NCI_EV_PROXY_STEP), proxy = nccl_event_name(NCI_EV_PROXY_OP);

	for (size_t i = r->first_row; r->has_op && i < r->end_row; i++) {
		const struct inflight *row = &v->rows.at[i];

		if (row->token == r->op.token)
			r->row = row;
		else if ((row->event_type == step || row->event_type == proxy) &&
			 stuck_is_of(row, r) && wait_of(row) && tells_more(row, r->transfer))
			r->transfer = row;
	}
}

/* The rows of that process are those that were added last. */
static void note_rows(struct stuck *v, const struct process *p)
{
	for (uint32_t i = 0; i < v->ranks.n; i++)
		if (v->ranks.at[i].process == p) {
			v->ranks.at[i].first_row = v->rows.mine;
			v->ranks.at[i].end_row = v->rows.n;
		}
}

static int look_at_rows(struct stuck *v, const struct diagnose_source *source)
{
	struct process *const *list;
	size_t n = source->processes(source->arg, &list);

	for (size_t i = 0; i < n; i++) {
		const struct live_slot *slots = list[i]->last_slots;
		int count = (int)list[i]->nlast_slots;

		if (list[i]->state == PROCESS_LIVE)
			count = source->slots(source->arg, list[i], &slots);
		inflights_add(&v->rows, source->reconstruct, list[i], slots,
			      count > 0 ? (size_t)count : 0, v->now_ns);
		note_rows(v, list[i]);
	}
	return v->rows.error;
}

/* ---- the group's operation, in each rank ----------------------------------------------- */

/* The ranks of one process, by their index there. */
struct walk {
	const struct stuck *view;
	LIST(struct stuck_rank *) ranks;
};

static int by_index(const void *one, const void *two)
{
	const struct stuck_rank *a = *(struct stuck_rank *const *)one;
	const struct stuck_rank *b = *(struct stuck_rank *const *)two;

	return a->index < b->index ? -1 : a->index > b->index;
}

static bool take_groups_op(const struct op *op, void *arg)
{
	const struct walk *w = arg;
	struct stuck_rank key = { .index = op->comm_index }, *at = &key, **found, *r;
	const struct stuck_group *g;

	found = bsearch(&at, w->ranks.at, w->ranks.n, sizeof(at), by_index);
	if (!found)
		return true;
	r = *found;
	g = &w->view->groups.at[r->group];
	if (r->has_op || !g->has_op || !is_same_op(op, &g->op))
		return true;
	r->has_op = true;
	r->op = *op;
	return true;
}

/* Each process's operations are gone through once. */
static int look_for_ops(struct stuck *v, const struct diagnose_source *source)
{
	struct process *const *list;
	size_t n = source->processes(source->arg, &list);
	struct walk w = { .view = v };
	int r = list_init(&w.ranks, v->ranks.n);

	for (size_t i = 0; r == 0 && i < n; i++) {
		w.ranks.n = 0;
		for (uint32_t k = 0; k < v->ranks.n; k++)
			if (v->ranks.at[k].process == list[i])
				*list_must_add(&w.ranks) = &v->ranks.at[k];
		qsort(w.ranks.at, w.ranks.n, sizeof(*w.ranks.at), by_index);
		reconstruct_open(source->reconstruct, list[i], take_groups_op, &w);
	}
	list_deinit(&w.ranks);
	return r;
}

/* ---- for the decision ----------------------------------------------------------------- */

static uint32_t kernels_of(const struct stuck *v, const struct stuck_rank *r)
{
	if (r->op.is_p2p)
		return has_begun(v, r);
	return r->row && r->row->kernel_started > 0 ? (uint32_t)r->row->kernel_started :
						      r->op.kernel_started;
}

/* Nothing else is known of it than how it was called.  NULL: that was long ago. */
static void describe_call(const struct called *call, const struct op *op, struct desync_rank *out)
{
	if (!call)
		return;
	out->posted = call->func == op->func;
	if (!out->posted) {
		out->other_func = call->func;
		return;
	}
	out->count = call->count;
	out->datatype = call->datatype;
	out->root = call->root;
}

static void describe(const struct stuck *v, const struct diagnose_source *source,
		     const struct stuck_rank *r, struct desync_rank *out)
{
	const struct op *op = &v->groups.at[r->group].op;

	*out = (struct desync_rank){
		.rank = r->comm->rank,
		.ended = r->ended,
		.posted = has_posted(v, r, op),
		.wait = wait_of(r->transfer),
		.peer = r->transfer ? r->transfer->peer : UNKNOWN_I32,
		.step = r->transfer ? r->transfer->step : UNKNOWN_I32,
		.count = UNKNOWN_U64,
		.root = UNKNOWN_I32,
		.elsewhere = DESYNC_NONE,
	};
	if (v->groups.at[r->group].by_calls && out->posted) {
		describe_call(stuck_call(r, v->groups.at[r->group].call), op, out);
		return;
	}
	out->done = out->posted && !r->has_op;
	if (!out->posted) {
		out->other_func = other_func(v, r);
		out->elsewhere = elsewhere(v, r, UINT64_MAX);
		return;
	}
	if (!r->has_op)
		return;
	if (!r->op.is_p2p && stuck_is_swapped(v, source, r)) {
		out->posted = false;	/* not at this place */
		out->other_func = r->oldest.func;
		return;
	}
	out->wants_kernel = r->op.expects_kernel;
	out->kernel_started = kernels_of(v, r);
	if (out->wants_kernel && !out->kernel_started)
		out->elsewhere = elsewhere(v, r, r->op.enqueued_ns);
	if (r->op.is_p2p)
		return;		/* the two sides need not agree in all else */
	out->count = r->op.count;
	out->datatype = r->op.datatype;
	out->algo = r->op.algo;
	out->proto = r->op.proto;
	out->root = r->op.root;
	out->channels = r->op.channels;
}

/* A send and its receive are two, wherever they are. */
static int32_t participants(const struct stuck *v, const struct stuck_group *g)
{
	const struct comm *comm = v->ranks.at[g->first].comm;

	if (g->op.is_p2p)
		return 2;
	return comm->has_id ? comm->nranks : UNKNOWN_I32;
}

static void describe_group(struct stuck *v, const struct diagnose_source *source,
			   struct stuck_group *g, struct desync_comm *out)
{
	g->decided_first = v->desync.n;
	*out = (struct desync_comm){ .ranks = &v->desync.at[v->desync.n] };
	if (!g->has_op)
		return;
	out->nranks = participants(v, g);
	for (uint32_t i = g->first; i < g->first + g->n; i++) {
		if (!takes_part(&v->ranks.at[i], &g->op))
			continue;
		describe(v, source, &v->ranks.at[i], list_must_add(&v->desync));
		out->n++;
	}
}

int stuck_look_closer(struct stuck *v, const struct diagnose_source *source)
{
	uint32_t searches = 0;
	int r;

	v->comms = calloc(v->groups.n + 1, sizeof(*v->comms));
	if (!v->comms || list_init(&v->desync, v->ranks.n) < 0)
		return -ENOMEM;
	r = look_at_rows(v, source);
	for (uint32_t i = 0; r == 0 && i < v->groups.n; i++)
		side_with_unanswered(v, source, &v->groups.at[i], &searches);
	if (r == 0)
		r = look_for_ops(v, source);
	for (uint32_t i = 0; i < v->ranks.n; i++)
		find_rows(v, &v->ranks.at[i]);
	for (uint32_t i = 0; i < v->groups.n; i++)
		describe_group(v, source, &v->groups.at[i], &v->comms[i]);
	return r;
}
