/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The view of stuck.h: ranks in groups, and the oldest operation of each group; where no end
 * is watched, the operation that some ranks have posted and others have not.
 */
#include "ncclinspd/findings/stuck.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "ncclinspd/findings/diagnose.h"

/* ---- communicators ------------------------------------------------------------ */

static int order(uint64_t a, uint64_t b)
{
	return a < b ? -1 : a > b;
}

/*
 * Ranks are of one communicator if id, size, name and user agree: anybody may write
 * another's id into their own segment.  Without an id each stands alone.
 */
static int compare_groups(const struct stuck_rank *a, const struct stuck_rank *b)
{
	int r = order((uint64_t)b->comm->nranks, (uint64_t)a->comm->nranks);

	if (!r)
		r = order(b->comm->has_id, a->comm->has_id);
	if (!r)
		r = order(a->comm->id, b->comm->id);
	if (!r)
		r = order(a->process->uid, b->process->uid);
	if (!r && !a->comm->has_id)
		r = order((uintptr_t)a->comm, (uintptr_t)b->comm);
	return r ? r : strcmp(a->comm->name, b->comm->name);
}

static int compare(const void *one, const void *two)
{
	const struct stuck_rank *a = one, *b = two;
	int r = compare_groups(a, b);

	if (!r && a->comm->rank != b->comm->rank)
		r = a->comm->rank < b->comm->rank ? -1 : 1;
	return r ? r : order(a->process->id, b->process->id);
}

/* NULL: not made yet, or not open any more. */
static const struct comm *open_comm(const struct process *p, uint32_t index)
{
	const struct comm *comm = process_comm(p, (uint16_t)index);

	return comm && !comm->finalize_ticks ? comm : NULL;
}

/* Add open communicators of `p`: at most `room`, the newest; others are counted as left out. */
static void add_ranks(struct stuck *v, const struct process *p, uint32_t room)
{
	uint32_t first = p->ncomms;

	for (uint32_t n = 0; first && n < room; first--)
		n += open_comm(p, first - 1) != NULL;
	for (uint32_t i = 0; i < first; i++)
		v->left_out += open_comm(p, i) != NULL;
	for (uint32_t i = first; i < p->ncomms; i++) {
		const struct comm *comm = open_comm(p, i);
		struct stuck_rank *r;

		if (!comm)
			continue;
		r = list_must_add(&v->ranks);
		*r = (struct stuck_rank){ .process = p, .comm = comm, .index = i,
					  .ended = p->state != PROCESS_LIVE };
		reconstruct_progress(p, i, &r->progress);
	}
}

static void make_groups(struct stuck *v)
{
	qsort(v->ranks.at, v->ranks.n, sizeof(*v->ranks.at), compare);
	for (uint32_t i = 0; i < v->ranks.n; i++) {
		if (!i || compare_groups(&v->ranks.at[i - 1], &v->ranks.at[i]) ||
		    v->groups.at[v->groups.n - 1].n == STUCK_LOCAL)
			*list_must_add(&v->groups) = (struct stuck_group){ .first = i };
		v->ranks.at[i].group = v->groups.n - 1;
		v->groups.at[v->groups.n - 1].n++;
	}
}

/* ---- the oldest operation of each ---------------------------------------------- */

/* The ranks of one process, as they were added. */
struct walk {
	struct stuck_rank *ranks;
	size_t n;
};

static int by_index(const void *key, const void *rank)
{
	return order(*(const uint32_t *)key, ((const struct stuck_rank *)rank)->index);
}

static bool take_oldest(const struct op *op, void *arg)
{
	const struct walk *w = arg;
	struct stuck_rank *r = bsearch(&op->comm_index, w->ranks, w->n, sizeof(*r), by_index);

	if (!r || !op->enqueued_ns)
		return true;
	r->has_p2p = r->has_p2p || op->is_p2p;
	r->p2p_expects_kernel = r->p2p_expects_kernel || (op->is_p2p && op->expects_kernel);
	if (r->has_oldest && r->oldest.enqueued_ns <= op->enqueued_ns)
		return true;
	r->has_oldest = true;
	r->oldest = *op;
	return true;
}

