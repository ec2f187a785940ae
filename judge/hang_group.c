/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ranks in groups, and the oldest operation of each group; where no end is watched, the
 * operation that some ranks have posted and others have not.
 */
#include "judge/hang.h"
#include "util/list.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* ---- communicators ------------------------------------------------------------ */

/* Anybody may write another's id into their own segment: the id alone joins no two. */
static int group_compare(const struct hang_rank *a, const struct hang_rank *b)
{
	int r = number_order((uint64_t)b->nranks, (uint64_t)a->nranks);

	if (!r)
		r = number_order(b->has_id, a->has_id);
	if (!r)
		r = number_order(a->id, b->id);
	if (!r)
		r = number_order(a->user, b->user);
	if (!r && !a->has_id)
		r = number_order(a->key, b->key);
	return r ? r : strcmp(a->name, b->name);
}

static int rank_compare(const void *one, const void *two)
{
	const struct hang_rank *a = one, *b = two;
	int r = group_compare(a, b);

	if (!r && a->rank != b->rank)
		r = a->rank < b->rank ? -1 : 1;
	return r ? r : number_order(a->process, b->process);
}

static void groups_make(struct hang *h)
{
	list_sort(&h->ranks, rank_compare);
	for (uint32_t i = 0; i < h->ranks.n; i++) {
		if (!i || group_compare(&h->ranks.at[i - 1], &h->ranks.at[i]) ||
		    (h->most && h->groups.at[h->groups.n - 1].n == h->most))
			*list_must_add(&h->groups) = (struct hang_group){ .first = i };
		h->ranks.at[i].group = h->groups.n - 1;
		h->groups.at[h->groups.n - 1].n++;
	}
}

/* Groups of one process are of one job, and so are all that have a group in common with these. */
static uint32_t group_job(const struct hang *h, uint32_t group)
{
	while (h->groups.at[group].job != group)
		group = h->groups.at[group].job;
	return group;
}

static int rank_compare_processes(const void *one, const void *two)
{
	const struct hang_rank *a = *(const struct hang_rank *const *)one;
	const struct hang_rank *b = *(const struct hang_rank *const *)two;

	return a->process == b->process ? number_order(a->group, b->group) :
	       number_order(a->process, b->process);
}

static void groups_find_jobs(struct hang *h)
{
	const struct hang_rank **ranks = h->by_process;

	for (uint32_t i = 0; i < h->ranks.n; i++)
		ranks[i] = &h->ranks.at[i];
	if (h->ranks.n)
		qsort(ranks, h->ranks.n, sizeof(*ranks), rank_compare_processes);
	for (uint32_t i = 0; i < h->groups.n; i++)
		h->groups.at[i].job = i;
	for (uint32_t i = 1; i < h->ranks.n; i++)
		if (ranks[i]->process == ranks[i - 1]->process)
			h->groups.at[group_job(h, ranks[i]->group)].job =
				group_job(h, ranks[i - 1]->group);
	for (uint32_t i = 0; i < h->groups.n; i++)
		h->groups.at[i].job = group_job(h, i);
}

/* ---- the oldest operation of each ---------------------------------------------- */

void hang_rank_see(struct hang_rank *r, const struct hang_row *op)
{
	if (!op->is_op || !op->enqueued_ns)
		return;
	if (r->rank == UNKNOWN_I32)
		r->rank = op->rank;	/* the communicator does not tell it before API v4 */
	r->has_p2p = r->has_p2p || op->is_p2p;
	r->p2p_has_kernel = r->p2p_has_kernel ||
			    (op->is_p2p && op->kernel_started != UNKNOWN_I32);
	if (r->has_oldest && r->oldest.enqueued_ns <= op->enqueued_ns)
		return;
	r->has_oldest = true;
	r->oldest = *op;
}

static void groups_find_oldest(struct hang *h)
{
	for (uint32_t i = 0; i < h->ranks.n; i++) {
		const struct hang_rank *r = &h->ranks.at[i];
		struct hang_group *g = &h->groups.at[r->group];

		if (!r->has_oldest || r->ended)
			continue;
		if (g->has_op && g->op.enqueued_ns <= r->oldest.enqueued_ns)
			continue;
		g->has_op = true;
		g->op = r->oldest;
	}
}

/* ---- counters -------------------------------------------------------------------- */

uint64_t hang_last_seq(const struct hang_rank *r, name_t func)
{
	for (uint32_t i = 0; i < r->nlast; i++)
		if (r->last[i].func == func)
			return r->last[i].seq;
	return UNKNOWN_U64;
}

