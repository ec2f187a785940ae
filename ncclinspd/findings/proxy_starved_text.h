/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NCCLINSPD_FINDINGS_PROXY_STARVED_TEXT_H
#define NCCLINSPD_FINDINGS_PROXY_STARVED_TEXT_H

/* What finding_proxy_starved.c has found, in words and figures. */

#include "ncclinspd/base/finding.h"

/* What is known of a process, the more the better. */
enum starved_grade {
	STARVED_NOT,
	STARVED_STILL_WAITS,		/* enough to go on, */
	STARVED_WAITS,			/* ... and to begin: by the wait for a CPU alone */
	STARVED_STILL_AWAY,		/* by kernels that were seen late, the same */
	STARVED_AWAY,
};

/* What its operations came to. */
struct starved_slice {
	uint64_t number;	/* of this piece of time */
	uint64_t begin_ns;	/* of the first operation */
	uint64_t ops;		/* over a network */
	uint64_t seen;		/* of these, with a known kernel start */
	uint64_t late;		/* of these, too late */
	uint64_t times;		/* that the thread was away for them; one may make several late */
	uint64_t away_ns;	/* in all */
	uint64_t longest_ns;	/* of one operation */
};

/* Whose operation it was. */
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
	double share;		/* of wall time, that its kernels were seen late */
	double cpu_share;	/* of its time, that it waited for a CPU; < 0: not known */
	pid_t tid;		/* of the thread that did, here */
	uint32_t all, starved;	/* processes of this node that have a network */
	uint64_t window_ns;
};

/* Sets the text and the evidence of `f`. */
void proxy_starved_describe(const struct proxy_starved_told *t, struct finding *f);

#endif
