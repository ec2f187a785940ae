/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_LISTING_H
#define CLI_LISTING_H

/* Commands that ask for one array and print it: ps, comms, ops, peers, inflight, exemplars. */

#include "cli/cli.h"
#include "cli/report.h"

struct listing {
	const char *array;	/* its name in the answer */
	const struct column *columns;
	size_t count;
	const struct column *sort;	/* largest first; NULL: the daemon's order */
	const char *nothing;	/* said when there is no row and no filter */
	/* Turns the answer's rows into the table's, a new array; NULL: they are the same. */
	json_t *(*reshape)(const json_t *rows);
	/* Where rows of the table lie deeper in the answer: filters it as it is; or NULL. */
	json_t *(*nested)(const struct cli *cli, const json_t *rows);
};

/* Ask, filter, print, and again with -w.  Returns an exit code. */
int listing_run(struct cli *cli, const struct listing *listing, const char *target);

/* Does a row pass --comm, --rank, --func and --pid? */
bool listing_wants(const struct cli *cli, const json_t *row);

/*
 * The communicators that there are, for label_rows(): a new array, the caller's,
 * empty when the daemon does not tell.
 */
json_t *listing_comms(const struct cli *cli);

/* The columns of tables that others show as well. */
extern const struct column ops_columns[];
extern const size_t ops_column_count;
extern const struct column inflight_columns[];
extern const size_t inflight_column_count;
extern const struct column peers_columns[];
extern const size_t peers_column_count;
extern const struct column run_columns[];
extern const size_t run_column_count;

/* Rows of /v1/inflight with "progress", the state in words; a new array. */
json_t *inflight_reshape(const json_t *rows);

/* Rows of /v1/peers with "mean", what a step spent in each state; a new array. */
json_t *peers_reshape(const json_t *rows);

#endif
