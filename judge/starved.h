/* SPDX-License-Identifier: Apache-2.0 */
#ifndef JUDGE_STARVED_H
#define JUDGE_STARVED_H

/*
 * Progress threads that get no CPU.  NCCL's progress thread polls kernels and network
 * transfers in turn: a kernel that has begun long before it is seen there, by the GPU's
 * own stamp, means that nobody moved its transfers either.  A slow link cannot do that,
 * nor a rank that comes late: it is the thread itself that was away.
 *
 * The kernel tells, if it may be asked, whether such a thread could have run and got no CPU,
 * or slept.  Where too few kernels are watched, a thread that waits for a CPU for long is told
 * by that alone, as info: what it costs is not known.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "judge/resources.h"
#include "judge/whom.h"
#include "util/unknown.h"

/* Degrees of knowledge about a process, the surest last. */
enum starved_grade {
	STARVED_NOT,
	STARVED_STILL_WAITS,		/* the wait for a CPU alone: enough to go on */
	STARVED_WAITS,			/* the wait for a CPU alone: enough to begin */
	STARVED_STILL_AWAY,		/* kernels seen late: enough to go on */
	STARVED_AWAY,			/* kernels seen late: enough to begin */
};

/* Sums of a process's operations over a piece of time. */
struct starved_sum {
	uint64_t ops;		/* operations over a network */
	uint64_t seen;		/* operations with a known kernel start */
	uint64_t late;		/* operations of `seen` that were too late */
	uint64_t times;		/* absences of the thread; one may make several late */
	uint64_t away_ns;	/* sum of the absences */
	uint64_t longest_ns;	/* the longest delay of one operation */
};

/*
 * One more operation, whose kernel began at start_ns and was seen so long after (UNKNOWN_U64:
 * not watched).  *back_ns: the end of its process's last absence.  True: it was too late.
 */
bool starved_add(struct starved_sum *sum, uint64_t *back_ns, uint64_t start_ns, uint64_t unseen_ns);

/*
 * The part of the time for which the thread was away; operations not watched are taken to be
 * like the rest, as far as there was time for that: one absence may hold many of them.
 */
double starved_share(const struct starved_sum *sum, uint64_t window_ns);

/* One process. */
struct starved_row {
	uint64_t job;		/* equal: one job */
	struct starved_sum sum;	/* zero: it has no network */
	uint64_t window_ns;	/* the time that it is of */
	double cpu_share;	/* part of its time that it waited for a CPU; < 0: not known */
	double throttled;	/* part of the time that its cgroup's limit took; < 0: none */
	enum starved_grade grade;	/* set by starved_rate() */
};

/* The processes of this node that have a network, and those whose thread was away. */
struct starved_count {
	uint32_t all, starved;
};

/* Is there any sign that it is, so that more should be found out? */
bool starved_is_in_question(const struct starved_row *row);

/* Sets the grades.  True: there may be something to say. */
bool starved_rate(struct starved_row *rows, size_t n, struct starved_count *count);

/* The worst process of a job, for which it speaks: several are one finding. */
const struct starved_row *starved_worst(const struct starved_row *rows, size_t n, uint64_t job);

/* Is it enough for a finding to begin, not only to go on? */
static inline bool starved_begins(enum starved_grade grade)
{
	return grade == STARVED_AWAY || grade == STARVED_WAITS;
}

struct starved_case {
	const struct starved_row *row;	/* its grade is enough to begin */
	struct starved_count count;
	struct whom who;
	int32_t tid;		/* the thread that waited for a CPU, as numbered here */
	int32_t taker;		/* process that had its CPU meanwhile for longest; 0: not known */
	const char *taker_command;
	double taker_share;	/* part of that time; < 0: not known */
	const struct resources *resources;	/* resources of its process; NULL: not known */
};

void starved_say(const struct starved_case *c, char *text, size_t size);

#endif
