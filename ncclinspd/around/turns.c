/* SPDX-License-Identifier: Apache-2.0 */
/* The lock is held for copies alone, never during a turn, so that the loop waits for nothing. */
#include "ncclinspd/around/turns.h"

#include <errno.h>
#include <stdlib.h>
#include <time.h>

#include "ncclinspd/base/thread.h"
#include "shmring/clock.h"
#include "util/log.h"

#define SECOND_NS	UINT64_C(1000000000)
#define HANGS_NS	(5 * SECOND_NS)
#define CLOSE_NS	SECOND_NS

struct turns {
	struct turns_work work;
	void *state;
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	bool stop, left, finished;
	uint64_t from_ns;	/* begin of the present turn; 0: none */
};

void turns_lock(struct turns *t)
{
	if (t)
		pthread_mutex_lock(&t->lock);
}

void turns_unlock(struct turns *t)
{
	if (t)
		pthread_mutex_unlock(&t->lock);
}

void turns_wake(struct turns *t)
{
	if (t)
		pthread_cond_signal(&t->changed);
}

uint64_t turns_busy_ns(const struct turns *t, uint64_t now_ns)
{
	return t && t->from_ns && now_ns > t->from_ns ? now_ns - t->from_ns : 0;
}

static void turns_release(struct turns *t)
{
	pthread_cond_destroy(&t->changed);
	pthread_mutex_destroy(&t->lock);
	free(t);
}

/* Under the lock.  The time from one turn to the next, or until something is wanted. */
static void turns_rest(struct turns *t, uint64_t until_ns)
{
	while (!t->stop && thread_wait(&t->changed, &t->lock, until_ns))
		;
	while (!t->stop && !t->work.prepare(t->state))
		pthread_cond_wait(&t->changed, &t->lock);
}

static void *turns_run(void *arg)
{
	struct turns *t = arg;
	bool left;

	pthread_mutex_lock(&t->lock);
	turns_rest(t, 0);
	while (!t->stop) {
		t->from_ns = clock_ns(CLOCK_MONOTONIC);
		pthread_mutex_unlock(&t->lock);
		t->work.turn(t->state);
		pthread_mutex_lock(&t->lock);
		t->work.tell(t->state);
		t->from_ns = 0;
		turns_rest(t, clock_ns(CLOCK_MONOTONIC) + t->work.interval_ns);
	}
	pthread_mutex_unlock(&t->lock);
	t->work.end(t->state);
	pthread_mutex_lock(&t->lock);
	t->finished = true;
	left = t->left;
	pthread_cond_signal(&t->changed);
	pthread_mutex_unlock(&t->lock);
	if (left)
		turns_release(t);
	return NULL;
}

int turns_start(struct turns **out, const struct turns_work *work, void *state)
{
	struct turns *t = calloc(1, sizeof(*t));
	int r;

	if (!t)
		return -ENOMEM;
	t->work = *work;
	t->state = state;
	pthread_mutex_init(&t->lock, NULL);
	thread_condition(&t->changed);
	*out = t;
	r = thread_begin(&t->thread, turns_run, t);
	if (r < 0) {
		*out = NULL;
		turns_release(t);
	}
	return r;
}

/* Under the lock.  False: the thread is left to itself, with what it needs. */
static bool turns_have_finished(struct turns *t)
{
	uint64_t now_ns = clock_ns(CLOCK_MONOTONIC);
	uint64_t until_ns = now_ns + (turns_busy_ns(t, now_ns) > HANGS_NS ? 0 : CLOSE_NS);

	while (!t->finished && thread_wait(&t->changed, &t->lock, until_ns))
		;
	t->left = !t->finished;
	return t->finished;
}

void turns_stop(struct turns *t)
{
	const char *name;
	pthread_t thread;
	bool finished;

	if (!t)
		return;
	name = t->work.name;
	thread = t->thread;
	pthread_mutex_lock(&t->lock);
	t->stop = true;
	pthread_cond_signal(&t->changed);
	finished = turns_have_finished(t);
	pthread_mutex_unlock(&t->lock);
	if (!finished) {
		log_say(LOG_WARN, "source does not answer, its thread is abandoned what=\"%s\"",
			name);
		pthread_detach(thread);
		return;
	}
	pthread_join(thread, NULL);
	turns_release(t);
}
