/* SPDX-License-Identifier: Apache-2.0 */
/* API calls, group ends and launches of one application thread. */
#include "tests/sim/app.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/sim/ce.h"
#include "tests/sim/proxy.h"

/* One captured kernel launch. */
struct captured {
	struct captured *next;
	int graph, part, ntasks;
	struct task task[];
};

/* NCCL's thread-local state of the API calls, and what the thread works on. */
struct app {
	struct player *player;
	int first, count;
	struct plan *plan;
	bool group_open;		/* the GroupApi event was begun */
	struct member *group_member;	/* in whose context */
	void *group_api, *coll_api, *p2p_api;	/* the second is never cleared */
	struct task *task;		/* of the current step, in call order */
	int ntasks, room;
	struct task *launch;		/* those of one launch */
	struct captured *captured;
};

static bool is_mine(const struct app *app, int world)
{
	return world >= app->first && world < app->first + app->count;
}

static void *stream_of(int world)
{
	return (void *)(0x1000000ull + (uint64_t)world * 0x1000);
}

/* ---- API calls ---- */

static void open_group(struct app *app, const struct task *t, bool grouped, bool captured)
{
	struct member *m = t->member;
	struct api_event ev;

	if (app->group_open || !(t->mask & PLAYER_WANTS_GROUP_API) ||
	    m->player->scn->release < 28)
		return;
	memset(&ev, 0xa5, sizeof(ev));
	ev.descr.type = NCCL_GROUP_API;
	ev.descr.parentObj = NULL;
	ev.descr.rank = 0;
	ev.descr.groupApi.graphCaptured = captured;
	ev.descr.groupApi.groupDepth = grouped ? 2 : 1;
	api_start(&m->player->api, m->context, &app->group_api, &ev);
	app->group_open = true;
	app->group_member = m;
	if (app->group_api)
		api_state(&m->player->api, app->group_api, NCCL_GROUP_API_START_STOP, NULL, 0);
}

/* What is left in the slot from the last profiled call is stopped again. */
static void call_coll(struct app *app, struct task *t, bool captured)
{
	struct member *m = t->member;
	const struct sim_op *op = t->op.spec;
	struct api_event ev;

	if (t->mask & PLAYER_WANTS_COLL_API) {
		memset(&ev, 0xa5, sizeof(ev));
		ev.descr.type = NCCL_COLL_API;
		ev.descr.parentObj = app->group_api;
		ev.descr.rank = 0;
		ev.descr.collApi = (struct nccl_coll_api){
			.func = names_func(t->side.func)->name, .count = op->count,
			.datatype = names_get(NAMES_DATATYPE, op->datatype)->name,
			.root = op->root, .stream = stream_of(m->world),
			.graphCaptured = captured };
		api_start(&m->player->api, m->context, &app->coll_api, &ev);
	}
	t->api = app->coll_api;
	if (app->coll_api)
		api_stop(&m->player->api, app->coll_api);
}

static void call_p2p(struct app *app, struct task *t, bool captured)
{
	struct member *m = t->member;
	const struct sim_op *op = t->op.spec;
	struct api_event ev;

	if (!(t->mask & PLAYER_WANTS_P2P_API))
		return;
	memset(&ev, 0xa5, sizeof(ev));
	ev.descr.type = NCCL_P2P_API;
	ev.descr.parentObj = app->group_api;
	ev.descr.rank = 0;
	ev.descr.p2pApi = (struct nccl_p2p_api){
		.func = names_func(t->side.func)->name, .count = op->count,
		.datatype = names_get(NAMES_DATATYPE, op->datatype)->name,
		.stream = stream_of(m->world), .graphCaptured = captured };
	api_start(&m->player->api, m->context, &app->p2p_api, &ev);
	t->api = app->p2p_api;
	if (app->p2p_api)
		api_stop(&m->player->api, app->p2p_api);
	app->p2p_api = NULL;
}

static void call(struct app *app, struct task *t, bool grouped, bool captured)
{
	pace_wait(&app->player->pace, t->side.enqueued);
	t->mask = player_mask(app->player);
	open_group(app, t, grouped, captured);
	t->group_api = app->group_api;
	if (app->player->scn->release < 28)
		return;
	if (t->side.peer < 0)
		call_coll(app, t, captured);
	else
		call_p2p(app, t, captured);
}

/* ---- a step's tasks ---- */

static bool is_hidden(const struct app *app, const struct plan_op *op,
		      const struct plan_side *side)
{
	const struct scenario *scn = app->player->scn;

	return op->spec->ce || op->spec->symmetric ||
	       (side->func == FUNC_BROADCAST && scn->agv && scn->release >= 29);
}

/* Room for one more task; old ones keep their handle slots as they are. */
static int add_task(struct app *app, const struct plan_op *op, const struct plan_side *side,
		    struct task **tp)
{
	struct task *t;
	void *handle;

