/* SPDX-License-Identifier: Apache-2.0 */
/* Signals for the main thread alone, and a clock that nobody sets, are easily forgotten. */
#include "ncclinspd/base/thread.h"

#include <errno.h>
#include <signal.h>
#include <time.h>

#define SECOND_NS	UINT64_C(1000000000)

int thread_begin(pthread_t *thread, thread_fn *run, void *arg)
{
	sigset_t all, before;
	int r;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	r = pthread_create(thread, NULL, run, arg);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return -r;
}

void thread_condition(pthread_cond_t *cond)
{
	pthread_condattr_t attr;

	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(cond, &attr);
	pthread_condattr_destroy(&attr);
}

bool thread_wait(pthread_cond_t *cond, pthread_mutex_t *lock, uint64_t until_ns)
{
	struct timespec until = { .tv_sec = (time_t)(until_ns / SECOND_NS),
				  .tv_nsec = (long)(until_ns % SECOND_NS) };

	if (until_ns == UINT64_MAX)
		return !pthread_cond_wait(cond, lock);
	return pthread_cond_timedwait(cond, lock, &until) != ETIMEDOUT;
}
