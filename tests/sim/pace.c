/* SPDX-License-Identifier: Apache-2.0 */
/* The one place of the simulator where a clock is read. */
#include "tests/sim/pace.h"

#include <unistd.h>

#define SECOND	1000000000LL

int64_t pace_now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * SECOND + ts.tv_nsec;
}

static int64_t wall(const struct pace *pace, int64_t model_ns)
{
	return pace->base_ns + (int64_t)((double)model_ns / pace->factor);
}

static struct timespec to_timespec(int64_t ns)
{
	return (struct timespec){ .tv_sec = ns / SECOND, .tv_nsec = ns % SECOND };
}

bool pace_due(const struct pace *pace, int64_t model_ns)
{
	return pace->factor == 0 || pace_now() >= wall(pace, model_ns);
}

struct timespec pace_deadline(const struct pace *pace, int64_t model_ns)
{
	return to_timespec(wall(pace, model_ns));
}

void pace_wait(const struct pace *pace, int64_t model_ns)
{
	struct timespec ts;

	if (pace_due(pace, model_ns))
		return;
	ts = pace_deadline(pace, model_ns);
	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &ts, NULL))
		;
}

void pace_sleep(int64_t ns)
{
	struct timespec ts;

	if (ns == INT64_MAX) {
		for (;;)
			pause();
	}
	ts = to_timespec(pace_now() + ns);
	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &ts, NULL))
		;
}
