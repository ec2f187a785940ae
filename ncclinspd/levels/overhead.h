/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NCCLINSPD_LEVELS_OVERHEAD_H
#define NCCLINSPD_LEVELS_OVERHEAD_H

/*
 * The cost of watching a process: its callbacks, of which the plugin measures one in
 * NCI_TIMED_ONE_IN, and how much of what it posts has its kernels timed, taken once a
 * second.  Times are CLOCK_MONOTONIC ns.
 */

#include "reader/base/model.h"

#define OVERHEAD_SAMPLES	11	/* a window of ten seconds */

/* Sums since the process began. */
struct overhead_sample {
	uint64_t at_ns;		/* 0: none */
	uint64_t timed[NCI_THREAD_CLASSES];	/* callbacks that were measured */
	double timed_ns[NCI_THREAD_CLASSES];	/* ns that they took, the measuring taken off */
	uint64_t groups;
	uint64_t ops_inside, ops_outside;	/* posted with kernels timed, and without */
};

struct overhead {
	uint32_t n;		/* samples ever taken */
	struct overhead_sample sample[OVERHEAD_SAMPLES];
};

/* The costs of a class of callbacks over a window; < 0, or UNKNOWN_U64: not known. */
struct overhead_class {
	double per_s;		/* callbacks per second */
	double mean_ns;		/* each */
	double share;		/* part of wall time, summed over the threads of the class */
};

struct overhead_figures {
	uint64_t window_ns;	/* 0: nothing is known yet */
	struct overhead_class of[NCI_THREAD_CLASSES];
	double duty;		/* share of operations whose kernels are timed */
	double groups_per_s;
	uint64_t group_ns;	/* wall time per group; 0: not known */
};

/*
 * Take a sample, at most one per second or so; what was sampled last stays whole if the
 * clock stands.  `clock_ticks`: what two looks at the process's clock take.
 */
void overhead_see(struct overhead *o, const struct process *p, uint64_t clock_ticks,
		  uint64_t now_ns);

/* Two looks at a clock of that kind (NCI_CLOCK_*) with nothing between them, ticks. */
uint64_t overhead_clock_ticks(uint32_t kind);

/* Figures over the last second (`seconds` 1) and up to the last ten. */
void overhead_figures(const struct overhead *o, uint32_t seconds, struct overhead_figures *out);

/*
 * The share that is to be held against a budget: that of the busier class, since a
 * budget is of any one thread; < 0: not known.
 */
double overhead_share(const struct overhead_figures *f);

#endif
