/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The calls are made one at a time, in their order: each recorded thread has one
 * here, which is handed its share, call after call, until another's turn comes.
 *
 * On a busy machine a call comes late.  So do all that follow then, and a kernel
 * runs later by as much as its launch was late: who looks at both clocks must not
 * find one that began before.
 */
#include "tests/sim/replay.h"

#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdlib.h>
#include <unistd.h>

#include "tests/sim/pace.h"
#include "tests/sim/player.h"

/* A thread, from its first call to its last. */
struct replay_worker {
	struct replay *replay;
	pthread_t thread;
	sem_t go;
	int first, end;			/* the calls that it is to make now */
	int last;			/* of all its calls */
	bool runs;
	int api_mask;			/* as of its last call of NCCL's API */
	int64_t launch_late_ns;		/* as of its last launch */
};

struct replay {
	const struct recording *rec;
	const struct api *api;
	struct pace pace;
	int mask;
	void **context;			/* by recorded context */
	void **handle;			/* by recorded event */
	int *event_mask;		/* what NCCL asks for below it */
	int64_t late_ns;		/* so far, in the recording's time */
	int64_t *event_late_ns;		/* of operations and kernels: when they were launched */
	struct replay_worker *worker;	/* by recorded thread */
	sem_t done;
	int started;
	int64_t hold_ns;		/* still to wait before the first finalize */
};

/* What of the mask brings an event about. */
static int wanted_by(uint64_t type)
{
	static const struct { uint64_t type; int bits; } wants[] = {
		{ NCCL_GROUP,		PLAYER_WANTS_GROUP },
		{ NCCL_COLL,		PLAYER_WANTS_COLL },
		{ NCCL_P2P,		PLAYER_WANTS_P2P },
		{ NCCL_PROXY_OP,	PLAYER_WANTS_OP },
		{ NCCL_PROXY_STEP,	PLAYER_WANTS_STEP },
		{ NCCL_GROUP_API,	PLAYER_WANTS_GROUP_API },
		{ NCCL_COLL_API,	PLAYER_WANTS_COLL_API },
		{ NCCL_P2P_API,		PLAYER_WANTS_P2P_API },
		{ NCCL_CE_COLL,		PLAYER_CE },
	};

	for (unsigned int i = 0; i < sizeof(wants) / sizeof(wants[0]); i++)
		if (wants[i].type == type)
			return wants[i].bits;
	return (int)type;
}

/*
 * NCCL looks at the mask when its API is called, and keeps that for all that comes
 * of the call; only ProxyCtrl looks for itself.
 */
static int mask_for(struct replay *r, const struct recording_call *call)
{
	const struct recording_event *e = &r->rec->event[call->event];
	struct replay_worker *w = &r->worker[call->thread];
	int now = __atomic_load_n(&r->mask, __ATOMIC_RELAXED);

	if (e->descr.type & (NCCL_GROUP_API | NCCL_COLL_API | NCCL_P2P_API))
		w->api_mask = now;
	else if (e->parent >= 0)
		return r->event_mask[e->parent];
	else if (e->descr.type & (NCCL_GROUP | NCCL_KERNEL_LAUNCH) && w->api_mask >= 0)
		return w->api_mask;
	return now;
}

static void *handle_of(const struct replay *r, int event, uint64_t foreign)
{
	return event < 0 ? (void *)foreign : r->handle[event];
}

/* ---- calls ---- */

static void replay_init(struct replay *r, const struct recording_call *call)
{
	const struct recording_context *c = &r->rec->context[call->context];
	struct api_comm comm = { .id = c->comm_id, .name = c->name, .nnodes = c->nnodes,
				 .nranks = c->nranks, .rank = c->rank };

	api_init(r->api, &r->context[call->context], &r->mask, &comm);
}

