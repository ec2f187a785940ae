/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PLUGIN_FORKS_H
#define PLUGIN_FORKS_H

/* Forks of the job, for all that is loaded into it. */

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

/*
 * A child of a fork calls `forget` first, from now on: the thread that holds a lock may not be
 * there in it.  To be called before the lock is taken; twice, by two threads at once, does no harm.
 */
static inline void forks_watch(_Atomic bool *watched, void (*forget)(void))
{
	if (!atomic_load(watched))
		atomic_store(watched, pthread_atfork(NULL, NULL, forget) == 0);
}

#endif
