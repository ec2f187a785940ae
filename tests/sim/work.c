/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The timing of transfers.  Data flows evenly from the moment when the last
 * rank is there until the operation's end; a step waits for its own GPU, then
 * for its peer, then for the network.
 */
#include "tests/sim/work.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/sim/ring.h"

#define TAKE_NS		2000	/* launch to the proxy's taking the work */
#define POLL_NS		20000	/* back-pressure: one attempt to send */
#define OFTEN		200		/* attempts at that pace; more are rarer */
#define RARER_NS	1000000
#define MAX_ATTEMPTS	20000		/* of what never succeeds */

int work_executor(const struct scenario *scn, const struct sim_comm *c, int rank)
{
	int node = scenario_node_of(scn, c->world[rank]);

	for (int i = 1; c->pxn && i < c->nranks; i++) {
		int r = (rank + i) % c->nranks;

		if (scenario_node_of(scn, c->world[r]) == node)
			return r;
	}
	return rank;
}

/* ---- subs ---- */

static struct work_sub *new_sub(const struct task *t, int index, enum work_kind kind,
				struct work_sub *(*alloc)(void *), void *arg)
{
	struct work_sub *sub = alloc(arg);

	if (!sub)
		return NULL;
	sub->next = NULL;
	sub->kind = kind;
	sub->channel = plan_channel_number(&t->op, index);
	sub->index = index;
	sub->peer = -1;
	sub->joint_stop = t->side.peer >= 0;
	sub->context = t->member->context;
	sub->parent = t->handle;
	sub->rank = t->member->rank;
	sub->mask = t->mask;
	sub->moved = 0;
	sub->ring = NULL;
	sub->steps_done = 0;
	return sub;
}

static struct work_sub *new_transfer(const struct task *t, int index, const struct wire *wire,
				     struct work_sub *(*alloc)(void *), void *arg)
{
	struct work_sub *sub = new_sub(t, index, wire->send ? WORK_SEND : WORK_RECV, alloc, arg);

	if (!sub)
		return NULL;
	sub->peer = wire->peer;
	sub->silent = wire->silent;
	sub->nsteps = wire->nsteps;
	sub->window = wire->window;
	sub->chunk = wire->chunk;
	sub->bytes = wire->bytes;
	return sub;
}

int work_subs(const struct task *t, int index, bool foreign, struct work_sub **sub,
	      struct work_sub *(*alloc)(void *arg), void *arg)
{
	const struct member *m = t->member;
	bool own = work_executor(m->player->scn, m->comm, m->rank) == m->rank;
	struct wire wire[WIRE_MAX];
	int n = 0, nwires;

	if (!t->side.moves || t->side.peer == t->side.rank)
		return 0;
	nwires = wire_find(t, index, wire);
	for (int i = 0; i < nwires; i++) {
		if (wire[i].send ? own == foreign : foreign)
			continue;
		sub[n] = new_transfer(t, index, &wire[i], alloc, arg);
		n += !!sub[n];
	}
	if (!foreign && (t->mask & NCCL_KERNEL_CH)) {
		sub[n] = new_sub(t, index, WORK_KERNEL_CH, alloc, arg);
		n += !!sub[n];
	}
	return n;
}

/* ---- actions ---- */

void work_add(struct work *w, const struct work_action *a)
{
	struct work_action *p;

	if (a->at == PLAN_NEVER)
		return;
	if (w->nactions == w->room) {
		p = realloc(w->action, (w->room * 2 + 64) * sizeof(*p));
		if (!p) {
			w->failed = true;
			return;
		}
		w->action = p;
		w->room = w->room * 2 + 64;
	}
	w->action[w->nactions] = *a;
	w->action[w->nactions++].order = w->order++;
}

static int actions_by_time(const void *a, const void *b)
{
	const struct work_action *x = a, *y = b;

	if (x->at != y->at)
		return x->at < y->at ? -1 : 1;
	return x->order < y->order ? -1 : x->order > y->order;
}

void work_sort(struct work *w)
{
	if (!w->nactions)
		return;
	memmove(w->action, w->action + w->first, (w->nactions - w->first) * sizeof(*w->action));
	w->nactions -= w->first;
	w->first = 0;
	qsort(w->action, w->nactions, sizeof(*w->action), actions_by_time);
}

