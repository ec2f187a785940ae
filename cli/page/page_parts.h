/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_PAGE_PAGE_PARTS_H
#define CLI_PAGE_PAGE_PARTS_H

/* The parts of the page; each writes what is in its section, or one line why not. */

#include "cli/page/page.h"
#include "cli/table/report.h"

#define PAGE_ROWS 512	/* rows of a table at most: the rest is counted */

/* A column of a table, with a bar of that class beside its figures. */
struct page_column {
	struct column column;
	const char *bar_class;		/* NULL: no bar */
};

/* `nothing`: the sentence in place of a table without rows. */
void page_table(const struct page *page, const struct page_column *columns, size_t n,
		const json_t *rows, const char *nothing);

/* Operations, all ranks of a communicator in one row for each function and size: a new array. */
json_t *page_ops_by_size(const json_t *ops);

void page_verdicts(const struct page *page);
void page_timeline(const struct page *page);
void page_links(const struct page *page);

#endif
