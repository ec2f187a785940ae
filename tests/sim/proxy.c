/* SPDX-License-Identifier: Apache-2.0 */
/* The progress thread: sleep, take what was posted, play what is due. */
#include "tests/sim/proxy.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/sim/proxy_play.h"
#include "tests/sim/pxn.h"
#include "tests/sim/work.h"

#define MAX_BRACKET	16		/* launches taken in one Append bracket */
#define LOOK_NS		200000		/* how often a foreign box is looked at */
#define OLD_FLIPS	8		/* Idle and Active at each turn, up to 2.26 */

struct job {
	struct job *next;
	void *context;			/* the issuer's */
	int pid;
	bool foreign;
	int ntasks;
	struct task task[];
};

struct proxy {
	struct member *member;
	pthread_t thread;
	pthread_mutex_t mutex;
	pthread_cond_t changed;
	struct job *first, **last;
	bool leaving, resting;		/* resting: all is played as far as it goes */

	/* the thread's own */
	struct work work;
	struct work_sub *all;		/* every sub ever made */
	struct work_sub *spare;		/* those to use again, handles and all */
	int open;			/* subs under way, those that hang included */
	int64_t busy_ns;		/* the connection is free of earlier operations */
	bool active;
};

bool proxy_has_net(const struct task *task)
{
	return task->side.moves && task->side.peer != task->side.rank &&
	       (work_net_peer(task, true) >= 0 || work_net_peer(task, false) >= 0);
}

/* ---- the posting side ---- */

static struct job *copy_job(const struct task *task, int ntasks)
{
	struct job *job = calloc(1, sizeof(*job) + ntasks * sizeof(*task));

	if (!job)
		return NULL;
	job->ntasks = ntasks;
	job->context = task->member->context;
	job->pid = getpid();
	memcpy(job->task, task, ntasks * sizeof(*task));
	return job;
}

/* Sends that the next local rank carries out go to its box. */
static void post_foreign(struct member *m, const struct task *task, int ntasks)
{
	int executor = work_executor(m->player->scn, m->comm, m->rank);
	struct pxn_message message = { .context = m->context, .pid = getpid(),
				       .issuer = m->rank };

	for (int i = 0; i < ntasks && executor != m->rank && m->player->pxn; i++) {
		if (task[i].hidden || !proxy_has_net(&task[i]) ||
		    work_net_peer(&task[i], true) < 0)
			continue;
		message.task = task[i];
		pxn_put(m->player->pxn, m->comm, executor, &message);
	}
}

void proxy_post(struct proxy *proxy, const struct task *task, int ntasks)
{
	struct job *job;

	if (!hook_has_proxy_work(task, ntasks) && !hook_kills_us(task))
		return;
	post_foreign(proxy->member, task, ntasks);
	job = copy_job(task, ntasks);
	if (!job)
		return;
	pthread_mutex_lock(&proxy->mutex);
	*proxy->last = job;
	proxy->last = &job->next;
	proxy->resting = false;
	pthread_cond_broadcast(&proxy->changed);
	pthread_mutex_unlock(&proxy->mutex);
}

void proxy_drain(struct proxy *proxy)
{
	pthread_mutex_lock(&proxy->mutex);
	while (!proxy->resting)
		pthread_cond_wait(&proxy->changed, &proxy->mutex);
	pthread_mutex_unlock(&proxy->mutex);
}

/* ---- taking work ---- */

static struct work_sub *alloc_sub(void *arg)
{
	struct proxy *p = arg;
	struct work_sub *sub = p->spare;

	p->open++;
	if (sub) {
		p->spare = sub->next;
		return sub;
	}
	sub = calloc(1, sizeof(*sub));
	if (sub) {
		sub->older = p->all;
		p->all = sub;
	}
	return sub;
}

static void free_sub(struct proxy *p, struct work_sub *sub)
{
	sub->next = p->spare;
	p->spare = sub;
	p->open--;
}

/* One task's subs of one channel: their events begin now, their actions are planned. */
static int append_channel(struct proxy *p, const struct job *job, const struct task *task,
			  int channel, int64_t *donep, int64_t *joint,
			  struct work_sub **joined, int *njoined)
{
	struct work_sub *sub[3];
	int n = work_subs(task, channel, job->foreign, sub, alloc_sub, p);

