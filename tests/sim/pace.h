/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_SIM_PACE_H
#define TESTS_SIM_PACE_H

/* Model time against wall time. */

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>

struct pace {
	double factor;		/* model ns per wall ns; 0: do not wait at all */
	int64_t base_ns;	/* CLOCK_MONOTONIC of model time 0 */
	const volatile sig_atomic_t *stop;	/* not 0: wait for nothing more; may be NULL */
};

int64_t pace_now(void);				/* CLOCK_MONOTONIC, ns */
int64_t pace_real_now(void);			/* CLOCK_REALTIME, ns */
bool pace_due(const struct pace *pace, int64_t model_ns);
void pace_wait(const struct pace *pace, int64_t model_ns);
bool pace_stopped(const struct pace *pace);
void pace_hold(const struct pace *pace, int64_t ns);	/* wall time; INT64_MAX: for ever */
int64_t pace_late(const struct pace *pace, int64_t model_ns);	/* since then, model ns; or 0 */
void pace_sleep(int64_t ns);			/* wall time, come what may */
int64_t pace_wall(const struct pace *pace, int64_t model_ns);	/* CLOCK_MONOTONIC; factor not 0 */
struct timespec pace_deadline(const struct pace *pace, int64_t model_ns);

#endif
