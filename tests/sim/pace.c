/* SPDX-License-Identifier: Apache-2.0 */
/* The one place of the simulator where a clock is read. */
#include "tests/sim/pace.h"

#define SECOND		1000000000LL
#define SLICE_NS	50000000

static int64_t clock_now(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return ts.tv_sec * SECOND + ts.tv_nsec;
}

int64_t pace_now(void)
{
	return clock_now(CLOCK_MONOTONIC);
}

int64_t pace_real_now(void)
{
	return clock_now(CLOCK_REALTIME);
}

int64_t pace_wall(const struct pace *pace, int64_t model_ns)
{
	return pace->base_ns + (int64_t)((double)model_ns / pace->factor);
}

static struct timespec to_timespec(int64_t ns)
{
	return (struct timespec){ .tv_sec = ns / SECOND, .tv_nsec = ns % SECOND };
}

bool pace_stopped(const struct pace *pace)
{
	return pace->stop && *pace->stop;
}

bool pace_due(const struct pace *pace, int64_t model_ns)
{
	return pace->factor == 0 || pace_stopped(pace) || pace_now() >= pace_wall(pace, model_ns);
}

struct timespec pace_deadline(const struct pace *pace, int64_t model_ns)
{
	return to_timespec(pace_wall(pace, model_ns));
}

static void clock_sleep_until(int64_t ns)
{
	struct timespec ts = to_timespec(ns);

	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &ts, NULL))
		;
}

/* In slices: a signal that asks to stop may reach another thread. */
static void sleep_in_slices(const struct pace *pace, int64_t until_ns)
{
	int64_t now = pace_now();

	while (now < until_ns && !pace_stopped(pace)) {
		clock_sleep_until(until_ns - now > SLICE_NS ? now + SLICE_NS : until_ns);
		now = pace_now();
	}
}

void pace_wait(const struct pace *pace, int64_t model_ns)
{
	if (!pace_due(pace, model_ns))
		sleep_in_slices(pace, pace_wall(pace, model_ns));
}

int64_t pace_late(const struct pace *pace, int64_t model_ns)
{
	int64_t late = pace->factor == 0 ? 0 : pace_now() - pace_wall(pace, model_ns);

	return late > 0 ? (int64_t)((double)late * pace->factor) : 0;
}

void pace_hold(const struct pace *pace, int64_t ns)
{
	sleep_in_slices(pace, ns == INT64_MAX ? ns : pace_now() + ns);
}

void pace_sleep(int64_t ns)
{
	clock_sleep_until(pace_now() + ns);
}
