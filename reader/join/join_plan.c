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

static uint32_t plan_find(const struct recon *r, uint64_t group)
{
	uint32_t item;

	return r->plans.used && recon_find(r, group, &item) == RECON_PLAN ? item : POOL_NONE;
}

static void plan_touch(struct recon *r, uint32_t item, uint64_t now_ns)
{
	recon_plan(r, item)->touched_ns = now_ns;
	pool_list_touch(&r->plans, &r->plan_list, item);
}

static uint32_t plan_make(struct reconstruct *rc, struct recon *r, uint64_t group,
			  uint64_t now_ns)
{
	uint32_t oldest = r->plan_list.first;

	if (!recon_has_room(r, &r->plans) && oldest != POOL_NONE) {
		join_close_plan(rc, r, oldest, now_ns);
		if (!recon_has_room(r, &r->plans))		/* it has open members */
			recon_drop_plan(r, oldest);
	}
	return recon_take_plan(r, group);
}

static void plan_join(struct recon *r, uint32_t plan_item, struct open_op *o, uint64_t now_ns)
{
	struct plan *plan = recon_plan(r, plan_item);

	plan_touch(r, plan_item, now_ns);
	plan->members++;
	plan->open++;
	o->plan = plan->serial;
	o->plan_item = plan_item;
}

static bool op_is_launch(const struct recon *r, uint32_t item)
{
	return r->launch && r->launch_item == item;
}

void join_plan_keep(struct reconstruct *rc, struct recon *r, uint32_t item, uint64_t now_ns)
{
	struct open_op *o = recon_op(r, item);
	bool launch = op_is_launch(r, item);
	uint32_t plan_item;

	if (!launch && !o->alone)
		return;
	if (launch)
		r->launch = 0;
	plan_item = plan_make(rc, r, o->op.group, now_ns);
	if (plan_item == POOL_NONE)
		return;		/* the token is something else's */
	plan_join(r, plan_item, o, now_ns);
	recon_plan(r, plan_item)->ended = o->alone;
	o->alone = false;
}

void join_plan_head(struct reconstruct *rc, struct recon *r, uint32_t item, uint64_t now_ns)
{
	struct open_op *o = recon_op(r, item);
	bool again = o->op.group == r->launch;
	uint32_t plan_item;

	if (!o->op.group || !o->op.expects_kernel)
		return;
	if (r->launch && (again || !recon_op(r, r->launch_item)->alone))
		join_plan_keep(rc, r, r->launch_item, now_ns);
	plan_item = plan_find(r, o->op.group);
	if (plan_item != POOL_NONE) {
		plan_join(r, plan_item, o, now_ns);
	} else if (!again) {
		r->launch = o->op.group;
		r->launch_item = item;
	}
}

/* The plan that it is a member of; NULL: of none, or that was pushed out. */
static struct plan *plan_of(const struct recon *r, const struct open_op *o)
{
	struct plan *plan = o->plan && pool_is_taken(&r->plans, o->plan_item) ?
			    recon_plan(r, o->plan_item) : NULL;

	return plan && plan->serial == o->plan ? plan : NULL;
}

bool join_plan_is_alone(const struct recon *r, const struct open_op *o)
{
	const struct plan *plan = plan_of(r, o);

	return o->alone || (plan && plan->ended && plan->members == 1);
}

static bool plan_is_settled(struct recon *r, const struct plan *plan, bool all_read)
{
	for (uint32_t item = plan->held.first; item != POOL_NONE;
	     item = pool_list_next(&r->ops, &plan->held, item)) {
		const struct open_op *o = recon_op(r, item);

		if (o->unjudged && !join_settle_stamps(r, o, all_read))
			return false;
	}
	return true;
}

static void plan_hold(struct recon *r, uint32_t plan_item, uint32_t item)
{
	struct plan *plan = recon_plan(r, plan_item);
	struct open_op *o = recon_op(r, item);

	if (o->waits)
		pool_list_remove(&r->ops, &r->waiting, item);
	o->waits = false;
	pool_list_remove(&r->ops, &r->open, item);
	pool_list_append(&r->ops, &plan->held, item);
	o->held = true;
	plan->open--;
	plan->unsure |= o->unsure || o->op.stamps_refused || !o->op.complete;
}

bool join_plan_hold(struct reconstruct *rc, struct recon *r, uint32_t item, uint64_t now_ns)
{
	struct open_op *o = recon_op(r, item);
	uint32_t plan_item;
	struct plan *plan;

	if (op_is_launch(r, item)) {
		if (!o->alone)
			join_plan_keep(rc, r, item, now_ns);
		r->launch = 0;
	}
	if (!o->plan)
		return false;
	plan_item = o->plan_item;
	plan = plan_of(r, o);
	if (!plan) {			/* it was pushed out */
		o->op.fused = OP_FUSED;
		o->op.end_unstamped = o->op.is_p2p;
		if (o->unjudged)
			join_judge_stamps(rc, r, o);
		return false;
	}
	if (plan->ended && plan->members == 1 && !o->unjudged) {
		recon_drop_plan(r, plan_item);
		return false;
	}
	plan_hold(r, plan_item, item);
	plan_touch(r, plan_item, now_ns);
	r->unsettled |= o->unjudged;
	if (plan->ended && !plan->open && plan_is_settled(r, plan, false))
		join_close_plan(rc, r, plan_item, now_ns);
	return true;
}

