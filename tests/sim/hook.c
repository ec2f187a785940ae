/* SPDX-License-Identifier: Apache-2.0 */
/* The launch hook and the thread that runs it for graph replays. */
#include "tests/sim/hook.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "tests/sim/proxy.h"
#include "tests/sim/wire.h"

struct callback {
	struct callback *next;
	int ntasks;
	struct task task[];
};

struct hook {
	struct player *player;
	pthread_t thread;
	pthread_mutex_t mutex;
	pthread_cond_t changed;
	struct callback *first, **last;
	bool busy, leaving;
};

static bool task_is_coll(const struct task *t)
{
	return t->side.peer < 0;
}

static void *buffer_of(const struct task *t, bool receive)
{
	return (void *)(0x7f0000000000ull + ((uint64_t)t->member->world << 32) +
			((uint64_t)receive << 31));
}

/* In 2.27 and before a child needs its parent's handle. */
static bool task_may_start(const struct task *t, int wants, void *parent)
{
	return (t->mask & wants) && (parent || t->member->player->scn->release >= 28);
}

/*
 * Few threads for few bytes.  A thread is worth 64 bytes, or 8 with flags; Simple
 * has a warp more, which synchronises.
 */
static int warps_of(const struct task *t)
{
	const char *proto = names_get(NAMES_PROTO, t->op.spec->proto)->word;
	bool simple = !strcmp(proto, "simple");
	int threads = !strcmp(proto, "ll128") ? 640 : 512;
	uint64_t worth = simple ? 64 : 8;

	while (threads % 128 == 0 && t->op.bytes < worth * threads * t->op.nchannels)
		threads /= 2;
	return threads / 32 + simple;
}

/* The kernel's name; its algorithm is what comes behind the function's. */
static const char *variant_of(const struct task *t)
{
	static const struct { enum sim_func func; const char *name; } names[] = {
		{ FUNC_ALL_REDUCE, "AllReduce_RSxLD_AGxST" }, { FUNC_ALL_GATHER, "AllGather_ST" },
	};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (names[i].func == t->side.func)
			return names[i].name;
	return "ReduceScatter_LD";
}

static void task_start_coll(struct task *t)
{
	struct member *m = t->member;
	const struct names_func *func = names_func(t->side.func);
	int size = names_get(NAMES_DATATYPE, t->side.datatype)->size;
	struct api_event ev = { .comm_id = m->comm->id, .traffic_bytes = t->op.bytes };
	struct nccl_descr_v7 *d = &ev.descr;

	if (!task_may_start(t, PLAYER_WANTS_COLL, t->group))
		return;
	memset(d, 0xa5, sizeof(*d));
	d->type = NCCL_COLL;
	d->parentObj = t->api;
	d->rank = m->rank;
	d->coll = (struct nccl_coll_v7){
		.seqNumber = m->seq[t->side.func], .func = func->name,
		.sendBuff = buffer_of(t, false), .recvBuff = buffer_of(t, true),
		.count = t->side.count * (func->bytes ? size : 1),
		.root = t->side.root,
		.datatype = func->bytes ? "ncclInt8" :
			    names_get(NAMES_DATATYPE, t->side.datatype)->name,
		.nChannels = wire_reduces(t) ? 0 : t->op.nchannels, .nWarps = warps_of(t),
		.algo = names_get(NAMES_ALGO, t->op.spec->algo)->name,
		.proto = names_get(NAMES_PROTO, t->op.spec->proto)->name,
		.parentGroup = t->group, .userTag = t->op.spec->tag };
	if (t->op.spec->symmetric) {
		d->coll.isSymColl = true;
		d->coll.kernelVariant = variant_of(t);
		d->coll.algo = strchr(d->coll.kernelVariant, '_') + 1;
		d->coll.proto = "";
	}
	api_start(&m->player->api, m->context, &t->handle, &ev);
}