static void add_process(struct stuck *v, const struct diagnose_source *source,
			const struct process *p, uint32_t room)
{
	struct walk w = { .ranks = &v->ranks.at[v->ranks.n] };

	add_ranks(v, p, room);
	w.n = (size_t)(&v->ranks.at[v->ranks.n] - w.ranks);
	reconstruct_open(source->reconstruct, p, take_oldest, &w);
}

static void find_oldest(struct stuck *v)
{
	for (uint32_t i = 0; i < v->ranks.n; i++) {
		const struct stuck_rank *r = &v->ranks.at[i];
		struct stuck_group *g = &v->groups.at[r->group];

		if (!r->has_oldest || r->ended)
			continue;
		if (g->has_op && g->op.enqueued_ns <= r->oldest.enqueued_ns)
			continue;
		g->has_op = true;
		g->op = r->oldest;
	}
}

/* ---- counters -------------------------------------------------------------------- */

uint64_t stuck_last_seq(const struct comm_progress *progress, name_t func)
{
	for (uint32_t i = 0; i < progress->nfuncs; i++)
		if (progress->last_seq[i].func == func)
			return progress->last_seq[i].seq;
	return UNKNOWN_U64;
}

bool stuck_tells(const struct stuck_rank *r)
{
	return !r->ended && r->comm->has_id && r->process->mask & NCI_EVENT_BIT(NCI_EV_COLL);
}

uint64_t stuck_next_seq(const struct stuck_rank *r, name_t func)
{
	uint64_t last = stuck_last_seq(&r->progress, func);

	return last == UNKNOWN_U64 ? 0 : last + 1;
}

/* ---- two that were called in another order -------------------------------------- */

struct pending {
	const struct stuck_rank *rank;
	const struct op *op;
	bool found;
};

static bool is_same_call(const struct op *a, const struct op *b)
{
	return !a->is_p2p && !b->is_p2p && a->func == b->func && a->seq == b->seq;
}

static bool find_pending(const struct op *op, void *arg)
{
	struct pending *p = arg;

	p->found = op->comm_index == p->rank->index && is_same_call(op, p->op);
	return !p->found;
}

/* Has the rank still to do it, or to end it? */
static bool is_pending(const struct diagnose_source *source, const struct stuck_rank *r,
		       const struct op *op)
{
	struct pending p = { .rank = r, .op = op };

	if (op->seq == UNKNOWN_U64 || stuck_next_seq(r, op->func) <= op->seq)
		return op->seq != UNKNOWN_U64;
	reconstruct_open(source->reconstruct, r->process, find_pending, &p);
	return p.found;
}

/* Both are in something else first, and the second has what the first is in before it. */
static bool is_crossed(const struct diagnose_source *source, const struct stuck_rank *a,
		       const struct stuck_rank *b)
{
	return a->has_oldest && b->has_oldest && !a->oldest.is_p2p && !b->oldest.is_p2p &&
	       a->oldest.func != b->oldest.func && is_pending(source, a, &b->oldest) &&
	       is_pending(source, b, &a->oldest);
}

bool stuck_is_swapped(const struct stuck *v, const struct diagnose_source *source,
		      const struct stuck_rank *r)
{
	const struct stuck_group *g = &v->groups.at[r->group];

	for (uint32_t i = g->first; i < g->first + g->n; i++)
		if (v->ranks.at[i].has_oldest && is_same_call(&v->ranks.at[i].oldest, &g->op) &&
		    is_crossed(source, r, &v->ranks.at[i]))
			return true;
	return false;
}

static uint32_t count_first(const struct stuck *v, const struct stuck_group *g,
			    const struct op *op)
{
	uint32_t n = 0;

	for (uint32_t i = g->first; i < g->first + g->n; i++)
		n += v->ranks.at[i].has_oldest && is_same_call(&v->ranks.at[i].oldest, op);
	return n;
}

static void side_with_most(struct stuck *v, const struct diagnose_source *source)
{
	for (uint32_t i = 0; i < v->ranks.n; i++) {
		const struct stuck_rank *r = &v->ranks.at[i];
		struct stuck_group *g = &v->groups.at[r->group];

		if (g->has_op && r->has_oldest && !is_same_call(&r->oldest, &g->op) &&
		    count_first(v, g, &r->oldest) > count_first(v, g, &g->op) &&
		    stuck_is_swapped(v, source, r))
			g->op = r->oldest;
	}
}

