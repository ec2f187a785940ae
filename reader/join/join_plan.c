/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Operations that NCCL launched together (its Group event, one per kernel plan) may have
 * run in batches that share their stamps.  So an operation that has finished is held
 * until the others of its launch have, and then it is told which ran together.
 *
 * The Group event stops after the heads of its operations on the same lane: once it is
 * read, there are no more.  Where it was lost, or a member hangs, the rest goes on
 * after a while, and of those nobody knows whether they ran alone.
 *
 * Most launches are of one operation, and their Group event is the next one read.  So the
 * newest launch is no plan yet: it becomes one when more comes of it, or something else before
 * its Group event.
 */
#include "reader/join/join.h"

#include "reader/time/timeline.h"
#include "util/list.h"

#define MS UINT64_C(1000000)

#define GROUP_WAIT_NS	(50 * MS)	/* the Group event is read with its heads, or just after */
#define SETTLE_NS	(200 * MS)	/* less than ranks wait for each other (ranks.h) */
#define GIVE_UP_NS	(1000 * MS)	/* a member that takes so much longer than the others */

/* The launch's plan, or NULL. */
static struct plan *plan_find(struct recon *r, uint64_t group)
{
	struct recon_found found = { RECON_NONE, NULL };

	if (r->plans.used)
		found = recon_find(r, group);
	return found.kind == RECON_PLAN ? found.item : NULL;
}

static void plan_touch(struct recon *r, struct plan *plan, uint64_t now_ns)
{
	plan->touched_ns = now_ns;
	pool_list_touch(&r->plan_list, plan);
}

static struct plan *plan_make(struct reconstruct *rc, struct recon *r, uint64_t group,
			      uint64_t now_ns)
{
	struct plan *oldest = r->plan_list.first;

	if (!recon_has_room(r, &r->plans) && oldest) {
		join_close_plan(rc, r, oldest, now_ns);
		if (!recon_has_room(r, &r->plans))		/* it has open members */
			recon_drop_plan(r, oldest);
	}
	return recon_take_plan(r, group);
}

static void plan_join(struct recon *r, struct plan *plan, struct open_op *o, uint64_t now_ns)
{
	plan_touch(r, plan, now_ns);
	plan->members++;
	plan->open++;
	o->plan = plan;
	o->plan_serial = plan->serial;
}

void join_plan_keep(struct reconstruct *rc, struct recon *r, struct open_op *o, uint64_t now_ns)
{
	struct plan *plan;

	if (o != r->launch && !o->alone)
		return;
	if (o == r->launch)
		r->launch = NULL;
	plan = plan_make(rc, r, o->op.group, now_ns);
	if (!plan)
		return;		/* the token is something else's */
	plan_join(r, plan, o, now_ns);
	plan->ended = o->alone;
	o->alone = false;
}

void join_plan_head(struct reconstruct *rc, struct recon *r, struct open_op *o, uint64_t now_ns)
{
	struct open_op *launch = r->launch;
	bool again = launch && launch->op.group == o->op.group;
	struct plan *plan;

	if (!o->op.group || !o->op.expects_kernel)
		return;
	if (launch && (again || !launch->alone))
		join_plan_keep(rc, r, launch, now_ns);
	plan = plan_find(r, o->op.group);
	if (plan)
		plan_join(r, plan, o, now_ns);
	else if (!again)
		r->launch = o;
}

/* The plan that it is a member of; NULL: of none, or that was pushed out. */
static struct plan *plan_of(const struct open_op *o)
{
	return o->plan && o->plan->serial == o->plan_serial ? o->plan : NULL;
}

bool join_plan_is_alone(const struct open_op *o)
{
	const struct plan *plan = plan_of(o);

	return o->alone || (plan && plan->ended && plan->members == 1);
}

static bool plan_is_settled(struct recon *r, const struct plan *plan, bool all_read)
{
	for (struct open_op *o = plan->held.first; o; o = pool_list_next(&plan->held, o))
		if (o->unjudged && !join_settle_stamps(r, o, all_read))
			return false;
	return true;
}

static void plan_hold(struct recon *r, struct plan *plan, struct open_op *o)
{
	if (o->waits)
		pool_list_remove(&r->waiting, o);
	o->waits = false;
	pool_list_remove(&r->open, o);
	pool_list_append(&plan->held, o);
	o->held = true;
	plan->open--;
	plan->unsure |= o->unsure || o->op.stamps_refused || !o->op.complete;
}

bool join_plan_hold(struct reconstruct *rc, struct recon *r, struct open_op *o, uint64_t now_ns)
{
	struct plan *plan;

	if (o == r->launch) {
		if (!o->alone)
			join_plan_keep(rc, r, o, now_ns);
		r->launch = NULL;
	}
	if (!o->plan)
		return false;
	plan = plan_of(o);
	if (!plan) {			/* it was pushed out */
		o->op.fused = OP_FUSED;
		o->op.end_unstamped = o->op.is_p2p;
		if (o->unjudged)
			join_judge_stamps(rc, r, o);
		return false;
	}
	if (plan->ended && plan->members == 1 && !o->unjudged) {
		recon_drop_plan(r, plan);
		return false;
	}
	plan_hold(r, plan, o);
	plan_touch(r, plan, now_ns);
	r->unsettled |= o->unjudged;
	if (plan->ended && !plan->open && plan_is_settled(r, plan, false))
		join_close_plan(rc, r, plan, now_ns);
	return true;
}

