/* SPDX-License-Identifier: Apache-2.0 */
/* API calls, group ends and launches of one application thread. */
#include "tests/sim/app.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/sim/calls.h"
#include "tests/sim/ce.h"
#include "tests/sim/meet.h"
#include "tests/sim/proxy.h"

/* One captured kernel launch. */
struct captured {
	struct captured *next;
	int graph, part, ntasks;
	struct task task[];
};

struct app {
	struct player *player;
	int first, count;
	struct plan *plan;
	struct calls calls;
	struct task *task;		/* of the current step, in call order */
	int ntasks, room;
	struct task *launch;		/* those of one launch */
	struct captured *captured;
};

static bool rank_is_ours(const struct app *app, int world)
{
	return world >= app->first && world < app->first + app->count;
}

/* ---- a step's tasks ---- */

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
			    .hidden = plan_is_hidden(app->player->scn, op->spec) };
	*tp = t;
	return 0;
}

/* What RAS has for all processes comes to each with this call. */
static void take_ras(struct player *player, const struct task *t)
{
	for (int i = 0; i < player->scn->nras; i++) {
		const struct sim_ras *ras = &player->scn->ras[i];

		if (ras->family == t->op.comm->family && ras->op == t->op.index)
			__atomic_store_n(&player->mask, ras->mask, __ATOMIC_RELAXED);
	}
}

static void task_call(struct app *app, struct task *t, bool captured)
{
	player_wait(app->player, t->side.enqueued);
	take_ras(app->player, t);
	t->mask = player_mask(app->player);
	proxy_note_mask(t->member, t->side.enqueued, t->mask);
	asked_note(app->player->asked_fd, t->member, t->op.index, t->mask);
	calls_make(&app->calls, t, captured);
}

/* The groups that end after one statement of the program and begin before the next. */
static void pass_groups(struct app *app, const struct sim_op *from, const struct sim_op *to)
{
	if (from == to)
		return;
	for (int i = 0; from && i < from->closes; i++)
		calls_leave_group(&app->calls);
	app->calls.depth += to ? to->opens : 0;
}

/* The calls of one rank.  1: the thread stands still in one of them. */
static int call_rank(struct app *app, const struct plan_step *step, int world)
{
	const struct sim_op *spec = NULL;
	struct task *t;
	int r;

	for (int i = 0; i < step->nops; i++) {
		const struct plan_op *op = &step->op[i];

		pass_groups(app, spec, op->spec);
		spec = op->spec;
		for (int s = 0; s < op->nsides; s++) {
			if (op->comm->world[op->side[s].rank] != world)
				continue;
			if (op->side[s].elsewhere)
				continue;
			if (op->side[s].enqueued == PLAN_NEVER)
				return 1;
			r = add_task(app, op, &op->side[s], &t);
			if (r)
				return r;
			task_call(app, t, step->kind == PLAN_CAPTURE);
		}
	}
	pass_groups(app, spec, NULL);
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
			proxy_drain(&p->member[i]);
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
	ev.descr.kernelLaunch.stream = calls_stream(m->world);
	api_start(&m->player->api, m->context, &handle, &ev);
	if (handle)
		api_stop(&m->player->api, handle);
}

static int tasks_capture(struct app *app, const struct plan_step *step, int ntasks)
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
static int tasks_launch_kernel(struct app *app, const struct plan_step *step, int ntasks)
{
	struct task *t = app->launch;

	player_wait(app->player, t->side.launched);
	__atomic_store_n(&t->member->capturing, step->kind == PLAN_CAPTURE, __ATOMIC_RELAXED);
	report_launch(t, ntasks);
	if (step->kind != PLAN_CAPTURE) {
		prepare_death(app, t);
		hook_run(t, ntasks, false);
		return 0;
	}
	if (!hook_has_proxy_work(t, ntasks))
		hook_run(t, ntasks, true);
	return tasks_capture(app, step, ntasks);
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
	n = tasks_launch_kernel(app, step, n) < 0 ? -ENOMEM : n;
	for (int i = 0, k = 0; i < app->ntasks && n > 0; i++)	/* the slots live on */
		if (app->task[i].member == m && !app->task[i].hidden && app->task[i].side.moves)
			app->task[i].handle = app->launch[k++].handle;
	return n < 0 ? n : 0;
}

