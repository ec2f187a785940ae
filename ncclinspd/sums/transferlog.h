/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NCCLINSPD_SUMS_TRANSFERLOG_H
#define NCCLINSPD_SUMS_TRANSFERLOG_H

/*
 * The newest network transfers, oldest out: those of one operation, channel, peer and
 * direction in a row.  What /v1/peers adds up is here one by one, for a moment.
 */

#include "ncclinspd/sums/links.h"

#define TRANSFERLOG_DEFAULT	8192

struct transfer {
	struct links_row row;	/* peers and sums; first, for code that puts rows */
	uint64_t parent;	/* token of the operation it is part of; 0: not known */
	uint64_t start_ns, stop_ns;	/* CLOCK_MONOTONIC */
};

struct transferlog;

/* Returns 0 or -ENOMEM.  `capacity` 0: TRANSFERLOG_DEFAULT. */
int transferlog_new(struct transferlog **logp, uint32_t capacity);
void transferlog_free(struct transferlog *log);

/* Called after links_add() of the same transfers. */
void transferlog_add(struct transferlog *log, const struct transfers *t, const struct links *links);

/* The serial of the newest, from 1; 0: there was none yet. */
uint64_t transferlog_newest(const struct transferlog *log);

/* The transfer with that serial; NULL: gone, or not yet there.  Valid until the next add. */
const struct transfer *transferlog_at(const struct transferlog *log, uint64_t serial);

/* Transfers that ended before this moment may have left the log; 0: nothing has. */
uint64_t transferlog_since_ns(const struct transferlog *log);

#endif
