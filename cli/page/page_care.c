/* SPDX-License-Identifier: Apache-2.0 */
/* The limits of the figures: the clocks' error, what was lost, what was sampled. */
#include <inttypes.h>

#include "cli/base/member.h"
#include "cli/page/html.h"
#include "cli/page/page_parts.h"
#include "util/list.h"
#include "util/text.h"

static const struct page_column clock_columns[] = {
	{ { NULL, "Node", COL_TEXT, "host", 0, 24, 0 }, NULL },
	{ { NULL, "GPU", COL_TEXT, "pci_bus_id|gpu_uuid", 0, 40, 0 }, NULL },
	{ { NULL, "Rank", COL_INTEGER, "rank", 0, 0, 0 }, NULL },
	{ { NULL, "PID", COL_INTEGER, "pid", 0, 0, 0 }, NULL },
	{ { NULL, "Error (us)", COL_MICROS, "error_ns", 0, 0, 0 }, NULL },
	{ { NULL, "Step (us)", COL_MICROS, "resolution_ns", 0, 0, 0 }, NULL },
	{ { NULL, "Drift (ppm)", COL_NUMBER, "drift_ppm", 0, 0, 0 }, NULL },
	{ { NULL, "Jumps", COL_INTEGER, "steps", 0, 0, 0 }, NULL },
};

static const struct page_column process_columns[] = {
	{ { NULL, "Node", COL_TEXT, "host", 0, 24, 0 }, NULL },
	{ { NULL, "PID", COL_INTEGER, "pid", 0, 0, 0 }, NULL },
	{ { NULL, "Command", COL_TEXT, "command", 0, 24, 0 }, NULL },
	{ { NULL, "Job", COL_TEXT, "job.id", 0, 24, 0 }, NULL },
	{ { NULL, "State", COL_STATE, "state", 0, 0, 0 }, NULL },
	{ { NULL, "Level", COL_TEXT, "level", 0, 0, 0 }, NULL },
	{ { NULL, "Sampling", COL_TEXT, "sampling", 0, 0, 0 }, NULL },
	{ { NULL, "Records", COL_INTEGER, "records", 0, 0, 0 }, NULL },
	{ { NULL, "Lost", COL_SUM, "lost", 0, 0, 0 }, "blame" },
	{ { NULL, "Stamps refused", COL_INTEGER, "stamps_refused", 0, 0, 0 }, NULL },
};

void page_clocks(const struct page *page)
{
	page_section(page, "clocks", "Clocks",
		     "<b>Error</b>: how well the GPU's time is known on its node's clock. Times on "
		     "the GPU itself are as exact as its step.");
	page_table(page, clock_columns, ARRAY_LEN(clock_columns), page->clocks,
		   "No GPU's clock is known: NCCL has reported no GPU times.");
	page_section_end(page);
}

static void losses_put_sum(const struct page *page)
{
	static const struct { const char *key, *title; } sums[] = {
		{ "records", "records read" }, { "lost", "lost" },
		{ "before", "overwritten before the daemon first read them" },
		{ "rejected", "refused" },
	};
	const json_t *ingest = json_object_get(page->status, "ingest");
	char text[TEXT_MAX];

	fputs("<ul class=\"facts\">", page->out);
	for (size_t i = 0; i < ARRAY_LEN(sums); i++) {
		text_count(text, sizeof(text), (double)member_number(ingest, sums[i].key, 0));
		fprintf(page->out, "<li><b>%s</b> %s</li>", text, sums[i].title);
	}
	fputs("</ul>\n", page->out);
}

void page_losses(const struct page *page)
{
	page_section(page, "losses", "Lost and sampled",
		     "Counts miss what was <b>lost</b>. With <b>sampling</b> <code>budget</code>, "
		     "only bursts of operations are timed, the same on all ranks.");
	losses_put_sum(page);
	page_table(page, process_columns, ARRAY_LEN(process_columns), page->processes,
		   "The files contain no process.");
	page_section_end(page);
}
