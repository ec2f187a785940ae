/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_VIEW_HISTORY_H
#define CLI_VIEW_HISTORY_H

/* The node's last samples of a few figures, and a plot of them. */

#include <stdbool.h>

#include "cli/table/frame.h"

#define HISTORY_SAMPLES 512	/* columns of the widest line */

enum history_figure { HISTORY_BUSBW, HISTORY_WAIT, HISTORY_FIGURES };

struct history {
	/* A ring; unknown is negative. */
	double sample[HISTORY_FIGURES][HISTORY_SAMPLES];
	unsigned long count;	/* samples that were ever pushed */
};

/* GB/s, and the part of the time that ranks wait, 0 to 1; negative: not known. */
void history_push(struct history *history, double busbw_gbs, double wait);

/* The newest sample that is `back` samples old; negative: not known. */
double history_get(const struct history *history, enum history_figure figure, unsigned long back);

/*
 * Both figures beside each other, the newest sample at the right end, in `height`
 * lines, 1 to 8.
 */
void history_plot(struct frame *frame, const struct history *history, int height, bool ascii);

#endif
