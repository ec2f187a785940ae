/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls are numbered: each thread makes its own when their time has come and
 * all earlier ones, of whatever thread, have been made.
 */
#include "tests/sim/replay.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#include "tests/sim/pace.h"
#include "tests/sim/player.h"

struct replay {
	const struct recording *rec;
	const struct api *api;
	struct pace pace;
	int mask;
	void **context;			/* by recorded context */
	void **handle;			/* by recorded event */
	int started;
	pthread_mutex_t mutex;
	pthread_cond_t changed;
	int turn;			/* the call that is next */
	int64_t hold_ns;		/* still to wait before the first finalize */
};

struct replay_thread {
	struct replay *replay;
	pthread_t thread;
	int index;
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
	};

	for (unsigned int i = 0; i < sizeof(wants) / sizeof(wants[0]); i++)
		if (wants[i].type == type)
			return wants[i].bits;
	return (int)type;
}

static void do_init(struct replay *r, const struct recording_call *call)
{
	const struct recording_context *c = &r->rec->context[call->context];
	struct api_comm comm = { .id = c->comm_id, .name = c->name, .nnodes = 1,
				 .nranks = c->nranks, .rank = c->rank };

	api_init(r->api, &r->context[call->context], &r->mask, &comm);
}

static void do_finalize(struct replay *r, const struct recording_call *call)
{
	pace_sleep(r->hold_ns);
	r->hold_ns = 0;
	if (r->context[call->context])
		api_finalize(r->api, r->context[call->context]);
	r->context[call->context] = NULL;
}

static void *handle_of(const struct replay *r, int event)
{
	return event < 0 ? NULL : r->handle[event];
}

static void do_start(struct replay *r, const struct recording_call *call)
{
	const struct recording_event *e = &r->rec->event[call->event];
	struct api_event ev = { .descr = e->descr,
				.comm_id = r->rec->context[e->context].comm_id };

	if (!(__atomic_load_n(&r->mask, __ATOMIC_RELAXED) & wanted_by(e->descr.type)))
		return;
	ev.descr.parentObj = handle_of(r, e->parent);
	if (e->descr.type == NCCL_COLL)
		ev.descr.coll.parentGroup = handle_of(r, e->group);
	if (e->descr.type == NCCL_P2P)
		ev.descr.p2p.parentGroup = handle_of(r, e->group);
	api_start(r->api, r->context[e->context], &r->handle[call->event], &ev);
	r->started++;
}

static void do_state(struct replay *r, const struct recording_call *call)
{
	union nccl_args_v4 args = call->args;

	if (r->handle[call->event])
		api_state(r->api, r->handle[call->event], call->state,
			  call->has_args ? &args : NULL, 0);
}

static void do_stop(struct replay *r, const struct recording_call *call)
{
	if (r->handle[call->event])
		api_stop(r->api, r->handle[call->event]);
}

/* Only the thread whose turn it is touches what a call touches. */
static void make_call(struct replay *r, int i)
{
	static void (*const verbs[])(struct replay *, const struct recording_call *) = {
		[RECORDING_INIT] = do_init, [RECORDING_START] = do_start,
		[RECORDING_STATE] = do_state, [RECORDING_STOP] = do_stop,
		[RECORDING_FINALIZE] = do_finalize,
	};

	pace_wait(&r->pace, r->rec->call[i].at_ns);
	pthread_mutex_lock(&r->mutex);
	while (r->turn != i)
		pthread_cond_wait(&r->changed, &r->mutex);
	pthread_mutex_unlock(&r->mutex);
	verbs[r->rec->call[i].verb](r, &r->rec->call[i]);
	pthread_mutex_lock(&r->mutex);
	r->turn++;
	pthread_cond_broadcast(&r->changed);
	pthread_mutex_unlock(&r->mutex);
}

static void *thread_main(void *arg)
{
	struct replay_thread *t = arg;

	for (int i = 0; i < t->replay->rec->ncalls; i++)
		if (t->replay->rec->call[i].thread == t->index)
			make_call(t->replay, i);
	return NULL;
}

/* Contexts that the recording left open end with it. */
static void finalize_rest(struct replay *r)
{
	for (int i = 0; i < r->rec->ncontexts; i++)
		if (r->context[i])
			api_finalize(r->api, r->context[i]);
}

int replay_run(const struct recording *rec, const struct api *api, double speed, int64_t hold_ns)
{
	struct replay r = { .rec = rec, .api = api, .hold_ns = hold_ns,
			    .pace = { speed, pace_now(), NULL } };
	struct replay_thread *thread = calloc(rec->nthreads, sizeof(*thread));

	r.context = calloc(rec->ncontexts, sizeof(*r.context));
	r.handle = calloc(rec->nevents + 1, sizeof(*r.handle));
	if (!thread || !r.context || !r.handle) {
		free(thread);
		free(r.context);
		free(r.handle);
		return -ENOMEM;
	}
	pthread_mutex_init(&r.mutex, NULL);
	pthread_cond_init(&r.changed, NULL);
	for (int i = 0; i < rec->nthreads; i++) {
		thread[i] = (struct replay_thread){ .replay = &r, .index = i };
		if (pthread_create(&thread[i].thread, NULL, thread_main, &thread[i]))
			abort();
	}
	for (int i = 0; i < rec->nthreads; i++)
		pthread_join(thread[i].thread, NULL);
	finalize_rest(&r);
	free(thread);
	free(r.context);
	free(r.handle);
	return r.started;
}