/* All that the plan holds, taken off its list; *n of them. */
static bool plan_take_held(struct reconstruct *rc, struct plan *plan, uint32_t *n)
{
	*n = 0;
	while (plan->held.first && *n < JOIN_MEMBERS) {
		struct open_op *o = plan->held.first;

		pool_list_remove(&plan->held, o);
		rc->scratch->op[*n] = &o->op;
		*array_must_add(rc->scratch->open, n) = o;
	}
	return !plan->held.first;
}

/* False: more than there is room for. */
static bool take_spans(const struct reconstruct *rc, uint32_t members, uint32_t *n)
{
	*n = 0;
	for (uint32_t m = 0; m < members; m++) {
		RECON_EACH_SPAN(rc->scratch->open[m], span) {
			struct batch_span *to = array_add(rc->scratch->span, n);

			if (!to)
				return false;
			*to = (struct batch_span){
				.start = span->pair.start, .stop = span->pair.stop,
				.channel = span->pair.channel, .member = m,
			};
		}
	}
	return true;
}

static void place(const struct recon *r, struct op *op)
{
	timeline_place(&r->process->clock, join_gpu(r, op->comm_index), op);
}

/* The members of each batch, side by side; those that ran alone stay as they are. */
static void fill_batches(const struct recon *r, struct join_scratch *s, uint32_t members)
{
	struct op *batch[JOIN_MEMBERS];

	for (uint32_t head = 0; head < members; head++) {
		uint32_t n = 0;

		for (uint32_t m = head; s->batch[head] == head && m < members; m++)
			if (s->batch[m] == head)
				*array_must_add(batch, &n) = s->op[m];
		batch_mark_unstamped(batch, n);
		for (uint32_t i = 0; i < n; i++)
			place(r, batch[i]);
		if (n > 1)
			batch_fill(batch, n);
	}
}

static void find_batches(struct reconstruct *rc, struct recon *r, const struct plan *plan,
			 uint32_t members)
{
	struct join_scratch *s = rc->scratch;
	uint32_t nspans;
	bool sure = !plan->unsure && take_spans(rc, members, &nspans);

	for (uint32_t m = 0; m < members; m++) {
		s->op[m]->fused = sure ? 0 : OP_FUSED;
		s->op[m]->end_unstamped = !sure && s->op[m]->is_p2p;
		if (!sure)
			place(r, s->op[m]);
	}
	if (!sure)
		return;
	batch_unite(s->span, nspans, s->batch, members);
	fill_batches(r, s, members);
}

static void plan_hand_on(struct reconstruct *rc, struct recon *r, uint32_t members, uint64_t now_ns)
{
	for (uint32_t m = 0; m < members; m++)
		join_hand_on(rc, r, rc->scratch->open[m], now_ns);
}

/* Records of other kernels that came since also tell whether its stamps are true. */
static void plan_judge_held(struct reconstruct *rc, struct recon *r, struct plan *plan)
{
	for (struct open_op *o = plan->held.first; o; o = pool_list_next(&plan->held, o)) {
		if (o->unjudged)
			join_judge_stamps(rc, r, o);
		join_take_back_stamps(rc, r, o);
		plan->unsure |= o->op.stamps_refused;
	}
}

void join_close_plan(struct reconstruct *rc, struct recon *r, struct plan *plan, uint64_t now_ns)
{
	uint32_t members;
	bool all;

	plan_judge_held(rc, r, plan);
	plan->unsure |= plan->open || plan->held.count > JOIN_MEMBERS;
	do {
		all = plan_take_held(rc, plan, &members);
		if (plan->members > 1)
			find_batches(rc, r, plan, members);
		plan_hand_on(rc, r, members, now_ns);
	} while (!all);
	if (!plan->open)
		recon_drop_plan(r, plan);
	else
		plan_touch(r, plan, now_ns);
}

void join_on_group(struct reconstruct *rc, struct recon *r, const struct event *ev,
		   uint64_t now_ns)
{
	struct plan *plan;

	if (r->launch && r->launch->op.group == ev->rec->token) {
		r->launch->alone = true;
		return;
	}
	plan = plan_find(r, ev->rec->token);
	if (!plan)
		return;
	plan->ended = true;
	if (!plan->open && plan_is_settled(r, plan, false))
		join_close_plan(rc, r, plan, now_ns);
}

void join_settle_plans(struct reconstruct *rc, struct recon *r, uint64_t now_ns)
{
	if (!r->unsettled)
		return;
	r->unsettled = false;
	for (struct plan *next, *plan = r->plan_list.first; plan; plan = next) {
		next = pool_list_next(&r->plan_list, plan);
		if (!plan->ended || plan->open)
			continue;
		if (plan_is_settled(r, plan, true))
			join_close_plan(rc, r, plan, now_ns);
		else
			r->unsettled = true;
	}
}

void join_finish_plans(struct reconstruct *rc, struct recon *r, uint64_t now_ns)
{
	for (struct plan *next, *plan = r->plan_list.first; plan; plan = next) {
		next = pool_list_next(&r->plan_list, plan);
		if (now_ns < plan->touched_ns + GROUP_WAIT_NS)
			break;
		if (plan->open ? now_ns >= plan->touched_ns + GIVE_UP_NS :
		    now_ns >= plan->touched_ns + SETTLE_NS || plan_is_settled(r, plan, true))
			join_close_plan(rc, r, plan, now_ns);
	}
}

void join_end_plans(struct reconstruct *rc, struct recon *r, uint64_t now_ns)
{
	for (struct plan *next, *plan = r->plan_list.first; plan; plan = next) {
		next = pool_list_next(&r->plan_list, plan);
		plan->unsure |= plan->open;
		plan->open = 0;
		join_close_plan(rc, r, plan, now_ns);
	}
}
