/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Slow GPUs.  A clock below its maximum alone is no news: under load most GPUs meet their power
 * limit.  A GPU that runs slower than the others of its node makes its rank late.
 */
#include "judge/gpu.h"

#include <inttypes.h>
#include <stdio.h>

#include "tables/stat.h"
#include "util/list.h"

#define BELOW_OTHERS	0.95
#define BELOW_MAXIMUM	0.9
#define GPUS		64	/* others that are looked at */

static const struct limit_row {
	uint64_t bit;
	name_t text, advice;
} limits[GPU_LIMIT_END] = {
#define X(NAME, bit, text, look) [GPU_LIMIT_##NAME] = { bit, text, look },
	GPU_LIMITS(X)
#undef X
};

struct gpu_health gpu_unknown(const char *pci_bus_id)
{
	struct gpu_health g = {
#define X(name) .name = UNKNOWN_U64,
		GPU_VALUES(X)
#undef X
		.mean_mhz = UNKNOWN_U64,
	};

	snprintf(g.pci_bus_id, sizeof(g.pci_bus_id), "%s", pci_bus_id);
	return g;
}

enum gpu_limit gpu_limit_of(const struct gpu_health *g)
{
	enum gpu_limit limit = GPU_LIMIT_NONE;

	while (g->reasons != UNKNOWN_U64 && ++limit < GPU_LIMIT_END)
		if (g->reasons & limits[limit].bit)
			return limit;
	return GPU_LIMIT_NONE;
}

name_t gpu_limit_text(enum gpu_limit limit)
{
	return limits[limit].text;
}

name_t gpu_limit_advice(enum gpu_limit limit)
{
	return limits[limit].advice;
}

static bool gpu_is_read(const struct gpu_health *g)
{
	return g->read_ns && !g->lost && g->mean_mhz != UNKNOWN_U64;
}

/* The median clock of the others; UNKNOWN_U64: there is none. */
static uint64_t gpu_others_mhz(const struct gpu_health *all, uint32_t n, uint32_t which)
{
	double mhz[GPUS];
	uint32_t others = 0;

	for (uint32_t i = 0; i < n && others < GPUS; i++)
		if (i != which && gpu_is_read(&all[i]))
			mhz[others++] = (double)all[i].mean_mhz;
	return others ? (uint64_t)stat_median(mhz, others) : UNKNOWN_U64;
}

static bool gpu_is_slow(const struct gpu_cause *cause)
{
	const struct gpu_health *g = &cause->gpu;
	double mhz = (double)g->mean_mhz;

	if (cause->others_mhz != UNKNOWN_U64)
		return mhz < BELOW_OTHERS * (double)cause->others_mhz;
	return cause->limit != GPU_LIMIT_NONE && g->sm_max_mhz != UNKNOWN_U64 &&
	       mhz < BELOW_MAXIMUM * (double)g->sm_max_mhz;
}

bool gpu_find_cause(const struct gpu_health *all, uint32_t n, uint32_t which,
		    struct gpu_cause *cause)
{
	*cause = (struct gpu_cause){
		.gpu = all[which], .limit = gpu_limit_of(&all[which]),
		.others_mhz = gpu_others_mhz(all, n, which),
	};
	return cause->gpu.lost || (gpu_is_read(&cause->gpu) && gpu_is_slow(cause));
}

void gpu_say_cause(struct phrase *text, const struct gpu_cause *cause)
{
	const struct gpu_health *g = &cause->gpu;

	if (g->lost) {
		phrase_add(text, "the driver has lost its GPU");
		return;
	}
	phrase_add(text, "its GPU runs at %" PRIu64, g->mean_mhz);
	if (g->sm_max_mhz != UNKNOWN_U64)
		phrase_add(text, " of %" PRIu64, g->sm_max_mhz);
	phrase_add(text, " MHz");
	if (cause->limit != GPU_LIMIT_NONE)
		phrase_add(text, ", %s", gpu_limit_text(cause->limit));
	else
		phrase_add(text, ", the others of its node run at %" PRIu64 " MHz",
			   cause->others_mhz);
	if (*cause->since)
		phrase_add(text, ", since %s", cause->since);
}
