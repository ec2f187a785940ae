/* SPDX-License-Identifier: Apache-2.0 */
/* The progress thread: sleep, take what was posted, play what is due. */
#include "tests/sim/proxy.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/sim/compete.h"
#include "tests/sim/proxy_play.h"
#include "tests/sim/proxy_state.h"
#include "tests/sim/pxn.h"

#define MAX_BRACKET	16		/* launches taken in one Append bracket */
#define LOOK_NS		200000		/* how often a foreign box is looked at */
#define OLD_FLIPS	8		/* Idle and Active at each turn, up to 2.26 */

bool proxy_has_net(const struct task *task)
{
	return wire_any(task, false);
}

/* ---- the posting side ---- */

/* From 2.31 on channels are not this thread's to poll. */
static bool member_is_split(const struct member *m)
{
	return m->player->scn->release >= 31;
}

static struct job *copy_job(const struct task *task, int ntasks)
{
	struct job *job = calloc(1, sizeof(*job) + ntasks * sizeof(*task));

	if (!job)
		return NULL;
	job->ntasks = ntasks;
	job->conn = task->member->conn;
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
		if (task[i].hidden || !wire_any(&task[i], true))
			continue;
		message.task = task[i];
		pxn_put(m->player->pxn, m->comm, executor, &message);
	}
}

static void post_job(struct proxy *proxy, const struct task *task, int ntasks, bool counted)
{
	struct job *job = copy_job(task, ntasks);

	if (!job)
		return;
	job->counted = counted;
	memcpy(job->count, job->conn->count, sizeof(job->count));
	pthread_mutex_lock(&proxy->mutex);
	*proxy->last = job;
	proxy->last = &job->next;
	proxy->resting = false;
	pthread_cond_broadcast(&proxy->changed);
	pthread_mutex_unlock(&proxy->mutex);
}

void proxy_post(struct member *m, const struct task *task, int ntasks, bool counted)
{
	post_foreign(m, task, ntasks);
	pthread_mutex_lock(&m->conn->mutex);
	if (hook_has_proxy_work(task, ntasks) || hook_kills_us(task))
		post_job(m->proxy, task, ntasks, counted);
	if (m->profiler)
		post_job(m->profiler, task, ntasks, counted);
	for (int i = 0; i < ntasks; i += proxy_work_size(task, i, ntasks))
		proxy_count_work(m->conn->count, &task[i], counted);
	pthread_mutex_unlock(&m->conn->mutex);
}

void proxy_note_mask(struct member *m, int64_t enqueued, int mask)
{
	if (m->conn && m->conn->ring)
		ring_note_mask(m->conn->ring, enqueued, mask & NCCL_KERNEL_CH);
}

void proxy_note_launch(struct member *m, int64_t launched, int64_t late_ns)
{
	if (m->conn && m->conn->ring)
		ring_note_launch(m->conn->ring, launched, late_ns);
}

int proxy_waits(const struct member *m)
{
	return m->conn ? m->conn->waits : 0;
}

static void proxy_await_rest(struct proxy *proxy)
{
	pthread_mutex_lock(&proxy->mutex);
	while (!proxy->resting)
		pthread_cond_wait(&proxy->changed, &proxy->mutex);
	pthread_mutex_unlock(&proxy->mutex);
}

void proxy_drain(struct member *m)
{
	proxy_await_rest(m->proxy);
	if (m->profiler)
		proxy_await_rest(m->profiler);
}

/* ---- taking work ---- */

static struct job *proxy_take_job(struct proxy *p)
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
static struct job *proxy_take_foreign(struct proxy *p)
{
	struct member *m = p->member;
	struct pxn_message message;
	struct job *job;

