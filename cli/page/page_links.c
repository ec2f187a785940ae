/* SPDX-License-Identifier: Apache-2.0 */
/* The network between ranks: a matrix for each communicator, from its sends. */
#include <stdlib.h>

#include "cli/base/member.h"
#include "cli/base/must.h"
#include "cli/page/html.h"
#include "cli/page/page_parts.h"
#include "tables/stat.h"
#include "util/list.h"
#include "util/text.h"

#define SIDE	 64	/* ranks in a matrix at most */
#define MATRICES 8	/* the most that are drawn, the first of the files */

/* A link from one rank to another: all channels together. */
struct link_cell {
	double bytes, busy_ns;
};

struct links_matrix {
	const char *comm;		/* its label or id */
	int64_t ranks[SIDE];		/* ranks with links, ascending */
	uint32_t n;
	bool full;			/* more ranks have links than are in it */
	struct link_cell at[SIDE][SIDE];
	double median_gbs;
};

/* Bytes over nanoseconds are GB/s. */
static double cell_gbs(const struct link_cell *cell)
{
	return cell->busy_ns > 0 ? cell->bytes / cell->busy_ns : 0;
}

static bool link_is_of(const json_t *row, const char *comm_id)
{
	return member_is(row, "direction", "send") &&
	       json_is_integer(json_object_get(row, "rank")) &&
	       json_is_integer(json_object_get(row, "peer")) &&
	       json_number_value(json_object_get(row, "busy_ns")) > 0 &&
	       member_is(row, "comm_id", comm_id);
}

static int numbers_order(const void *left, const void *right)
{
	const int64_t *a = left, *b = right;

	return (*a > *b) - (*a < *b);
}

static int64_t *matrix_find(struct links_matrix *m, int64_t rank)
{
	for (uint32_t i = 0; i < m->n; i++)
		if (m->ranks[i] == rank)
			return &m->ranks[i];
	return NULL;
}

static void matrix_learn(struct links_matrix *m, int64_t rank)
{
	int64_t *place = matrix_find(m, rank);

	if (place)
		return;
	place = array_add(m->ranks, &m->n);
	if (place)
		*place = rank;
	else
		m->full = true;
}

static void matrix_add(struct links_matrix *m, const json_t *row)
{
	int64_t *from = matrix_find(m, json_integer_value(json_object_get(row, "rank")));
	int64_t *to = matrix_find(m, json_integer_value(json_object_get(row, "peer")));
	struct link_cell *cell;

	if (!from || !to)
		return;
	cell = &m->at[from - m->ranks][to - m->ranks];
	cell->bytes += json_number_value(json_object_get(row, "bytes"));
	cell->busy_ns += json_number_value(json_object_get(row, "busy_ns"));
}

static double matrix_median(const struct links_matrix *m)
{
	double *rates = must(malloc(sizeof(*rates) * SIDE * SIDE)), median;
	size_t n = 0;

	for (uint32_t i = 0; i < m->n; i++)
		for (uint32_t k = 0; k < m->n; k++)
			if (cell_gbs(&m->at[i][k]) > 0)
				rates[n++] = cell_gbs(&m->at[i][k]);
	stat_sort(rates, n);
	median = n ? rates[n / 2] : 0;
	free(rates);
	return median;
}

static void matrix_fill(struct links_matrix *m, const json_t *peers, const char *comm_id)
{
	json_each(row, peers) {
		if (!link_is_of(row, comm_id))
			continue;
		m->comm = json_string_value(report_get(row, "comm_label|comm_id"));
		matrix_learn(m, json_integer_value(json_object_get(row, "rank")));
		matrix_learn(m, json_integer_value(json_object_get(row, "peer")));
	}
	qsort(m->ranks, m->n, sizeof(m->ranks[0]), numbers_order);
	json_each(row, peers)
		if (link_is_of(row, comm_id))
			matrix_add(m, row);
	m->median_gbs = matrix_median(m);
}

/* ---- drawing ---------------------------------------------------------------------------- */