void work_deinit(struct work *w)
{
	free(w->action);
	*w = (struct work){ 0 };
}

static int64_t time_later(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

static int64_t time_after(int64_t t, int64_t ns)
{
	return t == PLAN_NEVER ? PLAN_NEVER : t + ns;
}

/* The flow of one sub's data. */
struct flow {
	struct work *work;
	const struct task *task;
	struct work_sub *sub;
	int64_t take, data, own, end;	/* end: had nothing gone wrong */
	int64_t cut;			/* nothing happens from here on */
	int64_t dt;			/* from step to step */
	int64_t latency, moving;	/* of it on the network, where nothing is slow */
	int sender;			/* world rank */
	int stuck_step, stuck_state;	/* -1: flows freely */
};

/* Who a sub is to the rank that a fault is in. */
enum role {
	OTHER_SEND, OTHER_RECV, ITS_SEND, ITS_RECV, SEND_TO_IT, RECV_FROM_IT,
	NEAR_RECV,		/* of a rank that shares its node */
	ROLES
};

static enum role role_of(const struct flow *f, int world)
{
	const int *ranks = f->task->op.comm->world;
	bool recv = f->sub->kind == WORK_RECV;

	if (ranks[f->sub->rank] == world)
		return recv ? ITS_RECV : ITS_SEND;
	if (f->sub->peer >= 0 && ranks[f->sub->peer] == world)
		return recv ? RECV_FROM_IT : SEND_TO_IT;
	if (recv && scenario_node_of(f->task->member->player->scn, ranks[f->sub->rank]) ==
		    scenario_node_of(f->task->member->player->scn, world))
		return NEAR_RECV;
	return recv ? OTHER_RECV : OTHER_SEND;
}

/*
 * Where a transfer comes to a halt: so many steps after the fault's, in this
 * state; 0: the state that the fault says.  Those that are not next to the fault
 * run dry a little later.
 */
struct halt {
	int steps, state;
};

static const struct halt halts[FAULT_KINDS][ROLES] = {
	[FAULT_STUCK] = {
		[ITS_SEND]	= { 0, 0 },
		[RECV_FROM_IT]	= { 0, NCCL_STEP_RECV_WAIT },
		[ITS_RECV]	= { 2, NCCL_STEP_RECV_WAIT },
		[SEND_TO_IT]	= { 2, NCCL_STEP_SEND_GPU_WAIT },
		[OTHER_SEND]	= { 2, NCCL_STEP_SEND_GPU_WAIT },
		[OTHER_RECV]	= { 2, NCCL_STEP_RECV_WAIT },
		[NEAR_RECV]	= { 2, NCCL_STEP_RECV_WAIT },
	},
	[FAULT_FREEZE] = {
		[ITS_SEND]	= { 0, NCCL_STEP_SEND_GPU_WAIT },
		[RECV_FROM_IT]	= { 0, NCCL_STEP_RECV_WAIT },
		[ITS_RECV]	= { 0, NCCL_STEP_RECV_GPU_WAIT },
		[SEND_TO_IT]	= { WORK_SLOTS / 2, NCCL_STEP_SEND_PEER_WAIT },
		[OTHER_SEND]	= { 2, NCCL_STEP_SEND_GPU_WAIT },
		[OTHER_RECV]	= { 2, NCCL_STEP_RECV_WAIT },
		/* its GPU has no room for what it would pass on to the one that is frozen */
		[NEAR_RECV]	= { 1, NCCL_STEP_RECV_GPU_WAIT },
	},
	[FAULT_MISMATCH] = {
		[ITS_SEND]	= { 0, NCCL_STEP_SEND_GPU_WAIT },
		[RECV_FROM_IT]	= { 0, NCCL_STEP_RECV_WAIT },
		[ITS_RECV]	= { 0, NCCL_STEP_RECV_WAIT },
		[SEND_TO_IT]	= { 0, NCCL_STEP_SEND_GPU_WAIT },
		[OTHER_SEND]	= { 0, NCCL_STEP_SEND_GPU_WAIT },
		[OTHER_RECV]	= { 0, NCCL_STEP_RECV_WAIT },
		[NEAR_RECV]	= { 0, NCCL_STEP_RECV_WAIT },
	},
};

/* What a kill or an abort leaves undone; a stuck step stops only its own channel. */
static void apply_fault(struct flow *f)
{
	const struct sim_fault *fault = f->task->op.fault;
	const struct halt *halt;
	enum sim_fault_kind kind;

	f->cut = PLAN_NEVER;
	f->stuck_step = -1;
	if (!fault)
		return;
	if (fault->kind == FAULT_KILL || fault->kind == FAULT_ABORT) {
		f->cut = f->task->op.cut_ns;
		return;
	}
	if (fault->kind == FAULT_STUCK && f->sub->index)
		return;
	/* A GPU that gives nothing takes nothing either. */
	kind = fault->kind == FAULT_STUCK && fault->state == NCCL_STEP_SEND_GPU_WAIT ?
	       FAULT_FREEZE : fault->kind;
	halt = &halts[kind][role_of(f, fault->rank)];
	f->stuck_step = fault->step + halt->steps;
	f->stuck_state = halt->state ? halt->state : fault->state;
}

/* What a step moves; the last one what is left. */
static uint64_t step_bytes(const struct work_sub *sub, int step)
{
	uint64_t each = sub->bytes / sub->nsteps;

	return step == sub->nsteps - 1 ? sub->bytes - each * step : each;
}

static void flow_emit(struct flow *f, int64_t at, enum work_verb verb, int step, int state)
{
	struct work_action a = { .at = at, .verb = verb, .sub = f->sub, .step = step,
				 .state = state };

	if (at >= f->cut)
		return;
	a.size = state == NCCL_STEP_SEND_WAIT || state == NCCL_STEP_RECV_FLUSH_WAIT ?
		 step_bytes(f->sub, step) : 0xdeadbeefu;
	work_add(f->work, &a);
}

/* From here on this step goes no further than `state`, if it is the stuck one. */
static int64_t unless_stuck(const struct flow *f, int step, int state, int64_t at)
{
	return f->stuck_step >= 0 && step >= f->stuck_step && state == f->stuck_state ?
	       PLAN_NEVER : at;
}

/*
 * SendPeerWait, again at each attempt until the network takes the step: often at
 * first, and for as long as it takes, or some twenty seconds if it takes for ever.
 */
static void peer_wait(struct flow *f, int step, int64_t ready, int64_t sent)
{
	bool ends = sent != PLAN_NEVER || f->cut != PLAN_NEVER;
	int64_t t = ready, until = sent < f->cut ? sent : f->cut;

	for (int i = 0; t != PLAN_NEVER && (!i || t < until); i++) {
		flow_emit(f, t, WORK_STEP_STATE, step, NCCL_STEP_SEND_PEER_WAIT);
		t += i < OFTEN ? POLL_NS : RARER_NS;
		if (!ends && i == MAX_ATTEMPTS)
			break;
	}
}

/* How long a step is on the network. */
static int64_t step_wire(const struct flow *f, int step)
{
	double factor = plan_fault_channel(f->task->member->player->scn, &f->task->op, f->sender,
					   f->sub->channel, step);
	int64_t wire = f->latency + (int64_t)((double)f->moving * factor);

	return wire < f->dt ? wire : f->dt;
}

/*
 * Data that the own GPU has waits for the peer until all are there; what comes
 * later waits in the GPU for what the ring brings.  A step is on the network as
 * long as its link takes, which for all but the slowest is part of a step's time.
 */
static int64_t send_step(struct flow *f, int step, int64_t posted, int64_t *sentp)
{
	int64_t go = time_after(f->data, (step + 1) * f->dt - step_wire(f, step));
	int64_t ready, sent, stop;

	flow_emit(f, posted, WORK_STEP_START, step, 0);
	flow_emit(f, posted, WORK_STEP_STATE, step, NCCL_STEP_SEND_GPU_WAIT);
	ready = time_later(posted, time_after(f->own, step * f->dt));
	if (step && ready >= f->data)
		ready = time_later(ready, go);
	ready = unless_stuck(f, step, NCCL_STEP_SEND_GPU_WAIT, ready);
	ready = time_after(time_later(ready, *sentp), 10);
	sent = unless_stuck(f, step, NCCL_STEP_SEND_PEER_WAIT, time_later(ready, go));
	peer_wait(f, step, ready, sent);
	flow_emit(f, sent, WORK_STEP_STATE, step, NCCL_STEP_SEND_WAIT);
	stop = unless_stuck(f, step, NCCL_STEP_SEND_WAIT,
			    time_later(time_after(sent, 10),
				       time_after(f->data, (step + 1) * f->dt)));
	flow_emit(f, stop, WORK_STEP_STOP, step, 0);
	*sentp = sent;
	return stop;
}

static int64_t recv_step(struct flow *f, int step, int64_t posted, int64_t *arrivedp)
{
	int64_t arrived, consumed, stop;

	flow_emit(f, posted, WORK_STEP_START, step, 0);
	if (step == 0 && f->sub->channel % 4 == 3)	/* no request yet: tried again */
		flow_emit(f, posted, WORK_STEP_START, step, 0);
	flow_emit(f, posted, WORK_STEP_STATE, step, NCCL_STEP_RECV_WAIT);
	arrived = unless_stuck(f, step, NCCL_STEP_RECV_WAIT,
			       time_later(posted, time_after(f->data, (step + 1) * f->dt)));
	arrived = time_after(time_later(arrived, *arrivedp), 10);
	flow_emit(f, arrived, WORK_STEP_STATE, step, NCCL_STEP_RECV_FLUSH_WAIT);
	flow_emit(f, time_after(arrived, WORK_LOOP_NS), WORK_STEP_STATE, step,
		  NCCL_STEP_RECV_GPU_WAIT);
	consumed = unless_stuck(f, step, NCCL_STEP_RECV_GPU_WAIT, arrived);
	stop = time_after(consumed, 3 * WORK_LOOP_NS);
	flow_emit(f, stop, WORK_STEP_STOP, step, 0);
	*arrivedp = arrived;
	return stop;
}

/* How long one step takes, and its link. */
static void pace_steps(struct flow *f)
{
	const struct plan_op *op = &f->task->op;
	const struct scenario *scn = f->task->member->player->scn;
	const int *world = op->comm->world;
	bool send = f->sub->kind == WORK_SEND;
	int from = world[send ? f->sub->rank : f->sub->peer];
	int to = world[send ? f->sub->peer : f->sub->rank];
	struct sim_link link = plan_link(scn, op, from, to);
	double bytes = (double)f->sub->bytes / f->sub->nsteps * op->nchannels;

	f->dt = f->data == PLAN_NEVER ? 0 : (f->end - f->data) / f->sub->nsteps;
	f->latency = link.latency_ns;
	f->moving = (int64_t)(bytes / link.rate);
	f->sender = from;
}

static bool fault_is_kill(const struct sim_fault *fault)
{
	return fault && fault->kind == FAULT_KILL;
}

/*
 * A kernel that begins late moves its data late, and no faster.  Those of the ranks
 * that live on begin whatever has become of the killed one.
 */
static void flow_put_off(struct flow *f)
{
	int64_t late = f->task->late_ns;

	f->take = time_after(f->take, late);
	f->own = time_after(f->own, late);
	f->data = time_after(f->data, late);
	f->end = time_after(f->end, late);
}

static void plan_transfer(struct flow *f, int64_t busy, int64_t *donep)
{
	int64_t stop[WORK_SLOTS] = { 0 };
	int64_t start, posted, edge;

	flow_put_off(f);
	if (f->end == PLAN_NEVER)	/* it hangs, or another one of its group does */
		f->data = PLAN_NEVER;
	start = posted = edge = time_later(f->take, busy);
	flow_emit(f, start, WORK_PROGRESS, 0, 0);
	pace_steps(f);
	for (int i = 0; i < f->sub->nsteps && posted != PLAN_NEVER; i++) {
		int64_t free_ns = time_after(stop[i % f->sub->window], i < f->sub->window ? 0 : 1);

		posted = i ? time_later(time_after(posted, WORK_LOOP_NS), free_ns) : start;
		stop[i % f->sub->window] = f->sub->kind == WORK_SEND ?
			send_step(f, i, posted, &edge) : recv_step(f, i, posted, &edge);
		*donep = time_later(*donep, stop[i % f->sub->window]);
	}
	if (posted == PLAN_NEVER)
		*donep = PLAN_NEVER;
}

/* How long the proxy takes to see something: a little more often, rarely much more. */
static int64_t poll_lag(const struct scenario *scn, int64_t at, int channel, int edge)
{
	uint64_t h = plan_hash(scn->seed, 5 + edge, at, channel);
	double u = ((double)(h >> 11) + 1) / (1ull << 53);
	int64_t lag = scn->poll.least_ns - (int64_t)(scn->poll.mean_ns * log(u));

	if (scn->poll.rare_every && plan_hash(h, 7, at, channel) % scn->poll.rare_every == 0)
		lag += scn->poll.rare_ns;
	return lag;
}

/*
 * The host sees a channel begin and end when the proxy next polls it, in two
 * passes at least, and not before it has done with the helper before this one.
 */
static void plan_helper(struct flow *f, int64_t busy, int64_t *donep)
{
	const struct scenario *scn = f->task->member->player->scn;
	struct work_sub *sub = f->sub;
	int64_t start, stop;
	struct plan_span span;

	plan_channel(scn, &f->task->op, &f->task->side, sub->index, &span);
	sub->late_ns = f->task->late_ns;
	sub->gpu_start = span.gpu_start ? span.gpu_start + (uint64_t)sub->late_ns : 0;
	sub->gpu_stop = span.gpu_stop ? span.gpu_stop + (uint64_t)sub->late_ns : 0;
	sub->wait_ns = f->task->op.spec->symmetric && f->task->op.data_ns > f->task->side.arrival ?
		       (uint64_t)(f->task->op.data_ns - f->task->side.arrival) : 0;
	if (sub->ring) {
		span.start = ring_ready(sub->ring, sub->channel, sub->count, false, f->take);
		span.stop = ring_ready(sub->ring, sub->channel, sub->count, true, f->take);
	}
	start = time_after(span.start, poll_lag(scn, span.start, sub->channel, 0));
	start = time_later(time_after(time_later(start, f->take), sub->late_ns),
			   time_after(busy, WORK_LOOP_NS));
	stop = time_after(span.stop, poll_lag(scn, span.stop, sub->channel, 1));
	stop = time_later(time_after(stop, sub->late_ns), time_after(start, WORK_LOOP_NS));
	*donep = stop;
	if (fault_is_kill(f->task->op.fault) && start != PLAN_NEVER)
		f->cut = time_later(f->cut, start + 1);
	flow_emit(f, start, WORK_KERNEL_START, 0, 0);
	if (stop < time_after(f->cut, sub->late_ns))
		work_add(f->work, &(struct work_action){ .at = stop, .sub = sub,
							 .verb = WORK_KERNEL_STOP, .last = true });
}

void work_plan(struct work *work, const struct task *task, struct work_sub *sub,
	       int64_t busy_ns, int64_t *donep)
{
	const struct plan_op *op = &task->op;
	struct flow f = { .work = work, .task = task, .sub = sub,
			  .take = time_later(time_after(task->side.launched, TAKE_NS),
					     task->side.away),
			  .data = op->data_ns, .own = task->side.arrival,
			  .end = task->side.stop };
	struct plan_span span;

	if (op->fault && op->cut_ns != PLAN_NEVER) {
		f.end = 2 * op->cut_ns - op->data_ns;
	} else if (op->fast_ns && task->side.arrival != PLAN_NEVER) {
		plan_channel(task->member->player->scn, op, &task->side, sub->index, &span);
		f.end = span.stop;
	}
	apply_fault(&f);
	*donep = 0;
	if (sub->kind == WORK_KERNEL_CH)
		plan_helper(&f, busy_ns, donep);
	else
		plan_transfer(&f, busy_ns, donep);
	if (f.cut != PLAN_NEVER)
		*donep = PLAN_NEVER;
}

void work_delay(struct work *w, int64_t from_ns, int64_t until_ns)
{
	for (int i = w->first; i < w->nactions; i++)
		if (w->action[i].at > from_ns && w->action[i].at < until_ns)
			w->action[i].at = until_ns;
}