static void replay_finalize(struct replay *r, const struct recording_call *call)
{
	pace_sleep(r->hold_ns);
	r->hold_ns = 0;
	if (call->context < 0 || !r->context[call->context])
		return;
	api_finalize(r->api, r->context[call->context]);
	r->context[call->context] = NULL;
}

static void *context_of(const struct replay *r, const struct recording_event *e)
{
	return e->context < 0 ? (void *)e->foreign_context : r->context[e->context];
}

/* NCCL begins a group's operations, all of one launch, after that. */
static void note_launch(struct replay *r, const struct recording_call *call)
{
	const struct recording_event *e = &r->rec->event[call->event];
	struct replay_worker *w = &r->worker[call->thread];

	if (e->descr.type & (NCCL_GROUP | NCCL_KERNEL_LAUNCH))
		w->launch_late_ns = r->late_ns;
	r->event_late_ns[call->event] = e->descr.type == NCCL_KERNEL_CH && e->parent >= 0 ?
					r->event_late_ns[e->parent] : w->launch_late_ns;
}

/* A stamp of the GPU; 0 is none. */
static void stamp_put_off(const struct replay *r, int event, uint64_t *stamp)
{
	if (*stamp)
		*stamp += (uint64_t)r->event_late_ns[event];
}

static void replay_start_event(struct replay *r, const struct recording_call *call)
{
	const struct recording_event *e = &r->rec->event[call->event];
	struct api_event ev = { .descr = e->descr, .comm_id = e->comm_hash,
				.traffic_bytes = e->traffic_bytes };
	struct nccl_descr_v7 *d = &ev.descr;

	note_launch(r, call);
	r->event_mask[call->event] = mask_for(r, call);
	if (!(r->event_mask[call->event] & wanted_by(d->type)))
		return;
	d->parentObj = handle_of(r, e->parent, (uint64_t)d->parentObj);
	if (d->type == NCCL_COLL)
		d->coll.parentGroup = handle_of(r, e->group, (uint64_t)d->coll.parentGroup);
	if (d->type == NCCL_P2P)
		d->p2p.parentGroup = handle_of(r, e->group, (uint64_t)d->p2p.parentGroup);
	if (d->type == NCCL_PROXY_OP && d->proxyOp.pid == r->rec->pid)
		d->proxyOp.pid = getpid();
	if (d->type == NCCL_KERNEL_CH)
		stamp_put_off(r, call->event, &d->kernelCh.pTimer);
	api_start(r->api, context_of(r, e), &r->handle[call->event], &ev);
	r->started++;
}

/* Of an event that the plugin refused there is nothing to tell it. */
static bool call_is_refused(const struct replay *r, const struct recording_call *call)
{
	return call->event >= 0 && !r->handle[call->event];
}

/* NCCL up to 2.26 has arguments with every state of an operation. */
static bool call_has_args(const struct recording_call *call)
{
	return call->has_args || call->state <= NCCL_OP_RECV_DONE;
}

static void replay_state(struct replay *r, const struct recording_call *call)
{
	union nccl_args_v4 args = call->args;

	if (call->event >= 0 && r->rec->event[call->event].descr.type == NCCL_KERNEL_CH)
		stamp_put_off(r, call->event, &args.kernelCh.pTimer);
	if (!call_is_refused(r, call))
		api_state(r->api, handle_of(r, call->event, call->foreign), call->state,
			  call_has_args(call) ? &args : NULL, call->steps);
}

static void replay_stop_event(struct replay *r, const struct recording_call *call)
{
	if (!call_is_refused(r, call))
		api_stop(r->api, handle_of(r, call->event, call->foreign));
}

static void wait_for_time(struct replay *r, int64_t at_ns)
{
	int64_t late_ns;

	pace_wait(&r->pace, at_ns);
	if (r->pace.factor == 0)
		return;
	late_ns = pace_now() - pace_wall(&r->pace, at_ns);
	if (late_ns <= 0)
		return;
	r->pace.base_ns += late_ns;
	r->late_ns += (int64_t)((double)late_ns * r->pace.factor);
}

