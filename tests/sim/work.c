/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The timing of transfers.  Data flows evenly from the moment when the last
 * rank is there until the operation's end; a step waits for its own GPU, then
 * for its peer, then for the network.
 */
#include "tests/sim/work.h"

#include <stdlib.h>
#include <string.h>

#define TAKE_NS		2000	/* launch to the proxy's taking the work */
#define LOOP_NS		300	/* one turn of the progress loop */
#define POLL_NS		20000	/* back-pressure: one attempt to send */
#define MAX_ATTEMPTS	200

/* A Broadcast's chain begins at its root and a Reduce's ends there: no ring is closed. */
static bool leaves_chain(const struct sim_op *spec, int from, int to)
{
	return (spec->func == FUNC_BROADCAST && to == spec->root) ||
	       (spec->func == FUNC_REDUCE && from == spec->root);
}

/* The neighbour in the ring, or -1. */
static int ring_peer(const struct task *t, bool send)
{
	int n = t->op.comm->nranks, self = t->side.rank;
	int peer = (self + (send ? 1 : n - 1)) % n;

	return leaves_chain(t->op.spec, send ? self : peer, send ? peer : self) ? -1 : peer;
}

int work_net_peer(const struct task *t, bool send)
{
	const struct sim_comm *c = t->op.comm;
	const struct scenario *scn = t->member->player->scn;
	int self = t->side.rank, peer = t->side.peer;

	if (peer < 0)
		peer = ring_peer(t, send);
	else if ((t->side.func == FUNC_SEND) != send)
		return -1;
	if (peer < 0 ||
	    scenario_node_of(scn, c->world[self]) == scenario_node_of(scn, c->world[peer]))
		return -1;
	return peer;
}

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

/* Bytes that one channel carries in one direction. */
static uint64_t channel_bytes(const struct task *t)
{
	const int n = t->op.comm->nranks;
	double share = 1;

	if (t->side.peer < 0 && t->op.spec->func == FUNC_ALL_REDUCE)
		share = 2.0 * (n - 1) / n;
	else if (t->side.peer < 0 && names_func(t->op.spec->func)->scaled)
		share = (double)(n - 1) / n;
	return (uint64_t)(t->op.bytes * share / t->op.nchannels);
}

/* LL sends a flag with every word of data, LL128 one word in sixteen. */
static uint64_t wire_bytes(const struct task *t, uint64_t payload)
{
	const char *proto = names_get(NAMES_PROTO, t->op.spec->proto)->word;

	if (t->side.peer >= 0 || !strcmp(proto, "simple"))
		return payload;
	return !strcmp(proto, "ll") ? payload * 2 : payload * 16 / 15;
}

static struct work_sub *new_sub(const struct task *t, int channel, enum work_kind kind,
				struct work_sub *(*alloc)(void *), void *arg)
{
	struct work_sub *sub = alloc(arg);
	uint64_t payload = channel_bytes(t);

	if (!sub)
		return NULL;
	sub->next = NULL;
	sub->kind = kind;
	sub->channel = channel;
	sub->peer = -1;
	sub->window = t->side.peer < 0 ? WORK_SLOTS / 2 : WORK_SLOTS;
	sub->bytes = wire_bytes(t, payload);
	sub->nsteps = (int)((payload + t->member->player->scn->chunk_bytes - 1) /
			    t->member->player->scn->chunk_bytes);
	if (!sub->nsteps)
		sub->nsteps = 1;
	sub->joint_stop = t->side.peer >= 0;
	sub->context = t->member->context;
	sub->parent = t->handle;
	sub->rank = t->member->rank;
	sub->mask = t->mask;
	sub->moved = 0;
	sub->steps_done = 0;
	return sub;
}

/* When a channel began or ended: the first and the last channel have the exact times. */
static int64_t skew(const struct task *t, int channel, bool exact, int what)
{
	uint64_t span = t->side.gpu_stop > t->side.gpu_start ?
			t->side.gpu_stop - t->side.gpu_start : 0;
	uint64_t h = plan_hash(t->member->player->scn->seed, 3 + what, t->side.gpu_start, channel);
	int64_t ns = (int64_t)(h % 8) * 32;

	return exact || span < 1024 ? 0 : ns;
}

static struct work_sub *new_helper(const struct task *t, int channel, int index,
				   struct work_sub *(*alloc)(void *), void *arg)
{
	struct work_sub *sub = new_sub(t, channel, WORK_KERNEL_CH, alloc, arg);

	if (!sub)
		return NULL;
	sub->gpu_start = t->side.gpu_start + skew(t, channel, index == 0, 0);
	sub->gpu_stop = t->side.gpu_stop -
			skew(t, channel, index == t->op.nchannels - 1, 1);
	return sub;
}