static int step_launch_all(struct app *app, const struct plan_step *step)
{
	bool forward = app->player->scn->forward;
	int r = 0;

	for (int k = 0; k < app->count; k++) {
		int w = app->first + (forward ? k : app->count - 1 - k);

		for (int i = 0; i < app->ntasks && !r; i++) {
			if (app->task[i].op.spec->ce && app->task[i].member->world == w)
				ce_run(&app->task[i]);
			else
				r = launch_from(app, step, i, w);
		}
	}
	return r;
}

/* A nonblocking communicator's group is launched by a thread of its own. */
struct launch {
	pthread_t thread;
	struct app *app;
	const struct plan_step *step;
	int result;
};

static void *launch_main(void *arg)
{
	struct launch *l = arg;

	l->result = step_launch_all(l->app, l->step);
	return NULL;
}

/* The application does nothing until it hears that all is launched. */
static int launch_apart(struct app *app, const struct plan_step *step)
{
	struct launch l = { .app = app, .step = step };
	int r = -pthread_create(&l.thread, NULL, launch_main, &l);

	if (r)
		return r;
	pthread_join(l.thread, NULL);
	return l.result;
}

static bool app_is_nonblocking(const struct app *app)
{
	for (int i = 0; i < app->ntasks; i++)
		if (app->task[i].op.comm->nonblocking)
			return true;
	return false;
}

/* ---- after the launches ---- */

static void await_death(struct app *app)
{
	for (int i = 0; i < app->ntasks; i++) {
		if (!hook_kills_us(&app->task[i]))
			continue;
		if (!app->task[i].hidden)	/* the proxy dies for all of us */
			pace_hold(&app->player->pace, INT64_MAX);
		player_wait(app->player, app->task[i].op.cut_ns);
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
		player_wait(app->player, app->task[i].op.cut_ns);
		proxy_leave(m);
		m->aborted = true;
		if (m->context)
			api_finalize(&app->player->api, m->context);
	}
}

static int play_launch(struct app *app, const struct plan_step *step)
{
	bool apart;
	int r = 0;

	app->ntasks = 0;
	app->calls.depth = step->grouped || app->count > 1;
	for (int w = app->first; w < app->first + app->count && !r; w++)
		r = call_rank(app, step, w);
	if (r || !app->ntasks)
		return r;
	calls_close(&app->calls);
	apart = app_is_nonblocking(app);
	if (apart)	/* the event of the call ends with the call */
		calls_stop(&app->calls);
	r = apart ? launch_apart(app, step) : step_launch_all(app, step);
	calls_stop(&app->calls);
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
	player_wait(app->player, c->task->side.enqueued);
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

/* Nobody waits for a progress thread that gets no CPU, but at the very end. */
static void drain_proxies(struct app *app, bool all)
{
	struct player *p = app->player;

	for (int i = 0; i < p->nmembers; i++) {
		struct member *m = &p->member[i];

		if (rank_is_ours(app, m->world) && !m->aborted &&
		    (all || !scenario_has_fault(p->scn, FAULT_STARVE, m->world)))
			proxy_drain(m);
	}
}

/* How late the latest launch so far was, of the ranks of this thread. */
static int64_t app_late_ns(const struct app *app)
{
	const struct player *p = app->player;
	int64_t late = p->lag_ns;

	for (int i = 0; i < p->nmembers; i++)
		if (rank_is_ours(app, p->member[i].world) && p->member[i].late_ns > late)
			late = p->member[i].late_ns;
	return late;
}

/* A host that waits for a GPU goes on as late as that is. */
static void host_fall_behind(struct player *p, int64_t late_ns)
{
	int64_t lag = p->lag_ns;

	while (late_ns > lag && !atomic_compare_exchange_weak(&p->lag_ns, &lag, late_ns))
		;
}

static int play_sync(struct app *app, const struct plan_step *step)
{
	struct player *p = app->player;

	if (p->hook)
		hook_drain(p->hook);
	drain_proxies(app, step->kind == PLAN_END);
	if (plan_host_ns(app->plan, app->first) == PLAN_NEVER)
		return 0;
	host_fall_behind(p, meet_wait(p->meet, app->first, step->number, app_late_ns(app),
				      &p->pace));
	player_wait(p, plan_host_ns(app->plan, app->first));
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
	player_wait(app->player, end);
	return 0;
}

static int app_play(struct app *app)
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
			   .count = range->count, .calls = { .player = range->player } };
	int r = plan_new(&app.plan, range->player->scn);

	if (!r)
		r = app_play(&app);
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