	if (p->profiler || !m->player->pxn || !m->comm->pxn ||
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
	job->conn = m->conn;
	return job;
}

/* ProxyCtrl is of the proxy alone. */
static void ctrl_open(struct proxy *p, void **slot, int state)
{
	*slot = NULL;
	if (!p->profiler)
		proxy_play_ctrl_open(p->member, slot, state);
}

/* The Append bracket around jobs, the first of which is given. */
static void job_append(struct proxy *p, struct job *job)
{
	struct member *m = p->member, issuer;
	void *slot;
	int n = 0;

	ctrl_open(p, &slot, NCCL_CTRL_APPEND);
	for (int i = 0; job; i++) {
		if (job->foreign) {
			issuer = (struct member){ .player = m->player, .comm = m->comm,
						  .rank = job->task->side.rank };
			job->task->member = &issuer;
		}
		n += proxy_append_job(p, job);
		free(job);
		job = NULL;
		if (i + 1 < MAX_BRACKET) {
			pthread_mutex_lock(&p->mutex);
			job = proxy_take_job(p);
			pthread_mutex_unlock(&p->mutex);
		}
	}
	work_sort(&p->work);
	proxy_play_ctrl_close(m, &slot, NCCL_CTRL_APPEND_END, n);
}

/* ---- the loop ---- */

static bool proxy_has_actions(const struct proxy *p)
{
	return p->work.first < p->work.nactions;
}

static void proxy_flip(struct proxy *p, bool active)
{
	int times = p->member->player->scn->release <= 26 ? OLD_FLIPS : 1;

	if (p->active == active || p->profiler)
		return;
	p->active = active;
	for (int i = 0; i < times; i++)
		proxy_play_ctrl(p->member, active ? NCCL_CTRL_ACTIVE : NCCL_CTRL_IDLE);
}

/* Whether the next pass of the loop finds nothing to do; without pace it never waits. */
static bool runs_dry(const struct proxy *p, int64_t now)
{
	if (!proxy_has_actions(p))
		return true;
	return p->member->player->pace.factor != 0 &&
	       p->work.action[p->work.first].at > now + WORK_LOOP_NS;
}

/* One turn: everything that is due at the time of the next action. */
static void proxy_turn(struct proxy *p)
{
	int64_t now = p->work.action[p->work.first].at;

	while (proxy_has_actions(p) && p->work.action[p->work.first].at == now) {
		struct work_action *a = &p->work.action[p->work.first++];

		proxy_play_action(p->member, a);
		if (a->last)
			proxy_free_sub(p, a->sub);
	}
	proxy_flip(p, true);
	if (runs_dry(p, now))
		proxy_flip(p, false);
}

/* Wait for the next action or for work; called and returns with the mutex held. */
static void proxy_wait_for(struct proxy *p, const struct timespec *deadline)
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
	struct job *foreign = proxy_take_foreign(p);
	void *slot = NULL;

	if (foreign || p->first)
		return foreign;
	if (!p->open)
		ctrl_open(p, &slot, NCCL_CTRL_SLEEP);
	while (!p->first && !p->leaving && !foreign) {
		p->resting = true;
		pthread_cond_broadcast(&p->changed);
		proxy_wait_for(p, NULL);
		foreign = proxy_take_foreign(p);
	}
	p->resting = false;
	proxy_play_ctrl_close(p->member, &slot, NCCL_CTRL_WAKEUP, 0);
	return foreign;
}

/* Until when the first job finds the thread away: late if its launch was; 0: it is here. */
static int64_t away_until(const struct proxy *p)
{
	const struct task *task = p->first ? p->first->task : NULL;

	return task && task->side.away ? task->side.away + task->late_ns : 0;
}

/* The first job, unless it finds the thread away: then all that is due meanwhile waits. */
static struct job *take_due_job(struct proxy *p)
{
	int64_t away = away_until(p);

	if (!away)
		return proxy_take_job(p);
	work_delay(&p->work, p->first->task->side.launched + p->first->task->late_ns, away);
	return pace_due(&p->member->player->pace, away) ? proxy_take_job(p) : NULL;
}

/* Whether something is to come at a known time. */
static bool next_time(const struct proxy *p, int64_t *at)
{
	if (!p->first && !proxy_has_actions(p))
		return false;
	*at = p->first ? away_until(p) : PLAN_NEVER;
	if (proxy_has_actions(p) && p->work.action[p->work.first].at < *at)
		*at = p->work.action[p->work.first].at;
	return true;
}

/* The first job found the thread away because others have its CPU, and nothing else is due. */
static bool is_crowded_out(const struct proxy *p)
{
	return away_until(p) && p->first->task->side.busy && p->member->player->pace.factor != 0;
}

/* Called and returns with the mutex held. */
static void stay_crowded_out(struct proxy *p, const struct timespec *deadline)
{
	pthread_mutex_unlock(&p->mutex);
	compete_until(deadline);
	pthread_mutex_lock(&p->mutex);
}

