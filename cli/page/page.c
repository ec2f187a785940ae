/* SPDX-License-Identifier: Apache-2.0 */
/* The page around its parts: head, style, order of the sections, and their tables. */
#include "cli/page/page.h"

#include <errno.h>
#include <string.h>

#include "cli/base/member.h"
#include "cli/page/html.h"
#include "cli/page/page_parts.h"
#include "util/list.h"

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

void page_section(const struct page *page, const char *id, const char *title, const char *lead)
{
	fprintf(page->out, "<section id=\"%s\">\n<h2>%s</h2>\n<p class=\"lead\">%s</p>\n",
		id, title, lead);
}

void page_section_end(const struct page *page)
{
	fputs("</section>\n", page->out);
}

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
	size_t total = json_array_size(rows), i;
	double full[REPORT_COLUMNS];
	json_t *row;

	if (!total) {
		html_element(page->out, "p", "none", nothing);
		return;
	}
	for (i = 0; i < n; i++)
		full[i] = column_full(&columns[i].column, rows);
	table_put_head(page, columns, n);
	json_array_foreach((json_t *)rows, i, row) {
		if (i == PAGE_ROWS)
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

/* ---- the whole ------------------------------------------------------------------------- */

static const struct section {
	const char *id, *title;
	void (*write)(const struct page *page);
} sections[] = {
	{ "verdicts", "Verdict", page_verdicts },
	{ "timeline", "Timeline", page_timeline },
	{ "waits", "Waiting", page_waits },
	{ "speed", "Bandwidth", page_speed },
	{ "links", "Links", page_links },
	{ "clocks", "Clocks", page_clocks },
	{ "losses", "Coverage", page_losses },
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
		fprintf(page->out, "<a href=\"#%s\">%s</a>", sections[i].id, sections[i].title);
	fputs("</nav></header>\n<main>\n", page->out);
}

int page_write(const struct page *page)
{
	fputs(page_head, page->out);
	fputs("<title>ncclinsp report: ", page->out);
	html_text(page->out, member_text(page->status, "host", "no node"));
	fprintf(page->out, "</title>\n<style>\n%s</style>\n</head>\n<body>\n", page_style);
	page_put_header(page);
	for (size_t i = 0; i < ARRAY_LEN(sections); i++)
		sections[i].write(page);
	fprintf(page->out, "</main>\n<script>\n%s</script>\n</body>\n</html>\n", page_script);
	return fflush(page->out) || ferror(page->out) ? -EIO : 0;
}