int work_subs(const struct task *t, int index, bool foreign, struct work_sub **sub,
	      struct work_sub *(*alloc)(void *), void *arg)
{
	const struct member *m = t->member;
	bool own = work_executor(m->player->scn, m->comm, m->rank) == m->rank;
	int channel = (t->op.first_channel + index) % 64, n = 0, peer;

	if (!t->side.moves || t->side.peer == t->side.rank)
		return 0;
	peer = foreign ? -1 : work_net_peer(t, false);
	if (peer >= 0) {
		sub[n] = new_sub(t, channel, WORK_RECV, alloc, arg);
		if (sub[n])
			sub[n++]->peer = peer;
	}
	peer = own == foreign ? -1 : work_net_peer(t, true);
	if (peer >= 0) {
		sub[n] = new_sub(t, channel, WORK_SEND, alloc, arg);
		if (sub[n])
			sub[n++]->peer = peer;
	}
	if (!foreign && (t->mask & NCCL_KERNEL_CH)) {
		sub[n] = new_helper(t, channel, index, alloc, arg);
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

static int by_time(const void *a, const void *b)
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
	qsort(w->action, w->nactions, sizeof(*w->action), by_time);
}

void work_deinit(struct work *w)
{
	free(w->action);
	*w = (struct work){ 0 };
}

static int64_t later(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

static int64_t after(int64_t t, int64_t ns)
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
	int stuck_step, stuck_state;	/* -1: flows freely */
};

/* What a kill or an abort leaves undone; a stuck step stops only its own channel. */
static void apply_fault(struct flow *f)
{
	const struct plan_op *op = &f->task->op;
	int world = op->comm->world[f->sub->rank];
	bool hits = op->fault && f->sub->channel == op->first_channel % 64;

	f->cut = PLAN_NEVER;
	f->stuck_step = -1;
	if (op->fault && op->fault->kind != FAULT_STUCK)
		f->cut = op->cut_ns;
	if (!hits || op->fault->kind != FAULT_STUCK)
		return;
	f->stuck_step = op->fault->step;
	f->stuck_state = f->sub->kind == WORK_RECV ? NCCL_STEP_RECV_WAIT : op->fault->state;
	if (world == op->fault->rank && f->sub->kind == WORK_SEND)
		return;
	if (f->sub->kind == WORK_RECV && op->comm->world[f->sub->peer] == op->fault->rank)
		return;
	f->stuck_step += 2;	/* the others run dry a little later */
	if (f->sub->kind == WORK_SEND)
		f->stuck_state = NCCL_STEP_SEND_GPU_WAIT;
}

static void emit(struct flow *f, int64_t at, enum work_verb verb, int step, int state)
{
	struct work_action a = { .at = at, .verb = verb, .sub = f->sub, .step = step,
				 .state = state };
	uint64_t each = f->sub->bytes / f->sub->nsteps;

	if (at >= f->cut)
		return;
	a.size = state == NCCL_STEP_SEND_WAIT || state == NCCL_STEP_RECV_FLUSH_WAIT ?
		 step == f->sub->nsteps - 1 ? f->sub->bytes - each * step : each :
		 0xdeadbeefu;
	work_add(f->work, &a);
}

/* From here on this step goes no further than `state`, if it is the stuck one. */
static int64_t unless_stuck(const struct flow *f, int step, int state, int64_t at)
{
	return f->stuck_step >= 0 && step >= f->stuck_step && state == f->stuck_state ?
	       PLAN_NEVER : at;
}

/* SendPeerWait, again at each attempt until the network takes the step. */
static void peer_wait(struct flow *f, int step, int64_t ready, int64_t sent)
{
	int64_t t = ready;

	for (int i = 0; i < MAX_ATTEMPTS && t != PLAN_NEVER && (!i || t < sent); i++) {
		emit(f, t, WORK_STEP_STATE, step, NCCL_STEP_SEND_PEER_WAIT);
		t += POLL_NS;
	}
}

static int64_t send_step(struct flow *f, int step, int64_t posted, int64_t *sentp)
{
	int64_t dt = f->data == PLAN_NEVER ? 0 : (f->end - f->data) / f->sub->nsteps;
	int64_t ready, sent, stop;

	emit(f, posted, WORK_STEP_START, step, 0);
	emit(f, posted, WORK_STEP_STATE, step, NCCL_STEP_SEND_GPU_WAIT);
	ready = unless_stuck(f, step, NCCL_STEP_SEND_GPU_WAIT,
			     later(posted, after(f->own, step * dt)));
	ready = after(later(ready, *sentp), 10);
	sent = unless_stuck(f, step, NCCL_STEP_SEND_PEER_WAIT,
			    later(ready, after(f->data, step * dt)));
	peer_wait(f, step, ready, sent);
	emit(f, sent, WORK_STEP_STATE, step, NCCL_STEP_SEND_WAIT);
	stop = unless_stuck(f, step, NCCL_STEP_SEND_WAIT,
			    later(after(sent, 10), after(f->data, (step + 1) * dt)));
	emit(f, stop, WORK_STEP_STOP, step, 0);
	*sentp = sent;
	return stop;
}

static int64_t recv_step(struct flow *f, int step, int64_t posted, int64_t *arrivedp)
{
	int64_t dt = f->data == PLAN_NEVER ? 0 : (f->end - f->data) / f->sub->nsteps;
	int64_t arrived, stop;

	emit(f, posted, WORK_STEP_START, step, 0);
	if (step == 0 && f->sub->channel % 4 == 3)	/* no request yet: tried again */
		emit(f, posted, WORK_STEP_START, step, 0);
	emit(f, posted, WORK_STEP_STATE, step, NCCL_STEP_RECV_WAIT);
	arrived = unless_stuck(f, step, NCCL_STEP_RECV_WAIT,
			       later(posted, after(f->data, (step + 1) * dt)));
	arrived = after(later(arrived, *arrivedp), 10);
	emit(f, arrived, WORK_STEP_STATE, step, NCCL_STEP_RECV_FLUSH_WAIT);
	emit(f, after(arrived, LOOP_NS), WORK_STEP_STATE, step, NCCL_STEP_RECV_GPU_WAIT);
	stop = after(arrived, 3 * LOOP_NS);
	emit(f, stop, WORK_STEP_STOP, step, 0);
	*arrivedp = arrived;
	return stop;
}

static void plan_transfer(struct flow *f, int64_t busy, int64_t *donep)
{
	int64_t start = later(f->take, busy), posted = start, edge = start;
	int64_t stop[WORK_SLOTS] = { 0 };

	emit(f, start, WORK_PROGRESS, 0, 0);
	for (int i = 0; i < f->sub->nsteps && posted != PLAN_NEVER; i++) {
		int64_t free_ns = after(stop[i % f->sub->window], i < f->sub->window ? 0 : 1);

		posted = i ? later(after(posted, LOOP_NS), free_ns) : start;
		stop[i % f->sub->window] = f->sub->kind == WORK_SEND ?
			send_step(f, i, posted, &edge) : recv_step(f, i, posted, &edge);
		*donep = later(*donep, stop[i % f->sub->window]);
	}
	if (posted == PLAN_NEVER)
		*donep = PLAN_NEVER;
}

/* The host sees a channel begin and end when the proxy next polls it. */
static void plan_helper(struct flow *f)
{
	const struct plan_side *side = &f->task->side;
	uint64_t seed = f->task->member->player->scn->seed;
	int64_t lag = 500 + plan_hash(seed, 5, side->gpu_start, f->sub->channel) % 8000;
	int64_t start = after(side->arrival, lag), stop = side->stop;

	if (f->task->op.fault && f->task->op.fault->kind == FAULT_STUCK &&
	    f->stuck_step < 0 && f->data != PLAN_NEVER) {
		stop = f->end;
		f->sub->gpu_stop = plan_gpu_clock(f->task->member->player->scn,
						  f->task->member->world, stop);
	}
	emit(f, start, WORK_KERNEL_START, 0, 0);
	if (after(stop, lag) < f->cut)
		work_add(f->work, &(struct work_action){ .at = after(stop, lag), .sub = f->sub,
							 .verb = WORK_KERNEL_STOP, .last = true });
}

void work_plan(struct work *work, const struct task *task, struct work_sub *sub,
	       int64_t busy_ns, int64_t *donep)
{
	const struct plan_op *op = &task->op;
	struct flow f = { .work = work, .task = task, .sub = sub,
			  .take = after(task->side.launched, TAKE_NS),
			  .data = op->data_ns, .own = task->side.arrival,
			  .end = task->side.stop };

	if (op->fault && op->cut_ns != PLAN_NEVER)
		f.end = 2 * op->cut_ns - op->data_ns;
	apply_fault(&f);
	*donep = 0;
	if (sub->kind == WORK_KERNEL_CH)
		plan_helper(&f);
	else
		plan_transfer(&f, busy_ns, donep);
	if (f.cut != PLAN_NEVER)
		*donep = PLAN_NEVER;
}
