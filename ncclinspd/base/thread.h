/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NCCLINSPD_BASE_THREAD_H
#define NCCLINSPD_BASE_THREAD_H

/* Threads beside the loop's, and waits that end by CLOCK_MONOTONIC. */

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

typedef void *thread_fn(void *arg);

/* All signals stay with the main thread.  0, or why there is no thread. */
int thread_begin(pthread_t *thread, thread_fn *run, void *arg);

/* Makes a condition for thread_wait(). */
void thread_condition(pthread_cond_t *cond);

/* Called under the lock.  False: it is `until_ns`, CLOCK_MONOTONIC; UINT64_MAX: never. */
bool thread_wait(pthread_cond_t *cond, pthread_mutex_t *lock, uint64_t until_ns);

#endif
