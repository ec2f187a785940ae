/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_VIEW_H
#define CLI_VIEW_H

/* One look at the whole node: what `top` and `status` show. */

#include "cli/client.h"
#include "cli/report.h"

/* What the daemon answered; each may be NULL. */
struct view_answers {
	json_t *status;
	json_t *processes;
	json_t *comms;
	json_t *ranks;		/* /v1/summary by communicator and rank */
	json_t *ops;		/* /v1/summary by communicator, operation and size */
	json_t *inflight;
	json_t *findings;	/* that are active */
};

enum view_table { VIEW_RANKS, VIEW_OPS, VIEW_INFLIGHT, VIEW_TABLES };

struct view {
	bool known;		/* something was answered once */
	bool up;		/* the last attempt was answered */
	char error[512];	/* why not */
	uint64_t now_ns;	/* of the last answer */
	uint64_t tried_ns;	/* of the last attempt, >= now_ns */
	json_t *status;		/* /v1/status */
	int live, exited, died;	/* processes */
	int blind;		/* of the live: NCCL tells nothing of their kernels */
	int gpus;		/* with a live communicator; -1: not known */
	int comms;
	double ops_per_s;	/* < 0: not known */
	double records_per_s;	/* between the last two answers; < 0: not known */
	double records;
	double lost;
	json_t *rows[VIEW_TABLES];
	json_t *findings;	/* of /v1/findings, the most severe first, then the newest */
	json_t *all_comms;	/* /v1/comms: who is in which, ended processes included */
};

extern const struct view_table_type {
	const char *title;
	const struct column *columns;
	const size_t *count;
	const char *nothing;
} view_tables[VIEW_TABLES];

/*
 * Replace the view's contents.  Takes the answers over.  `now_ns` is that of
 * CLOCK_MONOTONIC.
 */
void view_build(struct view *view, struct view_answers *answers, uint64_t now_ns);

/* Ask for all of it.  Returns 0, or client_get()'s failure, which leaves what was known. */
int view_fetch(struct view *view, struct client *client, const char *window, uint64_t now_ns);

/*
 * What the daemon says of this member of /v1/comms, if it makes the others wait lately
 * and its process is alive; else NULL.
 */
const json_t *view_lateness(const json_t *member);

void view_deinit(struct view *view);

#endif