static void task_start_p2p(struct task *t)
{
	struct member *m = t->member;
	struct api_event ev = { .comm_id = m->comm->id };
	struct nccl_descr_v7 *d = &ev.descr;

	if (!t->side.moves || !task_may_start(t, PLAYER_WANTS_P2P, t->group))
		return;
	memset(d, 0xa5, sizeof(*d));
	d->type = NCCL_P2P;
	d->parentObj = t->api;
	d->rank = m->rank;
	d->p2p = (struct nccl_p2p_v7){
		.func = names_func(t->side.func)->name,
		.buff = buffer_of(t, t->side.func == FUNC_RECV),
		.datatype = names_get(NAMES_DATATYPE, t->side.datatype)->name,
		.count = t->side.count, .peer = t->side.peer,
		.nChannels = t->op.nchannels, .parentGroup = t->group,
		.userTag = t->op.spec->tag };
	api_start(&m->player->api, m->context, &t->handle, &ev);
}

static void task_stop(struct task *t)
{
	int wants = task_is_coll(t) ? PLAYER_WANTS_COLL : PLAYER_WANTS_P2P;

	if (t->side.moves && task_may_start(t, wants, t->group) && t->handle)
		api_stop(&t->member->player->api, t->handle);
}

/* Tasks in launch order: collectives, then rounds of p2p, each send before receive. */
static int launch_rank(const struct task *t)
{
	return task_is_coll(t) ? -1 : t->op.round * 2 + (t->side.func == FUNC_RECV);
}

static int tasks_by_launch_order(const void *a, const void *b)
{
	const struct task *x = a, *y = b;
	int d = launch_rank(x) - launch_rank(y);

	return d ? d : x->op.index > y->op.index ? 1 : x->op.index < y->op.index ? -1 : 0;
}

static bool tasks_are_sorted(const struct task *task, int ntasks)
{
	for (int i = 1; i < ntasks; i++)
		if (tasks_by_launch_order(&task[i - 1], &task[i]) > 0)
			return false;
	return true;
}

/* The mask of a launch is that of its first task that has one. */
static int launch_mask(const struct task *task, int ntasks)
{
	for (int i = 0; i < ntasks; i++)
		if (task[i].mask)
			return task[i].mask;
	return 0;
}

static void start_group(struct task *task, int ntasks, void **slot)
{
	struct member *m = task->member;
	struct api_event ev;

	memset(&ev, 0xa5, sizeof(ev));
	ev.descr.type = NCCL_GROUP;
	ev.descr.parentObj = NULL;
	ev.descr.rank = 0;
	api_start(&m->player->api, m->context, slot, &ev);
	for (int i = 0; i < ntasks; i++)
		task[i].group = *slot;
}

/* Captured plans count only what KernelCh makes NCCL count. */
static void count_tasks(struct task *task, int ntasks, bool replay)
{
	for (int i = 0; i < ntasks; i++)
		if (task_is_coll(&task[i]) && (!replay || (task[i].mask & NCCL_KERNEL_CH)))
			task[i].member->seq[task[i].side.func]++;
}

/*
 * Whether the host counts the kernel's works.  NCCL asks what its last launch was
 * when it should ask what this one is.
 */
static bool counts_works(struct member *m, int mask, bool replay)
{
	return !replay || ((mask & NCCL_KERNEL_CH) &&
			   __atomic_load_n(&m->capturing, __ATOMIC_RELAXED));
}

/*
 * No kernel runs before it was launched, so where this machine is slower than the model
 * a GPU's kernels are told to have run later by as much: from then on, since kernels run
 * one after another.
 */
static void note_lateness(struct task *task, int ntasks)
{
	struct member *m = task->member;
	const struct pace *pace = &m->player->pace;
	int64_t late = pace_late(pace, task->side.launched);

	if (late > m->late_ns)
		m->late_ns = late;
	for (int i = 0; i < ntasks; i++)
		task[i].late_ns = m->late_ns;
	proxy_note_launch(m, task->side.launched, m->late_ns);
}