/* ---- where no end is watched: who has not posted what others have ---------------- */

/* The first of that function that some have posted and others have not. */
static bool find_missing(const struct stuck *v, const struct stuck_group *g, name_t func,
			 uint64_t *seq)
{
	uint64_t least = UINT64_MAX, most = 0;

	for (uint32_t i = g->first; i < g->first + g->n; i++) {
		uint64_t next = stuck_next_seq(&v->ranks.at[i], func);

		if (!stuck_tells(&v->ranks.at[i]))
			continue;
		if (next < least)
			least = next;
		if (next > most)
			most = next;
	}
	*seq = least;
	return least < most;
}

uint64_t stuck_quiet_since(const struct stuck *v, const struct stuck_group *g)
{
	uint64_t last_ns = 0;

	for (uint32_t i = g->first; i < g->first + g->n; i++)
		if (v->ranks.at[i].progress.last_op_ns > last_ns)
			last_ns = v->ranks.at[i].progress.last_op_ns;
	return last_ns;
}

/* Ranks that have posted it: of several missing functions, the one with the most is taken. */
static uint32_t count_posted(const struct stuck *v, const struct stuck_group *g, name_t func,
			     uint64_t seq)
{
	uint32_t n = 0;

	for (uint32_t i = g->first; i < g->first + g->n; i++)
		n += stuck_tells(&v->ranks.at[i]) && stuck_next_seq(&v->ranks.at[i], func) > seq;
	return n;
}

static void take_unwatched(const struct stuck *v, struct stuck_group *g, name_t func, uint64_t seq)
{
	const struct comm *comm = v->ranks.at[g->first].comm;

	g->has_op = true;
	g->unwatched = true;
	g->op = (struct op){ .has_comm_id = true, .comm_id = comm->id, .nranks = comm->nranks,
			     .func = func, .seq = seq, .bytes = UNKNOWN_U64, .count = UNKNOWN_U64,
			     .root = UNKNOWN_I32, .peer = UNKNOWN_I32, .rank = UNKNOWN_I32,
			     .enqueued_ns = stuck_quiet_since(v, g) };
}

static void try_missing(const struct stuck *v, struct stuck_group *g, name_t func, uint32_t *most)
{
	uint64_t seq;
	uint32_t n;

	if (!find_missing(v, g, func, &seq))
		return;
	n = count_posted(v, g, func, seq);
	if (n <= *most)
		return;
	*most = n;
	take_unwatched(v, g, func, seq);
}

static void find_behind(const struct stuck *v, struct stuck_group *g)
{
	uint32_t most = 0;

	for (uint32_t i = g->first; i < g->first + g->n; i++)
		for (uint32_t f = 0; f < v->ranks.at[i].progress.nfuncs; f++)
			try_missing(v, g, v->ranks.at[i].progress.last_seq[f].func, &most);
}

/* ---- ... and who has called another collective than the others, or not as many ------- */

const struct called *stuck_call(const struct stuck_rank *r, uint64_t number)
{
	const struct comm_progress *p = &r->progress;

	if (number >= p->calls || number + RECONSTRUCT_CALLS < p->calls)
		return NULL;
	return &p->call[RECONSTRUCT_CALLS - (p->calls - number)];
}

static bool is_same_called(const struct called *a, const struct called *b)
{
	return a->func == b->func && a->count == b->count && a->root == b->root;
}

static bool tells_calls(const struct stuck_rank *r)
{
	return stuck_tells(r) && r->progress.has_calls &&
	       !(r->process->seen & (NCI_SEEN_PAUSE | NCI_SEEN_OUTSIDE));
}

/* Ranks of the group that made a call with that number like this one. */
static uint32_t count_like(const struct stuck *v, const struct stuck_group *g, uint64_t number,
			   const struct called *call)
{
	uint32_t n = 0;

	for (uint32_t i = g->first; i < g->first + g->n; i++) {
		const struct called *other = stuck_call(&v->ranks.at[i], number);

		n += tells_calls(&v->ranks.at[i]) && other && other->func == call->func;
	}
	return n;
}

