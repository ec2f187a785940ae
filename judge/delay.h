/* SPDX-License-Identifier: Apache-2.0 */
#ifndef JUDGE_DELAY_H
#define JUDGE_DELAY_H

/*
 * The slow link, or the slow end of it: the delays of one communicator's links as a
 * matrix, senders (rows) to receivers (columns), each against the median of them all.
 *
 *               to 4   5   6   7
 *     from 0       1   1   1   1        one cell alone: that link
 *          1       1   6   1   1        most of a row: what sends there
 *          2       1   1   1   1        most of a column: what receives there
 *                                       one channel of a cell: that channel
 *
 * What a row or a column has in common is taken out of its cells before these are
 * judged (median polish of the logarithms: Tukey, Exploratory Data Analysis, 1977).
 * The matrix may have holes.  Medians are the lower of two, so that of two links one
 * may be the slow one.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct delay_link {
	int32_t from, to;
	uint32_t channel;
	double delay;		/* time > 0 in any unit: for a byte, for a transfer */
};

enum delay_where {
	DELAY_CHANNEL,
	DELAY_LINK,
	DELAY_SEND_SIDE,	/* no receiver: `to` has no meaning */
	DELAY_RECEIVE_SIDE,	/* no sender: `from` has no meaning */
};

struct delay_hot {
	enum delay_where where;
	int32_t from, to;
	uint32_t channel;	/* only for DELAY_CHANNEL */
	double ratio;		/* times slower than the others */
	/*
	 * Only for DELAY_LINK: other links of the same sender, or to the same receiver, are
	 * there and are not slow.  False: that side may be the cause as well.
	 */
	bool sender_cleared, receiver_cleared;
};

/*
 * Everything at least `least` times slower than the rest, into `hot`, which has room for
 * `max`.  Sorts `links` by sender, receiver, channel; each combination comes once.
 * Returns how many, or -ENOMEM.
 */
int delay_find(struct delay_link *links, uint32_t n, double least, struct delay_hot *hot,
	       uint32_t max);

#endif