	if (app->ntasks == app->room) {
		int room = app->room * 2 + 16;

		t = realloc(app->task, room * sizeof(*t));
		if (!t)
			return -ENOMEM;
		memset(t + app->room, 0, (room - app->room) * sizeof(*t));
		app->task = t;
		t = realloc(app->launch, room * sizeof(*t));
		if (!t)
			return -ENOMEM;
		app->launch = t;
		app->room = room;
	}
	t = &app->task[app->ntasks++];
	handle = t->handle;
	*t = (struct task){ .op = *op, .side = *side, .handle = handle,
			    .member = player_member(app->player, op->comm, side->rank),
			    .hidden = is_hidden(app, op, side) };
	*tp = t;
	return 0;
}

/* The calls of one rank.  1: the thread stands still in one of them. */
static int call_rank(struct app *app, const struct plan_step *step, int world)
{
	struct task *t;
	int r;

	for (int i = 0; i < step->nops; i++) {
		const struct plan_op *op = &step->op[i];

		for (int s = 0; s < op->nsides; s++) {
			if (op->comm->world[op->side[s].rank] != world)
				continue;
			if (op->side[s].enqueued == PLAN_NEVER)
				return 1;
			r = add_task(app, op, &op->side[s], &t);
			if (r)
				return r;
			call(app, t, step->grouped || app->count > 1,
			     step->kind == PLAN_CAPTURE);
		}
	}
	return 0;
}

/* ---- launches ---- */

/* In the middle of this process' life's last operation: nothing earlier may be open. */
static void prepare_death(struct app *app, const struct task *task)
{
	struct player *p = app->player;

	if (!hook_kills_us(task))
		return;
	for (int i = 0; i < p->nmembers && p->pace.factor == 0; i++)
		if (!p->member[i].aborted)
			proxy_drain(p->member[i].proxy);
}

static void report_launch(const struct task *task, int ntasks)
{
	struct member *m = task->member;
	void *handle = PLAYER_GARBAGE;
	struct api_event ev;
	const struct task *t = NULL;

	for (int i = 0; i < ntasks && !t; i++)
		if (task[i].mask)
			t = &task[i];
	if (!t || !(t->mask & NCCL_KERNEL_LAUNCH) || m->player->scn->release < 28)
		return;
	memset(&ev, 0xa5, sizeof(ev));
	ev.descr.type = NCCL_KERNEL_LAUNCH;
	ev.descr.parentObj = t->group_api;
	ev.descr.rank = 0;
	ev.descr.kernelLaunch.stream = stream_of(m->world);
	api_start(&m->player->api, m->context, &handle, &ev);
	if (handle)
		api_stop(&m->player->api, handle);
}

static int capture(struct app *app, const struct plan_step *step, int ntasks)
{
	struct captured *c = malloc(sizeof(*c) + ntasks * sizeof(*c->task));

	if (!c)
		return -ENOMEM;
	c->next = app->captured;
	c->graph = step->graph;
	c->part = step->part;
	c->ntasks = ntasks;
	memcpy(c->task, app->launch, ntasks * sizeof(*c->task));
	app->captured = c;
	return 0;
}

/* One kernel: the tasks of a rank and communicator, gathered in app->launch. */
static int launch_kernel(struct app *app, const struct plan_step *step, int ntasks)
{
	struct task *t = app->launch;

	pace_wait(&app->player->pace, t->side.launched);
	report_launch(t, ntasks);
	if (step->kind != PLAN_CAPTURE) {
		prepare_death(app, t);
		hook_run(t, ntasks, false);
		return 0;
	}
	if (!hook_has_proxy_work(t, ntasks))
		hook_run(t, ntasks, true);
	return capture(app, step, ntasks);
}

/* Gather and launch what task[first] begins, if it is the first of its launch. */
static int launch_from(struct app *app, const struct plan_step *step, int first, int world)
{
	struct member *m = app->task[first].member;
	int n = 0;

	for (int i = 0; i < app->ntasks; i++) {
		struct task *t = &app->task[i];

		if (t->member != m || m->world != world || t->hidden || !t->side.moves)
			continue;
		if (!n && i != first)
			return 0;
		app->launch[n++] = *t;
	}
	if (!n)
		return 0;
	n = launch_kernel(app, step, n) < 0 ? -ENOMEM : n;
	for (int i = 0, k = 0; i < app->ntasks && n > 0; i++)	/* the slots live on */
		if (app->task[i].member == m && !app->task[i].hidden && app->task[i].side.moves)
			app->task[i].handle = app->launch[k++].handle;
	return n < 0 ? n : 0;
}

static int launch_all(struct app *app, const struct plan_step *step)
{
	bool reverse = app->player->scn->reverse;
	int r = 0;

	for (int k = 0; k < app->count; k++) {
		int w = app->first + (reverse ? app->count - 1 - k : k);

		for (int i = 0; i < app->ntasks && !r; i++) {
			if (app->task[i].op.spec->ce && app->task[i].member->world == w)
				ce_run(&app->task[i]);
			else
				r = launch_from(app, step, i, w);
		}
	}
	return r;
}

static void end_group(struct app *app)
{
	if (app->group_open && app->group_api)
		api_stop(&app->player->api, app->group_api);
	app->group_open = false;
	app->group_api = NULL;
}

/* ---- after the launches ---- */

