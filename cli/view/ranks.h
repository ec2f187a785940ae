/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_VIEW_RANKS_H
#define CLI_VIEW_RANKS_H

/*
 * The ranks of this node, one row for each communicator that a process is in: who
 * they are, how fast, who waits for whom, what is in flight, what was found.
 *
 * They are joined from several answers.  What binds these is the communicator (id,
 * name and size) and the rank in it, null being equal to null: an old NCCL does not
 * tell the id.  The id alone does not do: communicators that were split off one
 * parent can share it, and so can those of two jobs.
 */

#include "cli/table/report.h"
#include "cli/view/waits.h"

extern const struct column rank_columns[];
extern const size_t rank_column_count;

/* The rows of each answer, borrowed; each may be NULL. */
struct ranks_answers {
	const json_t *processes;
	const json_t *comms;	/* each has "comm_label" */
	const json_t *summary;	/* figures by communicator and rank */
	const json_t *inflight;
	const json_t *findings;	/* the most severe first */
	/* "<1s": what is in flight and has no row there is younger; NULL: all has a row. */
	const char *unseen_age;
};

/*
 * The daemon's account of this member of /v1/comms, if it makes the others wait lately and its
 * process is alive; else NULL.
 */
const json_t *ranks_lateness(const json_t *member);

/* A new array, worst first: who died, what hangs, what was found, who comes last. */
json_t *ranks_join(const struct ranks_answers *answers, const struct waits *waits);

/*
 * The same, added up: a row for each communicator, for each job, or for each process
 * and its GPU, in the order of their worst rank.  New arrays.
 */
json_t *ranks_by_comm(const json_t *ranks);
json_t *ranks_by_job(const json_t *ranks);
json_t *ranks_by_gpu(const json_t *ranks);

extern const struct column comm_columns[];
extern const size_t comm_column_count;
extern const struct column job_columns[];
extern const size_t job_column_count;
extern const struct column gpu_columns[];
extern const size_t gpu_column_count;

/*
 * The same as a tree: each job, under it its communicators, under each its ranks; "tree"
 * is what each is called, indented, and "branch" one of these.  A new array.
 */
enum ranks_branch { RANKS_JOB, RANKS_COMM, RANKS_RANK };

json_t *ranks_tree(const json_t *ranks);

extern const struct column tree_columns[];
extern const size_t tree_column_count;

#endif
