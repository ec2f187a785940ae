/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_PAGE_PAGE_H
#define CLI_PAGE_PAGE_H

/*
 * The report as one HTML page, which loads nothing: verdicts, then the figures behind them.
 * Nothing is judged here.
 */

#include <jansson.h>
#include <stdio.h>

/* The page's contents: rows as the API has them (schema/), each with its "host". */
struct page {
	FILE *out;
	const json_t *verdicts;		/* rows of ncclinsp report, the worst first */
	const json_t *status;		/* the sums over all nodes */
	const json_t *processes, *ranks, *ops, *peers, *clocks;	/* arrays */
	const json_t *collectives;	/* times are those of the nodes' wall clocks */
	const char *written;		/* when the newest file was written; "": not told */
	size_t files, refused;
};

/* Returns 0, or -EIO: the page could not be written whole. */
int page_write(const struct page *page);

#endif
