/* SPDX-License-Identifier: Apache-2.0 */
#ifndef READER_JOIN_BATCH_H
#define READER_JOIN_BATCH_H

/*
 * Operations that one piece of work on the GPU carried out together.
 *
 * NCCL stamps the start of all operations of a work batch when the batch starts
 * and their stop when it ends, and runs the batches of one channel strictly one
 * after another.  So two operations of one communicator whose intervals overlap on
 * a channel are one batch, and what one of them took alone nobody can know: only
 * the batch has a duration and a bandwidth.
 *
 * Of sends and receives not even that is known.  The last batch of a kernel is stamped by
 * its first thread, which does not wait for the others: it does the first send (its
 * receive, if nothing is sent), and the other transfers have threads of their own (NCCL
 * 2.26 to 2.30, src/device/common.h and sendrecv.h; seen on an H200).
 */

#include "reader/base/model.h"

/* The time that one operation took on one channel, on the GPU's clock. */
struct batch_span {
	uint64_t start, stop;
	uint32_t channel;
	uint32_t member;	/* number of the operation */
};

/*
 * Finds which members are one batch: batch[m] becomes the smallest member of m's batch.
 * Intervals that only touch are no overlap; equal starts are one.  Sorts `spans`.
 */
void batch_unite(struct batch_span *spans, uint32_t nspans, uint32_t *batch,
		 uint32_t nmembers);

/* Set end_unstamped of those of `ops`, all of one batch, whose end is stamped by none. */
void batch_mark_unstamped(struct op *const *ops, uint32_t n);

/*
 * Fill in what `ops`, all of one batch, placed by timeline, have as one (op->fused,
 * batch...).  Its bus bandwidth is the sum of what each would have by nccl-tests'
 * factors, sends and receives being two directions of one wire; unknown where a
 * member has no GPU time or no size.
 */
void batch_fill(struct op *const *ops, uint32_t n);

#endif
