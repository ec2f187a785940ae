/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_VIEW_RANKS_H
#define CLI_VIEW_RANKS_H

/*
 * The rows of /v1/ranks, one for each communicator that a process is in: whose they are, how
 * fast, who waits for whom, what is in flight, what was found.  The worst come first.
 */

#include "cli/table/report.h"

extern const struct column rank_columns[];
extern const size_t rank_column_count;

/* The order of the daemon, for rows of several. */
extern const struct column ranks_badness;

/*
 * Add to a row, in place, what columns show: "ended", the state of one that is no longer live;
 * "found", the verdict or kind of the finding; "user", the uid of one without a name.
 */
void ranks_dress(json_t *row);

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
