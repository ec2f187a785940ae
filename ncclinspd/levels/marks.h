/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NCCLINSPD_LEVELS_MARKS_H
#define NCCLINSPD_LEVELS_MARKS_H

/*
 * The phases that people say jobs and processes are in, beyond this daemon's life: a
 * phase that was said of a job is also that of processes of it that come later, and what
 * a process is at is known again after a restart, from a file beside the control file.
 *
 *     marks_new(&m, names, accounts, "/run/ncclinsp/control", now)
 *     marks_appeared()		a process is attached: it is at what was said before
 *     marks_put()		something is said; then phase_set() of those that are alive
 *     marks_save()		after that
 *     marks_look()		once a second
 *
 * Times are CLOCK_MONOTONIC ns; `list` are all processes.
 */

#include "ncclinspd/levels/wishes.h"
#include "reader/base/phase.h"

#define MARKS_JOBS		64
#define MARKS_JOBS_OF_USER	16	/* users who may not mark everybody's: each; all: half */
#define MARKS_PROCESSES		512	/* processes that are kept */

struct marks;
struct names;

/* A mark as it is kept in a file: fixed widths, no padding. */
struct mark {
	uint32_t kind;		/* WISH_JOB or WISH_PROCESS */
	uint32_t uid;		/* the user who said so; for a process its own */
	uint32_t everybody;	/* a job's: 1: all users' processes; 0: those of `uid` */
	uint32_t zero;
	uint64_t id;		/* instance of a process */
	uint64_t serial;	/* a job's: newer ones have greater ones */
	uint64_t since_ns;
	char job[WISH_JOB_BYTES];	/* zeros behind each text */
	char phase[PHASE_BYTES];	/* phase; a process's "": it was said to be in none */
	char before[PHASE_BYTES];	/* phase of a process until then */
};
_Static_assert(sizeof(struct mark) == 40 + WISH_JOB_BYTES + 2 * PHASE_BYTES,
	       "kept in a file without padding");

/*
 * `accounts` NULL: each uid is one.  What was kept and makes no sense is told of, and
 * forgotten.  0 or -ENOMEM.
 */
int marks_new(struct marks **mp, struct names *names, const struct accounts *accounts,
	      const char *control, uint64_t now_ns);
void marks_free(struct marks *m);

void marks_appeared(struct marks *m, struct process *p);

/*
 * Set a phase: a job's is also for later; after the node's, no job's word holds for later
 * any more.  -ENOSPC: too many jobs are marked already, and nothing has changed.
 */
int marks_put(struct marks *m, const struct wish *whom, const char *phase, uint64_t now_ns);

/* Keep all this for the next daemon, if it is not what is kept. */
void marks_save(struct marks *m, struct process *const *list, size_t n);

/* Forget jobs of which none has lived for WISH_IDLE_NS. */
void marks_look(struct marks *m, struct process *const *list, size_t n, uint64_t now_ns);

/* Visit the marks of jobs: step from *i = 0 until NULL. */
const struct mark *marks_next(const struct marks *m, size_t *i);

#endif