/* The call with that number that most of them made. */
static const struct called *usual_call(const struct stuck *v, const struct stuck_group *g,
				       uint64_t number)
{
	const struct called *usual = NULL;

	for (uint32_t i = g->first; i < g->first + g->n; i++) {
		const struct called *call = stuck_call(&v->ranks.at[i], number);

		if (tells_calls(&v->ranks.at[i]) && call &&
		    (!usual || count_like(v, g, number, call) > count_like(v, g, number, usual)))
			usual = call;
	}
	return usual;
}

/* The first call that not all have made, or made alike; false: there is none. */
static bool find_unlike(const struct stuck *v, const struct stuck_group *g, uint64_t *number)
{
	uint64_t least = UINT64_MAX, most = 0;

	for (uint32_t i = g->first; i < g->first + g->n; i++) {
		const struct stuck_rank *r = &v->ranks.at[i];

		if (!tells_calls(r) || !r->progress.calls)
			return false;	/* it cannot be compared */
		least = r->progress.calls < least ? r->progress.calls : least;
		most = r->progress.calls > most ? r->progress.calls : most;
	}
	for (*number = least > RECONSTRUCT_CALLS ? least - RECONSTRUCT_CALLS : 0; *number < least;
	     ++*number)
		for (uint32_t i = g->first + 1; i < g->first + g->n; i++) {
			const struct called *a = stuck_call(&v->ranks.at[g->first], *number);
			const struct called *b = stuck_call(&v->ranks.at[i], *number);

			if (a && b && !is_same_called(a, b))
				return true;
		}
	return least < most && !stuck_may_be_silenced(v, g);
}

static void find_other_call(const struct stuck *v, struct stuck_group *g)
{
	const struct called *usual;
	uint64_t number;

	if (g->n < 2 || !find_unlike(v, g, &number))
		return;
	usual = usual_call(v, g, number);
	if (!usual)
		return;
	take_unwatched(v, g, usual->func, UNKNOWN_U64);
	g->by_calls = true;
	g->call = number;
}

#define SILENCED_NS	UINT64_C(1000000000)

bool stuck_may_be_silenced(const struct stuck *v, const struct stuck_group *g)
{
	uint64_t first_ns = UINT64_MAX;

	for (uint32_t i = g->first; i < g->first + g->n; i++) {
		uint64_t last_ns = v->ranks.at[i].progress.last_op_ns;

		if (!process_counts_less(v->ranks.at[i].process))
			return false;
		first_ns = last_ns < first_ns ? last_ns : first_ns;
	}
	return stuck_quiet_since(v, g) - first_ns <= SILENCED_NS;
}

/* Find hangs without a watched end: by the order of calls, which is surer, or by numbers. */
static void find_unwatched(struct stuck *v)
{
	for (uint32_t k = 0; k < v->groups.n; k++) {
		struct stuck_group *g = &v->groups.at[k];

		if (!g->has_op)
			find_other_call(v, g);
		if (!g->has_op && !stuck_may_be_silenced(v, g))
			find_behind(v, g);
	}
}

int stuck_init(struct stuck *v, const struct diagnose_source *source, uint64_t now_ns)
{
	struct process *const *list;
	size_t n = source->processes(source->arg, &list);
	uint32_t comms = 0, room = n < STUCK_RANKS ? STUCK_RANKS / (uint32_t)(n + !n) : 1;

	for (size_t i = 0; i < n; i++)
		comms += list[i]->ncomms < room ? list[i]->ncomms : room;
	*v = (struct stuck){ .now_ns = now_ns };
	if (list_init(&v->ranks, comms) < 0 || list_init(&v->groups, comms) < 0) {
		stuck_deinit(v);
		return -ENOMEM;
	}
	for (size_t i = 0; i < n; i++)
		add_process(v, source, list[i], room);
	make_groups(v);
	find_oldest(v);
	side_with_most(v, source);
	find_unwatched(v);
	return 0;
}

void stuck_deinit(struct stuck *v)
{
	inflights_deinit(&v->rows);
	list_deinit(&v->ranks);
	list_deinit(&v->groups);
	list_deinit(&v->desync);
	free(v->comms);
	*v = (struct stuck){ 0 };
}