	for (int i = 0; i < n; i++) {
		int64_t done;

		sub[i]->context = job->context;
		sub[i]->pid = job->pid;
		if (sub[i]->kind != WORK_KERNEL_CH && p->member->player->scn->release > 26)
			proxy_play_op_start(p->member, sub[i]);
		work_plan(&p->work, task, sub[i], p->busy_ns, &done);
		if (sub[i]->kind == WORK_KERNEL_CH)
			continue;
		if (done > *donep)
			*donep = done;
		if (sub[i]->joint_stop && *njoined < 2 * 64) {
			*joint = done > *joint ? done : *joint;
			joined[(*njoined)++] = sub[i];
			continue;
		}
		work_add(&p->work, &(struct work_action){ .at = done, .verb = WORK_OP_STOP,
							  .sub = sub[i], .last = true });
	}
	return n;
}

/* Whether two tasks are the send and the receive of one round of the p2p schedule. */
static bool share_round(const struct task *send, const struct task *recv)
{
	int n = send->op.comm->nranks;

	return send->side.func == FUNC_SEND && recv->side.func == FUNC_RECV &&
	       (send->side.peer - send->side.rank + n) % n ==
	       (recv->side.rank - recv->side.peer + n) % n;
}

/*
 * All channels of a task, or of the two of one round: on each channel the
 * receive comes first.  The ops of a shared connection stop together.
 */
static int append_tasks(struct proxy *p, const struct job *job, const struct task *task,
			int ntasks, int64_t *donep)
{
	struct work_sub *joined[2 * 64];
	int64_t joint = 0;
	int n = 0, njoined = 0;

	for (int c = 0; c < task->op.nchannels; c++)
		for (int i = ntasks - 1; i >= 0 && !task->hidden; i--)
			n += append_channel(p, job, &task[i], c, donep, &joint, joined, &njoined);
	for (int i = 0; i < njoined; i++)
		work_add(&p->work, &(struct work_action){ .at = joint, .verb = WORK_OP_STOP,
							  .sub = joined[i], .last = true });
	return n;
}

static int append_job(struct proxy *p, const struct job *job)
{
	int64_t done = p->busy_ns;
	int n = 0, k;

	for (int i = 0; i < job->ntasks; i += k) {
		const struct task *t = &job->task[i];

		k = i + 1 < job->ntasks && share_round(t, t + 1) &&
		    t->op.nchannels == t[1].op.nchannels ? 2 : 1;
		n += append_tasks(p, job, t, k, &done);
	}
	for (int i = 0; i < job->ntasks; i++)
		if (hook_kills_us(&job->task[i]) && !job->foreign) {
			work_add(&p->work, &(struct work_action){
				.at = job->task[i].op.cut_ns, .verb = WORK_KILL });
			break;
		}
	p->busy_ns = done;
	return n;
}

static struct job *take_job(struct proxy *p)
{
	struct job *job = p->first;

	if (!job)
		return NULL;
	p->first = job->next;
	if (!p->first)
		p->last = &p->first;
	return job;
}

/* A foreign send, made into a job that looks like ours but for its identity. */
static struct job *take_foreign(struct proxy *p)
{
	struct member *m = p->member;
	struct pxn_message message;
	struct job *job;

	if (!m->player->pxn || !m->comm->pxn ||
	    !pxn_take(m->player->pxn, m->comm, m->rank, &message))
		return NULL;
	message.task.member = &(struct member){ .player = m->player, .comm = m->comm,
						.rank = message.issuer };
	job = copy_job(&message.task, 1);
	if (!job)
		return NULL;
	job->context = message.context;
	job->pid = message.pid;
	job->foreign = true;
	return job;
}

/* The Append bracket around jobs, the first of which is given. */
static void append(struct proxy *p, struct job *job)
{
	struct member *m = p->member, issuer;
	void *slot;
	int n = 0;

	proxy_play_ctrl_open(m, &slot, NCCL_CTRL_APPEND);
	for (int i = 0; job; i++) {
		if (job->foreign) {
			issuer = (struct member){ .player = m->player, .comm = m->comm,
						  .rank = job->task->side.rank };
			job->task->member = &issuer;
		}
		n += append_job(p, job);
		free(job);
		job = NULL;
		if (i + 1 < MAX_BRACKET) {
			pthread_mutex_lock(&p->mutex);
			job = take_job(p);
			pthread_mutex_unlock(&p->mutex);
		}
	}
	work_sort(&p->work);
	proxy_play_ctrl_close(m, &slot, NCCL_CTRL_APPEND_END, n);
}

/* ---- the loop ---- */

static bool has_actions(const struct proxy *p)
{
	return p->work.first < p->work.nactions;
}

static void flip(struct proxy *p, bool active)
{
	int times = p->member->player->scn->release <= 26 ? OLD_FLIPS : 1;

	if (p->active == active)
		return;
	p->active = active;
	for (int i = 0; i < times; i++)
		proxy_play_ctrl(p->member, active ? NCCL_CTRL_ACTIVE : NCCL_CTRL_IDLE);
}

