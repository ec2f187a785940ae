/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One struct period for each process that posts, and its longest pause: whether a job hangs
 * is judged by the pace that it has had.
 */
#include "ncclinspd/findings/pace.h"

#include <math.h>
#include <string.h>

#include "reader/base/pool.h"
#include "util/list.h"

#define PLACES		8	/* of a process, so far apart: ids are given in order, so that */
#define PLACES_APART	521	/* those of one job are taken in a row, for as long as it lasts */
#define STRETCHES	64	/* operations of another communicator may come that many late */
#define STEP_NS		UINT64_C(10000000000)

struct cover_stretch {
	uint64_t from_ns, to_ns;
};

/* Time that is covered: stretches that do not touch each other, in order. */
struct cover {
	uint64_t from_ns;	/* time before this is no longer known */
	uint32_t n;
	struct cover_stretch at[STRETCHES];
};

struct pace {
	uint64_t process_id;
	uint64_t longest_ns;
	uint64_t compared;	/* operations up to the newest in which ranks were compared */
	bool watched;
	struct cover inside, moving;
	struct period period;
};

/* The place with that process's, else an unused one for it, else the one that it takes over. */
static inline struct pace **paces_place(struct paces *paces, uint64_t process_id)
{
	struct pace **unused = NULL;

	for (uint64_t i = 0; i < PLACES; i++) {
		struct pace **place = &paces->at[(process_id + i * PLACES_APART) % PACES];

		if (*place && (*place)->process_id == process_id)
			return place;
		if (!*place && !unused)
			unused = place;
	}
	return unused ?: &paces->at[process_id % PACES];
}

static inline struct pace *pace_find(struct paces *paces, uint64_t process_id)
{
	struct pace *pace = *paces_place(paces, process_id);

	return pace && pace->process_id == process_id ? pace : NULL;
}

static struct pace *pace_make(struct paces *paces, uint64_t process_id)
{
	struct pace **pace = paces_place(paces, process_id);

	pages_give(*pace, sizeof(**pace));
	*pace = pages_take(sizeof(**pace));
	if (*pace)
		(*pace)->process_id = process_id;
	return *pace;
}

/*
 * Sends and receives of a group are posted within a microsecond and end in any order,
 * and experts get more or less in each iteration: what counts is how many there are.
 */
static uint64_t op_token(const struct op *op)
{
	uint64_t comm = op->has_comm_id ? op->comm_id : op->comm_index;

	if (op->is_p2p)
		return index_mix(comm, 1);
	return index_mix(index_mix(comm, (uintptr_t)op->func), op->bytes);
}

/* ---- time inside operations ------------------------------------------------------ */

static void cover_forget(struct cover *c, uint32_t n)
{
	c->from_ns = c->at[n - 1].to_ns;
	c->n -= n;
	memmove(c->at, c->at + n, c->n * sizeof(*c->at));
}

/* Put one stretch in the place of those from `first` to before `end`. */
static void cover_replace(struct cover *c, uint32_t first, uint32_t end, uint64_t from_ns,
			  uint64_t to_ns)
{
	memmove(c->at + first + 1, c->at + end, (c->n - end) * sizeof(*c->at));
	c->n += first + 1 - end;
	c->at[first].from_ns = from_ns;
	c->at[first].to_ns = to_ns;
}

static __attribute__((noinline))
uint64_t cover_add_among(struct cover *c, uint64_t from_ns, uint64_t to_ns)
{
	uint64_t before_ns = 0;
	uint32_t first, end;

	for (first = c->n; first && c->at[first - 1].to_ns >= from_ns;)
		first--;
	for (end = first; end < c->n && c->at[end].from_ns <= to_ns; end++)
		before_ns += c->at[end].to_ns - c->at[end].from_ns;
	if (end > first && c->at[first].from_ns < from_ns)
		from_ns = c->at[first].from_ns;
	if (end > first && c->at[end - 1].to_ns > to_ns)
		to_ns = c->at[end - 1].to_ns;
	cover_replace(c, first, end, from_ns, to_ns);
	return to_ns - from_ns - before_ns;
}

