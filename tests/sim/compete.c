/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/sim/compete.h"

#include <pthread.h>
#include <sched.h>

#define COMPETITORS	3

static void compete_spin_until(const struct timespec *deadline)
{
	struct timespec now;

	do {
		for (volatile int i = 0; i < 1000; i++)
			continue;
		clock_gettime(CLOCK_MONOTONIC, &now);
	} while (now.tv_sec < deadline->tv_sec ||
		 (now.tv_sec == deadline->tv_sec && now.tv_nsec < deadline->tv_nsec));
}

static void *compete_spin(void *deadline)
{
	compete_spin_until(deadline);
	return NULL;
}

void compete_until(const struct timespec *deadline)
{
	struct timespec until = *deadline;
	pthread_t thread[COMPETITORS];
	cpu_set_t all, one;
	int n = 0, cpu = sched_getcpu();

	CPU_ZERO(&one);
	if (cpu >= 0 && pthread_getaffinity_np(pthread_self(), sizeof(all), &all) == 0) {
		CPU_SET(cpu, &one);
		pthread_setaffinity_np(pthread_self(), sizeof(one), &one);
	}
	/* a new thread keeps to the CPUs of its maker */
	while (n < COMPETITORS && pthread_create(&thread[n], NULL, compete_spin, &until) == 0)
		n++;
	compete_spin_until(&until);
	while (n--)
		pthread_join(thread[n], NULL);
	if (CPU_COUNT(&one))
		pthread_setaffinity_np(pthread_self(), sizeof(all), &all);
}