static void replay_make_call(struct replay *r, const struct recording_call *call)
{
	static void (*const verbs[])(struct replay *, const struct recording_call *) = {
		[RECORDING_INIT] = replay_init, [RECORDING_START] = replay_start_event,
		[RECORDING_STATE] = replay_state, [RECORDING_STOP] = replay_stop_event,
		[RECORDING_FINALIZE] = replay_finalize,
	};

	wait_for_time(r, call->at_ns);
	verbs[call->verb](r, call);
}

/* ---- threads ---- */

static void semaphore_wait(sem_t *sem)
{
	while (sem_wait(sem) < 0 && errno == EINTR)
		;
}

static void *worker_main(void *arg)
{
	struct replay_worker *w = arg;
	bool more = true;

	while (more) {
		semaphore_wait(&w->go);
		for (int i = w->first; i < w->end; i++)
			replay_make_call(w->replay, &w->replay->rec->call[i]);
		more = w->end <= w->last;
		sem_post(&w->replay->done);
	}
	return NULL;
}

static void prepare_workers(struct replay *r)
{
	const struct recording *rec = r->rec;

	for (int i = 0; i < rec->nthreads; i++) {
		r->worker[i].replay = r;
		r->worker[i].api_mask = -1;
	}
	for (int i = 0; i < rec->ncalls; i++)
		r->worker[rec->call[i].thread].last = i;
}

static int begin_worker(struct replay_worker *w)
{
	if (w->runs)
		return 0;
	sem_init(&w->go, 0, 0);
	w->runs = true;
	return -pthread_create(&w->thread, NULL, worker_main, w);
}

static void end_worker(struct replay_worker *w)
{
	pthread_join(w->thread, NULL);
	sem_destroy(&w->go);
	w->runs = false;
}

/* Calls of one thread that come one after another are handed over together. */
static int replay_make_calls(struct replay *r)
{
	const struct recording_call *call = r->rec->call;

	for (int i = 0; i < r->rec->ncalls; ) {
		struct replay_worker *w = &r->worker[call[i].thread];
		int e = begin_worker(w);

		if (e)
			return e;
		w->first = i;
		while (i < r->rec->ncalls && call[i].thread == call[w->first].thread)
			i++;
		w->end = i;
		sem_post(&w->go);
		semaphore_wait(&r->done);
		if (w->end > w->last)
			end_worker(w);
	}
	return 0;
}

/* Contexts that the recording left open end with it. */
static void finalize_rest(struct replay *r)
{
	pace_sleep(r->hold_ns);
	for (int i = 0; i < r->rec->ncontexts; i++)
		if (r->context[i])
			api_finalize(r->api, r->context[i]);
}

int replay_run(const struct recording *rec, const struct api *api, double speed, int64_t hold_ns)
{
	struct replay r = { .rec = rec, .api = api, .hold_ns = hold_ns,
			    .pace = { speed, pace_now(), NULL } };
	int e = -ENOMEM;

	r.worker = calloc(rec->nthreads + 1, sizeof(*r.worker));
	r.context = calloc(rec->ncontexts + 1, sizeof(*r.context));
	r.handle = calloc(rec->nevents + 1, sizeof(*r.handle));
	r.event_mask = calloc(rec->nevents + 1, sizeof(*r.event_mask));
	r.event_late_ns = calloc(rec->nevents + 1, sizeof(*r.event_late_ns));
	if (r.worker && r.context && r.handle && r.event_mask && r.event_late_ns) {
		sem_init(&r.done, 0, 0);
		prepare_workers(&r);
		e = replay_make_calls(&r);
		finalize_rest(&r);
		sem_destroy(&r.done);
	}
	free(r.worker);
	free(r.context);
	free(r.handle);
	free(r.event_mask);
	free(r.event_late_ns);
	return e ? e : r.started;
}