/* All that the plan holds, taken off its list; *n of them. */
static bool plan_take_held(struct reconstruct *rc, struct recon *r, struct plan *plan, uint32_t *n)
{
	*n = 0;
	while (plan->held.first != POOL_NONE && *n < JOIN_MEMBERS) {
		uint32_t item = plan->held.first;

		pool_list_remove(&r->ops, &plan->held, item);
		rc->scratch->op[*n] = &recon_op(r, item)->op;
		*array_must_add(rc->scratch->item, n) = item;
	}
	return plan->held.first == POOL_NONE;
}

/* False: more than there is room for. */
static bool take_spans(const struct reconstruct *rc, const struct recon *r, uint32_t members,
		       uint32_t *n)
{
	*n = 0;
	for (uint32_t m = 0; m < members; m++) {
		RECON_EACH_SPAN(r, recon_op(r, rc->scratch->item[m]), span) {
			struct batch_span *to = array_add(rc->scratch->span, n);

			if (!to)
				return false;
			*to = (struct batch_span){
				.start = span->start, .stop = span->stop,
				.channel = span->channel, .member = m,
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
	bool sure = !plan->unsure && take_spans(rc, r, members, &nspans);

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
		join_hand_on(rc, r, rc->scratch->item[m], now_ns);
}

/* Records of other kernels that came since also tell whether its stamps are true. */
static void plan_judge_held(struct reconstruct *rc, struct recon *r, struct plan *plan)
{
	for (uint32_t item = plan->held.first; item != POOL_NONE;
	     item = pool_list_next(&r->ops, &plan->held, item)) {
		struct open_op *o = recon_op(r, item);

		if (o->unjudged)
			join_judge_stamps(rc, r, o);
		join_take_back_stamps(rc, r, o);
		plan->unsure |= o->op.stamps_refused;
	}
}

void join_close_plan(struct reconstruct *rc, struct recon *r, uint32_t item, uint64_t now_ns)
{
	struct plan *plan = recon_plan(r, item);
	uint32_t members;
	bool all;

	plan_judge_held(rc, r, plan);
	plan->unsure |= plan->open || plan->held.count > JOIN_MEMBERS;
	do {
		all = plan_take_held(rc, r, plan, &members);
		if (plan->members > 1)
			find_batches(rc, r, plan, members);
		plan_hand_on(rc, r, members, now_ns);
	} while (!all);
	if (!plan->open)
		recon_drop_plan(r, item);
	else
		plan_touch(r, item, now_ns);
}

void join_on_group(struct reconstruct *rc, struct recon *r, const struct event *ev,
		   uint64_t now_ns)
{
	uint32_t item;
	struct plan *plan;

	if (ev->rec->token == r->launch) {
		recon_op(r, r->launch_item)->alone = true;
		return;
	}
	item = plan_find(r, ev->rec->token);
	if (item == POOL_NONE)
		return;
	plan = recon_plan(r, item);
	plan->ended = true;
	if (!plan->open && plan_is_settled(r, plan, false))
		join_close_plan(rc, r, item, now_ns);
}

void join_settle_plans(struct reconstruct *rc, struct recon *r, uint64_t now_ns)
{
	uint32_t next;

	if (!r->unsettled)
		return;
	r->unsettled = false;
	for (uint32_t item = r->plan_list.first; item != POOL_NONE; item = next) {
		const struct plan *plan = recon_plan(r, item);

		next = pool_list_next(&r->plans, &r->plan_list, item);
		if (!plan->ended || plan->open)
			continue;
		if (plan_is_settled(r, plan, true))
			join_close_plan(rc, r, item, now_ns);
		else
			r->unsettled = true;
	}
}

void join_finish_plans(struct reconstruct *rc, struct recon *r, uint64_t now_ns)
{
	uint32_t next;

	for (uint32_t item = r->plan_list.first; item != POOL_NONE; item = next) {
		const struct plan *plan = recon_plan(r, item);

		next = pool_list_next(&r->plans, &r->plan_list, item);
		if (now_ns < plan->touched_ns + GROUP_WAIT_NS)
			break;
		if (plan->open ? now_ns >= plan->touched_ns + GIVE_UP_NS :
		    now_ns >= plan->touched_ns + SETTLE_NS || plan_is_settled(r, plan, true))
			join_close_plan(rc, r, item, now_ns);
	}
}

void join_end_plans(struct reconstruct *rc, struct recon *r, uint64_t now_ns)
{
	uint32_t next;

	for (uint32_t item = r->plan_list.first; item != POOL_NONE; item = next) {
		struct plan *plan = recon_plan(r, item);

		next = pool_list_next(&r->plans, &r->plan_list, item);
		plan->unsure |= plan->open;
		plan->open = 0;
		join_close_plan(rc, r, item, now_ns);
	}
}
