/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The page around its parts: head, style, order of the sections, and their tables; and those
 * sections that are a table: waiting, bandwidth, clocks and losses.
 */
#include "cli/page/page.h"

#include <errno.h>
#include <string.h>

#include "cli/base/member.h"
#include "cli/page/html.h"
#include "cli/page/page_parts.h"
#include "util/list.h"
#include "util/text.h"

static const char page_style[] =
#include "page/page.css.h"
;
static const char page_script[] =
#include "page/page.js.h"
;

static const char page_head[] =
	"<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
	"<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
	"style-src 'unsafe-inline'; script-src 'unsafe-inline'\">\n"
	"<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
	"<meta name=\"color-scheme\" content=\"light dark\">\n";

/* ---- tables --------------------------------------------------------------------------- */

/* The value of a full bar: 1 of a fraction, else the largest. */
static double column_full(const struct column *column, const json_t *rows)
{
	double most = column->kind == COL_PERCENT ? 1 : 0, value;

	json_each(row, rows)
		if (report_value(column, row, 0, &value) && value > most)
			most = value;
	return most;
}

static void table_put_bar(FILE *out, const char *class, double part)
{
	fprintf(out, "<svg class=\"bar\" viewBox=\"0 0 100 10\" preserveAspectRatio=\"none\" "
		"aria-hidden=\"true\"><rect class=\"%s\" width=\"%.1f\" height=\"10\"/></svg>",
		class, part > 0 ? part * 100 : 0);
}

static void table_put_cell(const struct page *page, const struct page_column *c,
			   const json_t *row, double full)
{
	char text[REPORT_CELL];
	double value;

	report_cell(&c->column, row, NULL, text, sizeof(text));
	if (!c->bar_class) {
		html_element(page->out, "td", report_is_text(&c->column) ? "text" : NULL, text);
		return;
	}
	fputs("<td class=\"with-bar\"><span>", page->out);
	html_text(page->out, text);
	fputs("</span>", page->out);
	if (report_value(&c->column, row, 0, &value) && full > 0)
		table_put_bar(page->out, c->bar_class, value / full);
	fputs("</td>", page->out);
}

static void table_put_head(const struct page *page, const struct page_column *columns, size_t n)
{
	fputs("<div class=\"scroll\" tabindex=\"0\"><table>\n<thead><tr>", page->out);
	for (size_t i = 0; i < n; i++) {
		const struct column *c = &columns[i].column;

		fprintf(page->out, report_is_text(c) ? "<th scope=\"col\" class=\"text\">" :
						       "<th scope=\"col\">");
		html_text(page->out, c->header);
		fputs("</th>", page->out);
	}
	fputs("</tr></thead>\n<tbody>\n", page->out);
}

void page_table(const struct page *page, const struct page_column *columns, size_t n,
		const json_t *rows, const char *nothing)
{
	size_t total = json_array_size(rows), shown = 0;
	double full[REPORT_COLUMNS];

	if (!total) {
		html_element(page->out, "p", "none", nothing);
		return;
	}
	for (size_t i = 0; i < n; i++)
		full[i] = column_full(&columns[i].column, rows);
	table_put_head(page, columns, n);
	json_each(row, rows) {
		if (shown++ == PAGE_ROWS)
			break;
		fputs("<tr>", page->out);
		for (size_t k = 0; k < n; k++)
			table_put_cell(page, &columns[k], row, full[k]);
		fputs("</tr>\n", page->out);
	}
	fputs("</tbody></table></div>\n", page->out);
	if (total > PAGE_ROWS)
		fprintf(page->out, "<p class=\"none\">%zu more rows are not shown.</p>\n",
			total - PAGE_ROWS);
}

/* ---- waiting ----------------------------------------------------------------------------- */

