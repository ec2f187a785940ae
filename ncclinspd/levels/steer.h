/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NCCLINSPD_LEVELS_STEER_H
#define NCCLINSPD_LEVELS_STEER_H

/*
 * The way back, from the daemon to the jobs: what is wanted of each process (levels.h),
 * what watching it costs (overhead.h, kernelcost.h), and the file that tells it (control.h).
 *
 *     steer_new(&st, &config, now)       what was in force before holds again
 *     steer_look()                       once a second
 *     steer_op(), steer_finding()        as things happen
 *     steer_changed()                    somebody wishes something else, or steer_next_end()
 *                                        has passed, or a process has appeared
 *
 * `list` are all processes, alive and lately ended.  Times are CLOCK_MONOTONIC ns.
 */

#include "ncclinspd/levels/control.h"
#include "ncclinspd/levels/kernelcost.h"
#include "ncclinspd/levels/levels.h"
#include "ncclinspd/levels/overhead.h"

struct finding;
struct steer;

struct steer_config {
	const char *control;	/* the path of the control file */
	struct levels_config levels;
	uint32_t budget_ppm;		/* share of wall time for timing kernels; 0: the default */
	uint32_t kernel_cost_ns;	/* cost of each group; 0: estimated */
	uint32_t mode, mode_s;		/* mode of processes to come, see struct control_node */
};

/* Returns 0 or -ENOMEM: a control file that cannot be written is no failure. */
int steer_new(struct steer **sp, const struct steer_config *config, uint64_t now_ns);
void steer_free(struct steer *st);

/* Take these settings from now on, but for the path.  See levels_set(). */
void steer_set(struct steer *st, const struct steer_config *config);

/* The share of wall time, in parts of a million, that bursts are planned with. */
uint32_t steer_budget_ppm(const struct steer *st);
/* The plan of bursts; a period of 0: nothing is planned yet. */
struct burst_plan steer_plan(const struct steer *st);

/* `real_ns`: CLOCK_REALTIME, since the nodes of a job are to plan at the same time. */
void steer_look(struct steer *st, struct process *const *list, size_t n, uint64_t now_ns,
		uint64_t real_ns);
void steer_op(struct steer *st, const struct op *op);
/* Returns the number of processes that were raised for it. */
uint32_t steer_finding(struct steer *st, const struct finding *f, struct process *const *list,
		       size_t n, uint64_t now_ns);
/*
 * Raise those of the wish until it ends, as for a finding: another node has one.  Returns how
 * many were.
 */
uint32_t steer_detail(struct steer *st, const struct wish *whom, struct process *const *list,
		      size_t n, uint64_t now_ns);

/* Bring the control file up to date.  0, or why it could not be written: negative errno. */
int steer_changed(struct steer *st, struct process *const *list, size_t n, uint64_t now_ns);

uint64_t steer_next_end(const struct steer *st, uint64_t now_ns);

struct levels *steer_levels(struct steer *st);
const struct control *steer_control(const struct steer *st);

/* The knowledge of a process's cost. */
struct cost {
	uint64_t process_id;	/* 0: not in use */
	uint64_t job;		/* processes of one job and uid wait for each other, and share */
	uid_t uid, account;	/* an estimate; others' jobs may be called anything */
	struct overhead overhead;
	struct kernelcost kernels;
	uint32_t used_ns;	/* per group, what bursts are planned with; see kernelcost_step() */
};

/* NULL: nothing. */
const struct cost *steer_cost(const struct steer *st, const struct process *p);

/*
 * The cost of having kernels timed, per group, and its standard error, in ns; false: not
 * known.
 */
bool steer_kernel_cost(const struct cost *cost, double *ns, double *error_ns);

#endif