uint64_t hang_next_seq(const struct hang_rank *r, name_t func)
{
	uint64_t last = hang_last_seq(r, func);

	return last == UNKNOWN_U64 ? 0 : last + 1;
}

/* ---- rows -------------------------------------------------------------------------- */

static int row_compare(const void *one, const void *two)
{
	const struct hang_row *a = one, *b = two;

	return a->key != b->key ? number_order(a->key, b->key) : number_order(a->token, b->token);
}

void hang_take_rows(struct hang *h)
{
	const struct hang_row *end;

	if (!h->rows.n)
		return;
	end = h->rows.at + h->rows.n;
	list_sort(&h->rows, row_compare);
	for (uint32_t i = 0; i < h->ranks.n; i++) {
		struct hang_rank *r = &h->ranks.at[i];
		size_t low = 0, high = h->rows.n;

		while (low < high) {
			size_t middle = low + (high - low) / 2;

			if (h->rows.at[middle].key < r->key)
				low = middle + 1;
			else
				high = middle;
		}
		r->rows = h->rows.at + low;
		while (r->rows + r->nrows < end && r->rows[r->nrows].key == r->key)
			r->nrows++;
	}
}

/* ---- two that were called in another order -------------------------------------- */

static bool row_is_same_call(const struct hang_row *a, const struct hang_row *b)
{
	return !a->is_p2p && !b->is_p2p && a->func == b->func && a->seq == b->seq;
}

static bool hang_rank_has_open(const struct hang *h, const struct hang_rank *r,
			       const struct hang_row *op)
{
	if (h->is_open)
		return h->is_open(h->arg, r, op);
	for (size_t i = 0; i < r->nrows; i++)
		if (r->rows[i].is_op && row_is_same_call(&r->rows[i], op))
			return true;
	return false;
}

/* Has the rank still to do it, or to end it? */
static bool rank_is_before(const struct hang *h, const struct hang_rank *r,
			   const struct hang_row *op)
{
	if (op->seq == UNKNOWN_U64 || hang_next_seq(r, op->func) <= op->seq)
		return op->seq != UNKNOWN_U64;
	return hang_rank_has_open(h, r, op);
}

/* Both are in something else first, and the second has what the first is in before it. */
static bool ranks_are_crossed(const struct hang *h, const struct hang_rank *a,
			      const struct hang_rank *b)
{
	return a->has_oldest && b->has_oldest && !a->oldest.is_p2p && !b->oldest.is_p2p &&
	       a->oldest.func != b->oldest.func && rank_is_before(h, a, &b->oldest) &&
	       rank_is_before(h, b, &a->oldest);
}

bool hang_is_swapped(const struct hang *h, const struct hang_rank *r)
{
	const struct hang_group *g = &h->groups.at[r->group];

	for (uint32_t i = g->first; i < g->first + g->n; i++)
		if (h->ranks.at[i].has_oldest &&
		    row_is_same_call(&h->ranks.at[i].oldest, &g->op) &&
		    ranks_are_crossed(h, r, &h->ranks.at[i]))
			return true;
	return false;
}

static uint32_t group_count_first(const struct hang *h, const struct hang_group *g,
				  const struct hang_row *op)
{
	uint32_t n = 0;

	for (uint32_t i = g->first; i < g->first + g->n; i++)
		n += h->ranks.at[i].has_oldest && row_is_same_call(&h->ranks.at[i].oldest, op);
	return n;
}

static void groups_side_with_most(struct hang *h)
{
	for (uint32_t i = 0; i < h->ranks.n; i++) {
		const struct hang_rank *r = &h->ranks.at[i];
		struct hang_group *g = &h->groups.at[r->group];

		if (g->has_op && r->has_oldest && !row_is_same_call(&r->oldest, &g->op) &&
		    group_count_first(h, g, &r->oldest) > group_count_first(h, g, &g->op) &&
		    hang_is_swapped(h, r))
			g->op = r->oldest;
	}
}

/* ---- where no end is watched: who has not posted what others have ---------------- */

/* The first of that function that some have posted and others have not. */
static bool group_find_missing(const struct hang *h, const struct hang_group *g, name_t func,
			       uint64_t *seq)
{
	uint64_t least = UINT64_MAX, most = 0;

	for (uint32_t i = g->first; i < g->first + g->n; i++) {
		uint64_t next = hang_next_seq(&h->ranks.at[i], func);

		if (!h->ranks.at[i].counts)
			continue;
		if (next < least)
			least = next;
		if (next > most)
			most = next;
	}
	*seq = least;
	return least < most;
}

