/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Links are joined to cells, cells to rows and columns, and what these have in common is
 * taken out of the cells before they are judged: a slow end would else be many slow links.
 */
#include "judge/delay.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tables/stat.h"
#include "util/list.h"

#define ROUNDS	10	/* rounds of the polish; it settles after two or three */
#define SETTLED	1e-9
#define OTHERS	2	/* cells of a row or column that say something about it */

/* One sender and one receiver, over all channels. */
struct delay_cell {
	const struct delay_link *links;
	size_t nlinks;
	double delay;
	double rest;	/* logarithm, of what rows and columns do not explain */
	uint32_t line[2];	/* row, column */
};

/* A row or a column. */
struct delay_line {
	uint32_t first, n;	/* its cells: places in the order of its kind */
	double effect;		/* logarithm */
};

struct matrix {
	LIST(struct delay_cell) cells;
	uint32_t *order[2];	/* cells by row; by column */
	LIST(struct delay_line) lines[2];
	double *scratch;
};

static int cells_by_place(const void *a, const void *b)
{
	const struct delay_link *x = a, *y = b;

	if (x->from != y->from)
		return x->from < y->from ? -1 : 1;
	if (x->to != y->to)
		return x->to < y->to ? -1 : 1;
	return (x->channel > y->channel) - (x->channel < y->channel);
}

static int cells_by_column(const void *a, const void *b, void *cells)
{
	const struct delay_cell *x = (const struct delay_cell *)cells + *(const uint32_t *)a;
	const struct delay_cell *y = (const struct delay_cell *)cells + *(const uint32_t *)b;

	if (x->links->to != y->links->to)
		return x->links->to < y->links->to ? -1 : 1;
	return (x > y) - (x < y);
}

/* ---- making -------------------------------------------------------------- */

static void matrix_deinit(struct matrix *m)
{
	for (int kind = 0; kind < 2; kind++) {
		free(m->order[kind]);
		list_deinit(&m->lines[kind]);
	}
	free(m->scratch);
	list_deinit(&m->cells);
}

static int matrix_init(struct matrix *m, uint32_t n)
{
	bool ok;

	*m = (struct matrix){ .scratch = calloc(n, sizeof(*m->scratch)) };
	ok = m->scratch && list_init(&m->cells, n) == 0;
	for (int kind = 0; ok && kind < 2; kind++) {
		m->order[kind] = calloc(n, sizeof(*m->order[kind]));
		ok = m->order[kind] && list_init(&m->lines[kind], n) == 0;
	}
	return ok ? 0 : -ENOMEM;
}

static void add_cell(struct matrix *m, const struct delay_link *links, size_t n)
{
	for (size_t i = 0; i < n; i++)
		m->scratch[i] = links[i].delay;
	m->order[0][m->cells.n] = m->order[1][m->cells.n] = m->cells.n;
	*list_must_add(&m->cells) = (struct delay_cell){ .links = links, .nlinks = n,
							 .delay = stat_quantile(m->scratch, n,
										0.5) };
}

static void make_cells(struct matrix *m, struct delay_link *links, size_t n)
{
	size_t end;

	qsort(links, n, sizeof(*links), cells_by_place);
	for (size_t i = 0; i < n; i = end) {
		for (end = i + 1; end < n && links[end].from == links[i].from &&
		     links[end].to == links[i].to; end++)
			continue;
		add_cell(m, &links[i], end - i);
	}
	qsort_r(m->order[1], m->cells.n, sizeof(*m->order[1]), cells_by_column, m->cells.at);
}

static int32_t cell_end(const struct delay_cell *cell, int kind)
{
	return kind ? cell->links->to : cell->links->from;
}

static void make_lines(struct matrix *m, int kind)
{
	struct delay_line *line = NULL;

	for (uint32_t i = 0; i < m->cells.n; i++) {
		struct delay_cell *cell = &m->cells.at[m->order[kind][i]];

		if (!i ||
		    cell_end(cell, kind) != cell_end(&m->cells.at[m->order[kind][i - 1]], kind)) {
			line = list_must_add(&m->lines[kind]);
			*line = (struct delay_line){ .first = i };
		}
		line->n++;
		cell->line[kind] = m->lines[kind].n - 1;
	}
}

