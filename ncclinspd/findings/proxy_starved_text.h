/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NCCLINSPD_FINDINGS_PROXY_STARVED_TEXT_H
#define NCCLINSPD_FINDINGS_PROXY_STARVED_TEXT_H

/* The result of finding_proxy_starved.c, in words and figures. */

#include "ncclinspd/base/finding.h"

/* Degrees of knowledge about a process, the surest last. */
enum starved_grade {
	STARVED_NOT,
	STARVED_STILL_WAITS,		/* the wait for a CPU alone: enough to go on */
	STARVED_WAITS,			/* the wait for a CPU alone: enough to begin */
	STARVED_STILL_AWAY,		/* kernels seen late: enough to go on */
	STARVED_AWAY,			/* kernels seen late: enough to begin */
};

/* Sums of a process's operations over a piece of time. */
struct starved_slice {
	uint64_t number;	/* number of this piece of time */
	uint64_t begin_ns;	/* time of the first operation */
	uint64_t ops;		/* operations over a network */
	uint64_t seen;		/* operations with a known kernel start */
	uint64_t late;		/* operations of `seen` that were too late */
	uint64_t times;		/* absences of the thread; one may make several late */
	uint64_t away_ns;	/* sum of the absences */
	uint64_t longest_ns;	/* the longest delay of one operation */
};

/* The rank and process that an operation belongs to. */
struct starved_owner {
	pid_t pid;
	uid_t uid;
	int32_t rank;
	bool has_comm_id;
	uint64_t comm_id;
	name_t comm_name;
};

/* The worst process of a job, beside the others of this node. */
struct proxy_starved_told {
	enum starved_grade grade;	/* STARVED_WAITS or STARVED_AWAY */
	const struct starved_owner *owner;
	const struct starved_slice *sum;
	double share;		/* part of wall time that its kernels were seen late */
	double cpu_share;	/* part of its time that it waited for a CPU; < 0: not known */
	pid_t tid;		/* the thread that did, as numbered here */
	uint32_t all, starved;	/* processes of this node that have a network */
	uint64_t window_ns;
};

/* Sets the text and the evidence of `f`. */
void proxy_starved_describe(const struct proxy_starved_told *t, struct finding *f);

#endif