uint64_t hang_quiet_since(const struct hang *h, const struct hang_group *g)
{
	uint64_t last_ns = 0;

	for (uint32_t i = g->first; i < g->first + g->n; i++)
		if (h->ranks.at[i].last_op_ns > last_ns)
			last_ns = h->ranks.at[i].last_op_ns;
	return last_ns;
}

/* Ranks that have posted it: of several missing functions, the one with the most is taken. */
static uint32_t group_count_posted(const struct hang *h, const struct hang_group *g, name_t func,
				   uint64_t seq)
{
	uint32_t n = 0;

	for (uint32_t i = g->first; i < g->first + g->n; i++)
		n += h->ranks.at[i].counts && hang_next_seq(&h->ranks.at[i], func) > seq;
	return n;
}

static void group_take_unwatched(const struct hang *h, struct hang_group *g, name_t func,
				 uint64_t seq)
{
	g->has_op = true;
	g->unwatched = true;
	g->op = (struct hang_row){ .is_op = true, .func = func, .seq = seq,
				   .bytes = UNKNOWN_U64, .count = UNKNOWN_U64,
				   .root = UNKNOWN_I32, .peer = UNKNOWN_I32, .rank = UNKNOWN_I32,
				   .enqueued_ns = hang_quiet_since(h, g) };
}

static void group_try_missing(const struct hang *h, struct hang_group *g, name_t func,
			      uint32_t *most)
{
	uint64_t seq;
	uint32_t n;

	if (!group_find_missing(h, g, func, &seq))
		return;
	n = group_count_posted(h, g, func, seq);
	if (n <= *most)
		return;
	*most = n;
	group_take_unwatched(h, g, func, seq);
}

static bool rank_has_last(const struct hang_rank *r, name_t func)
{
	return hang_last_seq(r, func) != UNKNOWN_U64;
}

/* Each function once, though all ranks know of it. */
static void group_find_behind(const struct hang *h, struct hang_group *g)
{
	uint32_t most = 0;

	for (uint32_t i = g->first; i < g->first + g->n; i++)
		for (uint32_t f = 0; f < h->ranks.at[i].nlast; f++) {
			name_t func = h->ranks.at[i].last[f].func;

			if (i == g->first || !rank_has_last(&h->ranks.at[i - 1], func))
				group_try_missing(h, g, func, &most);
		}
}

/* ---- ... and who has called another collective than the others, or not as many ------- */

const struct hang_call *hang_call(const struct hang_rank *r, uint64_t number)
{
	if (number >= r->calls || number + HANG_CALLS < r->calls)
		return NULL;
	return &r->call[HANG_CALLS - (r->calls - number)];
}

static bool call_is_same(const struct hang_call *a, const struct hang_call *b)
{
	return a->func == b->func && a->count == b->count && a->root == b->root &&
	       (a->datatype == b->datatype || !a->datatype || !b->datatype);
}

/* Ranks of the group that made a call with that number like this one. */
static uint32_t group_count_like(const struct hang *h, const struct hang_group *g, uint64_t number,
				 const struct hang_call *call)
{
	uint32_t n = 0;

	for (uint32_t i = g->first; i < g->first + g->n; i++) {
		const struct hang_call *other = hang_call(&h->ranks.at[i], number);

		n += h->ranks.at[i].counts_calls && other && other->func == call->func;
	}
	return n;
}

/* The call with that number that most of them made. */
static const struct hang_call *group_usual_call(const struct hang *h, const struct hang_group *g,
						uint64_t number)
{
	const struct hang_call *usual = NULL;
	uint32_t most = 0, n;

	for (uint32_t i = g->first; i < g->first + g->n; i++) {
		const struct hang_call *call = hang_call(&h->ranks.at[i], number);

		if (!h->ranks.at[i].counts_calls || !call || (usual && usual->func == call->func))
			continue;
		n = group_count_like(h, g, number, call);
		if (n > most) {
			most = n;
			usual = call;
		}
	}
	return usual;
}