/* Returns the part of that time that was not covered before. */
static inline uint64_t cover_add(struct cover *c, uint64_t from_ns, uint64_t to_ns)
{
	if (c->n == STRETCHES)
		cover_forget(c, STRETCHES / 2);
	if (from_ns < c->from_ns)
		from_ns = c->from_ns;
	if (to_ns <= from_ns)
		return 0;
	if (c->n && c->at[c->n - 1].to_ns >= from_ns)
		return cover_add_among(c, from_ns, to_ns);
	*array_must_add(c->at, &c->n) = (struct cover_stretch){ from_ns, to_ns };
	return to_ns - from_ns;		/* after all others, as most do */
}

/* It waits for other ranks at its beginning, and moves data then. */
static struct period_part pace_part(struct pace *pace, const struct op *op)
{
	uint64_t inside_ns = op_inside_ns(op), to_ns = op->started_ns + inside_ns;
	uint64_t moving_ns = inside_ns;

	if (op_is_fused(op) && op_ran_in_batch(op) && !op->batch_head)
		return (struct period_part){ 0, 0 };
	if (inside_ns == UNKNOWN_U64 || !op->started_ns)
		return (struct period_part){ NAN, NAN };
	if (op->local_ranks > 1) {
		pace->compared = pace->period.count + 1;
		if (op->waitfree_ns < inside_ns)
			moving_ns = op->waitfree_ns;
	}
	return (struct period_part){
		(float)cover_add(&pace->inside, op->started_ns, to_ns),
		(float)cover_add(&pace->moving, to_ns - moving_ns, to_ns),
	};
}

void paces_add(struct paces *paces, const struct op *op, bool alike)
{
	struct pace *pace = pace_find(paces, op->process_id) ?: pace_make(paces, op->process_id);
	uint64_t last_ns;

	if (!alike)
		paces->token = op_token(op);
	if (!pace || !op->enqueued_ns)
		return;
	last_ns = pace->period.last_ns;
	if (op->enqueued_ns >= last_ns)
		pace->watched = op_end_is_known(op);
	if (pace->period.count && op->enqueued_ns > last_ns + pace->longest_ns)
		pace->longest_ns = op->enqueued_ns - last_ns;
	period_add(&pace->period, paces->token, op->enqueued_ns, pace_part(pace, op));
}

void paces_forget(struct paces *paces, uint64_t process_id)
{
	struct pace *pace = pace_find(paces, process_id);

	if (!pace)
		return;
	*paces_place(paces, process_id) = NULL;
	pages_give(pace, sizeof(*pace));
}

uint64_t paces_period(struct paces *paces, uint64_t process_id, bool rests)
{
	struct pace *pace = pace_find(paces, process_id);

	return pace && period_find(&pace->period, rests) ? pace->period.median_ns : 0;
}

struct period_quartiles paces_period_since(struct paces *paces, uint64_t process_id,
					   uint64_t from_ns)
{
	struct pace *pace = pace_find(paces, process_id);

	if (!pace || !period_find(&pace->period, false))
		return (struct period_quartiles){ 0, 0 };
	return period_since(&pace->period, from_ns);
}

bool paces_step(struct paces *paces, uint64_t process_id, uint64_t now_ns,
		struct period_step *out)
{
	struct pace *pace = pace_find(paces, process_id);

	if (!pace || !period_find(&pace->period, false))
		return false;
	*out = period_step(&pace->period, STEP_NS);
	if (now_ns > pace->period.last_ns + STEP_NS + 2 * out->step_ns)
		out->inside_ns = out->moving_ns = -1;
	if (!pace->compared || pace->period.count - pace->compared >= PERIOD_TOKENS)
		out->moving_ns = -1;
	return true;
}

bool paces_watched(struct paces *paces, uint64_t process_id)
{
	struct pace *pace = pace_find(paces, process_id);

	return pace && pace->watched;
}

uint64_t paces_longest_pause(struct paces *paces, uint64_t process_id)
{
	struct pace *pace = pace_find(paces, process_id);

	return pace ? pace->longest_ns : 0;
}

void paces_deinit(struct paces *paces)
{
	for (size_t i = 0; i < PACES; i++)
		pages_give(paces->at[i], sizeof(struct pace));
}