static void await_death(struct app *app)
{
	for (int i = 0; i < app->ntasks; i++) {
		if (!hook_kills_us(&app->task[i]))
			continue;
		if (!app->task[i].hidden)	/* the proxy dies for all of us */
			pace_hold(&app->player->pace, INT64_MAX);
		pace_wait(&app->player->pace, app->task[i].op.cut_ns);
		kill(getpid(), SIGKILL);
	}
}

/* ncclCommAbort: what is open stays open, and the communicator is gone. */
static void abort_comms(struct app *app)
{
	for (int i = 0; i < app->ntasks; i++) {
		const struct sim_fault *f = app->task[i].op.fault;
		struct member *m = app->task[i].member;

		if (!f || f->kind != FAULT_ABORT || m->aborted)
			continue;
		pace_wait(&app->player->pace, app->task[i].op.cut_ns);
		proxy_free(m->proxy);
		m->proxy = NULL;
		m->aborted = true;
		if (m->context)
			api_finalize(&app->player->api, m->context);
	}
}

static int play_launch(struct app *app, const struct plan_step *step)
{
	int r = 0;

	app->ntasks = 0;
	for (int w = app->first; w < app->first + app->count && !r; w++)
		r = call_rank(app, step, w);
	if (r || !app->ntasks)
		return r;
	if (app->group_open && app->group_api)
		api_state(&app->player->api, app->group_api, NCCL_GROUP_API_END_START, NULL, 0);
	r = launch_all(app, step);
	end_group(app);
	await_death(app);
	abort_comms(app);
	return r;
}

/* The same side in this step as a captured task has; NULL if it is gone. */
static const struct plan_op *same_op(const struct plan_step *step, const struct task *t,
				     const struct plan_side **sidep)
{
	for (int i = 0; i < step->nops; i++) {
		const struct plan_op *op = &step->op[i];

		for (int s = 0; op->spec == t->op.spec && op->comm == t->op.comm &&
				s < op->nsides; s++) {
			*sidep = &op->side[s];
			if ((*sidep)->rank == t->side.rank && (*sidep)->func == t->side.func &&
			    (*sidep)->peer == t->side.peer)
				return op;
		}
	}
	return NULL;
}

static int replay_captured(struct app *app, const struct plan_step *step, struct captured *c)
{
	const struct plan_side *side;
	const struct plan_op *op;

	for (int i = 0; i < c->ntasks; i++) {
		op = same_op(step, &c->task[i], &side);
		if (!op)
			return 0;
		if (side->enqueued == PLAN_NEVER)
			return 1;
		c->task[i].op = *op;
		c->task[i].side = *side;
	}
	pace_wait(&app->player->pace, c->task->side.enqueued);
	if (!hook_has_proxy_work(c->task, c->ntasks))
		return 0;
	prepare_death(app, c->task);
	return hook_replay(app->player->hook, c->task, c->ntasks);
}

static int play_replay(struct app *app, const struct plan_step *step)
{
	int r = 0;

	for (struct captured *c = app->captured; c && !r; c = c->next)
		if (c->graph == step->graph && c->part == step->part)
			r = replay_captured(app, step, c);
	return r;
}

static int play_sync(struct app *app, const struct plan_step *step)
{
	struct player *p = app->player;

	(void)step;
	if (p->hook)
		hook_drain(p->hook);
	for (int i = 0; i < p->nmembers; i++)
		if (is_mine(app, p->member[i].world) && !p->member[i].aborted)
			proxy_drain(p->member[i].proxy);
	if (plan_host_ns(app->plan, app->first) != PLAN_NEVER)
		pace_wait(&p->pace, plan_host_ns(app->plan, app->first));
	return 0;
}

static int play_end(struct app *app, const struct plan_step *step)
{
	int64_t end = 0;

	play_sync(app, step);
	for (int w = app->first; w < app->first + app->count; w++)
		if (plan_gpu_ns(app->plan, w) > end)
			end = plan_gpu_ns(app->plan, w);
	if (end == PLAN_NEVER)
		return 1;
	pace_wait(&app->player->pace, end);
	return 0;
}

static int play(struct app *app)
{
	static int (*const play_step[])(struct app *, const struct plan_step *) = {
		[PLAN_LAUNCH] = play_launch,
		[PLAN_CAPTURE] = play_launch,
		[PLAN_REPLAY] = play_replay,
		[PLAN_SYNC] = play_sync,
		[PLAN_END] = play_end,
	};
	const struct plan_step *step;
	int r;

	do {
		r = plan_next(app->plan, &step);
		if (!r)
			r = play_step[step->kind](app, step);
		if (!r && plan_host_ns(app->plan, app->first) == PLAN_NEVER)
			r = 1;
	} while (!r && step->kind != PLAN_END && !pace_stopped(&app->player->pace));
	return r;
}

int app_run(const struct app_range *range)
{
	struct app app = { .player = range->player, .first = range->first,
			   .count = range->count };
	int r = plan_new(&app.plan, range->player->scn);

	if (!r)
		r = play(&app);
	plan_free(app.plan);
	free(app.task);
	free(app.launch);
	while (app.captured) {
		struct captured *c = app.captured;

		app.captured = c->next;
		free(c);
	}
	return r;
}