/* The first call that not all have made, or made alike; false: there is none. */
static bool group_find_unlike(const struct hang *h, const struct hang_group *g, uint64_t *number)
{
	uint64_t least = UINT64_MAX, most = 0;

	for (uint32_t i = g->first; i < g->first + g->n; i++) {
		const struct hang_rank *r = &h->ranks.at[i];

		if (!r->counts_calls || !r->calls)
			return false;	/* it cannot be compared */
		least = r->calls < least ? r->calls : least;
		most = r->calls > most ? r->calls : most;
	}
	for (*number = least > HANG_CALLS ? least - HANG_CALLS : 0; *number < least; ++*number)
		for (uint32_t i = g->first + 1; i < g->first + g->n; i++) {
			const struct hang_call *a = hang_call(&h->ranks.at[g->first], *number);
			const struct hang_call *b = hang_call(&h->ranks.at[i], *number);

			if (a && b && !call_is_same(a, b))
				return true;
		}
	return least < most && !hang_may_be_silenced(h, g);
}

static void group_find_other_call(const struct hang *h, struct hang_group *g)
{
	const struct hang_call *usual;
	uint64_t number;

	if (g->n < 2 || !group_find_unlike(h, g, &number))
		return;
	usual = group_usual_call(h, g, number);
	if (!usual)
		return;
	group_take_unwatched(h, g, usual->func, UNKNOWN_U64);
	g->by_calls = true;
	g->call = number;
}

/* ---- ... and who has made calls on two communicators in another order ----------------- */

#define HALTED_NS	UINT64_C(2000000000)	/* a job that has posted nothing for so long ... */
#define LAST_NS		UINT64_C(5000000000)	/* ... is compared by what it called just before */
#define CROSSED		32	/* groups, each with each */

_Static_assert(HANG_CALLS * HANG_CALLS <= 64, "a bit for each pair of calls");

static void groups_find_last(struct hang *h)
{
	for (uint32_t i = 0; i < h->groups.n; i++) {
		struct hang_group *job = &h->groups.at[h->groups.at[i].job];
		uint64_t last_ns = hang_quiet_since(h, &h->groups.at[i]);

		if (last_ns > job->job_last_ns)
			job->job_last_ns = last_ns;
	}
}

/* Was it among what the job called last, before it halted? */
static bool group_is_last(const struct hang *h, const struct hang_group *g)
{
	uint64_t last_ns = h->groups.at[g->job].job_last_ns;

	return g->n > 1 && last_ns && last_ns + HALTED_NS <= h->now_ns &&
	       hang_quiet_since(h, g) + LAST_NS >= last_ns;
}

/* When the rank made one of its newest calls, or posted what is in flight; 0: not known. */
static uint64_t rank_call_ns(const struct hang_group *g, const struct hang_rank *r,
			     uint64_t number)
{
	const struct hang_call *call = hang_call(r, number);

	if (!g->has_op)
		return call && r->counts_calls ? call->at_ns : 0;
	return !number && r->has_oldest ? r->oldest.enqueued_ns : 0;
}

/* The number of the first call that is kept of it: of all ranks of a group the same one. */
static uint64_t group_first_call(const struct hang *h, const struct hang_group *g)
{
	uint64_t calls = g->has_op ? 0 : h->ranks.at[g->first].calls;

	return calls > HANG_CALLS ? calls - HANG_CALLS : 0;
}

/* Two groups, and a bit for each pair of calls, one of each. */
struct crossing {
	const struct hang *hang;
	struct hang_group *a, *b;
	uint64_t first_a, first_b;	/* numbers of the first calls */
};

static const struct hang_rank *group_rank_like(const struct hang *h, const struct hang_group *g,
					       const struct hang_rank *r)
{
	for (uint32_t i = g->first; i < g->first + g->n; i++)
		if (h->ranks.at[i].process == r->process && h->ranks.at[i].gpu == r->gpu)
			return &h->ranks.at[i];
	return NULL;
}

/* The pairs of which the rank made a's call first, and b's. */
static void crossing_see(const struct crossing *c, const struct hang_rank *r, uint64_t *a_first,
			 uint64_t *b_first)
{
	const struct hang_rank *other = group_rank_like(c->hang, c->b, r);

	*a_first = *b_first = 0;
	for (uint32_t i = 0; other && i < HANG_CALLS * HANG_CALLS; i++) {
		uint64_t a_ns = rank_call_ns(c->a, r, c->first_a + i / HANG_CALLS);
		uint64_t b_ns = rank_call_ns(c->b, other, c->first_b + i % HANG_CALLS);

		if (a_ns && b_ns)
			*(a_ns < b_ns ? a_first : b_first) |= UINT64_C(1) << i;
	}
}

