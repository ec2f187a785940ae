/* SPDX-License-Identifier: Apache-2.0 */
#ifndef JUDGE_GPU_H
#define JUDGE_GPU_H

/* Is a GPU slow, or broken, and why: from what NVIDIA's library and driver tell of it. */

#include <stdbool.h>
#include <stdint.h>

#include "util/phrase.h"
#include "util/unknown.h"

/*
 * The values of a GPU that are read from the library; UNKNOWN_U64: it does not tell.  `reasons`
 * are bits of GPU_LIMITS.
 */
#define GPU_QUICK_VALUES(X)						\
	X(sm_mhz) X(sm_max_mhz) X(memory_mhz) X(memory_max_mhz) X(reasons)	\
	X(power_mw) X(power_limit_mw) X(temperature_c)

/* Errors of memory since the driver was loaded; of all links: replays and recoveries. */
#define GPU_SLOW_VALUES(X)						\
	X(ecc_corrected) X(ecc_uncorrected)				\
	X(remapped_rows) X(remap_pending) X(remap_failed)		\
	X(nvlinks) X(nvlinks_down) X(nvlink_errors)

#define GPU_VALUES(X)	GPU_QUICK_VALUES(X) GPU_SLOW_VALUES(X)

/* Limits that keep clocks low, the worst first: bit of the reasons, name, what to look at. */
#define GPU_LIMITS(X)							\
	X(POWER_BRAKE,	0x80, "power brake", "the node's power supply, which slows its GPUs")	\
	X(HW_THERMAL,	0x40, "thermal", "the cooling of that GPU and node")			\
	X(SW_THERMAL,	0x20, "thermal", "the cooling of that GPU and node")			\
	X(HW_SLOWDOWN,	0x08, "hardware slowdown",						\
	  "the cooling and the power of that GPU and node")					\
	X(POWER,	0x04, "power limit",					\
	  "the power limit of that GPU (nvidia-smi -q -d POWER)")	\
	X(SYNC_BOOST,	0x10, "sync boost", "the GPUs that it is grouped with (nvidia-smi -q)")	\
	X(SETTING,	0x02, "clock setting",					\
	  "the clocks that are set for it (nvidia-smi -q -d CLOCK)")

enum gpu_limit {
	GPU_LIMIT_NONE,
#define X(NAME, bit, text, look) GPU_LIMIT_##NAME,
	GPU_LIMITS(X)
#undef X
	GPU_LIMIT_END
};

struct gpu_health {
	char pci_bus_id[32];
	uint64_t read_ns;	/* when it was read last, CLOCK_MONOTONIC; 0: it never was */
	bool lost;		/* the driver has lost it: it answers no more */
#define X(name) uint64_t name;
	GPU_VALUES(X)
#undef X
	uint64_t mean_mhz;	/* sm_mhz, over the last seconds; UNKNOWN_U64 */
	uint64_t limited_ns;	/* when a limit began to keep its clock low; 0: none does */
	uint64_t limited_real_ns;	/* the same by CLOCK_REALTIME */
};

/* A GPU of which nothing is known. */
struct gpu_health gpu_unknown(const char *pci_bus_id);

/* The worst of the reasons that keep a clock low; an idle GPU has none. */
enum gpu_limit gpu_limit_of(const struct gpu_health *g);

/* Its name, and what to look at; NULL: none. */
name_t gpu_limit_text(enum gpu_limit limit);
name_t gpu_limit_advice(enum gpu_limit limit);

/* Why the GPU of a rank is slow. */
struct gpu_cause {
	struct gpu_health gpu;
	enum gpu_limit limit;
	uint64_t others_mhz;	/* median clock of the node's other GPUs; UNKNOWN_U64: none */
	char since[16];		/* time of day; "": not known */
};

/*
 * Is all[which] slow?  A limit is in force, or was none told of, and its clock is 5 % below the
 * median of the others.  Clocks that are alike explain no late rank.  Where there is no other GPU,
 * 10 % below its own maximum by a limit is slow.  Sets all of *cause but `since`.
 */
bool gpu_find_cause(const struct gpu_health *all, uint32_t n, uint32_t which,
		    struct gpu_cause *cause);

/* "its GPU runs at 1095 of 1980 MHz, thermal, since 12:03:10" */
void gpu_say_cause(struct phrase *text, const struct gpu_cause *cause);

#endif
