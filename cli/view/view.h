/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_VIEW_VIEW_H
#define CLI_VIEW_VIEW_H

/* One look at the whole node: what `top` and `status` show. */

#include "cli/base/client.h"
#include "cli/table/report.h"
#include "cli/view/history.h"
#include "cli/view/ranks.h"

/* The questions to ask the daemon. */
enum view_question {
	VIEW_ASK_STATUS, VIEW_ASK_PROCESSES, VIEW_ASK_RANKS, VIEW_ASK_OPS,
	VIEW_ASK_NOW, VIEW_ASK_INFLIGHT, VIEW_ASK_FINDINGS, VIEW_ASK_PEERS, VIEW_ASK_KINDS,
	VIEW_ASK_RUNS, VIEW_QUESTIONS
};

/* The daemon's answers; each may be NULL. */
struct view_answers {
	json_t *status;
	json_t *processes;
	json_t *ranks;
	json_t *ops;		/* /v1/summary by communicator, operation and size */
	json_t *now;		/* /v1/summary of the last second by communicator */
	json_t *inflight;
	json_t *findings;
	json_t *peers;
	json_t *kinds;		/* /v1/summary by all of the above */
	json_t *runs;		/* /v1/collectives of one kind */
	bool only_old;		/* inflight has all older than VIEW_OLD_NS, maybe not all younger */
};

json_t **view_answer(struct view_answers *answers, enum view_question question);
void view_answers_deinit(struct view_answers *answers);

/*
 * The tables.  Those before VIEW_SCREENS are screens, and their order is what users see: of the
 * keys 1 to 6, of Tab and of the line of titles.  The others are entered from a row.
 */
enum view_table {
	VIEW_RANKS, VIEW_OPS, VIEW_PEERS, VIEW_INFLIGHT, VIEW_FINDINGS, VIEW_JOBS, VIEW_SCREENS,
	VIEW_COMMS = VIEW_SCREENS,
	VIEW_TREE,	/* jobs, communicators and ranks; made of the ranks that are shown */
	VIEW_KINDS,	/* operations of one rank by kind */
	VIEW_RUNS,	/* single operations of one kind */
	VIEW_TABLES
};

/*
 * The last answers: figures over some seconds are of hardly anything else a moment
 * later, and are not asked for at each look; nor is who the processes are.
 */
struct view_kept_answer {
	json_t *root;		/* NULL: none */
	char *target;		/* the request it answers; owned */
	uint64_t asked_ns;
	size_t rows;		/* the largest table's */
};

struct view_kept {
	struct view_kept_answer at[VIEW_QUESTIONS];
	uint64_t census;	/* sum of /v1/ranks' pids and states at the time of processes */
};

void view_forget(struct view_kept_answer *kept);

/* The time in flight beyond which operations are asked for where single ones are not shown. */
#define VIEW_OLD_NS   UINT64_C(1000000000)
#define VIEW_OLD_TEXT "1s"

struct view {
	bool known;		/* something was answered once */
	bool up;		/* the last attempt was answered */
	char error[512];	/* why not */
	uint64_t now_ns;	/* time of the last answer */
	uint64_t tried_ns;	/* time of the last attempt, >= now_ns */
	json_t *status;		/* /v1/status */
	int live, exited, died;	/* processes */
	int gpus;		/* -1: not known */
	int comms, ranks;	/* numbers of those not over; rows[VIEW_RANKS] may be fewer */
	json_int_t in_flight;	/* operations */
	bool only_old;		/* rows[VIEW_INFLIGHT] are all of them that are old, not all */
	int inflight_total;	/* rows that there were, those that were not asked for as well */
	double ops_per_s;	/* < 0: not known */
	double records_per_s;	/* between the last two answers; < 0: not known */
	double records;		/* all so far, at this moment: */
	uint64_t counted_ns;
	double lost;
	json_t *rows[VIEW_TABLES];	/* view_rows() has them */
	struct view_answers built;	/* the answers all this was made of */
	json_t *findings;	/* active ones, the most severe first, then the newest */
	json_t *names;		/* label_names() of the ranks */
	json_t *jobs;		/* label_jobs() of the ranks */
	double wait;		/* mean part of the time that ranks waited lately; < 0: not known */
	struct view_kept kept;
	double busbw_gbs;	/* now, over all communicators; < 0: not known */
	struct history history;
};

extern const struct view_table_type {
	const char *title;
	const struct column *columns;
	const size_t *count;
	const char *const *meanings;	/* the meaning of each column */
	const char *nothing;	/* said when there is no row */
	const char *key;	/* path: what tells a row from all others */
} view_tables[VIEW_TABLES];

/* The answers to be asked for beside what is always shown. */
struct view_want {
	const char *window;	/* 1s, 10s, 60s or all */
	bool peers;
	bool past;		/* include findings that are over */
	bool kinds;
	bool young;		/* include what has been in flight for less than VIEW_OLD_NS */
	int most;		/* number of the oldest in flight to ask for; 0: all */
	bool whole;		/* all that is known of rows that have details */
	bool fresh;		/* nothing that was answered before is good enough */
	bool brief;		/* no figures and few rows: how many there are, and what is wrong */
	const json_t *runs;	/* names a communicator, rank and func to ask for; NULL: none */
};

/*
 * Replace the view's contents.  Takes the answers over.  `now_ns` is that of
 * CLOCK_MONOTONIC.
 */
void view_build(struct view *view, struct view_answers *answers, uint64_t now_ns);

/* Ask for all of it.  Returns 0, or client_get()'s failure, which leaves what was known. */
int view_fetch(struct view *view, struct client *client, const struct view_want *want,
	       uint64_t now_ns);

/*
 * A table's rows, the worst first; NULL: not asked for.  Communicators are added up only when
 * somebody looks at them: there may be thousands.
 */
json_t *view_rows(const struct view *view, enum view_table table);

/* The daemon's row of a process, at most some seconds old; NULL: nothing. */
const json_t *view_process(const struct view *view, json_int_t pid);

/* Keep the figures of the last answer in the history: once for each step of the plot. */
void view_sample(struct view *view);

void view_deinit(struct view *view);

#endif