/* Pairs that ranks called in both orders; none, where a rank itself has no order. */
static uint64_t crossing_pairs(const struct crossing *c)
{
	uint64_t a_first, b_first, some_a = 0, some_b = 0, crossed;
	const struct hang_rank *ranks = &c->hang->ranks.at[c->a->first];

	for (uint32_t i = 0; i < c->a->n; i++) {
		crossing_see(c, &ranks[i], &a_first, &b_first);
		some_a |= a_first;
		some_b |= b_first;
	}
	crossed = some_a & some_b;
	for (uint32_t i = 0; crossed && i < c->a->n; i++) {
		crossing_see(c, &ranks[i], &a_first, &b_first);
		if (a_first & crossed && b_first & crossed)
			crossed = 0;
	}
	return crossed;
}

static void group_take_call(const struct hang *h, struct hang_group *g, uint64_t number)
{
	const struct hang_call *usual;

	if (g->has_op)
		return;
	usual = group_usual_call(h, g, number);
	group_take_unwatched(h, g, usual->func, UNKNOWN_U64);
	g->by_calls = true;
	g->call = number;
}

static void groups_try_crossed(const struct hang *h, struct hang_group *a, struct hang_group *b)
{
	const struct crossing c = { h, a, b, group_first_call(h, a), group_first_call(h, b) };
	uint64_t crossed = crossing_pairs(&c);
	uint32_t first;

	if (!crossed)
		return;
	first = (uint32_t)__builtin_ctzll(crossed);
	group_take_call(h, a, c.first_a + first / HANG_CALLS);
	group_take_call(h, b, c.first_b + first % HANG_CALLS);
}

/*
 * Only a job that has halted: the same order may be none of a busy one's.  Each pair is looked at,
 * so that there is a bound: the largest groups.
 */
static void groups_find_crossed(struct hang *h)
{
	struct hang_group *last[CROSSED];
	uint32_t n = 0;

	groups_find_last(h);
	for (uint32_t i = 0; i < h->groups.n && n < CROSSED; i++)
		if (group_is_last(h, &h->groups.at[i]))
			*array_must_add(last, &n) = &h->groups.at[i];
	for (uint32_t i = 0; i < n; i++)
		for (uint32_t k = 0; k < n && !last[i]->has_op; k++)
			if (k != i && last[k]->job == last[i]->job && !last[k]->unwatched)
				groups_try_crossed(h, last[i], last[k]);
}

#define SILENCED_NS	UINT64_C(1000000000)

bool hang_may_be_silenced(const struct hang *h, const struct hang_group *g)
{
	uint64_t first_ns = UINT64_MAX;

	for (uint32_t i = g->first; i < g->first + g->n; i++) {
		uint64_t last_ns = h->ranks.at[i].last_op_ns;

		if (!h->ranks.at[i].may_be_silenced)
			return false;
		first_ns = last_ns < first_ns ? last_ns : first_ns;
	}
	return hang_quiet_since(h, g) - first_ns <= SILENCED_NS;
}

/* Find hangs without a watched end: by the order of calls, which is surer, or by numbers. */
static void groups_find_unwatched(struct hang *h)
{
	for (uint32_t k = 0; k < h->groups.n; k++) {
		struct hang_group *g = &h->groups.at[k];

		if (!g->has_op)
			group_find_other_call(h, g);
		if (!g->has_op && !hang_may_be_silenced(h, g))
			group_find_behind(h, g);
	}
	groups_find_crossed(h);
}

/* ---- the whole --------------------------------------------------------------------- */

int hang_ready(struct hang *h)
{
	h->comms = calloc(h->ranks.n + 1, sizeof(*h->comms));
	h->by_process = calloc(h->ranks.n + 1, sizeof(const struct hang_rank *));
	if (!h->comms || !h->by_process || list_init(&h->groups, h->ranks.n) < 0)
		return -ENOMEM;
	return list_init(&h->standings, h->ranks.n);
}

void hang_deinit(struct hang *h)
{
	list_deinit(&h->ranks);
	list_deinit(&h->groups);
	list_deinit(&h->rows);
	list_deinit(&h->standings);
	free(h->comms);
	free(h->by_process);
	*h = (struct hang){ 0 };
}

void hang_find(struct hang *h)
{
	groups_make(h);
	groups_find_jobs(h);
	groups_find_oldest(h);
	groups_side_with_most(h);
	groups_find_unwatched(h);
}
