/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_COMMON_LISTING_H
#define CLI_COMMON_LISTING_H

/*
 * Commands that print rows: one column table each gives the table, CSV, JSON lines
 * and Prometheus' text, and what --fields, -s and -f may name.
 */

#include "cli/common/cli.h"
#include "cli/table/fields.h"
#include "cli/table/filter.h"
#include "cli/table/report.h"

/* Adds to a row, a copy of the answer's, what columns show beyond it. */
typedef void listing_dress(json_t *row);

struct listing {
	const char *array;	/* its name in the answer; NULL: the answer is the one row */
	const char *asked;	/* the fields to ask for, <TABLE>_FIELDS; NULL: all */
	const struct column *columns;
	size_t count;
	const struct column *sort;	/* largest first; NULL: the daemon's order */
	bool ascending;			/* smallest first */
	const char *nothing;	/* said when there is no row and no filter */
	/* Fills in `text` with a note beside the rows; false: there is none.  NULL: never. */
	bool (*note)(const json_t *answer, char *text, size_t size);
	listing_dress *dress;	/* NULL: rows are shown as they came */
	/* Instead, where the table's rows are others than the answer's: a new array. */
	json_t *(*reshape)(const json_t *rows);
	/*
	 * Finds rows of the table that lie deeper in the answer: returns the answer's array
	 * with nothing but `kept` rows, whose LISTING_SOURCE is what lies there.  NULL: each
	 * row of the table is one of the answer, in the same order.
	 */
	json_t *(*nested)(const json_t *rows, const json_t *kept);
	/* Gets the answer; NULL: it is that of the target.  As client_get(). */
	int (*fetch)(struct cli *cli, void *arg, json_t **root);
	void *arg;
	/* Prints for people, in place of the table; NULL: the table.  As client_get(). */
	int (*page)(struct cli *cli, const json_t *answer, const json_t *rows);
	/* The exit code that rows give; NULL: CLI_DONE, or CLI_NOTHING without any. */
	int (*code)(const struct listing *listing, const json_t *answer, const json_t *rows);
	bool labelled;	/* rows alone say how communicators are called: nobody is asked for them */
	bool whole;	/* rows have pid, uid, job and GPU too: nothing else is asked */
	bool joint;	/* rows are of several processes: -p asks who is in them */
	int header_every;	/* lines; samples follow one another.  0: each stands alone */
};

/* Initializers from the columns' own array: .columns and .count. */
#define LISTING_COLUMNS(table) .columns = (table), .count = sizeof(table) / sizeof((table)[0])

#define LISTING_SOURCE ""	/* key of a reshaped row: what it was made of */

/* The options' effect on the rows of one command. */
struct listing_query {
	const struct cli *cli;
	struct fields fields;
	const struct column *columns;	/* the ones that are printed */
	size_t count;
	struct filter filter;
	const struct column *sort;
	bool ascending;
	int lines;		/* lines of a table since its header */
	json_t *members;	/* ranks and their processes, when asked for; or NULL */
	json_t *jobs;		/* the jobs, as in label_jobs(), when options name one; or NULL */
};

/* Ask, filter, print, and again with -w.  Returns an exit code. */
int listing_run(struct cli *cli, const struct listing *listing, const char *target);

/*
 * The start and end of commands with a loop of their own.  listing_begin() returns true when
 * there is something to do, else an exit code is in *code.  The caller of listing_begin()
 * calls listing_end().
 */
bool listing_begin(struct listing_query *query, const struct cli *cli,
		   const struct listing *listing, int *code);
void listing_end(struct listing_query *query);

/* Is there any filter? */
bool listing_filters(const struct cli *cli);

/* All of them as they were asked for, "--job 4711, size>1MiB"; "" of none. */
void listing_tell_filters(const struct cli *cli, char *buf, size_t size);

/* Does a row pass all filters? */
bool listing_wants(const struct listing_query *query, const json_t *row);

/* One row of CSV or JSON lines, or a line of a table that was laid out before. */
void listing_put(const struct listing_query *query, const struct report *report,
		 const json_t *row);

/*
 * The communicators that there are, as label_names(): the caller's, empty when the
 * daemon does not tell.
 */
json_t *listing_comms(const struct cli *cli);

/* The jobs that there are, as label_jobs(), or NULL where no option names one.  As client_get(). */
int listing_jobs(const struct cli *cli, json_t **jobs);

/* Copies of rows, dressed (NULL: as they are); a new array. */
json_t *listing_dressed(const json_t *rows, listing_dress *dress);

#endif