/* Waiting ranks, and ranks that others wait for: the rows of /v1/ranks, the worst first. */
static const struct page_column wait_columns[] = {
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

static void page_waits(const struct page *page)
{
	page_table(page, wait_columns, ARRAY_LEN(wait_columns), page->ranks,
		   "No rank was alive when these files were written.");
}

/* ---- bandwidth --------------------------------------------------------------------------- */

/* A figure of a group: the path in the ranks' rows, and how they make one. */
static const struct fold {
	const char *name, *path;
	enum { FOLD_SUM, FOLD_MEAN, FOLD_LEAST, FOLD_MOST } how;
	bool whole;	/* it is a whole number */
} folds[] = {
	{ "ops", "ops", FOLD_SUM, true },
	{ "bus", "busbw_gbs.mean", FOLD_MEAN, false },
	{ "free", "busbw_waitfree_gbs", FOLD_MEAN, false },
	{ "usual", "usual_busbw_gbs", FOLD_MEAN, false },
	{ "least", "busbw_gbs.mean", FOLD_LEAST, false },
	{ "p50_ns", "exec.p50_ns|batch.p50_ns", FOLD_MEAN, true },
	{ "p99_ns", "exec.p99_ns|batch.p99_ns", FOLD_MOST, true },
};

static const struct page_column speed_columns[] = {
	{ { NULL, "Comm", COL_TEXT, "comm_label|comm_id", 0, 24, 0 }, NULL },
	{ { NULL, "Operation", COL_TEXT, "func", 0, 20, 0 }, NULL },
	{ { NULL, "Size", COL_BYTES, "size_class", 0, 0, 0 }, NULL },
	{ { NULL, "Algorithm", COL_TEXT, "algo/proto", 0, 20, 0 }, NULL },
	{ { NULL, "Operations", COL_INTEGER, "ops", 0, 0, 0 }, NULL },
	{ { NULL, "Median (us)", COL_MICROS, "p50_ns", 0, 0, 0 }, NULL },
	{ { NULL, "p99 (us)", COL_MICROS, "p99_ns", 0, 0, 0 }, NULL },
	{ { NULL, "Bus (GB/s)", COL_NUMBER, "bus", 0, 0, 0 }, "speed" },
	{ { NULL, "Slowest rank", COL_NUMBER, "least", 0, 0, 0 }, NULL },
	{ { NULL, "Without waiting", COL_NUMBER, "free", 0, 0, 0 }, NULL },
	{ { NULL, "Usual", COL_NUMBER, "usual", 0, 0, 0 }, NULL },
	{ { NULL, "Of usual (%)", COL_PERCENT, "of_usual", 0, 0, 0 }, "speed" },
};

static const struct column by_key = { NULL, NULL, COL_TEXT, "key", 0, 0, 0 };

/* Ranks of one communicator, operation and size have one key; keys are in the order of rows. */
static void group_key(const json_t *row, char *key, size_t size)
{
	char comm[160] = "", algo[64] = "";

	report_text(row, "comm_label|comm_id", comm, sizeof(comm));
	report_text(row, "algo/proto", algo, sizeof(algo));
	snprintf(key, size, "%s\n%s\n%s\n%020llu\n%s", comm, member_text(row, "comm_id", ""),
		 member_text(row, "func", ""),
		 (unsigned long long)member_number(row, "size_class", 0), algo);
}

static double fold_join(const struct fold *fold, double so_far, double value, double n)
{
	switch (fold->how) {
	case FOLD_SUM:
		return so_far + value;
	case FOLD_MEAN:
		return so_far + (value - so_far) / n;
	case FOLD_LEAST:
		return n > 1 && so_far < value ? so_far : value;
	case FOLD_MOST:
		return n > 1 && so_far > value ? so_far : value;
	}
	return value;
}

/* `counts`: how many rows had each figure so far. */
static void group_add(json_t *group, json_t *counts, const json_t *row)
{
	for (size_t i = 0; i < ARRAY_LEN(folds); i++) {
		const struct fold *f = &folds[i];
		const json_t *value = report_get(row, f->path);
		json_int_t n = json_integer_value(json_object_get(counts, f->name)) + 1;
		double so_far = json_number_value(json_object_get(group, f->name));
		double joined = fold_join(f, so_far, json_number_value(value), (double)n);

		if (!json_is_number(value))
			continue;
		json_object_set_new(counts, f->name, json_integer(n));
		json_object_set_new(group, f->name, f->whole ? json_integer((json_int_t)joined) :
							       json_real(joined));
	}
}

static json_t *group_new(const json_t *row, const char *key)
{
	static const char *const kept[] = {
		"comm_label", "comm_id", "func", "size_class", "algo", "proto",
	};
	json_t *group = json_pack("{s:s}", "key", key);

	for (size_t i = 0; i < ARRAY_LEN(kept); i++)
		if (json_object_get(row, kept[i]))
			json_object_set(group, kept[i], json_object_get(row, kept[i]));
	return group;
}

/* The part that the figures are of the usual is added. */
static void group_finish(json_t *group)
{
	double free_gbs = json_number_value(json_object_get(group, "free"));
	double usual_gbs = json_number_value(json_object_get(group, "usual"));

	if (free_gbs > 0 && usual_gbs > 0)
		json_object_set_new(group, "of_usual", json_real(free_gbs / usual_gbs));
}

json_t *page_ops_by_size(const json_t *ops)
{
	json_auto_t *groups = json_object(), *counts = json_object();
	json_t *rows = json_array(), *group;
	const char *name;
	char key[512];

	json_each(row, ops) {
		group_key(row, key, sizeof(key));
		if (!json_object_get(groups, key)) {
			json_object_set_new(groups, key, group_new(row, key));
			json_object_set_new(counts, key, json_object());
		}
		group_add(json_object_get(groups, key), json_object_get(counts, key), row);
	}
	json_object_foreach(groups, name, group) {
		group_finish(group);
		json_array_append(rows, group);
	}
	report_sort(rows, &by_key, true);
	return rows;
}

static void page_speed(const struct page *page)
{
	json_auto_t *rows = page_ops_by_size(page->ops);

	page_table(page, speed_columns, ARRAY_LEN(speed_columns), rows,
		   "No operation has finished in the time of these files.");
}

/* ---- the limits of the figures ----------------------------------------------------------- */

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

static void page_clocks(const struct page *page)
{
	page_table(page, clock_columns, ARRAY_LEN(clock_columns), page->clocks,
		   "No GPU's clock is known: NCCL has reported no GPU times.");
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

static void page_losses(const struct page *page)
{
	losses_put_sum(page);
	page_table(page, process_columns, ARRAY_LEN(process_columns), page->processes,
		   "The files contain no process.");
}

/* ---- the whole ------------------------------------------------------------------------- */

static const struct section {
	const char *id, *name;
	void (*write)(const struct page *page);
	const char *title;	/* NULL: it writes its own */
	const char *lead;	/* a sentence below the title */
} sections[] = {
	{ "verdicts", "Verdict", page_verdicts, NULL, NULL },
	{ "timeline", "Timeline", page_timeline, "Timeline",
	  "The newest operations on the GPU, a lane for each rank; nodes are aligned by "
	  "their wall clocks. Keys: <kbd>+</kbd> <kbd>-</kbd> zoom, <kbd>&larr;</kbd> "
	  "<kbd>&rarr;</kbd> move, <kbd>0</kbd> all. Or drag, and turn the wheel with "
	  "<kbd>Ctrl</kbd>." },
	{ "waits", "Waiting", page_waits, "Waiting by rank",
	  "<b>Blame</b>: the part of the last 10 s that others waited for this rank. "
	  "<b>Waits</b>: the part that it waited for others. The worst rank is first." },
	{ "speed", "Bandwidth", page_speed, "Bandwidth by size",
	  "Bus bandwidth as in nccl-tests, the mean of all ranks, over the whole time. "
	  "<b>Usual</b> is what such operations reached before. It is compared with "
	  "the bandwidth <b>without waiting</b> for late ranks." },
	{ "links", "Links", page_links, "Links",
	  "The rate while data was on the wire, from each rank to each other, over the "
	  "whole time. Shades compare a link with the median of its communicator: "
	  "<span class=\"key\"><i class=\"s0\"></i>90 % and more <i class=\"s1\"></i>75 "
	  "<i class=\"s2\"></i>50 <i class=\"s3\"></i>25 "
	  "<i class=\"s4\"></i>less</span>" },
	{ "clocks", "Clocks", page_clocks, "Clocks",
	  "<b>Error</b>: how well the GPU's time is known on its node's clock. Times on "
	  "the GPU itself are as exact as its step." },
	{ "losses", "Coverage", page_losses, "Lost and sampled",
	  "Counts miss what was <b>lost</b>. With <b>sampling</b> <code>budget</code>, "
	  "only bursts of operations are timed, the same on all ranks." },
};

static const char *plural(size_t n)
{
	return n == 1 ? "" : "s";
}

/* "2026-11-24T13:03:31.422960143Z" -> "2026-11-24 13:03:31 UTC" */
static void page_put_written(const struct page *page)
{
	const char *t = strchr(page->written, 'T');
	char text[64];

	if (!t)
		return;
	snprintf(text, sizeof(text), "%.10s %.8s UTC", page->written, t + 1);
	fputs(" · written ", page->out);
	html_text(page->out, text);
}

static void page_put_header(const struct page *page)
{
	size_t ranks = json_array_size(page->processes);

	fputs("<header><p class=\"brand\">ncclinsp report</p><p class=\"scope\">", page->out);
	html_text(page->out, member_text(page->status, "host", "no node"));
	fprintf(page->out, " · %zu process%s · %zu file%s", ranks, ranks == 1 ? "" : "es",
		page->files, plural(page->files));
	if (page->refused)
		fprintf(page->out, ", <b>%zu refused</b>", page->refused);
	page_put_written(page);
	fputs("</p>\n<nav>", page->out);
	for (size_t i = 0; i < ARRAY_LEN(sections); i++)
		fprintf(page->out, "<a href=\"#%s\">%s</a>", sections[i].id, sections[i].name);
	fputs("</nav></header>\n<main>\n", page->out);
}

int page_write(const struct page *page)
{
	fputs(page_head, page->out);
	fputs("<title>ncclinsp report: ", page->out);
	html_text(page->out, member_text(page->status, "host", "no node"));
	fprintf(page->out, "</title>\n<style>\n%s</style>\n</head>\n<body>\n", page_style);
	page_put_header(page);
	for (const struct section *s = sections; s < sections + ARRAY_LEN(sections); s++) {
		fprintf(page->out, "<section id=\"%s\">\n", s->id);
		if (s->title)
			fprintf(page->out, "<h2>%s</h2>\n<p class=\"lead\">%s</p>\n", s->title,
				s->lead);
		s->write(page);
		fputs("</section>\n", page->out);
	}
	fprintf(page->out, "</main>\n<script>\n%s</script>\n</body>\n</html>\n", page_script);
	return fflush(page->out) || ferror(page->out) ? -EIO : 0;
}
