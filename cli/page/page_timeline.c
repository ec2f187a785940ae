/* SPDX-License-Identifier: Apache-2.0 */
/* The newest operations as bars on a lane for each rank; page.js zooms and moves it. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cli/base/member.h"
#include "cli/base/must.h"
#include "cli/page/html.h"
#include "cli/page/page_parts.h"
#include "util/list.h"
#include "util/text.h"

#define LANES 128	/* the most: the rest is counted */
#define BARS  8192	/* the most in all lanes together, the newest of each */
#define TALL  18	/* height of a lane, as page.css has it */
#define TONES 6		/* colours of functions in page.css */

struct timeline_lane {
	const char *host, *comm;
	int64_t rank;
	uint32_t bars;
};

struct timeline {
	FILE *out;
	const json_t *rows;
	struct timeline_lane lanes[LANES];
	uint32_t nlanes;
	const char *funcs[TONES];
	uint32_t nfuncs;
	uint64_t from_ns, to_ns;
};

/* False: the operation has no time. */
static bool bar_time(const json_t *row, uint64_t *start_ns, uint64_t *took_ns)
{
	uint64_t done_ns = member_number(row, "done_mono_ns", 0);

	*took_ns = member_number(row, "exec_ns", 0);
	*start_ns = member_number(row, "gpu_start_mono_ns", done_ns - *took_ns);
	return *took_ns && done_ns >= *took_ns && *took_ns < UINT64_MAX / 4;
}

static struct timeline_lane *timeline_lane(struct timeline *t, const json_t *row, bool adds)
{
	const struct timeline_lane key = {
		.host = member_text(row, "host", ""),
		.comm = member_text(row, "comm_label", NULL) ?: member_text(row, "comm_id", ""),
		.rank = (int64_t)member_number(row, "rank", 0),
	};
	struct timeline_lane *lane;

	for (uint32_t i = 0; i < t->nlanes; i++)
		if (t->lanes[i].rank == key.rank && !strcmp(t->lanes[i].comm, key.comm) &&
		    !strcmp(t->lanes[i].host, key.host))
			return &t->lanes[i];
	lane = adds ? array_add(t->lanes, &t->nlanes) : NULL;
	if (lane)
		*lane = key;
	return lane;
}

/* The colour of a function; the last one is that of all others. */
static uint32_t timeline_tone(struct timeline *t, const char *func)
{
	const char **place;

	for (uint32_t i = 0; i < t->nfuncs; i++)
		if (!strcmp(t->funcs[i], func))
			return i;
	place = array_add(t->funcs, &t->nfuncs);
	if (place)
		*place = func;
	return t->nfuncs - 1;
}

static int lanes_order(const void *left, const void *right)
{
	const struct timeline_lane *a = left, *b = right;
	int order = strcmp(a->comm, b->comm);

	return order ? order : (a->rank > b->rank) - (a->rank < b->rank);
}

static bool lane_is_full(const struct timeline *t, const struct timeline_lane *lane)
{
	return lane->bars >= BARS / t->nlanes;
}

/* The lanes, and the time that their bars cover. */
static void timeline_learn(struct timeline *t)
{
	uint64_t start_ns, took_ns;
	size_t i;

	json_each(row, t->rows)
		if (bar_time(row, &start_ns, &took_ns))
			timeline_lane(t, row, true);
	qsort(t->lanes, t->nlanes, sizeof(t->lanes[0]), lanes_order);
	t->from_ns = UINT64_MAX;
	json_each(row, t->rows) {
		struct timeline_lane *lane = timeline_lane(t, row, false);

		if (!lane || !bar_time(row, &start_ns, &took_ns) || lane_is_full(t, lane))
			continue;
		lane->bars++;
		t->from_ns = start_ns < t->from_ns ? start_ns : t->from_ns;
		t->to_ns = start_ns + took_ns > t->to_ns ? start_ns + took_ns : t->to_ns;
	}
	for (i = 0; i < t->nlanes; i++)
		t->lanes[i].bars = 0;
}

static void bar_put(struct timeline *t, const struct timeline_lane *lane, const json_t *row,
		    uint64_t start_ns, uint64_t took_ns)
{
	const char *func = member_text(row, "func", "?");
	char took[TEXT_MAX], bytes[TEXT_MAX];

	text_duration(took, sizeof(took), took_ns);
	text_bytes(bytes, sizeof(bytes), member_number(row, "bytes", 0));
	fprintf(t->out, "<rect class=\"t%u\" x=\"%.1f\" y=\"%d\" width=\"%.1f\" height=\"%d\">"
		"<title>rank %" PRId64 ": ", timeline_tone(t, func),
		(double)(start_ns - t->from_ns) / 1e3, (int)(lane - t->lanes) * TALL + 2,
		(double)took_ns / 1e3, TALL - 4, lane->rank);
	html_text(t->out, func);
	fprintf(t->out, " #%" PRIu64 ", %s, %s</title></rect>\n", member_number(row, "seq", 0),
		bytes, took);
}

static void timeline_put_lanes(const struct timeline *t)
{
	char label[256];

	fputs("<ol class=\"lanes\">", t->out);
	for (uint32_t i = 0; i < t->nlanes; i++) {
		const struct timeline_lane *lane = &t->lanes[i];

		snprintf(label, sizeof(label), "%s[%" PRId64 "] %s", lane->comm, lane->rank,
			 lane->host);
		html_element(t->out, "li", NULL, label);
	}
	fputs("</ol>\n", t->out);
}

static void timeline_put_bars(struct timeline *t)
{
	uint64_t start_ns, took_ns;

	fprintf(t->out, "<svg class=\"time\" tabindex=\"0\" role=\"img\" aria-label=\"operations "
		"over time\" viewBox=\"0 0 %.1f %u\" preserveAspectRatio=\"none\" "
		"height=\"%u\">\n", (double)(t->to_ns - t->from_ns) / 1e3, t->nlanes * TALL,
		t->nlanes * TALL);
	json_each(row, t->rows) {
		struct timeline_lane *lane = timeline_lane(t, row, false);

		if (!lane || !bar_time(row, &start_ns, &took_ns) || lane_is_full(t, lane))
			continue;
		lane->bars++;
		bar_put(t, lane, row, start_ns, took_ns);
	}
	fputs("</svg></div>\n", t->out);
}

static void timeline_put_legend(const struct timeline *t)
{
	char span[TEXT_MAX];

	text_duration(span, sizeof(span), t->to_ns - t->from_ns);
	fprintf(t->out, "<p class=\"none\"><output>%s</output> <span class=\"key\">", span);
	for (uint32_t i = 0; i < t->nfuncs; i++) {
		fprintf(t->out, "<i class=\"t%u\"></i>", i);
		html_text(t->out, t->funcs[i]);
		fputs(i + 1 == TONES ? " and others " : " ", t->out);
	}
	fprintf(t->out, "</span>%s</p>\n",
		t->nlanes == LANES ? "At most 128 lanes are drawn." : "");
}

void page_timeline(const struct page *page)
{
	struct timeline *t = must(calloc(1, sizeof(*t)));

	t->out = page->out;
	t->rows = page->collectives;
	timeline_learn(t);
	if (t->nlanes) {
		fputs("<div class=\"timeline\">", page->out);
		timeline_put_lanes(t);
		timeline_put_bars(t);
		timeline_put_legend(t);
	} else {
		fputs("<p class=\"none\">These files keep no single operation with a time: "
		      "<code>ncclinsp snapshot</code> and black boxes do.</p>\n", page->out);
	}
	free(t);
}