/* The shade of a cell, by its part of the median link: no judgement. */
static int cell_shade(double part)
{
	static const double least[] = { 0.9, 0.75, 0.5, 0.25 };
	int shade = 0;

	while (shade < (int)ARRAY_LEN(least) && part < least[shade])
		shade++;
	return shade;
}

static void matrix_put_cell(FILE *out, const struct links_matrix *m, uint32_t from, uint32_t to,
			    int size)
{
	double gbs = cell_gbs(&m->at[from][to]);
	char rate[TEXT_MAX];

	if (gbs <= 0)
		return;
	text_number(rate, sizeof(rate), gbs);
	fprintf(out, "<g><title>rank %lld to rank %lld: %s GB/s, %.0f %% of the median</title>"
		"<rect class=\"s%d\" x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\"/>",
		(long long)m->ranks[from], (long long)m->ranks[to], rate,
		gbs / m->median_gbs * 100, cell_shade(gbs / m->median_gbs),
		48 + (int)to * size, 24 + (int)from * size, size - 1, size - 1);
	if (size >= 40)
		fprintf(out, "<text class=\"rate\" x=\"%d\" y=\"%d\">%s</text>",
			48 + (int)to * size + size / 2, 24 + (int)from * size + size / 2 + 4, rate);
	fputs("</g>\n", out);
}

/* Numbers of ranks at both sides, each of them or as many as have room. */
static void matrix_put_ranks(FILE *out, const struct links_matrix *m, int size)
{
	uint32_t step = size >= 18 ? 1 : (uint32_t)(18 / size + 1);

	for (uint32_t i = 0; i < m->n; i += step) {
		fprintf(out, "<text class=\"to\" x=\"%d\" y=\"18\">%lld</text>",
			48 + (int)i * size + size / 2, (long long)m->ranks[i]);
		fprintf(out, "<text class=\"from\" x=\"42\" y=\"%d\">%lld</text>\n",
			24 + (int)i * size + size / 2 + 4, (long long)m->ranks[i]);
	}
}

static void matrix_put(FILE *out, const struct links_matrix *m)
{
	int size = m->n <= 12 ? 48 : m->n <= 32 ? 22 : 12;
	int side = (int)m->n * size;
	char median[TEXT_MAX];

	text_number(median, sizeof(median), m->median_gbs);
	fputs("<figure><figcaption>", out);
	html_element(out, "b", NULL, m->comm ? m->comm : "");
	fprintf(out, ": rows send, columns receive; the median link has %s GB/s%s</figcaption>\n",
		median, m->full ? "; more ranks have links than are shown" : "");
	fprintf(out, "<svg class=\"matrix\" role=\"img\" viewBox=\"0 0 %d %d\" width=\"%d\" "
		"aria-label=\"bandwidth from rank to rank\">\n", 49 + side, 25 + side, 49 + side);
	matrix_put_ranks(out, m, size);
	for (uint32_t i = 0; i < m->n; i++)
		for (uint32_t k = 0; k < m->n; k++)
			matrix_put_cell(out, m, i, k, size);
	fputs("</svg></figure>\n", out);
}

static size_t links_put_matrices(const struct page *page)
{
	json_auto_t *seen = json_object();
	const char *comm_id;
	size_t n = 0;

	json_each(row, page->peers) {
		struct links_matrix *m;

		comm_id = member_text(row, "comm_id", "");
		if (!link_is_of(row, comm_id) || json_object_get(seen, comm_id))
			continue;
		json_object_set_new(seen, comm_id, json_true());
		if (n++ >= MATRICES)
			continue;
		m = must(calloc(1, sizeof(*m)));
		matrix_fill(m, page->peers, comm_id);
		matrix_put(page->out, m);
		free(m);
	}
	return n;
}

void page_links(const struct page *page)
{
	size_t n;

	n = links_put_matrices(page);
	if (!n)
		fputs("<p class=\"none\">No transfer over a network was seen: one node, or a "
		      "level below <code>net</code>.</p>\n", page->out);
	else if (n > MATRICES)
		fprintf(page->out, "<p class=\"none\">%zu more communicators are not drawn; "
			"<code>ncclinsp peers --from</code> lists their links.</p>\n",
			n - MATRICES);
}