/* One turn: everything that is due at the time of the next action. */
static void turn(struct proxy *p)
{
	int64_t now = p->work.action[p->work.first].at;

	while (has_actions(p) && p->work.action[p->work.first].at == now) {
		struct work_action *a = &p->work.action[p->work.first++];

		proxy_play_action(p->member, a);
		if (a->last)
			free_sub(p, a->sub);
	}
	flip(p, true);
	if (!has_actions(p))
		flip(p, false);
}

/* Wait for the next action or for work; called and returns with the mutex held. */
static void wait_for(struct proxy *p, const struct timespec *deadline)
{
	struct timespec soon;
	struct pace wall = { 1, 0, NULL };

	if (p->member->comm->pxn) {	/* nobody wakes us for a foreign send */
		soon = pace_deadline(&wall, pace_now() + LOOK_NS);
		if (!deadline || deadline->tv_sec > soon.tv_sec ||
		    (deadline->tv_sec == soon.tv_sec && deadline->tv_nsec > soon.tv_nsec))
			deadline = &soon;
	}
	if (deadline)
		pthread_cond_timedwait(&p->changed, &p->mutex, deadline);
	else
		pthread_cond_wait(&p->changed, &p->mutex);
}

/*
 * Nothing to do: report sleep and wake-up, as NCCL does under this very lock; not
 * while operations hang, since NCCL goes on polling those.
 * Answers a foreign job, if that was what woke us.
 */
static struct job *sleep_until_work(struct proxy *p)
{
	struct job *foreign = take_foreign(p);
	void *slot = NULL;

	if (foreign || p->first)
		return foreign;
	if (!p->open)
		proxy_play_ctrl_open(p->member, &slot, NCCL_CTRL_SLEEP);
	while (!p->first && !p->leaving && !foreign) {
		p->resting = true;
		pthread_cond_broadcast(&p->changed);
		wait_for(p, NULL);
		foreign = take_foreign(p);
	}
	p->resting = false;
	proxy_play_ctrl_close(p->member, &slot, NCCL_CTRL_WAKEUP, 0);
	return foreign;
}

/* The next job, once there is one or an action is due; NULL: an action is, or the end. */
static struct job *next_job(struct proxy *p)
{
	const struct pace *pace = &p->member->player->pace;
	struct job *job;

	for (;;) {
		job = take_job(p);
		if (!job)
			job = take_foreign(p);
		if (!job && !has_actions(p) && !p->leaving)
			job = sleep_until_work(p);
		if (job || (has_actions(p) && pace_due(pace, p->work.action[p->work.first].at)))
			return job;
		if (has_actions(p)) {
			struct timespec ts = pace_deadline(pace, p->work.action[p->work.first].at);

			wait_for(p, &ts);
		} else if (p->leaving && !p->first) {
			return NULL;
		}
	}
}

static void *proxy_main(void *arg)
{
	struct proxy *p = arg;

	p->active = true;
	flip(p, false);
	pthread_mutex_lock(&p->mutex);
	for (;;) {
		struct job *job = next_job(p);

		if (!job && !has_actions(p))
			break;
		pthread_mutex_unlock(&p->mutex);
		if (job)
			append(p, job);
		else
			turn(p);
		pthread_mutex_lock(&p->mutex);
	}
	p->resting = true;
	pthread_cond_broadcast(&p->changed);
	pthread_mutex_unlock(&p->mutex);
	return NULL;
}

int proxy_new(struct proxy **proxyp, struct member *member)
{
	struct proxy *p = calloc(1, sizeof(*p));
	pthread_condattr_t attr;
	int r;

	if (!p)
		return -ENOMEM;
	p->member = member;
	p->last = &p->first;
	pthread_mutex_init(&p->mutex, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&p->changed, &attr);
	pthread_condattr_destroy(&attr);
	r = -pthread_create(&p->thread, NULL, proxy_main, p);
	if (r) {
		free(p);
		return r;
	}
	proxy_drain(p);
	*proxyp = p;
	return 0;
}

void proxy_free(struct proxy *proxy)
{
	if (!proxy)
		return;
	pthread_mutex_lock(&proxy->mutex);
	proxy->leaving = true;
	pthread_cond_broadcast(&proxy->changed);
	pthread_mutex_unlock(&proxy->mutex);
	pthread_join(proxy->thread, NULL);
	while (proxy->all) {
		struct work_sub *sub = proxy->all;

		proxy->all = sub->older;
		free(sub);
	}
	work_deinit(&proxy->work);
	free(proxy);
}
