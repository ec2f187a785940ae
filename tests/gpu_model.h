/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_GPU_MODEL_H
#define TESTS_GPU_MODEL_H

/*
 * A GPU with a clock of its own, one kernel after another: when each truly ran, and
 * what the host gets to know of it.  Times are ns.
 */

#include <math.h>
#include <stdint.h>
#include <string.h>

#include "reader/time/gpuclock.h"

struct gpu_model {
	/* what it is like; may be changed at any time */
	double drift_ppm;
	int64_t offset_ns;
	uint64_t tick_ns;
	uint64_t period_ns;
	uint64_t run_ns;		/* of a kernel; at least, and as much again at most */
	uint64_t lead_ns, lead_mean_ns;	/* launch to start: at least, and exponential */
	uint64_t delay_ns, delay_mean_ns;	/* stamp to callback */
	uint64_t rare_ns, rare_every;	/* one callback in so many comes so much later */
	/* the kernel in hand */
	uint64_t start_ns, stop_ns;	/* true */
	struct gpuclock_sight sight;
	uint64_t seed;
};

static inline uint64_t gpu_model_random(struct gpu_model *m)
{
	m->seed = m->seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return m->seed >> 33;
}

static inline uint64_t gpu_model_exponential(struct gpu_model *m, uint64_t mean)
{
	double u = ((double)gpu_model_random(m) + 1) / 2147483649.0;

	return (uint64_t)(-log(u) * (double)mean);
}

static inline void gpu_model_init(struct gpu_model *m, uint64_t seed)
{
	*m = (struct gpu_model){
		.tick_ns = 32, .period_ns = 1000000, .run_ns = 100000,
		.lead_ns = 6000, .lead_mean_ns = 80000,
		.delay_ns = 2000, .delay_mean_ns = 15000,
		.rare_ns = 10000000, .rare_every = 1000,
		.start_ns = UINT64_C(9000000000000), .seed = seed,
	};
}

/* What the GPU's clock reads at a true time; its drift counts from 9000 s. */
static inline uint64_t gpu_model_stamp(const struct gpu_model *m, uint64_t ns)
{
	int64_t since = (int64_t)(ns - UINT64_C(9000000000000));
	uint64_t g = UINT64_C(1770000000000000000) + (uint64_t)(m->offset_ns + since +
				(int64_t)((double)since * m->drift_ppm / 1e6));

	return g / m->tick_ns * m->tick_ns;
}

static inline uint64_t gpu_model_delay(struct gpu_model *m)
{
	uint64_t delay = m->delay_ns + gpu_model_exponential(m, m->delay_mean_ns);

	if (m->rare_every && gpu_model_random(m) % m->rare_every == 0)
		delay += m->rare_ns;
	return delay;
}

/* The next kernel; its stop is told after its start, however late that was. */
static inline void gpu_model_next(struct gpu_model *m)
{
	struct gpuclock_sight *s = &m->sight;
	uint64_t told;

	m->start_ns += m->period_ns;
	m->stop_ns = m->start_ns + m->run_ns + gpu_model_random(m) % (m->run_ns + 1);
	s->launch_ns = m->start_ns - m->lead_ns - gpu_model_exponential(m, m->lead_mean_ns);
	s->gpu_start_ns = gpu_model_stamp(m, m->start_ns);
	s->gpu_stop_ns = gpu_model_stamp(m, m->stop_ns);
	s->start_ns = m->start_ns + gpu_model_delay(m);
	told = m->stop_ns > s->start_ns ? m->stop_ns : s->start_ns;
	s->stop_ns = told + gpu_model_delay(m);
}

#endif
