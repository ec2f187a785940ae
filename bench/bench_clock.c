/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How well a GPU's clock is known, by how late the host's callbacks come and how long
 * before its kernels the launches are: what is shown minus the truth, and how wide the
 * brackets are, after a second of kernels every ms.  docs/lab/measurements.md shows it.
 */
#include <stdlib.h>

#include "bench/figure.h"
#include "reader/time/gpuclock.h"
#include "tests/gpu_model.h"

#define KERNELS	60000
#define SKIP	1000

static const uint64_t delays_us[] = { 2, 5, 15, 50, 200 };
static const uint64_t leads_us[] = { 10, 80, 1000 };

static int delays_by_value(const void *left, const void *right)
{
	uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;

	return (a > b) - (a < b);
}

static double delays_percentile(uint64_t *of, int n, int percent)
{
	qsort(of, (size_t)n, sizeof(*of), delays_by_value);
	return (double)of[(n - 1) * percent / 100] / 1e3;
}

static void clock_run(uint64_t delay_us, uint64_t lead_us)
{
	static uint64_t error[KERNELS], width[KERNELS];
	struct gpuclock *c;
	struct gpu_model m;
	int n = 0, outside = 0;

	gpu_model_init(&m, 1);
	m.drift_ppm = 37;
	m.delay_mean_ns = delay_us * 1000;
	m.lead_mean_ns = lead_us * 1000;
	if (gpuclock_new(&c) < 0)
		exit(1);
	for (int i = 0; i < KERNELS; i++) {
		uint64_t lo, hi;

		gpu_model_next(&m);
		if (gpuclock_see(c, &m.sight, true) != GPUCLOCK_FITS || i < SKIP ||
		    !gpuclock_map(c, m.sight.gpu_start_ns, &lo, &hi))
			continue;
		outside += lo > m.start_ns || hi < m.start_ns;
		error[n] = hi - m.start_ns;
		width[n++] = hi - lo;
	}
	gpuclock_free(c);
	figure_say("| %llu | %llu | %.2f | %.2f | %.2f | %.2f | %d of %d |\n",
		   (unsigned long long)delay_us, (unsigned long long)lead_us,
		   delays_percentile(error, n, 50), delays_percentile(error, n, 100),
		   delays_percentile(width, n, 50), delays_percentile(width, n, 100), outside, n);
	figure_tell(delays_percentile(error, n, 100), "us", "delay %llu us, launch %llu us: error",
		    (unsigned long long)delay_us, (unsigned long long)lead_us);
	figure_tell(delays_percentile(width, n, 100), "us", "delay %llu us, launch %llu us: width",
		    (unsigned long long)delay_us, (unsigned long long)lead_us);
}

int main(int argc, char **argv)
{
	figure_start("clock", &argc, argv);
	figure_say("| delay, mean | lead, mean | error p50 | max | width p50 | max | outside |\n"
		   "| --- | --- | --- | --- | --- | --- | --- |\n");
	for (size_t i = 0; i < sizeof(delays_us) / sizeof(*delays_us); i++)
		for (size_t k = 0; k < sizeof(leads_us) / sizeof(*leads_us); k++)
			clock_run(delays_us[i], leads_us[k]);
	return 0;
}
