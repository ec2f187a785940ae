/* SPDX-License-Identifier: Apache-2.0 */
/* The plot of the node's last samples, in blocks of eight heights or in ASCII. */
#include "cli/view/history.h"

#include "util/text.h"

#define LABEL 16	/* columns before a plot */
#define LEAST 4		/* columns that a plot is worth drawing in */

/* A full cell has eight steps; the first is a dot that is always seen. */
static const char *const ascii_blocks[] = { " ", ".", ".", ":", ":", "+", "+", "#", "#" };

#define STEPS 8

static const struct figure {
	const char *label;
	double scale;		/* factor from the sample to what the label says */
	double least_top;	/* the plot's top is never lower: noise is not a mountain */
} figures[HISTORY_FIGURES] = {
	[HISTORY_BUSBW] = { "BUSBW(GB/s)", 1, 1 },
	[HISTORY_WAIT] = { "WAIT(%)", 100, 10 },
};

void history_push(struct history *history, double busbw_gbs, double wait)
{
	unsigned long at = history->count++ % HISTORY_SAMPLES;

	history->sample[HISTORY_BUSBW][at] = busbw_gbs;
	history->sample[HISTORY_WAIT][at] = wait;
}

double history_get(const struct history *history, enum history_figure figure, unsigned long back)
{
	if (back >= history->count || back >= HISTORY_SAMPLES)
		return -1;
	return history->sample[figure][(history->count - 1 - back) % HISTORY_SAMPLES];
}

/* The largest of the newest `n`, in the label's unit. */
static double history_top(const struct history *history, enum history_figure figure, int n)
{
	double top = figures[figure].least_top;

	for (int i = 0; i < n; i++) {
		double value = history_get(history, figure, (unsigned long)i) *
			       figures[figure].scale;

		top = value > top ? value : top;
	}
	return top;
}

static void history_put_value(struct line *line, enum line_attr attr, double value, int end)
{
	char text[TEXT_MAX] = "-";

	if (value >= 0)
		text_number(text, sizeof(text), value);
	line_cell(line, attr, text, end - line->columns, true);
}

/* Puts the label left of the plot's line `y`: its name and newest value, below that the top. */
static void history_put_label(struct line *line, const struct history *history,
			      enum history_figure figure, int y, double top, int begin)
{
	double now = history_get(history, figure, 0);

	if (y == 0) {
		line_put(line, LINE_DIM, figures[figure].label);
		history_put_value(line, LINE_BOLD, now < 0 ? now : now * figures[figure].scale,
				  begin + LABEL);
	} else if (y == 1) {
		line_put(line, LINE_DIM, "top");
		history_put_value(line, LINE_DIM, top, begin + LABEL);
	}
	line_pad(line, LINE_PLAIN, begin + LABEL + 1);
}

/* One cell: how far the value fills line `y` of `height`, of which 0 is the highest. */
static const char *plot_cell(double value, double top, int y, int height, bool ascii)
{
	int fill;

	if (value < 0)
		return " ";
	fill = (int)(value / top * height * STEPS + 0.5);
	fill = fill > 1 ? fill : 1;
	fill -= (height - 1 - y) * STEPS;
	fill = fill < 0 ? 0 : fill > STEPS ? STEPS : fill;
	return ascii ? ascii_blocks[fill] : text_block(fill);
}

static void history_put_plot(struct line *line, const struct history *history,
			     enum history_figure figure, int y, int height, int width, bool ascii)
{
	int begin = line->columns, n = width - LABEL - 2;
	double top = history_top(history, figure, n);

	history_put_label(line, history, figure, y, top, begin);
	for (int i = n - 1; i >= 0; i--) {
		double value = history_get(history, figure, (unsigned long)i);

		line_put(line, LINE_DIM,
			 plot_cell(value * figures[figure].scale, top, y, height, ascii));
	}
	line_pad(line, LINE_PLAIN, begin + width);
}

void history_plot(struct frame *frame, const struct history *history, int height, bool ascii)
{
	int width = frame->columns / HISTORY_FIGURES;

	if (width < LABEL + 2 + LEAST)
		return;
	for (int y = 0; y < height; y++) {
		struct line *line = frame_add(frame);

		for (int i = 0; i < HISTORY_FIGURES; i++)
			history_put_plot(line, history, (enum history_figure)i, y, height, width,
					 ascii);
	}
}
