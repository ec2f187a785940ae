/* SPDX-License-Identifier: Apache-2.0 */
/* The verdicts: what is wrong, the evidence, what to do; the worst first. */
#include <stdlib.h>
#include <string.h>

#include "cli/base/member.h"
#include "cli/page/html.h"
#include "cli/page/page_parts.h"
#include "util/list.h"
#include "util/words.h"

#define SHOWN 64	/* verdicts at most: the rest is counted */

/* The standing of a verdict, as its class and in words for one and for several. */
static const struct standing {
	const char *class, *one, *many;
} standings[] = {
	{ "critical", "critical finding", "critical findings" },
	{ "warning", "warning", "warnings" },
	{ "suspected", "suspicion", "suspicions" },
	{ "info", "note", "notes" },
};

static size_t verdict_standing(const json_t *row)
{
	const char *severity = member_text(row, "severity", "info");

	if (!strcmp(severity, "info"))
		return 3;
	if (member_is(row, "grade", "suspected"))
		return 2;
	return strcmp(severity, "critical") != 0;
}

/* The bytes of the text that name what is wrong; the rest is its evidence. */
static size_t verdict_lead(const char *text)
{
	static const char *const ends[] = { ". ", "; ", ": " };
	size_t n = strlen(text);

	for (size_t i = 0; i < ARRAY_LEN(ends); i++) {
		const char *end = strstr(text, ends[i]);

		if (end && (size_t)(end - text) < n)
			n = (size_t)(end - text);
	}
	return n;
}

static void verdict_put_text(FILE *out, const char *text)
{
	char *lead = strndup(text, verdict_lead(text));
	const char *rest = text + verdict_lead(text);

	if (!lead)
		return;
	html_element(out, "h3", NULL, lead);
	free(lead);
	rest += strspn(rest, ".;: ");
	if (*rest)
		html_element(out, "p", NULL, rest);
}

/* Lines of whoever looked into the processes. */
static void verdict_put_gathered(FILE *out, const json_t *row)
{
	json_each(line, json_object_get(row, "gathered"))
		html_element(out, "p", NULL, json_string_value(line) ?: "");
}

static void verdict_put(FILE *out, const json_t *row)
{
	const char *verdict = member_text(row, "verdict", "");
	const struct word *word = words_find(verdict);
	const struct standing *s = &standings[verdict_standing(row)];

	fprintf(out, "<article class=\"%s\">\n<p class=\"badge\">%s ", s->class, s->class);
	html_element(out, "b", NULL, verdict);
	fputs("</p>\n", out);
	verdict_put_text(out, member_text(row, "text", ""));
	verdict_put_gathered(out, row);
	if (word && word->action) {
		fputs("<p class=\"action\"><b>What to do</b> ", out);
		html_text(out, word->action);
		fputs("</p>\n", out);
	}
	fputs("</article>\n", out);
}

/* A verdict has a row for each rank that it names, one behind the other: the page has the first. */
static json_t *verdicts_once(const json_t *rows)
{
	json_t *once = json_array(), *last = NULL;

	json_each(row, rows) {
		if (!last || !members_same(last, row, "comm_id", "text"))
			json_array_append(once, row);
		last = row;
	}
	return once;
}

static void verdicts_put_title(FILE *out, const json_t *verdicts)
{
	size_t counts[ARRAY_LEN(standings)] = { 0 }, i, worst = ARRAY_LEN(standings);
	const char *between = "";

	json_each(row, verdicts)
		counts[verdict_standing(row)]++;
	for (i = ARRAY_LEN(standings); i--;)
		worst = counts[i] ? i : worst;
	fprintf(out, "<h1 class=\"%s\">",
		worst < ARRAY_LEN(standings) ? standings[worst].class : "calm");
	for (i = 0; i < ARRAY_LEN(standings); i++) {
		if (!counts[i])
			continue;
		fprintf(out, "%s%zu %s", between, counts[i],
			counts[i] == 1 ? standings[i].one : standings[i].many);
		between = ", ";
	}
	fputs(*between ? "</h1>\n" : "Nothing is found or suspected in these files</h1>\n", out);
}

void page_verdicts(const struct page *page)
{
	json_auto_t *verdicts = verdicts_once(page->verdicts);
	size_t total = json_array_size(verdicts), shown = 0;

	verdicts_put_title(page->out, verdicts);
	json_each(row, verdicts)
		if (shown++ < SHOWN)
			verdict_put(page->out, row);
	if (total > SHOWN)
		fprintf(page->out, "<p class=\"none\">%zu more are not shown; <code>ncclinsp "
			"report</code> lists them.</p>\n", total - SHOWN);
}