static void make_rests(struct matrix *m)
{
	double middle;

	for (size_t i = 0; i < m->cells.n; i++)
		m->scratch[i] = m->cells.at[i].delay;
	middle = stat_quantile(m->scratch, m->cells.n, 0.5);
	for (size_t i = 0; i < m->cells.n; i++)
		m->cells.at[i].rest = log(m->cells.at[i].delay / middle);
}

/* ---- judging --------------------------------------------------------------- */

/* Take out of the line's cells what they have in common; by how much that moved it. */
static double polish_line(struct matrix *m, int kind, struct delay_line *line)
{
	double common;

	if (line->n < OTHERS)
		return 0;
	for (uint32_t i = 0; i < line->n; i++)
		m->scratch[i] = m->cells.at[m->order[kind][line->first + i]].rest;
	common = stat_quantile(m->scratch, line->n, 0.5);
	for (uint32_t i = 0; i < line->n; i++)
		m->cells.at[m->order[kind][line->first + i]].rest -= common;
	line->effect += common;
	return fabs(common);
}

static void matrix_polish(struct matrix *m)
{
	double moved = 1;

	for (int round = 0; round < ROUNDS && moved > SETTLED; round++) {
		moved = 0;
		for (int kind = 0; kind < 2; kind++)
			for (uint32_t i = 0; i < m->lines[kind].n; i++)
				moved = fmax(moved, polish_line(m, kind, &m->lines[kind].at[i]));
	}
}

/* The list of hot links and ends. */
struct delay_found {
	double least;
	LIST(struct delay_hot) hot;
};

static void add_hot(struct delay_found *found, struct delay_hot hot)
{
	struct delay_hot *place = hot.ratio >= found->least ? list_add(&found->hot) : NULL;

	if (place)
		*place = hot;
}

static void judge_lines(const struct matrix *m, int kind, struct delay_found *found)
{
	for (uint32_t i = 0; i < m->lines[kind].n; i++) {
		const struct delay_line *line = &m->lines[kind].at[i];
		const struct delay_cell *cell = &m->cells.at[m->order[kind][line->first]];

		add_hot(found, (struct delay_hot){
			.where = kind ? DELAY_RECEIVE_SIDE : DELAY_SEND_SIDE,
			.from = cell->links->from,
			.to = cell->links->to,
			.ratio = exp(line->effect),
		});
	}
}

static void judge_channels(const struct delay_cell *cell, struct delay_found *found)
{
	for (size_t i = 0; i < cell->nlinks; i++) {
		const struct delay_link *link = &cell->links[i];

		add_hot(found, (struct delay_hot){
			.where = DELAY_CHANNEL,
			.from = link->from,
			.to = link->to,
			.channel = link->channel,
			.ratio = link->delay / cell->delay,
		});
	}
}

static void judge_cell(const struct matrix *m, const struct delay_cell *cell,
		       struct delay_found *found)
{
	add_hot(found, (struct delay_hot){
		.where = DELAY_LINK,
		.from = cell->links->from,
		.to = cell->links->to,
		.ratio = exp(cell->rest),
		.sender_cleared = m->lines[0].at[cell->line[0]].n >= OTHERS,
		.receiver_cleared = m->lines[1].at[cell->line[1]].n >= OTHERS,
	});
	judge_channels(cell, found);
}

int delay_find(struct delay_link *links, uint32_t n, double least, struct delay_hot *hot,
	       uint32_t max)
{
	struct delay_found found = { .least = least, .hot = { .at = hot, .room = max } };
	struct matrix m;
	int r = matrix_init(&m, n);

	if (r == 0 && n) {
		make_cells(&m, links, n);
		make_lines(&m, 0);
		make_lines(&m, 1);
		make_rests(&m);
		matrix_polish(&m);
		judge_lines(&m, 0, &found);
		judge_lines(&m, 1, &found);
		for (size_t i = 0; i < m.cells.n; i++)
			judge_cell(&m, &m.cells.at[i], &found);
	}
	matrix_deinit(&m);
	return r < 0 ? r : (int)found.hot.n;
}
