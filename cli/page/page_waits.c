/* SPDX-License-Identifier: Apache-2.0 */
/* Waiting ranks, and ranks that others wait for: the rows of /v1/ranks, the worst first. */
#include "cli/page/page_parts.h"
#include "util/list.h"

static const struct page_column columns[] = {
	{ { NULL, "Node", COL_TEXT, "host", 0, 24, 0 }, NULL },
	{ { NULL, "Comm", COL_TEXT, "comm_label|comm_id", 0, 24, 0 }, NULL },
	{ { NULL, "Rank", COL_INTEGER, "rank", 0, 0, 0 }, NULL },
	{ { NULL, "Global", COL_INTEGER, "world_rank", 0, 0, 0 }, NULL },
	{ { NULL, "GPU", COL_INTEGER, "gpu_index", 0, 0, 0 }, NULL },
	{ { NULL, "PID", COL_INTEGER, "pid", 0, 0, 0 }, NULL },
	{ { NULL, "Found", COL_VERDICT, "verdict|finding", 0, 24, 0 }, NULL },
	{ { NULL, "Blame (%)", COL_PERCENT, "blame", 0, 0, 0 }, "blame" },
	{ { NULL, "Waits (%)", COL_PERCENT, "wait", 0, 0, 0 }, "wait" },
	{ { NULL, "Last (%)", COL_PERCENT, "last", 0, 0, 0 }, NULL },
	{ { NULL, "In flight", COL_INTEGER, "in_flight", 0, 0, 0 }, NULL },
	{ { NULL, "Bus (GB/s)", COL_NUMBER, "busbw_gbs", 0, 0, 0 }, NULL },
};

void page_waits(const struct page *page)
{
	page_section(page, "waits", "Waiting by rank",
		     "<b>Blame</b>: the part of the last 10 s that others waited for this rank. "
		     "<b>Waits</b>: the part that it waited for others. The worst rank is first.");
	page_table(page, columns, ARRAY_LEN(columns), page->ranks,
		   "No rank was alive when these files were written.");
	page_section_end(page);
}