/* A communicator that is destroyed leaves its kernels' events without a stop. */
static bool drops_work(const struct proxy *p)
{
	return p->leaving && p->profiler;
}

/* The next job, once there is one or an action is due; NULL: an action is, or the end. */
static struct job *next_job(struct proxy *p)
{
	const struct pace *pace = &p->member->player->pace;
	struct job *job;
	int64_t at;

	for (;;) {
		if (drops_work(p))
			return NULL;
		job = take_due_job(p);
		if (!job)
			job = proxy_take_foreign(p);
		if (!job && !proxy_has_actions(p) && !p->leaving)
			job = sleep_until_work(p);
		if (job ||
		    (proxy_has_actions(p) && pace_due(pace, p->work.action[p->work.first].at)))
			return job;
		if (next_time(p, &at)) {
			struct timespec ts = pace_deadline(pace, at);

			if (is_crowded_out(p))
				stay_crowded_out(p, &ts);
			else
				proxy_wait_for(p, &ts);
		} else if (p->leaving) {
			return NULL;
		}
	}
}

static void *proxy_main(void *arg)
{
	struct proxy *p = arg;

	p->active = true;
	proxy_flip(p, false);
	pthread_mutex_lock(&p->mutex);
	for (;;) {
		struct job *job = next_job(p);

		if (!job && (!proxy_has_actions(p) || drops_work(p)))
			break;
		pthread_mutex_unlock(&p->mutex);
		if (job)
			job_append(p, job);
		else
			proxy_turn(p);
		pthread_mutex_lock(&p->mutex);
	}
	p->resting = true;
	pthread_cond_broadcast(&p->changed);
	pthread_mutex_unlock(&p->mutex);
	return NULL;
}

static int connect_member(struct member *m)
{
	int r = 0;

	m->conn = calloc(1, sizeof(*m->conn));
	if (!m->conn)
		return -ENOMEM;
	pthread_mutex_init(&m->conn->mutex, NULL);
	if (m->player->scn->ring_stamps)
		r = ring_new(&m->conn->ring, m->player->scn, m->comm, m->rank);
	if (m->conn->ring && m->player->pace.factor == 0)
		ring_note_launch(m->conn->ring, PLAN_NEVER, 0);
	return r;
}

void proxy_disconnect(struct member *m)
{
	if (m->conn)
		ring_free(m->conn->ring);
	free(m->conn);
}

static int proxy_start_thread(struct proxy **pp, struct member *member, bool profiler)
{
	struct proxy *p = calloc(1, sizeof(*p));
	pthread_condattr_t attr;
	int r;

	if (!p)
		return -ENOMEM;
	p->member = member;
	p->profiler = profiler;
	p->users = 1;
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
	proxy_await_rest(p);
	*pp = p;
	return 0;
}

int proxy_new(struct member *member)
{
	int r = connect_member(member);

	if (!r)
		r = proxy_start_thread(&member->proxy, member, false);
	if (!r && member_is_split(member))
		r = proxy_start_thread(&member->profiler, member, true);
	return r;
}

int proxy_share(struct member *member, const struct member *owner)
{
	int r = connect_member(member);

	if (r)
		return r;
	member->proxy = owner->proxy;
	member->proxy->users++;
	member->profiler = owner->profiler;
	if (member->profiler)
		member->profiler->users++;
	return 0;
}

static void proxy_end_thread(struct proxy *proxy)
{
	pthread_mutex_lock(&proxy->mutex);
	proxy->leaving = true;
	pthread_cond_broadcast(&proxy->changed);
	pthread_mutex_unlock(&proxy->mutex);
	pthread_join(proxy->thread, NULL);
}

static void proxy_unuse(struct proxy *proxy)
{
	if (!proxy || --proxy->users)
		return;
	proxy_end_thread(proxy);
	while (proxy->all) {
		struct work_sub *sub = proxy->all;

		proxy->all = sub->older;
		free(sub);
	}
	work_deinit(&proxy->work);
	free(proxy);
}

void proxy_leave(struct member *member)
{
	proxy_unuse(member->profiler);
	proxy_unuse(member->proxy);
	member->proxy = member->profiler = NULL;
}