void hook_run(struct task *task, int ntasks, bool replay)
{
	struct member *m = task->member;
	bool grouped = launch_mask(task, ntasks) & PLAYER_WANTS_GROUP;
	void **slot = &m->group[replay];

	note_lateness(task, ntasks);
	if (grouped)
		start_group(task, ntasks, slot);
	if (!tasks_are_sorted(task, ntasks))
		qsort(task, ntasks, sizeof(*task), tasks_by_launch_order);
	for (int i = 0; i < ntasks; i++) {
		if (task_is_coll(&task[i]))
			task_start_coll(&task[i]);
		else
			task_start_p2p(&task[i]);
		count_tasks(&task[i], 1, replay);
	}
	proxy_post(m, task, ntasks, counts_works(m, task->mask, replay));
	for (int i = 0; i < ntasks; i++)
		task_stop(&task[i]);
	if (grouped && *slot)
		api_stop(&m->player->api, *slot);
}

bool hook_has_proxy_work(const struct task *task, int ntasks)
{
	for (int i = 0; i < ntasks; i++)
		if ((task[i].mask & NCCL_KERNEL_CH) || proxy_has_net(&task[i]))
			return true;
	return false;
}

bool hook_kills_us(const struct task *task)
{
	const struct sim_fault *f = task->op.fault;

	return f && f->kind == FAULT_KILL && f->rank == task->member->player->process;
}

/* ---- the callback thread ---- */

static struct callback *hook_take(struct hook *h)
{
	struct callback *cb = h->first;

	if (!cb)
		return NULL;
	h->first = cb->next;
	if (!h->first)
		h->last = &h->first;
	return cb;
}

static void *callback_main(void *arg)
{
	struct hook *h = arg;
	struct callback *cb;

	pthread_mutex_lock(&h->mutex);
	for (;;) {
		cb = hook_take(h);
		if (!cb && h->leaving)
			break;
		h->busy = cb;
		if (!cb) {
			pthread_cond_broadcast(&h->changed);
			pthread_cond_wait(&h->changed, &h->mutex);
			continue;
		}
		pthread_mutex_unlock(&h->mutex);
		player_wait(h->player, cb->task->side.launched);
		hook_run(cb->task, cb->ntasks, true);
		free(cb);
		pthread_mutex_lock(&h->mutex);
	}
	pthread_mutex_unlock(&h->mutex);
	return NULL;
}

int hook_new(struct hook **hookp, struct player *player)
{
	struct hook *h = calloc(1, sizeof(*h));
	int r;

	if (!h)
		return -ENOMEM;
	h->player = player;
	h->last = &h->first;
	pthread_mutex_init(&h->mutex, NULL);
	pthread_cond_init(&h->changed, NULL);
	r = -pthread_create(&h->thread, NULL, callback_main, h);
	if (r)
		free(h);
	else
		*hookp = h;
	return r;
}

void hook_free(struct hook *hook)
{
	if (!hook)
		return;
	pthread_mutex_lock(&hook->mutex);
	hook->leaving = true;
	pthread_cond_broadcast(&hook->changed);
	pthread_mutex_unlock(&hook->mutex);
	pthread_join(hook->thread, NULL);
	free(hook);
}

int hook_replay(struct hook *hook, const struct task *task, int ntasks)
{
	struct callback *cb = malloc(sizeof(*cb) + ntasks * sizeof(*task));

	if (!cb)
		return -ENOMEM;
	cb->next = NULL;
	cb->ntasks = ntasks;
	memcpy(cb->task, task, ntasks * sizeof(*task));
	pthread_mutex_lock(&hook->mutex);
	*hook->last = cb;
	hook->last = &cb->next;
	hook->busy = true;
	pthread_cond_broadcast(&hook->changed);
	pthread_mutex_unlock(&hook->mutex);
	return 0;
}

void hook_drain(struct hook *hook)
{
	pthread_mutex_lock(&hook->mutex);
	while (hook->busy || hook->first)
		pthread_cond_wait(&hook->changed, &hook->mutex);
	pthread_mutex_unlock(&hook->mutex);
}
